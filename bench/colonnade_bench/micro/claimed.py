"""What noise promises, and what telling two labels apart many times finds: no mechanism may fall short.

    python -m colonnade_bench.micro.claimed [--trials 50000]

One label decides which of two distributions a release comes from; the rest is as bad as it can be for it.
An attacker names a threshold on a half of the trials and is counted on the other; from its hits and false
alarms epsilon is bounded from below, at 99.99% confidence. Noise in doubles as version 0.2 drew it stands
beside: there the attacker asks which label can be reached at all.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from colonnade.arrays import Floats
from colonnade.attacks.epsilon import epsilon_at_least
from colonnade.attacks.gaps import reached
from colonnade.conversations.own_noise import OwnNoise
from colonnade.losses import LOSSES
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.accountant import multiplier_for
from colonnade.privacy.counts import CountNoise
from colonnade.privacy.gaussian import deviation_for
from colonnade.privacy.label_noise import label_points, noisy_labels
from colonnade.privacy.mechanisms import NoisyScalars
from colonnade.privacy.noise import Noise
from colonnade_bench.micro.noise import CANDIDATES, CLIP, in_doubles

DELTA, SURE = 1e-5, 0.9999
Said = Callable[[int, int], Floats]
"""What an attacker makes of this many releases, with the first label (0) or the second (1)."""


@dataclass(frozen=True)
class Mechanism:
    """A mechanism: what it promises of one label, and how an attacker reads its releases."""

    name: str
    claimed: float
    said: Said
    delta: float = DELTA
    most: int = 10**9  # trials: some are slow


def mechanisms() -> Iterator[Mechanism]:
    """Yield every mechanism at a small and a large epsilon."""
    for epsilon in (0.5, 2.0):
        yield Mechanism("randomised response, 2 classes", epsilon, _responses(2, epsilon), 0.0)
        yield Mechanism("randomised response, 10 classes", epsilon, _responses(10, epsilon), 0.0)
    for epsilon in (0.5, 4.0):
        yield Mechanism("labels, numbers, once", epsilon, _labels(epsilon, "squared", 1))
        yield Mechanism("labels, two classes, 3 replies", epsilon, _labels(epsilon, "logistic", 3))
        yield Mechanism("labels, three classes, 3 replies", epsilon, _labels(epsilon, "softmax", 3))
        yield Mechanism("gradients of `lbfgs`, 12 passes", epsilon, _gradients(epsilon, 12))
    yield Mechanism("scalar replies, once", 8.0, _scalars(8.0), most=6000)
    counts = CountNoise(2.0)
    yield Mechanism("counts of 25 columns, `woe.noise = 2`", counts.epsilon or 0.0, _counts(25), most=20_000)


def _responses(classes: int, epsilon: float) -> Said:
    return lambda label, trials: Noise().response(np.full(trials, label), classes, epsilon).astype(float) == 1


def _labels(epsilon: float, loss: str, draws: int) -> Said:
    kinds, y = (3, np.array([0.0, 2.0])) if loss == "softmax" else (None, np.array([-1.0, 1.0]))
    points, _, sensitivity = label_points(y, LOSSES[loss], 1.0, kinds)
    way = np.atleast_1d((points[1] - points[0]) / sensitivity)
    multiplier = multiplier_for(epsilon, DELTA, draws)

    def said(label: int, trials: int) -> Floats:
        known = np.append(np.full(trials, y[label]), y)  # that there are all classes is no secret
        labels = noisy_labels(known, LOSSES[loss], 1.0, multiplier)
        told = [labels(np.arange(trials)).reshape(trials, -1) @ way for _ in range(draws)]
        mean: Floats = np.mean(told, axis=0)
        return mean

    return said


def _gradients(epsilon: float, passes: int) -> Said:
    """A row of size 1 in one column: every pass tells its theta, which moves by 1 with the label."""
    fine = 2.0**20
    deviation = deviation_for(epsilon, DELTA) * sqrt(passes) * fine

    def said(label: int, trials: int) -> Floats:
        noise = OwnNoise(Noise().response(np.zeros(32, dtype=int), 256, 1e-9).astype(np.uint8).tobytes())
        told = [noise.words(np.full(trials, deviation), "gradients", number) for number in range(passes)]
        total: Floats = np.sum(told, axis=0) / fine + passes * label
        return total

    return said


def _scalars(epsilon: float) -> Said:
    keys = (number.to_bytes(32, "big") for number in itertools.count())
    multiplier = multiplier_for(epsilon, DELTA, 1)
    mechanism = NoisyScalars(Smoothing("gaussian", 1, 1.0, True), 1.0, multiplier, lambda: Noise(next(keys)))
    z = np.array([[0.0], [50.0], [-50.0]])

    def said(label: int, trials: int) -> Floats:
        asked = LOSSES["logistic"].value(z, np.array([1.0 - 2 * label]))
        return np.array([float(mechanism(asked)[0]) for _ in range(trials)])

    return said


def _counts(columns: int) -> Said:
    """One bad more in one bin of every column."""
    rows = np.full(columns, 1000)

    def said(label: int, trials: int) -> Floats:
        told = (CountNoise(2.0).told(np.full(columns, 300 + label), rows, columns) for _ in range(trials))
        return np.array([float(each.sum()) for each in told])

    return said


def measured(each: Mechanism, trials: int) -> float:
    """Return the least epsilon that fits how often the attacker is right."""
    trials = min(trials, each.most)
    said = [np.asarray(each.said(label, 2 * trials), dtype=float) for label in (0, 1)]
    best = 0.0, 0.5
    for threshold in np.unique(np.quantile(said[0][:trials], [0.5, 0.7, 0.9, 0.97, 0.99, 0.995])) - 1e-12:
        hits, alarms = (int((part[:trials] > threshold).sum()) for part in (said[1], said[0]))
        best = max(best, (epsilon_at_least(hits, alarms, trials, delta=each.delta), float(threshold)))
    hits, alarms = (int((part[trials:] > best[1]).sum()) for part in (said[1], said[0]))
    return epsilon_at_least(hits, alarms, trials, delta=each.delta, confidence=SURE)


def measured_in_doubles(epsilon: float, trials: int) -> float:
    """Return the same of numbers with noise in doubles: the second label, where the first cannot be."""
    deviation = 2 * CLIP * multiplier_for(epsilon, DELTA, 1)
    certain = []
    for candidate in CANDIDATES:
        seen = in_doubles(np.full(trials, candidate), deviation, np.random.default_rng())
        certain.append(int((~reached(seen, CANDIDATES, deviation)[0]).sum()))
    return epsilon_at_least(certain[1], certain[0], trials, delta=DELTA, confidence=SURE)


def table(trials: int) -> Iterator[str]:
    """Yield the table, line by line."""
    yield "| noise | epsilon claimed | at least, measured |"
    yield "|---|---|---|"
    for each in mechanisms():
        yield f"| {each.name} | {each.claimed:.3g} | {measured(each, trials):.2f} |"
    for epsilon in (0.5, 4.0):
        found = measured_in_doubles(epsilon, trials)
        yield f"| numbers, noise in doubles, as version 0.2 drew it | {epsilon:.3g} | {found:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=50_000)
    for line in table(parser.parse_args().trials):
        print(line, flush=True)


if __name__ == "__main__":
    main()
