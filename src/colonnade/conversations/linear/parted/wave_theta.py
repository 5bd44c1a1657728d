"""Theta and loss of the logistic model for scores that two parties have in parts: a short sum of sines.

Parts of a score are uniform words, of which a whole turn of 2^cut is `PERIOD`. Nothing but a function of that
period can be made of them row by row, as products of a function of each:

    sin k(u + v) = sin ku cos kv + cos ku sin kv

The logistic function less a half is a sum of six such sines to 0.0102 on |z| < `REACH`, least largest error.
Its loss is a sum of cosines and sines to 0.0021 there. Beyond, neither is what it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Words
from colonnade.conversations.linear.noisy.product_forms import ProductFactors

PERIOD = 64.0
REACH = 26.0
FACTORS = (0.626646, 0.184701, 0.088029, 0.045955, 0.024561, 0.018636)  # of sin k z, k = 1, 3, ..., 11
TERMS = 2 * len(FACTORS)
MULTIPLES = 16  # of the loss
LARGEST = 10.0  # in the mean of rows, what products add to the loss: it less the mean of the series, about 8
USUAL = 4.0
STRETCH = 2**13  # rows
PLACES = 2001  # at which its series is fitted


def angles(words: Words, cut: int) -> Floats:
    """Return parts of scores as angles."""
    return words.astype(np.float64) * (2 * np.pi * 0.5**cut)


def _weighted(values: Floats, weight: Floats | None) -> Floats:
    return values if weight is None else weight * values


def _waves(angle: Floats) -> tuple[Floats, Floats]:
    """Return sines and cosines of all multiples, [multiples, rows], their strength shared by both parties."""
    turn: Floats = np.multiply.outer(np.arange(1.0, 2 * len(FACTORS), 2), angle)
    size: Floats = np.sqrt(np.array(FACTORS))[:, None]
    sines: Floats = size * np.sin(turn)
    cosines: Floats = size * np.cos(turn)
    return sines, cosines


def holder(angle: Floats, y: Floats, weight: Floats | None) -> ProductFactors:
    """Return what the label holder brings to theta."""
    sines, cosines = _waves(angle)
    label = np.where(y > 0, -0.5, 0.5)
    return ProductFactors(_weighted(label, weight), _weighted(np.vstack([sines, cosines]), weight))


def owner(angle: Floats) -> ProductFactors:
    """Return what the other party brings to theta."""
    sines, cosines = _waves(angle)
    return ProductFactors(np.zeros(len(angle)), np.vstack([cosines, sines]))


def theta_of(z: Floats) -> Floats:
    """Return what the sum of sines is: the logistic function less a half, within `REACH`."""
    k = 2 * np.pi / PERIOD * np.arange(1, 2 * len(FACTORS), 2)
    found: Floats = np.sin(np.multiply.outer(z, k)) @ np.array(FACTORS)
    return found


@cache
def _series() -> tuple[float, Floats, Floats]:
    """Return log(1 + e^z) as a number and factors of cosines and sines of z, least squares."""
    z = np.linspace(-REACH, REACH, PLACES)
    turn = np.multiply.outer(z, 2 * np.pi / PERIOD * np.arange(1, MULTIPLES + 1))
    table = np.hstack([np.ones((PLACES, 1)), np.cos(turn), np.sin(turn)])
    usual = 1 / (1 + (z / USUAL) ** 2)  # what most scores are counts most: errors of all rows add up there
    found = np.linalg.lstsq(table * usual[:, None], np.logaddexp(0.0, z) * usual, rcond=None)[0]
    base, even, odd = np.split(np.asarray(found, dtype=np.float64), [1, MULTIPLES + 1])
    return float(base[0]), even, odd


def _turns(angle: Floats) -> NDArray[np.float64]:
    return np.multiply.outer(np.arange(1, MULTIPLES + 1), angle)


def holders_loss(angle: Floats, y: Floats, weight: Floats | None) -> ProductFactors:
    """Return what the label holder brings to every row's loss, log(1 + e^-yz)."""
    base, even, odd = _series()
    rows = np.empty((2 * MULTIPLES, len(angle)))
    for cut in _stretches(len(angle)):
        turn, sign = _turns(angle[cut]), np.where(y[cut] > 0, -1.0, 1.0)
        sines, cosines = np.sin(turn), np.cos(turn)
        a, b = even[:, None], odd[:, None] * sign
        rows[:MULTIPLES, cut], rows[MULTIPLES:, cut] = a * cosines + b * sines, b * cosines - a * sines
    if weight is not None:
        rows *= weight
    return ProductFactors(_weighted(np.full(len(angle), base), weight), rows)


def owners_loss(angle: Floats) -> ProductFactors:
    """Return what the other party brings to it."""
    rows = np.empty((2 * MULTIPLES, len(angle)))
    for cut in _stretches(len(angle)):
        turn = _turns(angle[cut])
        np.cos(turn, out=rows[:MULTIPLES, cut])
        np.sin(turn, out=rows[MULTIPLES:, cut])
    return ProductFactors(np.zeros(len(angle)), rows)


def _stretches(rows: int) -> Iterator[slice]:
    """Yield some thousand rows at a time: of all of them what a function is made of would be three times
    the function."""
    for at in range(0, rows, STRETCH):
        yield slice(at, at + STRETCH)
