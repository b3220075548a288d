#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench/digits_torch.py [--device cpu|cuda] [--steps N] [--threads N] [--data FILE]

What examples/train_digits does, in PyTorch, to set its step times beside: the same net, batches,
optimizer and data, eager. Prints one JSON object. Neither installed nor run by the build.
"""

import argparse
import gzip
import json
import time

import torch

HIDDEN, BATCH, TEST_DIGITS, WARM_UP = 128, 64, 360, 10


def load(path, device):
    with gzip.open(path, "rt") as file:
        rows = torch.tensor([[float(n) for n in line.split(",")] for line in file])
    rows = rows[torch.randperm(len(rows))]
    return (rows[:, :64] / 16).to(device), rows[:, 64].long().to(device)


def step(net, optimizer, images, labels):
    rows = torch.randint(len(images), (BATCH,)).to(images.device)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(images[rows]), labels[rows])
    loss.backward()
    optimizer.step()
    return loss


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--data", default="build/digits/digits.csv.gz")
    asked = parser.parse_args()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    torch.manual_seed(7)
    images, labels = load(asked.data, asked.device)
    learn = len(images) - TEST_DIGITS
    net = torch.nn.Sequential(torch.nn.Linear(64, HIDDEN), torch.nn.ReLU(),
                              torch.nn.Linear(HIDDEN, 10)).to(asked.device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.01)
    for number in range(asked.steps + WARM_UP):
        if number == WARM_UP:
            wait(asked.device)
            begun = time.monotonic()
        loss = step(net, optimizer, images[:learn], labels[:learn])
        if number % 50 == 0:
            loss.item()
    wait(asked.device)
    seconds = time.monotonic() - begun
    with torch.no_grad():
        right = (net(images[learn:]).argmax(1) == labels[learn:]).float().mean().item()
    print(json.dumps({"torch": torch.__version__, "device": asked.device,
                      "threads": torch.get_num_threads(), "steps": asked.steps,
                      "loss": loss.item(), "accuracy": round(right, 4),
                      "step_us": round(1e6 * seconds / asked.steps, 1)}))


if __name__ == "__main__":
    main()
