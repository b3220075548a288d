#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every scenario again and again, while the 1st, 2nd, 3rd... memory or fence call of the driver
# fails, until no scenario makes so many calls. The short form takes every call up to the 40th
# and then ever longer steps; WEIR_SOAK=1 takes all.
set -u
[ -n "${WEIR:-}" ] || exit 77
if [ "${WEIR_SANITIZE:-}" = thread ]; then
    echo "skipped: scenarios have one thread; the other builds sweep them"
    exit 77
fi
cd "$(dirname "$0")" || exit 1

# Scenarios that cannot pass yet are listed in pending.txt.
files=()
for file in *.scn; do
    grep -qsE "^${file%.scn}([[:space:]]|\$)" pending.txt || files+=("$file")
done

# The most driver calls that any scenario has made, from the runner's JSON.
most_calls() {
    grep -o '"driver_calls":[[:space:]]*[0-9]*' "$1" | grep -o '[0-9]*$' | sort -n | tail -1
}

output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=0
n=1
while true; do
    if ! "$WEIR" scenario --json --fail-call "$n" "${files[@]}" >"$output"; then
        echo "with call $n failing:"
        "$WEIR" scenario --fail-call "$n" "${files[@]}" | grep -v '^ok'
        failed=1
    fi
    calls=$(most_calls "$output")
    if [ "${calls:-0}" -lt "$n" ]; then
        break
    fi
    if [ "$n" -lt 40 ] || [ "${WEIR_SOAK:-0}" = 1 ]; then
        n=$((n + 1))
    else
        n=$((n + n / 8))
    fi
done
echo "swept ${#files[@]} scenarios up to call $n"
exit $failed
