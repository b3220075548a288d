#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/check_layers finds each kind of trespass in a tree made for it, and nothing else."""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPDX = "/* SPDX-License-Identifier: MIT */\n"


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        for header in ("include/weir/base.h", "src/base/result.h", "src/page/page.h",
                       "src/driver/list.h", "src/driver/host/host.h", "src/driver/sim/sim.h",
                       "src/pool/pool.h", "src/kernel/kernels.h", "cli/print.h"):
            self.write(header, "")

    def write(self, path, text, first=SPDX):
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(first + text)

    def complaints(self):
        run = subprocess.run([ROOT / "tools" / "check_layers", self.tree],
                             capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.returncode, 1 if run.stdout else 0)
        return run.stdout

    def includes(self, path, header):
        self.write(path, f'#include "{header}"\n')
        return self.complaints()

    def test_own_folder_and_lower_layers_are_allowed(self):
        self.write("src/pool/a.c", '#include "pool.h"\n#include "page/page.h"\n'
                                   '#include "driver/list.h"\n#include "base/result.h"\n'
                                   "#include <weir/base.h>\n")
        self.write("src/driver/list.c", '#include "host/host.h"\n#include "sim/sim.h"\n')
        self.write("src/driver/host/a.c", '#include "host.h"\n#include "driver/list.h"\n')
        self.write("src/tensor/a.c", '#include "kernel/kernels.h"\n')
        self.write("cli/a.c", '#include "print.h"\n')
        self.write("tests/pool/test_a.c", '#include "pool/pool.h"\n')
        self.assertEqual(self.complaints(), "")

    def test_upward_is_refused(self):
        self.assertIn("src/page/a.c:2: \"pool/pool.h\": page may not include pool",
                      self.includes("src/page/a.c", "pool/pool.h"))

    def test_sideways_is_refused(self):
        self.assertIn("driver may not include page",
                      self.includes("src/driver/host/a.c", "page/page.h"))

    def test_report_knows_base_only(self):
        self.assertIn("report may not include pool",
                      self.includes("src/report/a.c", "pool/pool.h"))

    def test_another_driver_is_refused(self):
        self.assertIn("a driver may not include another driver",
                      self.includes("src/driver/host/a.c", "../sim/sim.h"))

    def test_a_pool_that_names_a_driver_is_refused(self):
        self.assertIn("only the list of drivers may name one",
                      self.includes("src/pool/a.c", "driver/sim/sim.h"))

    def test_private_headers_are_refused_outside_the_library(self):
        for folder in ("cli", "bench", "examples", "adapters"):
            self.assertIn(f"{folder} may include public headers only",
                          self.includes(f"{folder}/a.c", "../src/base/result.h"))

    def test_private_headers_are_refused_in_tensors(self):
        self.assertIn("tensor may not include base",
                      self.includes("src/tensor/a.c", "base/result.h"))

    def test_private_headers_are_refused_in_public_ones(self):
        self.assertIn("a public header may include public headers only",
                      self.includes("include/weir/a.h", "../../src/base/result.h"))

    def test_a_header_that_is_not_there_is_named(self):
        self.assertIn('"nowhere.h": no such file in the tree',
                      self.includes("src/base/a.c", "nowhere.h"))

    def test_a_folder_that_is_no_layer_is_named(self):
        self.assertIn("src/extra is no layer", self.includes("src/extra/a.c", "base/result.h"))

    def test_a_vendor_is_refused_outside_its_driver(self):
        self.write("src/driver/cuda/a.c", "#ifdef CUDART_VERSION\n#endif\n")
        self.write("src/pool/relationship.c", "#ifdef RELATIONSHIP\n#endif\n")
        self.write("include/weir/webgpu.h", "#ifndef WEIR_WEBGPU_H\n#endif\n")
        self.assertEqual(self.complaints(), "")
        self.write("src/pool/a.c", "#if defined(WEIR_CUDA)\n#endif\n")
        self.assertIn("src/pool/a.c:2: #if on cuda", self.complaints())
        self.write("include/weir/device.h", "#ifndef WEIR_WEBGPU_H\n#endif\n")
        self.assertIn("include/weir/device.h:2: #if on webgpu", self.complaints())

    def test_long_files_are_refused(self):
        self.write("src/base/a.c", "\n" * 799)
        self.assertEqual(self.complaints(), "")
        self.write("src/base/a.c", "\n" * 800)
        self.assertIn("801 lines; a file has at most 800", self.complaints())

    def test_long_functions_are_refused(self):
        body = "/* A function. */\nint a(int b,\n      int c)\n{\n" + "    b++;\n" * 76
        self.write("src/base/a.c", body + "}\n")
        self.assertEqual(self.complaints(), "")
        self.write("src/base/a.c", body + "    c++;\n}\n")
        self.assertIn("src/base/a.c:3: 81 lines; a function has at most 80", self.complaints())

    def test_a_file_without_a_licence_is_refused(self):
        self.write("src/base/a.c", "int a;\n", first="")
        self.assertIn("the first line must be", self.complaints())


if __name__ == "__main__":
    unittest.main()
