#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
import gzip
import json
import os
import shutil
import tempfile
import unittest

from command import run

MIB = 1 << 20

# 4 and 2 MiB are live at once, at most; the second 4 MiB fit where the first ones were.
SMALL = """\
# by hand
a 1 4194304 0
a 2 2097152 0
a 3 0 0
f 3 0
m step
f 1 0
a 4 4194304 0
f 2 0
"""

# Each stream has 4 MiB, one after the other.
TWO_STREAMS = """\
a 1 4194304 1
f 1 1
a 2 4194304 2
f 2 2
"""

# 4 MiB are dropped, then time passes.
IDLE = "a 1 4194304 0\nf 1 0\n" + "m wait\n" * 20


class Replay(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, text, name="x.trace"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def replayed(self, text, *options):
        done = run("replay", "--json", *options, self.file(text))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)


class Numbers(Replay):
    def test_a_small_trace_has_the_numbers_computed_by_hand(self):
        found = self.replayed(SMALL)
        self.assertEqual(found["device"], "sim")
        self.assertEqual(found["preset"], "elastic")
        self.assertEqual(found["trace"], os.path.join(self.folder, "x.trace"))
        self.assertEqual(found["operations"], 7)
        self.assertEqual(found["peak_requested_bytes"], 6 * MIB)
        self.assertEqual(found["peak_reserved_bytes"], 6 * MIB)
        self.assertEqual(found["peak_ratio"], 1)
        self.assertEqual(found["padding_bytes"], 0)
        self.assertEqual(found["kept_bytes"], 0)
        self.assertGreaterEqual(found["ns_per_operation"], 0)
        self.assertIn(found["driver_calls"], range(2, 7))
        self.assertGreater(found["modelled_driver_seconds"], 0)
        self.assertLess(found["modelled_driver_seconds"], 0.01)

    def test_later_passes_find_the_memory_of_the_first(self):
        found = self.replayed(SMALL, "--passes", "3")
        self.assertEqual(found["passes"], 3)
        self.assertGreater(found["driver_calls"], 0)
        self.assertEqual(found["later_driver_calls"], 0)
        self.assertEqual(found["peak_reserved_bytes"], 6 * MIB)
        self.assertLessEqual(found["host_ns_per_operation"], found["ns_per_operation"])
        self.assertNotIn("later_driver_calls", self.replayed(SMALL))

    def test_chunks_cost_less_than_granules(self):
        large = "a 1 8589934592 0\nf 1 0\n"
        granules = self.replayed(large)["modelled_driver_seconds"]
        chunks = self.replayed(large, "--chunk", "32MiB")["modelled_driver_seconds"]
        self.assertLess(chunks, granules / 8)

    def test_whole_pages_hold_it_too(self):
        found = self.replayed(SMALL, "--granule", "0")
        self.assertEqual(found["peak_requested_bytes"], 6 * MIB)
        self.assertGreaterEqual(found["peak_reserved_bytes"], 6 * MIB)
        self.assertEqual(found["kept_bytes"], 0)

    def test_the_host_driver_replays_it_too(self):
        found = self.replayed(SMALL, "--device", "host")
        self.assertEqual(found["device"], "host")
        self.assertEqual(found["peak_requested_bytes"], 6 * MIB)
        self.assertEqual(found["peak_reserved_bytes"], 6 * MIB)
        self.assertIsNone(found["modelled_driver_seconds"])
        self.assertGreater(found["driver_calls"], 0)
        self.assertEqual(found["kept_bytes"], 0)

    def test_streams_share_memory_at_once_without_lag_and_not_with_it(self):
        self.assertEqual(self.replayed(TWO_STREAMS)["peak_reserved_bytes"], 4 * MIB)
        lagging = self.replayed(TWO_STREAMS, "--lag", "32")
        self.assertEqual(lagging["peak_requested_bytes"], 4 * MIB)
        self.assertEqual(lagging["peak_reserved_bytes"], 8 * MIB)
        self.assertEqual(lagging["kept_bytes"], 0)

    def test_padding_is_what_slices_have_beyond_the_request(self):
        found = self.replayed("a 1 1000 0\na 2 3000001 0\nf 1 0\n")
        self.assertEqual(found["peak_requested_bytes"], 3001001)
        self.assertIn(found["padding_bytes"], range(1, 2 * 4096))

    def test_the_clock_moves_at_marks_only_if_asked(self):
        still = self.replayed(IDLE)
        moved = self.replayed(IDLE, "--step-ms", "1000")
        self.assertGreater(moved["driver_calls"], still["driver_calls"])
        self.assertEqual(moved["peak_reserved_bytes"], 4 * MIB)

    def test_an_empty_trace_is_a_trace(self):
        found = self.replayed("# nothing\n")
        self.assertEqual(found["operations"], 0)
        self.assertEqual(found["peak_requested_bytes"], 0)
        self.assertIsNone(found["peak_ratio"])

    def test_gzip_is_read_as_it_is(self):
        self.assertEqual(self.replayed(gzip.compress(SMALL.encode()))["operations"], 7)

    def test_text_lines_up(self):
        done = run("replay", self.file(SMALL))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 10)
        for line in lines:
            self.assertRegex(line, r"^\S.{20}.  \S")
        self.assertRegex(done.stdout, r"(?m)^peak reserved +6\.0 MiB, 1\.0000 x requested$")


