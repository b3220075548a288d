#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The scenario language, end to end."""
import glob
import json
import os
import tempfile
import unittest

from command import run

SCENARIOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenarios")


class Scenario(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, text, name="a.scn"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def passes(self, text):
        path = self.write(text)
        done = run("scenario", path)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, f"ok {path}\n1 passed, 0 failed\n", ""), text)

    def fails(self, text, line, message):
        path = self.write(text)
        done = run("scenario", path)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, f"FAILED {path}:{line}: {message}\n0 passed, 1 failed\n", ""), text)

    def is_wrong(self, text, line, reason):
        path = self.write(text)
        done = run("scenario", path)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (2, "0 passed, 1 failed\n", f"{path}:{line}: {reason}\n"), text)


class Files(Scenario):
    def test_each_file_has_its_line_and_the_worst_one_decides_the_exit_code(self):
        good = self.write("alloc a 1MiB\n", "good.scn")
        bad = self.write("alloc a 1MiB\nexpect in_use == 0\nexpect live == 0\n", "bad.scn")
        wrong = self.write("\nnonsense\n", "wrong.scn")
        absent = os.path.join(self.folder, "absent.scn")

        done = run("scenario", good, bad, good)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout,
                         f"ok {good}\nFAILED {bad}:2: expected in_use == 0, got 1048576\n"
                         f"ok {good}\n2 passed, 1 failed\n")

        done = run("scenario", wrong, absent, bad, good)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr,
                         f"{wrong}:2: unknown statement 'nonsense'\n"
                         f"{absent}: cannot be read: No such file or directory\n")
        self.assertTrue(done.stdout.endswith("1 passed, 3 failed\n"))

    def test_a_folder_cannot_be_read(self):
        done = run("scenario", self.folder)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"{self.folder}: cannot be read: Is a directory\n"))

    def test_json_is_one_object(self):
        good = self.write("alloc a 1MiB\n", "good.scn")
        bad = self.write("alloc a 1MiB\nexpect in_use == 0\n", "bad.scn")
        wrong = self.write("nonsense\n", "wrong.scn")
        done = run("scenario", "--json", good, bad, wrong)
        self.assertEqual((done.returncode, done.stderr), (2, ""))
        found = json.loads(done.stdout)
        self.assertGreater(found["files"][0].pop("driver_calls"), 0)
        self.assertGreater(found["files"][1].pop("driver_calls"), 0)
        self.assertEqual(found, {
            "files": [
                {"file": good, "ok": True, "skipped": False, "line": None, "message": None},
                {"file": bad, "ok": False, "skipped": False, "line": 2,
                 "message": "expected in_use == 0, got 1048576"},
                {"file": wrong, "ok": False, "skipped": False, "line": 1,
                 "message": "unknown statement 'nonsense'", "driver_calls": 0},
            ],
            "passed": 1,
            "failed": 2, "skipped": 0,
        })

    def test_no_file_is_a_mistake(self):
        done = run("scenario")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (2, "", "weir scenario: no file given; see weir scenario --help\n"))

    def test_a_file_without_statements_passes(self):
        self.passes("")
        self.passes("# nothing\ncapacity 1GiB\n")

    def test_a_device_that_does_not_open_is_a_failure(self):
        path = self.write("preset nonsense\n")
        done = run("scenario", path)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"\AFAILED \S+:1: expected the device to open, got [A-Z_]+: ")


