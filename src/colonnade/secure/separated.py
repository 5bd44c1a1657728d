"""A function of the sum of two parties' numbers, as few products of a function of each.

Neither party knows u + v. But h(u + v) = F(u) + G(v) + sum_r f_r(u) g_r(v), nearly, for |u| <= a and
|v| <= b: the best f_r and g_r are singular vectors of the table of h(u_i + v_j). F and G cost nothing, since
each party adds its own. The table of an odd or even h is split by parity before: then all terms of an odd one
are odd in one of the two, and the sum at u = v = 0 is exactly h(0) = 0. (Singular vectors of the whole table
mix where ranges are alike, and it would not be.)

Functions are Chebyshev series, so they are computed for all rows by a short recurrence and one product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from colonnade.arrays import Floats
from colonnade.errors import SumError

NODES = 32  # of each party's range; twice as many where it is wide
WIDE = 12.0  # a range from which on they are
CHECKED = 101  # places of each range at which the error is measured
STRETCH = 4096  # rows whose series are computed at once: they stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Series:
    """Functions on [-reach, reach]: the party's own in the first row, and one for every term."""

    reach: float
    coefficients: Floats

    def at(self, x: Floats) -> Floats:
        """Return the functions at these places: [1 + terms, places]; beyond the reach, those at its end."""
        x = np.clip(x, -self.reach, self.reach)
        out = np.empty((len(self.coefficients), len(x)))
        degree = self.coefficients.shape[1]
        basis = np.empty((degree, STRETCH))
        for start in range(0, len(x), STRETCH):
            part = x[start : start + STRETCH] / self.reach
            T = basis[:, : len(part)]
            T[0], T[1] = 1.0, part
            part = 2 * part
            for k in range(2, degree):
                np.multiply(part, T[k - 1], out=T[k])
                T[k] -= T[k - 2]
            out[:, start : start + STRETCH] = self.coefficients @ T
        return out


@dataclass(frozen=True, eq=False)
class Separated:
    """h(u + v): the functions of either party, and how far their sum of products is off, at the most."""

    u: Series
    v: Series
    error: float

    @property
    def terms(self) -> int:
        """How many products it takes."""
        return len(self.u.coefficients) - 1


def half_logistic(z: Floats) -> Floats:
    """Return 1 / (1 + e^-z) - 1/2, which is odd."""
    return 0.5 * np.tanh(0.5 * z)


def log_two_cosh(z: Floats) -> Floats:
    """Return log(1 + e^z) - z / 2, which is even."""
    size = np.abs(z)
    found: Floats = 0.5 * size + np.log1p(np.exp(-size))
    return found


@lru_cache(maxsize=64)
def separated(
    a: float,
    b: float,
    error: float,
    most: int,
    h: Callable[[Floats], Floats] = half_logistic,
    even: bool = False,
) -> Separated:
    """Return an odd (or even) h(u + v), |u| <= a, |v| <= b, with as few products as stay within an error.

    SumError if that takes more than `most`: then a sum of sines does not help either.
    """
    (u, in_u, weight_u), (v, in_v, weight_v) = _nodes(a), _nodes(b)
    plus, minus = h(u[:, None] + v), h(u[:, None] - v)
    # of an odd h: odd in u and even in v, or the other way; of an even one: even in both, or odd in both
    one, other = 0.5 * (plus + minus), 0.5 * (plus - minus)
    own_u = one @ weight_v  # means: what one party can add by itself
    own_v = weight_u @ (one - own_u[:, None] if even else other)
    terms: list[tuple[float, Floats, Floats]] = []
    roots = np.sqrt(weight_u)[:, None], np.sqrt(weight_v)
    left = one - own_u[:, None]
    for table in (left - own_v, other) if even else (left, other - own_v):
        U, s, V = np.linalg.svd(table * roots[0] * roots[1])
        terms += [(s[k], U[:, k] / roots[0][:, 0], V[k] / roots[1]) for k in range(min(most, len(s)))]
    terms.sort(key=lambda term: -term[0])
    x, y = np.linspace(-a, a, CHECKED), np.linspace(-b, b, CHECKED)
    exact = h(x[:, None] + y)
    for count in range(most + 1):
        f, g = _balanced(terms[:count], own_u, own_v)
        found = Separated(Series(a, f @ in_u), Series(b, g @ in_v), 0.0)
        at_x, at_y = found.u.at(x), found.v.at(y)
        off = float(np.abs(at_x[0][:, None] + at_y[0] + at_x[1:].T @ at_y[1:] - exact).max())
        if off <= error:
            return Separated(found.u, found.v, off)
    raise SumError(
        f"parts of scores reach {a:g} and {b:g}: theta there takes more than {most} products a row; scale "
        "columns, or raise train.l2"
    )


def _balanced(
    terms: list[tuple[float, Floats, Floats]], own_u: Floats, own_v: Floats
) -> tuple[Floats, Floats]:
    """Return both parties' functions at their nodes, so that f_r and g_r are equally large."""
    f, g = [own_u], [own_v]
    for s, left, right in terms:
        largest = np.abs(left).max(), np.abs(right).max()
        size = np.sqrt(s * largest[0] * largest[1])
        f.append(left * (size / largest[0]))
        g.append(right * (size / largest[1]))
    return np.array(f), np.array(g)


def _nodes(reach: float) -> tuple[Floats, Floats, Floats]:
    """Return Chebyshev nodes, the matrix that makes a series of values at them, and their weights."""
    count = NODES if reach <= WIDE else 2 * NODES
    angles = (np.arange(count) + 0.5) * (np.pi / count)
    x = np.cos(angles)
    to_series = chebvander(x, count - 1) * (2 / count)
    to_series[:, 0] /= 2
    weights = np.sin(angles)
    return reach * x, to_series, weights / weights.sum()