class Refusals(Replay):
    def refused(self, code, arguments, text):
        done = run("replay", *arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), arguments)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(text, done.stderr)

    def test_a_trace_that_does_not_fit_names_the_operation_and_why(self):
        done = run("replay", "--capacity", "4MiB", self.file(SMALL))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("operation 2 of 7 (2.0 MiB on stream 0): ", done.stderr)
        self.assertGreater(len(done.stderr.split("stream 0): ")[1]), 20)

    def test_a_trace_that_just_fits_does(self):
        self.assertEqual(run("replay", "--capacity", "6MiB", self.file(SMALL)).returncode, 0)

    def test_a_bad_line_is_named_by_file_and_line(self):
        for text, line, reason in (
                ("a 1 8 0\nb 1\n", 2, "unknown record 'b'"),
                ("a 1 8 0\nf 2 0\n", 2, "id 2 was never allocated"),
                ("a 1 8 0\nf 1 0\nf 1 0\n", 3, "id 1 is freed already, by line 2"),
                ("a 1 99999999999999999999 0\n", 1, "is too large")):
            path = self.file(text)
            self.refused(2, [path], f"weir replay: {path}:{line}: {reason}"
                         if reason != "is too large" else f"{path}:1: BYTES")

    def test_a_gzip_file_cut_off_is_said_to_be(self):
        whole = gzip.compress("".join(f"a {i} 8 0\n" for i in range(50000)).encode())
        path = self.file(whole[:-9])
        self.refused(2, [path], "the gzip data end too early")

    def test_files_that_are_not_there_and_folders_are_refused(self):
        path = os.path.join(self.folder, "none")
        self.refused(2, [path], f"{path}: cannot read it: No such file or directory")
        self.refused(2, [self.folder], "it is a folder")

    def test_usage_errors_exit_2(self):
        path = self.file(SMALL)
        self.refused(2, [], "which trace?; see weir replay --help")
        self.refused(2, [path, path], "one trace at a time")
        self.refused(2, ["--capacity", "0", path], "--capacity must be more than 0")
        self.refused(2, ["--granule", "3MiB", path], "granule")
        self.refused(2, ["--preset", "none-such", path], "none-such")
        self.refused(2, ["--device", "none-such", path], "none-such")
        for option in ("--granule", "--capacity", "--lag", "--step-ms"):
            self.refused(2, ["--device", "host", option, "1", path],
                         f"{option} is for --device sim only, not host")


if __name__ == "__main__":
    unittest.main()
