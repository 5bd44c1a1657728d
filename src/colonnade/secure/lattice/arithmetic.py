"""Polynomials modulo a prime p below 2^50 and X^N + 1, by their values at the odd powers of a 2N-th root.

`Modulus.forward` takes coefficients to values, in which products are products of numbers, and `inverse` takes
them back. There are up to four ways to the same numbers (`WAYS`): one, two or three of `_lattice.c`, by what
the processor can do, and NumPy where no compiler was. The last of them is taken, or, within `using(way)`,
another one: for tests and benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from types import ModuleType

import numpy as np

from colonnade.arrays import Words
from colonnade.errors import SumError
from colonnade.secure.lattice import portable

try:
    from colonnade.secure.lattice import _lattice
except ImportError:
    COMPILED = False
    _WAYS: dict[str, tuple[ModuleType, int]] = {"numpy": (portable, 0)}
else:
    COMPILED = True
    _WAYS = {"numpy": (portable, 0)} | {
        name: (_lattice, k)
        for k, name in enumerate(("scalar", "avx2", "avx512ifma"))
        if name in _lattice.ways()
    }

WAYS = tuple(_WAYS)
"""The ways that this machine has, slowest first."""

PRIME_BITS = 50
_chosen = WAYS[-1]


def way() -> str:
    """Return the name of the way that is taken."""
    return _chosen


@contextmanager
def using(name: str) -> Iterator[None]:
    """Take another way for a while."""
    global _chosen
    if name not in _WAYS:
        raise SumError(f"this machine has no way '{name}' to multiply polynomials: it has {', '.join(WAYS)}")
    before, _chosen = _chosen, name
    try:
        yield
    finally:
        _chosen = before


def code() -> ModuleType:
    """Return the module of the way that is taken, `_lattice` or `portable`: they have the same functions."""
    return _WAYS[_chosen][0]


class Modulus:
    """A prime p with the roots that polynomials of one degree need; `modulus` has each once."""

    def __init__(self, p: int, degree: int) -> None:
        if degree < 16 or degree & (degree - 1):
            raise SumError(f"a ring has a power of two of at least 16 coefficients, not {degree}")
        if p.bit_length() > PRIME_BITS or not is_prime(p) or (p - 1) % (2 * degree):
            raise SumError(
                f"{p} is not a prime below 2^{PRIME_BITS} that leaves 1 when divided by {2 * degree}, "
                f"as transforms of {degree} coefficients need"
            )
        self.p, self.degree = p, degree
        self.scale = pow(degree, -1, p)

    def __repr__(self) -> str:
        return f"Modulus({self.p}, {self.degree})"

    def forward(self, x: Words) -> Words:
        """Replace coefficients by values, along the last axis, and return them."""
        self._transform(x, 0)
        return x

    def inverse(self, x: Words) -> Words:
        """Replace values by coefficients, and return them."""
        self._transform(x, 1)
        return x

    def _transform(self, x: Words, inverse: int) -> None:
        module, number = _WAYS[_chosen]
        module.transform(x.reshape(-1, self.degree), self._tables, self.p, self.scale, inverse, number)

    def products(self, a: Words, b: Words, out: Words, strides: tuple[int, int, int, int], add: bool) -> None:
        """Write, or add, out[part, k] = sum over c of a[part, c] * b[k, c], values of polynomials.

        The strides say where b has what belongs together, in words: from one block of 8 slots to the next,
        from one group of 4 outputs to the next, from one term to the next, and from one output of a group to
        the next. So b may lie in the order in which it is read.
        """
        module, number = _WAYS[_chosen]
        module.products(a, b, out, *strides, self.p, int(add), number)

    def add_products(self, factors: Words, many: Words, out: Words) -> None:
        """Add to out[part, k] the values of factors[part, 0] times those of many[k]."""
        strides = (portable.LANES, portable.WIDTH * self.degree, 0, self.degree)
        self.products(factors, many, out, strides, add=True)

    @cached_property
    def _tables(self) -> Words:
        """Powers of the root and of its inverse, in bit-reversed order, each as every way wants it."""
        root = self._root()
        return np.stack([self._rows(root), self._rows(pow(root, -1, self.p))])

    def _rows(self, root: int) -> Words:
        powers = [1]
        for _ in range(self.degree - 1):
            powers.append(powers[-1] * root % self.p)
        order = np.zeros(1, dtype=np.int64)
        while order.size < self.degree:
            order = np.concatenate([2 * order, 2 * order + 1])
        # order[k] is k with its bits reversed
        times = [powers[k] for k in order]
        shoup = [[(x << bits) // self.p for x in times] for bits in (52, 64)]
        doubles = np.array([times, [x / self.p for x in times]], dtype=np.float64)
        return np.concatenate([np.array([times, *shoup], dtype=np.uint64), doubles.view(np.uint64)])

    def _root(self) -> int:
        """Return the least number's power that has order 2N: its N-th power is -1."""
        for base in range(2, 1000):
            root = pow(base, (self.p - 1) // (2 * self.degree), self.p)
            if pow(root, self.degree, self.p) == self.p - 1:
                return root
        raise SumError(f"{self.p} has no root of order {2 * self.degree}")


@lru_cache
def modulus(p: int, degree: int) -> Modulus:
    """Return the modulus of a prime and a degree, with its tables."""
    return Modulus(p, degree)


def is_prime(p: int) -> bool:
    """Return whether a number below 2^64 is prime: Miller and Rabin with bases that are known to suffice.

    >>> [p for p in range(20) if is_prime(p)], is_prime(3215031751)
    ([2, 3, 5, 7, 11, 13, 17, 19], False)
    """
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if p < 2 or any(p % base == 0 for base in bases):
        return p in bases
    twos = ((p - 1) & (1 - p)).bit_length() - 1
    for base in bases:
        x = pow(base, (p - 1) >> twos, p)
        if x != 1 and all(pow(x, 2**k, p) != p - 1 for k in range(twos)):
            return False
    return True


def primes_below(limit: int, degree: int, count: int) -> tuple[int, ...]:
    """Return the largest primes below a limit that leave 1 when divided by 2N, largest first.

    >>> primes_below(2**50, 2048, 1)
    (1125899906826241,)
    """
    found: list[int] = []
    p = (limit - 2) // (2 * degree) * (2 * degree) + 1
    while len(found) < count:
        if p < 2 * degree:
            raise SumError(f"there are no {count} such primes below {limit}")
        if is_prime(p):
            found.append(p)
        p -= 2 * degree
    return tuple(found)
