#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What examples/train_digits promises: it learns, asks nothing of the driver after its first
steps, and a cleanup leaves what the parameters pin."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(os.environ["WEIR_BUILD_DIR"]) / "examples" / "train_digits"
GRANULE = 2 << 20


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def line(lines, name):
    return next(entry for entry in lines if entry["name"] == name)


def check_training():
    done = run("--json", "--steps", "300")
    if done.returncode == 77:
        print(done.stderr, end="")
        sys.exit(77)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["accuracy"] >= 0.95, told["accuracy"]
    assert told["driver_calls"] == 0, told["driver_calls"]
    assert told["reserved_bytes"] == told["warm_reserved_bytes"]
    assert told["returned_bytes"] > 0
    for when in ("before_cleanup", "after_cleanup"):
        # Two layers of f32, 64-128-10, and nothing else.
        parameters = 4 * (64 * 128 + 128 + 128 * 10 + 10)
        assert line(told[when], "in_use")["bytes"] == parameters, told[when]
        assert "autodiff" not in line(told[when], "in_use")["reason"]
    assert line(told["before_cleanup"], "releasable")["bytes"] > 0
    assert line(told["after_cleanup"], "releasable")["bytes"] == 0
    assert line(told["after_cleanup"], "pinned")["bytes"] < 2 * GRANULE


def check_training_on_webgpu():
    if not os.environ.get("WEIR_WEBGPU_LIBRARY"):
        return
    done = run("--json", "--steps", "150", "--device", "webgpu")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["driver_calls"] == 0, told["driver_calls"]
    assert told["reserved_bytes"] == told["warm_reserved_bytes"]


def check_refusals():
    assert run("--steps", "none").returncode == 2
    assert run("--unknown").returncode == 2
    assert run("--help").stdout.startswith("usage: train_digits")
    assert run("--device", "none", "--steps", "1").returncode == 1
    assert run("--data", "/nowhere/digits.csv.gz").returncode == 1
    with tempfile.NamedTemporaryFile(suffix=".csv.gz") as file:
        file.write(gzip.compress(b"1,2,3\n"))
        file.flush()
        told = run("--data", file.name)
        assert told.returncode == 1
        assert "line 1 of the data is not 64 pixels and a digit" in told.stderr


check_training()
check_training_on_webgpu()
check_refusals()
