"""What the server's answers of one epoch cost in VFL-CZOFO: the obvious loop, and ours.

    python -m colonnade_bench.micro.split_server [--device cpu|cuda] [--answers 30] [--clients 2 4 8]

60,000 rows in batches of 64, 64 outputs a client, q = 100 directions, one-sided; the server's network is
64 M -> 128 -> 10 for M clients: 938 M answers an epoch. The loop is what one would write in torch: draw
the directions of all rows, then one forward pass and loss for every direction, on top of one without. Ours
is what a server runs for every upload, from NumPy arrays to the NumPy reply, quantising apart. Both are
timed alternately over the same number of answers, in processor time on the CPU and wall time on a GPU, and
scaled to an epoch. The best of nine stretches counts for each: neighbours on the machine only ever make a
stretch slower. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from colonnade.losses import LOSSES
from colonnade.models.network import mlp
from colonnade.optim.deltas import Deltas, DeltasServer
from colonnade.optim.replies import Head

ROWS, BATCH, WIDTH, HIDDEN, CLASSES, Q, MU = 60_000, 64, 64, 128, 10, 100, 1e-3
STRETCHES = 9
KINDS = ("gaussian", "sphere", "rademacher")


def loop(clients: int, kind: str, device: str) -> Callable[[int], Any]:
    """A function that makes one answer as one would write it in torch, a direction at a time."""
    model = torch.nn.Sequential(
        torch.nn.Linear(WIDTH * clients, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES)
    ).to(device)
    C = torch.randn(BATCH, WIDTH * clients, device=device)
    y = torch.randint(0, CLASSES, (BATCH,), device=device)

    def directions() -> torch.Tensor:
        if kind == "rademacher":
            return torch.randint(0, 2, (Q, BATCH, WIDTH), device=device) * 2.0 - 1.0
        u = torch.randn(Q, BATCH, WIDTH, device=device)
        return u / u.flatten(1).norm(dim=1)[:, None, None] if kind == "sphere" else u

    @torch.inference_mode()
    def answer(number: int) -> Any:
        u, entropy = directions(), torch.nn.functional.cross_entropy
        f = entropy(model(C), y)
        moved = []
        for k in range(Q):
            near = C.clone()
            near[:, :WIDTH] += MU * u[k]
            moved.append(entropy(model(near), y))
        return ((torch.stack(moved) - f) / MU).cpu()

    return answer


def ours(clients: int, kind: Any, device: Any) -> Callable[[int], Any]:
    """A function that makes one answer as a server does."""
    rng = np.random.default_rng(0)
    model = mlp(WIDTH * clients, [HIDDEN], CLASSES, device=device)
    server = DeltasServer(Head(model, LOSSES["softmax"], model.initial(rng)), Deltas(kind, Q, MU))
    C = rng.standard_normal((BATCH, WIDTH * clients), dtype=np.float32)
    y, own = rng.integers(0, CLASSES, BATCH).astype(float), slice(0, WIDTH)
    outputs = C[None, :, own]
    return lambda number: server.answer(C, own, outputs, y, (0, 1, 8, number))


def seconds(answer: Callable[[int], Any], answers: int, device: str) -> float:
    """Seconds of so many answers, by the processor or, on a GPU, by the clock."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    start = clock()
    for number in range(answers):
        answer(number)
    return clock() - start


def compare(clients: int, kind: str, answers: int, device: str) -> dict[str, float]:
    """Times both in turns and scales the best stretches to an epoch."""
    both = loop(clients, kind, device), ours(clients, kind, device)
    for answer in both:
        seconds(answer, 10, device)  # what is slow once
    times = [[seconds(answer, answers, device) / answers for answer in both] for _ in range(STRETCHES)]
    naive, fast = (min(column) for column in zip(*times, strict=True))
    epoch = -(-ROWS // BATCH) * clients
    return {
        "clients": clients,
        "answers": epoch,
        "loop_s": round(naive * epoch, 3),
        "ours_s": round(fast * epoch, 3),
        "ours_ms_per_answer": round(fast * 1e3, 3),
        "ratio": round(naive / fast, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--answers", type=int, default=30)
    parser.add_argument("--clients", type=int, nargs="+", default=[2, 4, 8])
    asked = parser.parse_args()
    if asked.device == "cpu":
        torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if asked.device == "cuda" else "one thread"
    found = {
        kind: [compare(clients, kind, asked.answers, asked.device) for clients in asked.clients]
        for kind in KINDS
    }
    print(json.dumps({"device": asked.device, "on": name, "torch": torch.__version__, "epoch": found}))


if __name__ == "__main__":
    main()
