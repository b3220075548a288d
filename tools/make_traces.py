#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the synthetic allocation traces T1 to T7 into a folder.

usage: make_traces.py FOLDER [T1 T2 ...]

Every trace has a fixed seed: the files are the same on every machine, byte for byte. Their form
is that of tests/traces."""

import math
import os
import random
import sys

KIB = 1024
MIB = 1024 * KIB


class Trace:
    """A trace being written; counts operations and numbers allocations."""

    def __init__(self, path, description):
        self.file = open(path, "w", buffering=1 << 20)
        self.operations = 0
        self.last_id = 0
        self.file.write(f"# {description}\n")

    def alloc(self, size):
        self.last_id += 1
        self.operations += 1
        self.file.write(f"a {self.last_id} {size} 0\n")
        return self.last_id

    def free(self, buffer):
        self.operations += 1
        self.file.write(f"f {buffer} 0\n")

    def mark(self, label):
        self.file.write(f"m {label}\n")

    def close(self):
        self.file.close()


def log_uniform(rng, low, high):
    """A size in [low, high], log-uniform, rounded up to 16 bytes."""
    size = int(math.exp(rng.uniform(math.log(low), math.log(high))))
    return max(low, min(high, (size + 15) // 16 * 16))


class Plan:
    """One training step: the sizes, how many allocations later each is freed (0: in the backward
    pass), and the order of that pass, which is last in first out but for a few swaps."""

    def __init__(self, rng, count=200):
        self.sizes = [log_uniform(rng, KIB, 64 * MIB) for _ in range(count)]
        self.lives = [rng.randint(1, 4) if rng.random() < 0.35 else 0 for _ in range(count)]
        self.backward = list(range(count))[::-1]
        for i in range(count - 1):
            if rng.random() < 0.15:
                j = min(count - 1, i + rng.randint(1, 4))
                self.backward[i], self.backward[j] = self.backward[j], self.backward[i]

    def step(self, trace, sizes):
        live, due = {}, {}
        for i, size in enumerate(sizes):
            live[i] = trace.alloc(size)
            if self.lives[i]:
                due.setdefault(i + self.lives[i], []).append(i)
            for j in due.pop(i, []):
                trace.free(live.pop(j))
        for late in due.values():
            for j in late:
                trace.free(live.pop(j))
        for i in self.backward:
            if i in live:
                trace.free(live.pop(i))


def t1(path):
    rng = random.Random(101)
    trace = Trace(path, "T1 steady training loop: 100 weights, 200 tensors/step 1KiB..64MiB, "
                        "LIFO-ish, 2000 steps, same sizes each step")
    for _ in range(100):
        trace.alloc(log_uniform(rng, KIB, 64 * MIB))
    plan = Plan(rng)
    for k in range(2000):
        trace.mark(f"step{k}")
        plan.step(trace, plan.sizes)
    trace.close()


def t2(path):
    low, high = 256, 32 * MIB
    rng = random.Random(102)
    trace = Trace(path, "T2 LLM-serving like: ~2000 live growing KV buffers, 256B..32MiB, 1e6 ops")
    live = []  # [buffer, size, whether its sequence is long-lived]
    while trace.operations < 1_000_000:
        if len(live) < 2000 and (len(live) < 1900 or rng.random() < 0.6):
            size = log_uniform(rng, low, high)
            live.append([trace.alloc(size), size, rng.random() < 0.1])
            continue
        i = rng.randrange(len(live))
        buffer = live[i]
        if rng.random() < 0.5 and buffer[1] < high // 2:  # grows: a new buffer, then the old goes
            size = min(high, int(buffer[1] * rng.uniform(1.25, 2.0)) // 16 * 16 + 16)
            larger = trace.alloc(size)
            trace.free(buffer[0])
            buffer[0], buffer[1] = larger, size
        elif not (buffer[2] and rng.random() < 0.9):
            trace.free(buffer[0])
            live[i] = live[-1]
            live.pop()
    trace.close()


def churn(path, description, seed, live_count, low, high):
    """As many live buffers all the time; one at random is freed and another one allocated."""
    rng = random.Random(seed)
    trace = Trace(path, description)
    live = [trace.alloc(log_uniform(rng, low, high)) for _ in range(live_count)]
    while trace.operations < 2_000_000:
        i = rng.randrange(live_count)
        trace.free(live[i])
        live[i] = trace.alloc(log_uniform(rng, low, high))
    trace.close()


def t3(path):
    churn(path, "T3 random churn: 10000 live, log-uniform 256B..4MiB, 2e6 ops",
          103, 10000, 256, 4 * MIB)


def t4(path):
    rng = random.Random(104)
    trace = Trace(path, "T4 variable sequence length: 100 weights, 200 tensors/step, sizes scaled "
                        "by a random factor per step (1 in 10 by its square), 1000 steps")
    for _ in range(100):
        trace.alloc(log_uniform(rng, KIB, 64 * MIB))
    plan = Plan(rng)
    is_quadratic = [rng.random() < 0.1 for _ in plan.sizes]
    for k in range(1000):
        factor = rng.uniform(0.125, 1.0)
        trace.mark(f"step{k} f={factor:.3f}")
        sizes = [max(256, int(size * (factor * factor if quadratic else factor)) // 16 * 16)
                 for size, quadratic in zip(plan.sizes, is_quadratic)]
        plan.step(trace, sizes)
    trace.close()


def t5(path):
    churn(path, "T5 tiny: 500 live, log-uniform 256B..4KiB, 2e6 ops", 105, 500, 256, 4 * KIB)


def t6(path):
    rng = random.Random(106)
    trace = Trace(path, "T6 growth then drop all, then small ones; 10 cycles; 5 small blocks of "
                        "each cycle stay for ever")
    for cycle in range(10):
        trace.mark(f"grow{cycle}")
        large = [trace.alloc(log_uniform(rng, 256 * KIB, 64 * MIB)) for _ in range(800)]
        trace.mark(f"drop{cycle}")
        rng.shuffle(large)
        for buffer in large:
            trace.free(buffer)
        trace.mark(f"small{cycle}")
        small = [trace.alloc(log_uniform(rng, 256, 64 * KIB)) for _ in range(10000)]
        for _ in range(20000):
            i = rng.randrange(len(small))
            trace.free(small[i])
            small[i] = trace.alloc(log_uniform(rng, 256, 64 * KIB))
        rng.shuffle(small)
        for buffer in small[5:]:
            trace.free(buffer)
    trace.close()


def t7(path):
    churn(path, "T7 random churn: 10000 live, log-uniform 256B..1MiB, 2e6 ops (no size cap needed "
                "for the malloc yardsticks)", 107, 10000, 256, MIB)


TRACES = {"T1": t1, "T2": t2, "T3": t3, "T4": t4, "T5": t5, "T6": t6, "T7": t7}


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: make_traces.py FOLDER [T1 T2 ...]")
    names = sys.argv[2:] or list(TRACES)
    unknown = [name for name in names if name not in TRACES]
    if unknown:
        sys.exit(f"make_traces.py: no trace {unknown[0]}; there are {' '.join(TRACES)}")
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in names:
        path = os.path.join(sys.argv[1], name + ".trace")
        TRACES[name](path + ".tmp")
        os.replace(path + ".tmp", path)
        print("wrote", path, os.path.getsize(path) // KIB, "KiB")


if __name__ == "__main__":
    main()
