#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The reference experiment, as the command prints it."""
import json
import os
import re
import unittest

from command import has_shadow_memory, run

MIB = 1 << 20
SLACK = 10.0  # MiB that a footprint may rise by: code made at run time, threads
LABELS = ["start", "4 x [4096,4096] f32", "dropped", "4 x [256,256] f32", "dropped",
          "memory_cleanup", "+500 ms", "+1 small op", "memory_cleanup again", "+2 s"]
IN_USE = [0.0, 256.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
ADAPTIVE = [8.0, 268.0, 268.0, 268.0, 268.0, 0.0, 0.0, 8.0, 0.0, 0.0]
NAMES = ["in_use", "deferred", "releasable", "pinned", "driver_deferred", "overhead", "others"]


def demo(*arguments):
    done = run("demo", "--json", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
    return json.loads(done.stdout)


def column(shown, name):
    """One of the numbers in all steps, in MiB as the table prints it."""
    return [round(step[name + "_bytes"] / MIB, 1) for step in shown["steps"]]


class Experiment(unittest.TestCase):
    """Checks that hold on every device and preset."""
    @classmethod
    def setUpClass(cls):
        cls.shown = {(device, preset): demo("--device", device, "--preset", preset)
                     for device in ("host", "sim")
                     for preset in ("elastic", "adaptive", "subslices", "exclusive")}

    def test_the_steps_and_in_use_are_those_of_the_reference(self):
        for (device, preset), shown in self.shown.items():
            self.assertEqual((shown["device"], shown["preset"]), (device, preset))
            self.assertEqual([step["label"] for step in shown["steps"]], LABELS)
            self.assertEqual(column(shown, "in_use"), IN_USE)

    def test_adaptive_reserves_what_the_reference_system_reserves(self):
        for device in ("host", "sim"):
            self.assertEqual(column(self.shown[device, "adaptive"], "reserved"), ADAPTIVE)

    def test_subslices_and_exclusive_reserve_what_their_rules_say(self):
        # 24 GiB: pages of 24 MiB for what is small and 384 MiB for the tensors
        self.assertEqual(column(self.shown["sim", "subslices"], "reserved"),
                         [24.0] + [408.0] * 4 + [0.0] * 2 + [24.0] + [0.0] * 2)
        self.assertEqual(column(self.shown["sim", "exclusive"], "reserved"),
                         [0.0] + [256.0] * 2 + [257.0] * 2 + [0.0] * 5)

    def test_elastic_reserves_little_more_than_is_used(self):
        for device in ("host", "sim"):
            reserved = column(self.shown[device, "elastic"], "reserved")
            self.assertLessEqual(reserved[1], 260.0)
            self.assertLessEqual(max(reserved), 260.0)
            self.assertEqual([reserved[i] for i in (5, 6, 8, 9)], [0.0] * 4)

    def test_what_is_reserved_is_somewhere(self):
        for shown in self.shown.values():
            for step in shown["steps"]:
                self.assertEqual(
                    sum(step[name + "_bytes"] for name in
                        ("in_use", "padding", "deferred", "releasable", "pinned")),
                    step["reserved_bytes"], step)

    def test_the_footprint_is_explained(self):
        for shown in self.shown.values():
            for step in shown["steps"]:
                self.assertEqual(
                    step["reserved_bytes"] - step["untouched_bytes"] +
                    step["driver_deferred_bytes"] + step["overhead_bytes"],
                    step["footprint_bytes"], step)

    def test_the_footprint_is_back_one_line_after_cleanup(self):
        for (device, _), shown in self.shown.items():
            if device == "host" and has_shadow_memory():
                continue
            footprint = column(shown, "footprint")
            self.assertGreaterEqual(footprint[1], footprint[0] + 246.0)
            self.assertLessEqual(footprint[6], footprint[0] + 3.0)
            self.assertLessEqual(footprint[9], footprint[0] + 3.0)

    def test_the_explanation_has_seven_lines_that_add_up(self):
        for shown in self.shown.values():
            lines = {line["name"]: line for line in shown["explain"]}
            dropped = shown["steps"][2]
            self.assertEqual([line["name"] for line in shown["explain"]], NAMES)
            for name in ("in_use", "deferred", "releasable", "pinned", "driver_deferred"):
                self.assertEqual(lines[name]["bytes"], dropped[name + "_bytes"])
            self.assertTrue(lines["releasable"]["reason"])
            self.assertTrue(lines["releasable"]["way_out"])

    def test_the_verdict_gives_the_bytes_that_cleanup_returned(self):
        for shown in self.shown.values():
            fell = shown["steps"][4]["reserved_bytes"] - shown["steps"][5]["reserved_bytes"]
            self.assertEqual(shown["verdict"],
                             f"cached, not leaked: cleanup returns {fell / MIB:.1f} MiB")


class Text(unittest.TestCase):
    def test_the_table_lines_up_and_the_words_follow(self):
        done = run("demo", "--device", "sim", "--preset", "adaptive")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^weir [\d.]+, device sim \(.+\), preset adaptive; all in MiB$")
        self.assertEqual(lines[2].split(), ["step", "in_use", "reserved", "footprint"])
        for line, label, in_use, reserved in zip(lines[3:13], LABELS, IN_USE, ADAPTIVE):
            self.assertEqual(len(line), len(lines[2]))
            self.assertTrue(line.startswith(f"  {label} "), line)
            self.assertEqual(line.split()[-3:-1], [f"{in_use:.1f}", f"{reserved:.1f}"])
        words = "\n".join(lines[13:])
        for name in NAMES:
            self.assertRegex(words, rf"\b{name}\b")
        self.assertEqual(lines[-1], "cached, not leaked: cleanup returns 268.0 MiB")

    def test_sim_prints_the_same_every_time(self):
        self.assertEqual(run("demo", "--device", "sim").stdout,
                         run("demo", "--device", "sim").stdout)


@unittest.skipUnless(os.environ.get("WEIR_WEBGPU_LIBRARY"), "no WebGPU library")
class LateRelease(unittest.TestCase):
    """On WebGPU the driver holds on to what it was handed back."""
    def test_webgpu_keeps_memory_after_cleanup_until_there_is_work_again(self):
        shown = demo("--device", "webgpu", "--preset", "adaptive")
        late = column(shown, "driver_deferred")
        footprint = column(shown, "footprint")
        self.assertEqual([step["label"] for step in shown["steps"]], LABELS)
        self.assertEqual(column(shown, "reserved"), ADAPTIVE)
        self.assertEqual(late, [0.0] * 5 + [268.0] * 2 + [0.0, 8.0, 8.0])
        self.assertGreaterEqual(footprint[6], footprint[0] + 246.0)
        if not has_shadow_memory():
            self.assertLessEqual(footprint[7], footprint[0] + SLACK)

    def test_cleanup_that_waits_returns_when_it_is_gone(self):
        shown = demo("--device", "webgpu", "--preset", "adaptive", "--wait")
        footprint = column(shown, "footprint")
        self.assertEqual(column(shown, "reserved"), ADAPTIVE)
        self.assertEqual(column(shown, "driver_deferred"), [0.0] * 10)
        self.assertGreaterEqual(footprint[1], footprint[0] + 246.0)
        if not has_shadow_memory():
            self.assertLessEqual(footprint[5], footprint[0] + SLACK)
        self.assertGreater(shown["cleanup_ms"], 0.0)

    def test_its_table_has_a_column_for_it(self):
        done = run("demo", "--device", "webgpu", "--preset", "adaptive", "--wait")
        lines = done.stdout.splitlines()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(lines[2].split()[-2:], ["footprint", "driver_deferred"])
        self.assertRegex(lines[14], r"^The first cleanup took [\d.]+ ms, until the driver had let go\.$")


class Idle(unittest.TestCase):
    def test_without_a_call_everything_goes_back(self):
        for device in ("host", "sim"):
            for preset in ("elastic", "adaptive", "exclusive"):
                shown = demo("--idle", "--idle-ms", "1000", "--device", device, "--preset", preset)
                self.assertEqual([step["label"] for step in shown["steps"]],
                                 LABELS[:3] + ["+2 s, no call"])
                reserved = column(shown, "reserved")
                self.assertGreaterEqual(reserved[2], 256.0)
                self.assertEqual(reserved[3], 0.0)
                self.assertRegex(shown["verdict"],
                                 r"^cached, not leaked: idle time returns 2\d\d\.\d MiB$")

    def test_wait_is_not_for_idle(self):
        done = run("demo", "--idle", "--wait")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_idle_ms_needs_idle(self):
        done = run("demo", "--idle-ms", "1000")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "weir demo: --idle-ms works with --idle only\n")


class Refused(unittest.TestCase):
    def test_unknown_devices_and_presets_are_usage_errors(self):
        for arguments in (["--device", "abacus"], ["--preset", "baroque"]):
            done = run("demo", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertTrue(re.search(arguments[1], done.stderr), done.stderr)


if __name__ == "__main__":
    unittest.main()