class Language(Scenario):
    def test_loops_include_both_ends_and_nest(self):
        self.passes("for i in 2..4\nalloc x$i $i*1KiB\nend\n"
                    "expect in_use == 9KiB\nexpect live == 3\n")
        self.passes("let n = 0\nfor i in 1..3\nrepeat $i\nlet n = $n + 1\nend\nend\n"
                    "alloc a $n\nexpect in_use == 6\n")
        self.passes("for i in 3..2\nfree nobody\nend\n")
        self.passes("repeat 0\nfree nobody\nend\n")
        self.passes("repeat 3\nfor i in 1..2\nalloc x$i 1KiB\nend\nfree x1\nfree x2\nend\n"
                    "expect live == 0\n")

    def test_the_last_let_and_the_last_mark_win(self):
        self.passes("let a = 1\nlet a = $a + 1\nalloc x $a\nexpect in_use == 2\n")
        self.passes("mark m\nalloc x 5\nmark m\nfree x\nexpect in_use@m == 5\n"
                    "expect in_use == in_use@m - 5\n")

    def test_random_sizes_are_the_documented_ones(self):
        self.passes("repeat 2\nrandom r 1 1 1000\nalloc x$r $r\nend\n"
                    "expect x26 apart x2\nexpect in_use == 28\n"
                    "random r 1 1 1000\nalloc again $r\nexpect in_use == 54\n")

    def test_sizes_reach_the_ends_of_64_bits(self):
        self.passes("alloc x 18446744073709551615 fails INVALID\nalloc y 0 fails INVALID\n")

    def test_a_freed_name_can_be_used_again(self):
        self.passes("alloc a 1KiB\nfree a\nalloc a 2KiB\nexpect in_use == 2KiB\n")

    def test_names_hold_variables_everywhere(self):
        self.passes("let i = 3\nalloc x$i 1KiB stream=s$i tag=t$i\nuse x3 stream=u$i\n"
                    "mark m$i\nexpect in_use@m3 == tag(t$i).in_use@m$i\n"
                    "expect tag(t3).in_use == 1KiB\nexpect says \"t$i\"\n"
                    "expect x$i overlaps x3\nfinish u3\nfree x$i\n")

    def test_texts_ignore_case(self):
        self.passes("alloc a 1MiB tag=Weights\nexpect says \"wEIGHTS\"\n"
                    "expect silent \"zebra\"\n")


class Mistakes(Scenario):
    def test_they_are_told_with_the_line_where_they_happen(self):
        self.is_wrong("repeat 2\n\nfree a\nend\n", 3, "there is no buffer 'a'")
        self.is_wrong("alloc a 1\nfree a\nfree a\n", 3, "buffer 'a' has been freed")
        self.is_wrong("alloc a 1\nalloc a 1\n", 2, "buffer 'a' is held already")
        self.is_wrong("alloc a $n\n", 1, "there is no variable '$n'")
        self.is_wrong("alloc a$n 1\n", 1, "there is no variable '$n'")
        self.is_wrong("alloc a 1-2\n", 1, "a size is negative: '1-2' is -1")
        self.is_wrong("let a = 1 / 0\n", 1, "'1 / 0' divides by zero")
        self.is_wrong("expect in_use@m == 1\n", 1, "there is no mark 'm'")
        self.is_wrong("expect a apart b\n", 1, "there is no buffer 'a'")
        self.is_wrong("window end\n", 1, "there is no window to end")
        self.is_wrong("random a 1 5 4\n", 1, "random needs 1 <= LO <= HI")
        self.is_wrong("advance 86400001\n", 1, "one advance is at most a day, 86400000 ms")
        self.is_wrong("set no_wait 2\n", 1, "no_wait is 0, 1, false or true")
        self.is_wrong("capacity 0\n", 1, "a device has more than 0 bytes")
        self.is_wrong("repeat 2000\nrepeat 1000\nend\nend\n", 2,
                      "loops run more than 1000000 times in all")

    def test_a_child_is_asked_for_the_ledger_only(self):
        self.is_wrong("alloc a 1\nfork\nexpect in_use == 1\nexit\n", 3,
                      "'in_use' cannot be checked in a forked child, only what the driver's "
                      "ledger holds can")


