"""What noise gives away and what it costs: in doubles, as version 0.2 drew it, and in whole numbers.

    python -m colonnade_bench.micro.noise [--rows 20000] [--epsilon 0.5]

Noise of 53 random bits, through the inverse of the distribution function and added in doubles, reaches only
some of the doubles around a label. Whoever knows two candidates asks from which of them the double that it
sees can be reached. Prints the part of the labels that this reads, that of which it is certain, and the
processor time of a number and of a reply, the best of five.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from random import SystemRandom

import numpy as np
from scipy.special import ndtr

from colonnade.arrays import Floats
from colonnade.attacks.gaps import normal, reached, read
from colonnade.losses import LOSSES
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.accountant import multiplier_for
from colonnade.privacy.label_noise import keep_probability, noisy_labels
from colonnade.privacy.mechanisms import NoisyScalars, clip_rows
from colonnade.privacy.noise import Noise

CLIP, CANDIDATES = 3.0, (-1.7, 2.9)


def in_doubles(labels: Floats, deviation: float, rng: np.random.Generator) -> Floats:
    """Labels with noise in doubles."""
    return labels + deviation * normal(rng.integers(0, 2**53, len(labels)))


def attacks(rows: int, epsilon: float) -> None:
    rng, multiplier = np.random.default_rng(0), multiplier_for(epsilon, 1e-5, 1)
    y = rng.choice(CANDIDATES, rows)
    deviation = multiplier * 2 * CLIP
    seen = in_doubles(y, deviation, rng)
    part, certain = read(seen, y, CANDIDATES, reached(seen, CANDIDATES, deviation))
    print(f"epsilon {epsilon:g} allows {keep_probability(epsilon, 2):.1%} of {rows} labels of two values")
    print(f"  in doubles        {part:.1%} read, {certain:.1%} with certainty")
    labels = noisy_labels(y, LOSSES["squared"], CLIP, multiplier, noise=Noise(bytes(32)))
    seen = labels(np.arange(rows))
    every = np.ones((2, rows), dtype=bool)  # values are reached from both labels
    part, certain = read(seen, y, CANDIDATES, every)
    best = float(ndtr((CANDIDATES[1] - CANDIDATES[0]) / 2 / labels.grid.deviation))
    print(f"  in whole numbers  {part:.1%} read, {certain:.1%} with certainty; expected {best:.1%}")


def best_of(what: Callable[[], object], times: int) -> float:
    """Microseconds of processor time of one of so many."""
    spent = []
    for _ in range(5):
        begun = time.process_time()
        what()
        spent.append(time.process_time() - begun)
    return min(spent) / times * 1e6


def costs() -> None:
    rng, rows = np.random.default_rng(0), np.arange(200_000)
    y, noise = rng.choice(CANDIDATES, len(rows)), Noise()
    was = best_of(lambda: in_doubles(y, 1.0, rng), len(rows))
    now = best_of(lambda: noise.gaussian(rows, 0 * rows), len(rows))
    print(f"a number: {was:.2f} us in doubles, {now:.2f} us in whole numbers")
    losses, gauss = rng.standard_normal((9, 2048)), SystemRandom().gauss
    scalars = NoisyScalars(Smoothing("gaussian", 8), 1.0, 5.0)

    def reply() -> Floats:
        clipped = clip_rows(scalars.smoothing.quotients(losses).T, 8**0.5)
        return np.asarray(clipped.mean(axis=0) + np.array([gauss(0.0, 1.0) for _ in range(8)]))

    was = best_of(lambda: [reply() for _ in range(100)], 100)
    now = best_of(lambda: [scalars(losses) for _ in range(100)], 100)
    print(f"a reply of 8 numbers about 2,048 rows: {was:.0f} us in doubles, {now:.0f} us in whole numbers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=0.5)
    given = parser.parse_args()
    attacks(given.rows, given.epsilon)
    costs()


if __name__ == "__main__":
    main()
