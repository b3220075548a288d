#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recorded and made traces against the promises of bench/bounds.py. They say nothing of time."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from command import run

SOURCE = os.environ.get("WEIR_SOURCE_DIR", os.getcwd())
sys.path.insert(0, os.path.join(SOURCE, "bench"))
sys.dont_write_bytecode = True
import bounds  # noqa: E402


def recorded(trace):
    return os.path.join(SOURCE, "tests", "traces", trace + ".trace.gz")


class Traces(unittest.TestCase):
    def replayed(self, path, *options):
        done = run("replay", "--json", *map(str, options), path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def check(self, trace, ratio, *options):
        with self.subTest(trace=trace, options=options):
            found = self.replayed(recorded(trace), *options)
            self.assertLessEqual(found["peak_ratio"], ratio)
            self.assertEqual(found["kept_bytes"], 0)
            return found
        return None

    def check_driver_time(self, trace, found):
        with self.subTest(trace=trace, found=found):
            self.assertLessEqual(found["modelled_driver_seconds"],
                                 bounds.RUN_SECONDS[trace] * bounds.DRIVER_SHARE)

    def check_device(self, trace, factor, found, *options):
        with self.subTest(trace=trace, device=factor):
            self.replayed(recorded(trace), "--capacity",
                          int(found["peak_requested_bytes"] * factor), *options)

    def test_recorded_traces_keep_their_ratio_their_driver_time_and_a_small_device(self):
        for trace in bounds.RECORDED:
            found = self.check(trace, bounds.PEAK_RATIO[trace])
            if found is not None:
                self.check_driver_time(trace, found)
                self.check_device(trace, bounds.DEVICE[trace], found)

    def test_they_keep_it_in_the_chunks_of_cuda(self):
        for trace in bounds.RECORDED:
            found = self.check(trace, bounds.PEAK_RATIO_IN_CHUNKS[trace],
                               "--chunk", bounds.CUDA_CHUNK, "--passes", 2)
            if found is not None:
                with self.subTest(trace=trace, found=found):
                    self.assertLessEqual(found["later_driver_calls"],
                                         bounds.CHUNK_LATER_CALLS[trace])
                    self.assertLessEqual(found["modelled_driver_seconds"] * 1e9,
                                         found["operations"] * bounds.CHUNK_NS[trace])

    def test_streams_whose_work_lags_keep_theirs(self):
        lag = ("--lag", bounds.LAG)
        found = self.check("multi_stream", bounds.PEAK_RATIO_LAGGING, *lag)
        if found is not None:
            self.check_driver_time("multi_stream", found)
            self.check_device("multi_stream", bounds.DEVICE_LAGGING, found, *lag)

    def test_whole_pages_keep_theirs_on_one_stream(self):
        for trace in bounds.RECORDED:
            if trace != "multi_stream":
                self.check(trace, bounds.PEAK_RATIO_WHOLE_PAGES, "--granule", 0)

    def test_made_traces_keep_theirs(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, os.path.join(SOURCE, "tools", "make_traces.py"),
                            folder, *bounds.BOUNDED], stdout=subprocess.DEVNULL, check=True)
            for trace in bounds.BOUNDED:
                with self.subTest(trace=trace):
                    found = self.replayed(os.path.join(folder, trace + ".trace"))
                    self.assertLessEqual(found["peak_ratio"], bounds.PEAK_RATIO[trace])
                    self.assertEqual(found["kept_bytes"], 0)


if __name__ == "__main__":
    if os.environ.get("WEIR_SANITIZE"):
        print("skipped: the layout is the same without sanitizers, and found sooner")
        sys.exit(77)
    unittest.main()