class Checks(Scenario):
    def test_a_failure_says_what_was_expected_and_what_was_found(self):
        self.fails("alloc a 1MiB\nexpect live*2 < 1 + 1\n", 2,
                   "expected live*2 < 1 + 1 (2), got 2")
        self.fails("expect in_use - 1 >= 0\n", 1, "expected in_use - 1 >= 0, got -1")
        self.fails("alloc a 1\nexpect a apart a\n", 2,
                   "expected a apart from a, got 1 bytes at ADDRESS and 1 bytes at ADDRESS"
                   .replace("ADDRESS", str(self.address())))

    def address(self):
        path = self.write("alloc a 1\nexpect a apart a\n")
        return int(run("scenario", path).stdout.split(" at ")[1].split()[0])

    def test_alloc_must_do_what_it_says(self):
        self.fails("alloc a 1MiB fails OUT_OF_MEMORY\n", 1,
                   "expected OUT_OF_MEMORY from alloc a, got OK")
        path = self.write("alloc a 0 fails OUT_OF_MEMORY\n")
        self.assertRegex(run("scenario", path).stdout,
                         r":1: expected OUT_OF_MEMORY from alloc a of 0 bytes, got INVALID: \S")
        path = self.write("capacity 1GiB\nalloc a 2GiB\n")
        self.assertRegex(run("scenario", path).stdout,
                         r":2: expected OK from alloc a of 2147483648 bytes, got OUT_OF_MEMORY: ")
        self.passes("capacity 1GiB\nalloc h 64MiB tag=holder\n"
                    "alloc a 2GiB fails OUT_OF_MEMORY\nexpect error says \"HOLDER\"\n")

    def test_placement_is_that_of_now_or_of_last_time(self):
        self.passes("alloc a 64MiB\nalloc b 64MiB\nexpect a apart b\nexpect a overlaps a\n"
                    "free a\nalloc c 64MiB\nexpect c overlaps a\nexpect c apart b\n")

    def test_unknown_numbers_meet_no_check(self):
        self.fails("fail mem_info 1000\nalloc a 1\nexpect footprint != 1\n", 3,
                   "expected a number for footprint, got n/a")

    def test_a_child_fails_its_file(self):
        self.fails("alloc a 1\nfork\nexpect driver_frees == 99\nexit\nfree a\n", 3,
                   "expected driver_frees == 99, got 0")
        self.passes("alloc a 1MiB\nfork\nexpect driver_frees == 0\nexpect a overlaps a\nexit\n"
                    "free a\n")


