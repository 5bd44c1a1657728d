"""The table of hints: right for its keys, noise for all others, and nothing but its size to be seen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from colonnade.errors import AlignmentError
from colonnade.secure.hints import read_table, size_for, write_table


def words(count: int, seed: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, size=(count, 2), dtype=np.uint64)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 500, 20_000])
def test_a_table_gives_the_value_of_every_key(count: int) -> None:
    keys, values = words(count, 1), words(count, 2)
    seed, table = write_table(keys, values)
    assert len(table) == size_for(count) < 1.24 * count + 52
    assert (read_table(table, seed, keys) == values).all()


def test_other_keys_find_noise() -> None:
    keys, values, others = words(2000, 1), words(2000, 2), words(2000, 3)
    seed, table = write_table(keys, values)
    found = read_table(table, seed, others)
    assert not (found[:, 0][:, None] == values[:, 0]).any()
    bits = np.unpackbits(found.view(np.uint8))
    assert abs(bits.mean() - 0.5) < 0.005


def test_a_table_does_not_tell_which_keys_it_holds() -> None:
    """The same keys and values give another table every time, in all its bits."""
    keys, values = words(2000, 1), words(2000, 2)
    (_, one), (_, other) = write_table(keys, values), write_table(keys, values)
    assert (one == other).mean() < 0.01
    assert abs(np.unpackbits(one.view(np.uint8)).mean() - 0.5) < 0.005


def test_a_key_that_is_there_twice_is_refused() -> None:
    keys = np.concatenate([words(50, 1), words(1, 1)])
    with pytest.raises(AlignmentError, match="are two of them the same"):
        write_table(keys, words(51, 2))
