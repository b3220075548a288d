#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
import json
import os
import pty
import re
import subprocess
import unittest

from command import WEIR, run

COMMANDS = ("demo", "devices", "replay", "scenario")


class Help(unittest.TestCase):
    def test_help_names_every_command_and_exits_0(self):
        for arguments in (["--help"], ["help"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for command in COMMANDS:
                self.assertRegex(done.stdout, rf"(?m)^  {command} +\S")

    def test_help_of_a_command_is_its_own_help(self):
        for command in COMMANDS:
            done = run("help", command)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"weir {command}", done.stdout)
            self.assertEqual(done.stdout, run(command, "--help").stdout)

    def test_no_help_line_is_wider_than_a_terminal(self):
        for command in ("demo", "devices"):
            for line in run("help", command).stdout.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_version_is_that_of_the_headers(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\Aweir \d+\.\d+\.\d+\n\Z")


class Usage(unittest.TestCase):
    def refused(self, arguments, text):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertEqual(done.stderr, text + "\n")

    def test_without_a_command_the_help_goes_to_standard_error(self):
        done = run()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("usage: weir COMMAND", done.stderr)

    def test_unknown_words_are_refused_in_one_line(self):
        self.refused(["dem"], "weir: unknown command dem; see weir --help")
        self.refused(["help", "dem"], "weir: unknown command dem; see weir --help")
        self.refused(["--foo"], "weir: unknown option --foo; see weir --help")
        self.refused(["demo", "--foo"], "weir demo: unknown option --foo; see weir demo --help")
        self.refused(["demo", "-x"], "weir demo: unknown option -x; see weir demo --help")
        self.refused(["demo", "x"], "weir demo: unexpected argument x; see weir demo --help")
        self.refused(["devices", "--", "--json"],
                     "weir devices: unexpected argument --json; see weir devices --help")

    def test_missing_and_wrong_values_are_refused_in_one_line(self):
        self.refused(["demo", "--preset"],
                     "weir demo: missing NAME after --preset; see weir demo --help")
        self.refused(["demo", "--idle", "--idle-ms", "5s"],
                     'weir demo: --idle-ms takes a whole number, not "5s"; see weir demo --help')
        self.refused(["demo", "--json=yes"],
                     'weir demo: --json takes no value, not "yes"; see weir demo --help')


class Devices(unittest.TestCase):
    def test_devices_lists_every_driver_with_capacity_and_granule(self):
        done = run("devices")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^  host  +\d+\.\d [GT]iB  +2\.0 MiB  \S")
        self.assertRegex(done.stdout, r"(?m)^  sim  +24\.0 GiB  +2\.0 MiB  \S")

    def test_devices_lines_up(self):
        lines = run("devices").stdout.splitlines()
        column = lines[0].index("device, or why")
        for line in lines[1:]:
            self.assertEqual(line[column - 2:column], "  ")
            self.assertNotEqual(line[column], " ")

    def test_devices_as_json_has_the_same_devices(self):
        devices = json.loads(run("devices", "--json").stdout)["devices"]
        sim = next(device for device in devices if device["driver"] == "sim")
        self.assertIs(sim["available"], True)
        self.assertEqual(sim["capacity_bytes"], 24 << 30)
        self.assertEqual(sim["granule_bytes"], 2 << 20)
        for device in devices:
            self.assertTrue(device["device"] if device["available"] else device["reason"])


class Cuda(unittest.TestCase):
    def devices(self, library):
        return run("devices", env={**os.environ, "WEIR_CUDA_LIBRARY": library,
                                   "WEIR_NVML_LIBRARY": library}).stdout

    def test_devices_says_why_cuda_is_not_there(self):
        self.assertIn("cuda: /no/libcuda.so.1 not found; install the NVIDIA driver, or use "
                      "--device host\n", self.devices("/no/libcuda.so.1"))

    @unittest.skipUnless("WEIR_FAKE_CUDA" in os.environ, "there is no fake libcuda")
    def test_devices_shows_the_first_gpu(self):
        self.assertRegex(self.devices(os.environ["WEIR_FAKE_CUDA"]),
                         r"(?m)^  cuda  +1\.1 GiB  +2\.0 MiB  Fake GPU 0$")


class Output(unittest.TestCase):
    def test_an_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([WEIR, "devices"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "weir: standard output could not be written: "
                                      "No space left on device\n")

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run([WEIR, "help"], stdout=write_end, stderr=subprocess.PIPE,
                              text=True, check=False)
        os.close(write_end)
        self.assertEqual((done.returncode, done.stderr), (1, ""))

    def on_terminal(self, **environment):
        """What `weir devices` prints on a terminal."""
        ours, theirs = pty.openpty()
        variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        subprocess.run([WEIR, "devices"], stdout=theirs, check=True,
                       env={**variables, "TERM": "xterm", **environment})
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):  # a terminal hands out what it has by now
                text += piece
        except OSError:  # how Linux says that nobody writes any more
            pass
        os.close(ours)
        return text.decode()

    def test_colour_is_for_terminals_only(self):
        self.assertIn("\x1b[1m", self.on_terminal())
        self.assertNotIn("\x1b", self.on_terminal(NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal(TERM="dumb"))
        self.assertNotIn("\x1b", run("devices").stdout)

    def test_colour_changes_nothing_else(self):
        plain = re.sub(r"\x1b\[\d+m", "", self.on_terminal()).replace("\r\n", "\n")
        self.assertEqual(plain, run("devices").stdout)


if __name__ == "__main__":
    unittest.main()
