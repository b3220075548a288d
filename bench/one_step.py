#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cuts one step out of a recorded trace, so that it can be replayed again and again.

    bench/one_step.py TRACE STEP >step.trace

What lives when the step begins is allocated first; `weir replay --passes` drops what
lives at its end. STEP counts the trace's marks, from 1.
"""
import gzip
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path, wanted = sys.argv[1], int(sys.argv[2])
    opener = gzip.open if path.endswith(".gz") else open
    live, step, steps = {}, [], 0
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if not words or words[0] == "#":
                continue
            if words[0] == "m":
                steps += 1
            elif steps == wanted:
                step.append(line)
            elif steps < wanted and words[0] == "a":
                live[words[1]] = line
            elif steps < wanted:
                live.pop(words[1], None)
            if steps > wanted:
                break
    if not step:
        sys.exit(f"one_step: {path} has no step {wanted}; it has {steps}")
    sys.stdout.writelines([f"# step {wanted} of {path}\n", *live.values(), *step])


if __name__ == "__main__":
    main()
