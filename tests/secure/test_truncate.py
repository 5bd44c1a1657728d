"""Division of shared numbers by a power of two: exhaustively in a small ring, and in the real one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.secure.test_shared_logistic import ROLES, streams_of

from colonnade.errors import TagReused
from colonnade.secure.truncate import Truncation, opening


def small(x: int, rho: int, bits: int, ring: int = 8) -> int:
    """The formula of `truncate`, in a ring of 8 bits and plain integers: an oracle of its own."""
    half = 1 << (ring - 2)
    c = (x + half + rho) % (1 << ring)
    mended = ((c >> (ring - 1)) ^ 1) * (rho >> (ring - 1)) << (ring - bits)
    value = ((c >> bits) - (rho >> bits) + mended - (half >> bits)) % (1 << ring)
    return value - (1 << ring) if value >> (ring - 1) else value


@pytest.mark.parametrize("bits", range(1, 7))
def test_every_number_and_every_word_of_eight_bits(bits: int) -> None:
    for x in range(-64, 64):
        found = [small(x, rho, bits) for rho in range(256)]
        assert set(found) <= {x >> bits, (x >> bits) + 1}
        assert np.mean(found) == pytest.approx(x / 2**bits)  # unbiased, over all words


@pytest.mark.parametrize("bits", [1, 20, 44, 62])
def test_parts_of_a_quotient_add_up(bits: int) -> None:
    rng = np.random.default_rng(bits)
    x = rng.integers(-(2**62), 2**62, 3000)
    second = rng.integers(0, 2**64, 3000, dtype=np.uint64)
    first = x.view(np.uint64) - second
    a, b, t = (Truncation(streams_of(me), ROLES, bits) for me in "abt")
    dealt = t.deal(1, len(x))
    sent = b.hidden(1, second)
    opened = opening(a.hidden(1, first), sent)
    found = (a.finish(opened, a.own(1, len(x))) + b.finish(opened, dealt)).view(np.int64)
    assert set(np.unique(found - (x >> bits))) <= {0, 1}
    for seen in (sent, opened, dealt[0]):
        assert stats.chisquare(np.bincount(seen.view(np.uint8), minlength=256)).pvalue > 1e-6
    with pytest.raises(TagReused):
        b.hidden(1, second)
