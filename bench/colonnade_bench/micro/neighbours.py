"""What a masked sum costs each of many parties: masks with everybody, and with neighbours on a circle.

    python -m colonnade_bench.micro.neighbours [--parties 8 32 128 256] [--rounds 10] [--values 256]

All parties share a process. Every round is a sum of one number a row over a batch, a root after another.
Prints the processor time a party and round in microseconds, messages included: the best of three, in turns;
and what drawing the circle takes once a run.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import time

import numpy as np

from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.secure.masked import MaskedSum
from colonnade.secure.neighbours import draw, neighbours_for

KINDS = ("complete", "neighbours")


def secrets_of(net: Endpoint) -> dict[str, bytes]:
    """A secret for every peer that needs no handshake."""
    return {peer: hashlib.sha256(repr(sorted((net.me, peer))).encode()).digest() for peer in net.peers}


async def measure(q: int, kind: str, rounds: int, values: int) -> tuple[float, float]:
    """Microseconds a party and round, and milliseconds a party to draw the circle."""
    hub, names = LocalHub(), tuple(f"party{i:03}" for i in range(q))
    nets = [Endpoint(name, names, hub.wire(name), RealClock(), run=1) for name in names]
    near = [frozenset(net.peers) for net in nets]
    drawn, k = 0.0, neighbours_for(q)
    if kind == "neighbours" and k is not None:
        begun = time.process_time()
        near = await asyncio.gather(*(draw(net, k) for net in nets))
        drawn = time.process_time() - begun
    sums = [
        MaskedSum(net, {peer: secret for peer, secret in secrets_of(net).items() if peer in mine})
        for net, mine in zip(nets, near, strict=True)
    ]
    pieces = np.random.default_rng(q).normal(size=(q, values))
    begun = time.process_time()
    for tag in range(rounds):
        root = tag % q
        await asyncio.gather(
            *(sums[i].give(pieces[i], root=names[root], tag=tag) for i in range(q) if i != root)
        )
        total = await sums[root].collect(pieces[root], tag=tag)
    spent = time.process_time() - begun
    if np.abs(total - pieces.sum(axis=0)).max() > q * 2.0**-32:
        raise RuntimeError("a sum is wrong")
    for net in nets:
        await net.close()
    return spent / (q * rounds) * 1e6, drawn / q * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--parties", type=int, nargs="+", default=[8, 32, 128, 256])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--values", type=int, default=256)
    given = parser.parse_args()
    print("parties  neighbours  us a party and round: complete  neighbours  ratio   drawing, ms a party")
    for q in given.parties:
        found = [
            [asyncio.run(measure(q, kind, given.rounds, given.values)) for kind in KINDS] for _ in range(3)
        ]
        complete, sparse = (min(each[k][0] for each in found) for k in range(2))
        drawn = min(each[1][1] for each in found)
        k = neighbours_for(q) or q - 1
        print(f"{q:7}  {k:10}  {complete:30.0f}  {sparse:10.0f}  {sparse / complete:5.2f}  {drawn:19.2f}")


if __name__ == "__main__":
    main()
