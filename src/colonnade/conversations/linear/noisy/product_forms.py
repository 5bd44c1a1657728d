"""Theta of scores that two parties share, u at the label holder and v at the owner, as products of theirs.

    theta = own(u, y) + own(v) + sum_r f_r(u, y) g_r(v)

    logistic   1 / (1 + e^-(u + v)) - y     few terms, nearly (`secure.separated`); y is 0 or 1
    squared    (u + v) - y                  none
    poisson    e^u e^v - y                  one
    gamma      1 - y e^-u e^-v              one

Labels and weights are the label holder's: where rows have weights, what the owner would add by itself is one
product more. Numbers travel in whole steps: f in 2^-left, g in 2^-right, theta in 2^-(left + right).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.errors import FixedPointOverflow
from colonnade.secure.separated import Separated, half_logistic, log_two_cosh, separated

ERROR = 0.02  # of theta of the logistic loss, at the most
LOSS_ERROR = 2e-3  # of the loss of a row, at the most
MOST_TERMS = 46  # products a row
LEAST_REACH = -6  # as a code: scores that all lie near zero
FURTHEST_REACH = 9  # as a code: 22.6; a part of a logistic score beyond counts as that
LOUD = 1.25  # times the bound on theta: room for error and random rounding


def code_of(size: float) -> int:
    """Return the least k with size <= 2^(k/2): all that a party tells of how large its numbers are."""
    if not np.isfinite(size):
        raise FixedPointOverflow("scores are not finite: no step of this size could be told")
    return max(LEAST_REACH, int(np.ceil(2 * np.log2(max(size, 1e-30)) - 1e-9)))


def size_of(code: int) -> float:
    """Return the size that a code stands for."""
    return float(2.0 ** (code / 2))


@dataclass(frozen=True)
class Reaches:
    """What both know of a pass: how far either part of scores reaches, as codes; and whether rows weigh."""

    holder: int
    owner: int
    weighted: bool

    @property
    def separated(self) -> Separated:
        """The functions of the logistic loss."""
        return self._made(ERROR, half_logistic, even=False)

    @property
    def separated_loss(self) -> Separated:
        """The functions of its even part, the loss itself."""
        return self._made(LOSS_ERROR, log_two_cosh, even=True)

    def _made(self, error: float, h: Callable[[Floats], Floats], *, even: bool) -> Separated:
        ends = (size_of(min(code, FURTHEST_REACH)) for code in (self.holder, self.owner))
        return separated(*ends, error, MOST_TERMS, h, even)


@dataclass(frozen=True, eq=False)
class ProductFactors:
    """What a party brings to theta: what it adds by itself, and a factor of every product, [terms, rows]."""

    own: Floats
    products: Floats

    def over(self, unit: float, *, only_own: bool = False) -> ProductFactors:
        """Return the same in a larger unit of theta; an owner's factors of products are in none."""
        if unit == 1.0:
            return self
        return ProductFactors(self.own / unit, self.products if only_own else self.products / unit)

    def whole(self, own_bits: int, bits: int, rng: np.random.Generator) -> Whole:
        """Return the same in whole steps; factors are rounded by chance, so that errors add up to none."""
        found = np.empty(self.products.shape, dtype=np.int64)
        for row, whole in zip(self.products, found, strict=True):  # one after the other: rows may be many
            whole[:] = np.floor(np.ldexp(row, bits) + rng.random(len(row)))
        return Whole(np.rint(np.ldexp(self.own, own_bits)).astype(np.int64), found)


@dataclass(frozen=True, eq=False)
class Whole:
    """Factors in whole steps."""

    own: NDArray[np.int64]
    products: NDArray[np.int64]


