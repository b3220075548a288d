#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/check_symbols finds each kind of difference in a small project made for it."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = """#define WEIR_API __attribute__((visibility("default")))
/* WEIR_API int weir_in_a_comment(void); */
WEIR_API const char *weir_one(int (*callback)(int),
                              int other);
WEIR_API int weir_two(void);
"""
GOOD = """#include "../include/weir/a.h"
const char *weir_one(int (*callback)(int), int other) { return other ? "" : 0; }
int weir_two(void) { return 2; }
int wr_private(void) { return 3; }
static int bare(void) { return 4; }
int wr_other(void) { return bare(); }
"""


class CheckSymbols(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        self.objects = self.tree / "build/CMakeFiles/weir_objects.dir/src/base"
        for path in ("tools", "include/weir", "src"):
            (self.tree / path).mkdir(parents=True)
        self.objects.mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "check_symbols", self.tree / "tools")

    def build(self, source, header=HEADER):
        (self.tree / "include/weir/a.h").write_text(header)
        (self.tree / "src/a.c").write_text(source)
        self.compile("-c", self.tree / "src/a.c", "-o", self.objects / "a.c.o")
        self.compile("-shared", self.objects / "a.c.o", "-o", self.tree / "build/libweir.so")
        self.compile("-shared", "-x", "c", "/dev/null",
                     "-o", self.tree / "build/libweir_tensor.so")

    def compile(self, *arguments):
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-fPIC", "-fvisibility=hidden", *arguments], check=True)

    def complaints(self):
        run = subprocess.run([self.tree / "tools/check_symbols", self.tree / "build"],
                             capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.returncode, 1 if run.stdout else 0)
        return run.stdout

    def test_equal_sets_pass(self):
        self.build(GOOD)
        self.assertEqual(self.complaints(), "")

    def test_a_declared_function_that_is_missing_is_named(self):
        self.build(GOOD, HEADER + "WEIR_API void weir_three(void);\n")
        self.assertIn("weir_three: marked WEIR_API, but not exported", self.complaints())

    def test_an_exported_function_that_no_header_has_is_named(self):
        self.build(GOOD + "WEIR_API int weir_more(void) { return 5; }\n")
        self.assertIn("weir_more: exported, but no header marks it", self.complaints())

    def test_a_public_name_without_the_prefix_is_named(self):
        self.build(GOOD + "int other(void) { return 5; }\n", HEADER + "WEIR_API int other(void);\n")
        self.assertIn("other: a public name must begin with weir_", self.complaints())

    def test_a_private_name_without_the_prefix_is_named(self):
        self.build(GOOD + "int loose(void) { return 5; }\nint datum = 1;\n")
        self.assertIn("a.c: loose: a private symbol must begin with wr_", self.complaints())
        self.assertIn("a.c: datum: a private symbol must begin with wr_", self.complaints())

    def test_a_build_without_shared_libraries_is_an_error(self):
        self.assertIn("build with BUILD_SHARED_LIBS=ON first", self.complaints())


if __name__ == "__main__":
    unittest.main()
