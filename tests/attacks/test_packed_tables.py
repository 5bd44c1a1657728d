"""A follower that solves equations writes more ids into its tables than it announced, and pays for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.deploy.books.test_membership import Companies, digests

from colonnade.arrays import Words
from colonnade.conversations.align import most_written
from colonnade.conversations.align.layout import capacity, tables_for
from colonnade.deploy.settings import Limits
from colonnade.errors import Refused
from colonnade.secure import hints


def packed(keys: Words, values: Words, seed: int, size: int) -> tuple[Words, list[int]]:
    """Return a table of this size, and which keys it has values for: as many as are independent."""
    places = hints._places(keys, seed, size)
    reduced: dict[int, tuple[int, int]] = {}  # by the highest place: places as bits, and what is due there
    held = []
    for number, three in enumerate(places.tolist()):
        bits = sum(1 << place for place in three)
        due = int.from_bytes(values[number].tobytes(), "little")
        while bits and (top := bits.bit_length() - 1) in reduced:
            bits, due = bits ^ reduced[top][0], due ^ reduced[top][1]
        if bits:
            reduced[bits.bit_length() - 1] = bits, due
            held.append(number)
        if len(reduced) == size - 2:  # each key has one place in each third: two combinations are never free
            break
    solved = [0] * size
    for top in sorted(reduced):
        bits, due = reduced[top]
        rest = bits ^ (1 << top)
        while rest:
            low = rest & -rest
            due ^= solved[low.bit_length() - 1]
            rest ^= low
        solved[top] = due
    words = [np.frombuffer(each.to_bytes(16, "little"), dtype=np.uint64) for each in solved]
    return np.stack(words), held


@pytest.mark.parametrize(("announced", "times"), [(40, 2.3), (300, 1.35), (1500, 1.25)])
def test_more_ids_fit_than_were_announced_and_no_more_than_are_counted(announced: int, times: float) -> None:
    rng = np.random.default_rng(announced)
    size = hints.size_for(capacity(announced, tables_for(announced)))
    keys, values = (rng.integers(0, 2**63, (8 * size, 2), dtype=np.uint64) for _ in range(2))
    table, held = packed(keys, values, 7, size)
    assert np.array_equal(hints.read_table(table, 7, keys[held]), values[held])
    counted = most_written(announced, 10, "curve")
    assert times * announced < len(held) <= counted
    assert counted - len(held) < 0.02 * size + 3  # and no honest peer is charged for what nobody can do


def test_limits_go_by_what_a_follower_could_write(tmp_path: Path) -> None:
    """3,000 ids are within the limit, and more than that fit into the tables of who brings them."""
    companies = Companies(tmp_path, limits=Limits(ids=3100))
    with pytest.raises(Refused, match=r"brings 3000 ids and could test 37\d\d, limits\.ids = 3100"):
        companies.ask(digests(of=3000, first=50_000), purpose="train")