class OtherDevices(Scenario):
    def on_host(self, *paths):
        return run("scenario", "--device", "host", *paths)

    def test_what_holds_on_sim_holds_on_real_memory(self):
        path = self.write("granule 2MiB\nalloc a 64MiB tag=x\nalloc b 1MiB\nfree a\n"
                          "expect releasable == 64MiB\ncleanup\nexpect last.returned == 64MiB\n"
                          "expect commits == 2\nexpect tag(x).in_use == 0\nfree b\n"
                          "advance 20000\nexpect reserved == 0\n")
        done = self.on_host(path)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, f"ok {path}\n1 passed, 0 failed\n", ""))

    def test_a_check_that_fails_there_fails_the_file(self):
        path = self.write("alloc a 64MiB\nexpect reserved == 1\n")
        done = self.on_host(path)
        self.assertEqual((done.returncode, done.stdout),
                         (1, f"FAILED {path}:2: expected reserved == 1, got 67108864\n"
                             "0 passed, 1 failed\n"))

    def test_the_capacity_is_a_limit_there(self):
        path = self.write("capacity 1GiB\ncontext 0\nalloc a 512MiB\n"
                          "alloc b 513MiB fails OUT_OF_MEMORY\nexpect ooms == 1\n"
                          "alloc c 512MiB\n")
        done = self.on_host(path)
        self.assertEqual((done.returncode, done.stdout), (0, f"ok {path}\n1 passed, 0 failed\n"))

    def test_what_only_sim_can_do_is_skipped_with_the_reason(self):
        good = self.write("alloc a 1MiB\n", "good.scn")
        for text, line, what in (("alloc a 1\nuse a stream=s\n", 2, "use"),
                                 ("lets_go never\nalloc a 1\n", 2, "lets_go"),
                                 ("granule 4MiB\nalloc a 1\n", 2, "granules of that size"),
                                 ("alloc a 1\nfail commit 1\n", 2, "fail"),
                                 ("alloc a 1\nfork\nexit\n", 2, "fork"),
                                 ("alloc a 1\nexpect footprint > 0\n", 2, "footprint"),
                                 ("alloc a 1\nother 1GiB\n", 2, "other")):
            path = self.write(text, "other.scn")
            done = self.on_host(path, good)
            self.assertEqual((done.returncode, done.stdout),
                             (0, f"skipped {path}:{line}: needs --device sim: {what}\nok {good}\n"
                                 "1 passed, 0 failed, 1 skipped\n"))
            self.assertEqual(self.on_host(path).returncode, 1, "nothing was looked at")

    def test_json_says_what_was_skipped(self):
        path = self.write("alloc a 1\nshutdown\n")
        done = run("scenario", "--json", "--device", "host", path)
        found = json.loads(done.stdout)
        self.assertEqual((found["passed"], found["failed"], found["skipped"]), (0, 0, 1))
        self.assertTrue(found["files"][0]["skipped"])
        self.assertFalse(found["files"][0]["ok"])

    def test_calls_fail_on_sim_only(self):
        path = self.write("alloc a 1\n")
        done = run("scenario", "--device", "host", "--fail-call", "1", path)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--device sim", done.stderr)

    def test_a_device_that_is_not_there_fails(self):
        path = self.write("alloc a 1\n")
        done = run("scenario", "--device", "nonsense", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected the device to open, got NOT_FOUND", done.stdout)

    def on_cuda(self, *files, drift=0):
        """On a GPU of 24 GiB over host memory, whose context grows once there is work."""
        if "WEIR_FAKE_CUDA_LARGE" not in os.environ:
            self.skipTest("needs the fake libcuda")
        fake = os.environ["WEIR_FAKE_CUDA_LARGE"]
        done = run("scenario", "--json", "--device", "cuda", *files,
                   env={**os.environ, "WEIR_CUDA_LIBRARY": fake, "WEIR_NVML_LIBRARY": fake,
                        "WEIR_FAKE_DRIFT": str(drift)})
        return json.loads(done.stdout)

    def test_a_context_that_grows_by_2_mib_is_still_the_context(self):
        path = self.write("context 400MiB\nalloc a 61MiB\nmark full\n"
                          "expect overhead == 400MiB\nexpect footprint == 400MiB+reserved\n"
                          "free a\ncleanup\nexpect footprint == 400MiB\n"
                          "expect footprint@full == 400MiB+reserved@full\n")
        for drift in (0, 1 << 20, 2 << 20):
            self.assertEqual(self.on_cuda(path, drift=drift)["files"][0]["message"], None)

    def test_a_context_that_grows_by_more_shows(self):
        for field in ("overhead", "footprint"):
            path = self.write(f"context 400MiB\nalloc a 1MiB\nfree a\ncleanup\n"
                              f"expect {field} == 400MiB\n")
            file = self.on_cuda(path, drift=4 << 20)["files"][0]
            self.assertEqual((file["line"], file["message"]),
                             (5, f"expected {field} == 400MiB (419430400), got 423624704"))

    def test_scenarios_hold_on_cuda(self):
        files = sorted(glob.glob(os.path.join(SCENARIOS, "*.scn")))
        found = self.on_cuda(*files, drift=2 << 20)
        failed = {os.path.basename(file["file"]): file["message"] for file in found["files"]
                  if not file["ok"] and not file["skipped"]}
        self.assertEqual(failed, {})
        self.assertGreaterEqual(found["passed"], 30)


class FaultSweep(Scenario):
    TEXT = ("capacity 1400MiB\nalloc a 64MiB stream=s\nalloc b 300MiB\nuse a stream=t\nfree a\n"
            "finish t\ncleanup wait\nalloc a 600MiB stream=t\nfree b\nalloc c 100 tag=x\n"
            "advance 20000\nexpect in_use == 1\nfree c\n")

    def test_each_failing_driver_call_leaves_a_sound_device(self):
        path = self.write(self.TEXT)
        n, calls = 1, 1
        while n <= calls and n < 200:
            done = run("scenario", "--json", "--fail-call", str(n), path)
            found = json.loads(done.stdout)["files"][0]
            self.assertTrue(found["ok"], (n, found))
            calls = found["driver_calls"]
            n += 1
        self.assertGreater(n, 5)

    def test_without_it_checks_count(self):
        self.fails(self.TEXT, 12, "expected in_use == 1, got 629145700")


if __name__ == "__main__":
    unittest.main()
