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
