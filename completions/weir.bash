# SPDX-License-Identifier: MIT
# bash completion for weir

_weir()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local options=""
    COMPREPLY=()

    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "demo devices help replay scenario --help --version" -- "$word")
        return
    fi
    case $before in
    --device)
        mapfile -t COMPREPLY < <(compgen -W "host sim cuda webgpu" -- "$word")
        return
        ;;
    --preset)
        mapfile -t COMPREPLY < <(compgen -W "elastic adaptive subslices exclusive" -- "$word")
        return
        ;;
    --granule | --capacity | --lag | --step-ms | --idle-ms | --fail-call)
        return
        ;;
    help)
        mapfile -t COMPREPLY < <(compgen -W "demo devices replay scenario" -- "$word")
        return
        ;;
    esac
    case ${COMP_WORDS[1]} in
    demo) options="--device --preset --idle --idle-ms --wait --json --help" ;;
    devices) options="--json --help" ;;
    replay) options="--device --preset --granule --chunk --passes --lag --capacity --step-ms --json --help" ;;
    scenario) options="--json --fail-call --help" ;;
    esac
    case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word") ;;
    *)
        case ${COMP_WORDS[1]} in
        replay | scenario)
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            ;;
        esac
        ;;
    esac
}

complete -F _weir weir
