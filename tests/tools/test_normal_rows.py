#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""src/kernel/normal_rows.h holds what tools/normal_rows works out."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rows(text):
    lines = [line for line in text.splitlines() if re.search(r"WR_NORMAL_LOG|ROW\(\d", line)]
    return [[int(number) for number in re.findall(r"-?\b\d+\b", line)] for line in lines]


class NormalRows(unittest.TestCase):
    def test_the_header_holds_what_the_tool_works_out(self):
        made = rows(subprocess.run([sys.executable, ROOT / "tools/normal_rows"], check=True,
                                   capture_output=True, text=True).stdout)
        held = rows((ROOT / "src/kernel/normal_rows.h").read_text())
        self.assertEqual([len(row) for row in held], [8] + 6 * [9])
        self.assertEqual([len(row) for row in made], [8] + 6 * [9])
        for made_row, held_row in zip(made, held):
            for one, other in zip(made_row, held_row):
                self.assertLessEqual(abs(one - other), 1)  # another C library's log2


if __name__ == "__main__":
    unittest.main()
