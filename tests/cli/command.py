# SPDX-License-Identifier: MIT
"""Runs the command that the environment variable WEIR names."""
import os
import subprocess

WEIR = os.environ.get("WEIR", "build/weir")


def run(*arguments, **options):
    """The finished process, with .returncode, .stdout and .stderr as text."""
    return subprocess.run(
        [WEIR, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=120, check=False, **options)


def has_shadow_memory():
    """Whether the command was built with a sanitizer that keeps memory of its own: for all that
    was ever written (threads), for what was freed and for stacks (addresses). The process's
    footprint does not fall then."""
    with open(WEIR, "rb") as program:
        text = program.read()
    return b"__tsan_init" in text or b"__asan_init" in text
