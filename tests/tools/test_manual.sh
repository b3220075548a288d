#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every command has a manual page, and every option that its --help lists is in that page and in
# the completions of all three shells.
set -eu
cd "${WEIR_SOURCE_DIR:-$(dirname "$0")/../..}"
if [ -z "${WEIR:-}" ]; then
    echo "skipped: the command is not built"
    exit 77
fi
failed=0
# must_have WHAT FILE PATTERN: complains unless the file has the pattern.
must_have() {
    if ! grep -q -e "$3" "$2"; then
        echo "$1 is not in $2"
        failed=1
    fi
}
commands=$("$WEIR" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
for command in $commands; do
    page=man/weir-$command.1
    for file in completions/weir.bash completions/_weir completions/weir.fish man/weir.1; do
        must_have "the command $command" "$file" "\b$command\b"
    done
    if [ ! -f "$page" ]; then
        echo "the command $command has no $page"
        failed=1
        continue
    fi
    for option in $("$WEIR" "$command" --help | sed -n 's/^  --\([a-z-]*\).*/\1/p'); do
        must_have "--$option of $command" "$page" "\\\\-\\\\-${option//-/\\\\-}\b"
        must_have "--$option of $command" completions/weir.bash "--$option\b"
        must_have "--$option of $command" completions/_weir "--$option\b"
        must_have "--$option of $command" completions/weir.fish "-l $option\b"
    done
done
exit $failed
