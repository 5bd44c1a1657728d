"""Parameters that hold are taken, others refused by name; what floods tell is what was derived."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from colonnade.errors import SumError
from colonnade.secure.lattice.arithmetic import primes_below
from colonnade.secure.lattice.parameters import (
    FISHER,
    LEAN,
    MOST_BITS,
    STRICT,
    CoefficientParameters,
    SlotParameters,
    coefficients_beside,
)


def test_profiles_are_those_of_the_page() -> None:
    assert [
        (r.degree, r.q.bit_length(), r.plain.bit_length(), r.flood_bits, r.kept) for r in (LEAN, STRICT)
    ] == [
        (4096, 100, 34, 64, 1),
        (8192, 150, 43, 105, 2),
    ]
    ring = coefficients_beside(LEAN)
    assert (ring.degree, ring.q.bit_length(), ring.plain, ring.cut) == (2048, 50, LEAN.plain, 32)
    assert coefficients_beside(STRICT).cut == 38
    for r in (LEAN, STRICT, ring):
        assert r.q.bit_length() <= MOST_BITS[r.degree]


def test_what_does_not_decrypt_for_certain_has_a_smaller_flood() -> None:
    for ring in (LEAN, STRICT):
        assert ring._off(ring.flood_bits) < 0.5 <= ring._off(ring.flood_bits + 1)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: SlotParameters(2048, primes_below(2**50, 2048, 2), LEAN.plain), "fewer than 128 bits"),
        (lambda: SlotParameters(4096, LEAN.primes, primes_below(2**49, 4096, 1)[0]), "no room for a flood"),
        (lambda: SlotParameters(4096, LEAN.primes[:1] * 2, LEAN.plain), "primes that differ"),
        (lambda: SlotParameters(4096, (), LEAN.plain), "primes that differ"),
        (lambda: SlotParameters(4096, LEAN.primes, 2**34), "not a prime"),
        (lambda: SlotParameters(4096, LEAN.primes, LEAN.primes[0]), "cannot hide"),
        (lambda: SlotParameters(4096, (2**50 - 27, LEAN.primes[0]), LEAN.plain), "not a prime"),
        (lambda: SlotParameters(512, LEAN.primes, LEAN.plain), "no ring of 512"),
        (lambda: SlotParameters(4096, LEAN.primes, LEAN.plain, kept=3), "at least one of the primes"),
        (
            lambda: CoefficientParameters(2048, primes_below(2**50, 2048, 1), LEAN.plain, 40),
            "between 1 and 38 bits",
        ),
        (lambda: CoefficientParameters(4096, LEAN.primes, LEAN.plain), "one prime"),
    ],
)
def test_parameters_that_do_not_hold_are_refused(make: Any, told: str) -> None:
    with pytest.raises(SumError, match=told):
        make()


def test_the_bound_on_a_flood_is_that_of_its_density() -> None:
    """Fisher's information by numerical integration, and the distance of shifted floods below the bound."""
    x = np.linspace(-3, 3, 600_001)
    step = x[1] - x[0]
    f = np.where(np.abs(x) <= 1, (3 - x**2) / 8, (3 - np.abs(x)) ** 2 / 16)
    assert math.isclose(f.sum() * step, 1, rel_tol=1e-6)
    slope = np.gradient(f, step)
    inside = f > 1e-9
    assert math.isclose((slope[inside] ** 2 / f[inside]).sum() * step, FISHER, rel_tol=1e-3)
    for shift in (100, 1000, 20_000):
        moved = np.concatenate([np.zeros(shift), f[:-shift]])
        distance = np.abs(moved - f).sum() * step / 2
        assert distance <= math.sqrt(FISHER) * shift * step / 2


def test_told_grows_with_the_root_of_the_rows() -> None:
    assert math.isclose(LEAN.told(4 * 10**5), 2 * LEAN.told(10**5))
    assert LEAN.told(12 * 32561) < 2**-11
    assert STRICT.told(8 * 10**6) < 2**-40
