#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plays recorded traces on PyTorch's CUDA allocator and on Weir, side by side.

Per trace and round: PyTorch native, expandable segments and cudaMallocAsync, each in a
process of its own, and `weir replay`, one after the other; medians over the rounds. The
PyTorch side is torch_replay.cpp, built here against the PyTorch of this Python.

    bench/torch_replay.py --weir build/gpu/weir [--rounds 3] [--device cuda] TRACE...

Prints a table and, with --json FILE, writes all figures. Ends with 1 if one of Weir's
bounds against PyTorch is missed.
"""
import argparse
import glob
import gzip
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile

SETTINGS = {
    "native": "",
    "expandable": "expandable_segments:True",
    "async": "backend:cudaMallocAsync",
}
# What Weir must keep on the recorded traces: peak reserved / peak requested.
RATIO_BOUND = 1.02
RATIO_BOUND_OF = {"multi_stream": 1.75}


def torch_folder():
    spec = importlib.util.find_spec("torch")
    if spec is None:
        sys.exit("torch_replay: this Python has no torch; nothing was compared")
    return os.path.dirname(spec.origin)


def cuda_folders(torch):
    """Folders with cuda_runtime_api.h and libcudart.so: a toolkit's or Python packages'."""
    site = os.path.dirname(torch)
    headers = glob.glob("/usr/local/cuda*/include/cuda_runtime_api.h")
    headers += glob.glob(site + "/nvidia/*/include/cuda_runtime_api.h")
    libraries = glob.glob(site + "/nvidia/*/lib/libcudart.so*")
    libraries += glob.glob("/usr/local/cuda*/lib64/libcudart.so*")
    if not headers or not libraries:
        sys.exit("torch_replay: no CUDA runtime headers or library beside torch")
    return os.path.dirname(headers[0]), libraries[0]


def build(folder):
    torch = torch_folder()
    include, cudart = cuda_folders(torch)
    program = os.path.join(folder, "torch_replay")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_replay.cpp")
    lib = os.path.join(torch, "lib")
    subprocess.run(
        ["g++", "-O2", "-std=c++20", "-w", "-I" + torch + "/include", "-I" + include, source,
         "-o", program, "-L" + lib, "-lc10_cuda", "-lc10", cudart, "-Wl,-rpath," + lib,
         "-Wl,-rpath," + os.path.dirname(cudart)],
        check=True)
    return program


def unpack(trace, folder):
    """The trace as plain text; its name."""
    name = os.path.basename(trace).split(".")[0]
    plain = os.path.join(folder, name)
    opener = gzip.open if trace.endswith(".gz") else open
    with opener(trace, "rb") as packed, open(plain, "wb") as file:
        file.write(packed.read())
    return name, plain


def run_torch(program, plain, setting):
    environment = dict(os.environ)
    environment.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    environment.pop("PYTORCH_ALLOC_CONF", None)
    if setting:
        environment["PYTORCH_CUDA_ALLOC_CONF"] = setting
    done = subprocess.run([program, plain, "2"], env=environment, check=True,
                          stdout=subprocess.PIPE, text=True, timeout=120)
    found = json.loads(done.stdout)
    first, second = found["ns_per_operation"]
    return {"first": first, "second": second, "peak": found["peak_reserved_bytes"]}


def run_weir(weir, device, plain):
    done = subprocess.run([weir, "replay", "--device", device, "--passes", "2", "--json", plain],
                          check=True, stdout=subprocess.PIPE, text=True, timeout=120)
    found = json.loads(done.stdout)
    return {
        "first": found["ns_per_operation"],
        "second": found["later_ns_per_operation"],
        "first_host": found["host_ns_per_operation"],
        "second_host": found["later_host_ns_per_operation"],
        "first_calls": found["driver_calls"],
        "second_calls": found["later_driver_calls"],
        "peak": found["peak_reserved_bytes"],
        "requested": found["peak_requested_bytes"],
    }


def median(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def compare(given, program, plain):
    runs = {name: [] for name in [*SETTINGS, "weir"]}
    for _ in range(given.rounds):
        for name, setting in SETTINGS.items():
            runs[name].append(run_torch(program, plain, setting))
        runs["weir"].append(run_weir(given.weir, given.device, plain))
    return {name: median(some) for name, some in runs.items()}


def misses(name, found):
    """The bounds that this trace misses, as texts."""
    weir, native, expandable = found["weir"], found["native"], found["expandable"]
    ratio = weir["peak"] / weir["requested"]
    bound = RATIO_BOUND_OF.get(name, RATIO_BOUND)
    host_bound = min(native["second"], expandable["second"]) / 5
    second_bound = expandable["second"] / 5
    texts = []
    if ratio > bound:
        texts.append(f"peak {ratio:.4f} x requested, bound {bound}")
    if weir["first"] > expandable["first"]:
        texts.append(f"first pass {weir['first']:.0f} ns, bound {expandable['first']:.0f}")
    if weir["second"] > second_bound:
        texts.append(f"second pass {weir['second']:.0f} ns, bound {second_bound:.0f}")
    if weir["second_host"] > host_bound:
        texts.append(f"host time {weir['second_host']:.0f} ns, bound {host_bound:.0f}")
    return texts


def print_table(name, found):
    requested = found["weir"]["requested"]
    print(f"{name}\n  {'allocator':<12}{'first':>10}{'second':>10}{'peak':>9}   ns per operation")
    for allocator, row in found.items():
        print(f"  {allocator:<12}{row['first']:>10.1f}{row['second']:>10.1f}"
              f"{row['peak'] / requested:>9.4f}", end="")
        if "first_host" in row:
            print(f"   without the driver {row['first_host']:.1f}, {row['second_host']:.1f};"
                  f" {row['first_calls']:.0f}, {row['second_calls']:.0f} driver calls", end="")
        print()
    for text in misses(name, found):
        print("  MISSED:", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weir", default="build/gpu/weir", help="the command")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    given = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        for trace in given.traces:
            name, plain = unpack(trace, folder)
            figures[name] = compare(given, program, plain)
            print_table(name, figures[name])
            sys.stdout.flush()
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
    return 1 if any(misses(name, found) for name, found in figures.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
