#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The matrix products of bench_kernels in PyTorch, with the same rounds and launches."""

import statistics
import time

import torch

ROUNDS, LAUNCHES = 9, 20
torch.backends.cuda.matmul.allow_tf32 = False


def measure(size, dtype):
    left, right = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    seconds = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            left @ right
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - start) / LAUNCHES)
    median = statistics.median(seconds[1:])
    name = f"PyTorch, {str(dtype)[6:]}, {size} x {size} x {size}"
    print(f"{name:34} {median * 1e6:10.1f} us {2 * size**3 / median * 1e-9:9.0f} GFLOP/s")


for wanted in (torch.float32, torch.float16):
    for extent in (256, 1024, 4096):
        measure(extent, wanted)
