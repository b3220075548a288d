#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every public function of src/stream asks whether it is in a forked child (base/fork.h), by
itself or through a function that does, before it touches a lock or the driver."""

import os
import re
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("WEIR_SOURCE_DIR", Path(__file__).parents[2]))

# What asks, or returns before anything is touched: handles are unknown in a child, sizes too
# large.
ASKS = re.compile(r"\bwr_fork_(check|is_child)\(|\brequest_max\(|"
                  r"\bwr_handle_find\(buffer, &word\)|\bwr_slab_has\(buffer")
FUNCTION = re.compile(r"^(?:[\w ]+[\s*]+)?(\w+)\(([^;{}]*)\)\n\{\n(.*?)^\}", re.M | re.S)


def public_names():
    names = set()
    for header in (ROOT / "include/weir").glob("*.h"):
        names |= set(re.findall(r"WEIR_API[^;(]*?(\w+)\(", header.read_text()))
    return names


def functions():
    """(file, name, body) of all functions."""
    for source in sorted((ROOT / "src/stream").glob("*.c")):
        for match in FUNCTION.finditer(source.read_text()):
            yield source.name, match[1], match[3]


def asking_names(found):
    """Private functions of each file that ask."""
    return {(file, name) for file, name, body in found if ASKS.search(body)}


class ForkFirst(unittest.TestCase):
    def test_every_public_function_asks_whether_it_is_in_a_forked_child(self):
        found = list(functions())
        public, asking, silent = public_names(), asking_names(found), []
        for file, name, body in found:
            calls = set(re.findall(r"\b(\w+)\(", body))
            asks = any((file, call) in asking or call in public for call in calls)
            if name in public and not ASKS.search(body) and not asks:
                silent.append(f"src/stream/{file}: {name}")
        self.assertEqual(silent, [], "add WR_TRY(wr_fork_check()) as their first line")
        self.assertGreater(sum(name in public for _, name, _ in found), 30)


if __name__ == "__main__":
    unittest.main()
