# SPDX-License-Identifier: MIT
# fish completion for weir

set -l commands demo devices help replay scenario

complete -c weir -f
complete -c weir -n "not __fish_seen_subcommand_from $commands" -a demo -d "Where the memory of dropped tensors is"
complete -c weir -n "not __fish_seen_subcommand_from $commands" -a devices -d "The devices that can be opened here"
complete -c weir -n "not __fish_seen_subcommand_from $commands" -a help -d "The help of a command"
complete -c weir -n "not __fish_seen_subcommand_from $commands" -a replay -d "Run a recorded allocation trace and measure it"
complete -c weir -n "not __fish_seen_subcommand_from $commands" -a scenario -d "Run scenario files against the sim driver"
complete -c weir -n "not __fish_seen_subcommand_from $commands" -l version -d "Print the version"
complete -c weir -l help -d "Print a summary"
complete -c weir -n "__fish_seen_subcommand_from help" -a "demo devices replay scenario"

complete -c weir -n "__fish_seen_subcommand_from demo devices replay scenario" -l json -d "Print one JSON object"
complete -c weir -n "__fish_seen_subcommand_from demo replay" -l device -x -a "host sim cuda webgpu" -d "The device"
complete -c weir -n "__fish_seen_subcommand_from demo replay" -l preset -x -a "elastic adaptive subslices exclusive" -d "How memory is laid out"

complete -c weir -n "__fish_seen_subcommand_from demo" -l idle -d "Let the idle reclaimer give the memory back"
complete -c weir -n "__fish_seen_subcommand_from demo" -l idle-ms -x -d "How long memory is idle before it goes back"
complete -c weir -n "__fish_seen_subcommand_from demo" -l wait -d "Cleanups wait until the driver has let go"

complete -c weir -n "__fish_seen_subcommand_from replay" -F
complete -c weir -n "__fish_seen_subcommand_from replay" -l granule -x -d "Unit of commit, 0 for whole pages"
complete -c weir -n "__fish_seen_subcommand_from replay" -l chunk -x -d "The most that sim commits as one chunk"
complete -c weir -n "__fish_seen_subcommand_from replay" -l passes -x -d "How often the trace is played"
complete -c weir -n "__fish_seen_subcommand_from replay" -l lag -x -d "Operations until a fence passes"
complete -c weir -n "__fish_seen_subcommand_from replay" -l capacity -x -d "Memory of the device"
complete -c weir -n "__fish_seen_subcommand_from replay" -l step-ms -x -d "How far the clock moves at each mark"

complete -c weir -n "__fish_seen_subcommand_from scenario" -F
complete -c weir -n "__fish_seen_subcommand_from scenario" -l fail-call -x -d "The driver call that fails"