class Form(Protocol):
    """How theta of a loss, and the loss itself, are made of two parties' functions."""

    def curvature(self, unit: float) -> float:
        """Return the second derivative of a row, about, for theta in this unit: what first matrices go by."""
        ...

    scaled: bool
    """Whether theta has the unit of labels, in which it must be counted."""

    far: int
    """A reach, as a code, from which on one step may not lead much further than the one before."""

    def holder(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors: ...

    def owner(self, v: Floats, reaches: Reaches) -> ProductFactors: ...

    def size(self, v: Floats) -> float:
        """Return the norm of the owner's function that bounds theta; told as a code."""
        ...

    def holders_loss(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors:
        """Return what the label holder brings to every row's loss, up to a number that labels alone say."""
        ...

    def owners_loss(self, v: Floats, reaches: Reaches) -> ProductFactors: ...

    def at_zero(self, y: Floats) -> Floats:
        """Return the loss of every row at u = v = 0, as these functions count it."""
        ...

    def loss_unit(self, unit: float) -> float:
        """Return how large a row's loss is, about, for theta in this unit."""
        ...

    def bound(self, u: Floats, y: Floats, weight: Floats | None, size: float) -> tuple[float, float]:
        """Return a bound on the length of theta over all rows, and how large f is beside g, roughly."""
        ...


def _weighted(values: Floats, weight: Floats | None) -> Floats:
    return values if weight is None else weight * values


def _none(rows: int) -> Floats:
    return np.zeros((0, rows))


def _fourth(values: Floats) -> float:
    """Return the norm for which |fg| <= |f| |g|, the latter two being this one."""
    return float(np.mean(values**4) ** 0.25 * len(values) ** 0.25)


class LogisticForm:
    """1 / (1 + e^-z) - y."""

    scaled = False
    far = 8

    def curvature(self, unit: float) -> float:
        return 0.25

    def holder(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors:
        made = reaches.separated.u.at(u)
        own = _weighted(made[0] + 0.5 - (y > 0), weight)
        products = made[1:] if weight is None else weight * np.vstack([made[1:], np.ones(len(u))])
        return ProductFactors(own, products)

    def owner(self, v: Floats, reaches: Reaches) -> ProductFactors:
        made = reaches.separated.v.at(v)
        if reaches.weighted:
            return ProductFactors(np.zeros(len(v)), np.vstack([made[1:], made[:1]]))
        return ProductFactors(made[0], made[1:])

    def size(self, v: Floats) -> float:
        return 1.0

    def bound(self, u: Floats, y: Floats, weight: Floats | None, size: float) -> tuple[float, float]:
        return float(np.sqrt(len(u)) if weight is None else np.linalg.norm(weight)), 1.0

    def holders_loss(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors:
        made = reaches.separated_loss.u.at(u)
        lean = 0.5 - (y > 0)  # log(1 + e^z) - y z is even but for this times z
        rows = np.vstack([made[1:], lean, np.ones(len(u))])
        return ProductFactors(_weighted(made[0] + lean * u, weight), _weighted(rows, weight))

    def owners_loss(self, v: Floats, reaches: Reaches) -> ProductFactors:
        made = reaches.separated_loss.v.at(v)
        return ProductFactors(np.zeros(len(v)), np.vstack([made[1:], v, made[:1]]))

    def at_zero(self, y: Floats) -> Floats:
        return np.full(len(y), np.log(2.0))

    def loss_unit(self, unit: float) -> float:
        return 1.0


class SquaredForm:
    """z - y."""

    scaled = True
    far = 60

    def curvature(self, unit: float) -> float:
        return 1 / unit

    def holder(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors:
        return ProductFactors(_weighted(u - y, weight), _none(len(u)) if weight is None else weight[None])

    def owner(self, v: Floats, reaches: Reaches) -> ProductFactors:
        if reaches.weighted:
            return ProductFactors(np.zeros(len(v)), v[None])
        return ProductFactors(v, _none(len(v)))

    def size(self, v: Floats) -> float:
        return float(np.linalg.norm(v))

    def bound(self, u: Floats, y: Floats, weight: Floats | None, size: float) -> tuple[float, float]:
        most = 1.0 if weight is None else float(weight.max())
        return float(np.linalg.norm(_weighted(u - y, weight))) + most * size, 1.0

    def holders_loss(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors:
        rows = np.vstack([u - y, np.full(len(u), 0.5)])
        return ProductFactors(_weighted(0.5 * (u - y) ** 2, weight), _weighted(rows, weight))

    def owners_loss(self, v: Floats, reaches: Reaches) -> ProductFactors:
        return ProductFactors(np.zeros(len(v)), np.vstack([v, v**2]))

    def at_zero(self, y: Floats) -> Floats:
        return 0.5 * y**2

    def loss_unit(self, unit: float) -> float:
        return unit**2


class PoissonForm:
    """e^u e^v - y."""

    scaled = True
    far = 5

    def curvature(self, unit: float) -> float:
        return 1.0

    def holder(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors:
        return ProductFactors(-_weighted(y, weight), _weighted(_exp(u), weight)[None])

    def owner(self, v: Floats, reaches: Reaches) -> ProductFactors:
        return ProductFactors(np.zeros(len(v)), _exp(v)[None])

    def size(self, v: Floats) -> float:
        return _fourth(_exp(v))

    def bound(self, u: Floats, y: Floats, weight: Floats | None, size: float) -> tuple[float, float]:
        f = _fourth(_weighted(_exp(u), weight))
        return f * size + float(np.linalg.norm(_weighted(y, weight))), f / size

    def holders_loss(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors:
        return ProductFactors(_weighted(-y * u, weight), _weighted(np.vstack([_exp(u), -y]), weight))

    def owners_loss(self, v: Floats, reaches: Reaches) -> ProductFactors:
        return ProductFactors(np.zeros(len(v)), np.vstack([_exp(v), v]))

    def at_zero(self, y: Floats) -> Floats:
        return np.ones(len(y))

    def loss_unit(self, unit: float) -> float:
        return 1.0


class GammaForm:
    """1 - y e^-u e^-v."""

    scaled = False
    far = 5

    def curvature(self, unit: float) -> float:
        return 1.0

    def holder(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors:
        return ProductFactors(_weighted(np.ones(len(u)), weight), -_weighted(y * _exp(-u), weight)[None])

    def owner(self, v: Floats, reaches: Reaches) -> ProductFactors:
        return ProductFactors(np.zeros(len(v)), _exp(-v)[None])

    def size(self, v: Floats) -> float:
        return _fourth(_exp(-v))

    def bound(self, u: Floats, y: Floats, weight: Floats | None, size: float) -> tuple[float, float]:
        f = _fourth(_weighted(y * _exp(-u), weight))
        return f * size + float(np.linalg.norm(_weighted(np.ones(len(u)), weight))), f / size

    def holders_loss(self, u: Floats, y: Floats, weight: Floats | None, reaches: Reaches) -> ProductFactors:
        rows = np.vstack([y * _exp(-u), np.ones(len(u))])
        return ProductFactors(_weighted(u, weight), _weighted(rows, weight))

    def owners_loss(self, v: Floats, reaches: Reaches) -> ProductFactors:
        return ProductFactors(np.zeros(len(v)), np.vstack([_exp(-v), v]))

    def at_zero(self, y: Floats) -> Floats:
        return y

    def loss_unit(self, unit: float) -> float:
        return 1.0


def _exp(values: Floats) -> Floats:
    with np.errstate(over="ignore"):
        expected: Floats = np.exp(values)
    if not float(expected.max(initial=0.0)) < 2.0**40:
        raise FixedPointOverflow("scores have grown beyond what e^z could be told of; raise train.l2")
    return expected


FORMS: dict[str, Form] = {
    "logistic": LogisticForm(),
    "squared": SquaredForm(),
    "poisson": PoissonForm(),
    "gamma": GammaForm(),
}
"""By loss. A loss that is not here cannot be trained between two parties whose scores are hidden."""
