"""Sealed numbers add up, tell nothing but the sum, and whatever is no sealed number is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.errors import SumError
from colonnade.secure import elgamal
from colonnade.secure.curve import POINT, base_times, negative
from colonnade.secure.elgamal import Adder, SealingKey, parse


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-1, 3), st.integers(0, 1)), min_size=1, max_size=40),
    st.integers(1, 40),
)
def test_sums_by_group_are_those_of_the_plain_numbers(rows: list[tuple[int, int, int]], cut: int) -> None:
    key = SealingKey.new()
    numbers = np.array([row[0] for row in rows])
    codes = [np.array([row[k] for row in rows], dtype=np.int64) for k in (1, 2)]
    adder = Adder(key.public, [4, 2])
    for part in (slice(0, cut), slice(cut, None)):  # they arrive in parts
        if len(numbers[part]):
            adder.add(key.seal(numbers[part].tolist()), [each[part] for each in codes])
    most = [int((code == k).sum()) for code, groups in zip(codes, (4, 2), strict=True) for k in range(groups)]
    due = [
        int(numbers[code == k].sum())
        for code, groups in zip(codes, (4, 2), strict=True)
        for k in range(groups)
    ]
    assert key.read(adder.totals(), most) == due


def test_large_counts_are_found_by_giant_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elgamal, "BABY_STEPS", 7)
    key = SealingKey.new()
    numbers = [0, 1, 6, 7, 8, 13, 14, 15, 700, 1000]
    assert key.read(key.seal(numbers), [1000] * len(numbers)) == numbers


def test_the_same_number_never_looks_the_same() -> None:
    key = SealingKey.new()
    sealed = key.seal([1] * 50)
    halves = sealed.reshape(-1, POINT)
    assert len(np.unique(halves, axis=0)) == 100
    adder = Adder(key.public, [1])
    adder.add(sealed[:1], [np.zeros(1, dtype=np.int64)])
    (total,) = adder.totals()
    # the key holder knows the randomness of what it sealed: a sum that kept it would show which rows it has
    assert total[:POINT].tobytes() != sealed[0, :POINT].tobytes()


def test_another_key_reads_nothing() -> None:
    with pytest.raises(SumError, match="no count"):
        SealingKey.new().read(SealingKey.new().seal([1]), [10_000])


@pytest.mark.parametrize("number", [11, 10_000, -1])
def test_a_sum_that_no_rows_can_have_is_refused(number: int) -> None:
    key = SealingKey.new()
    with pytest.raises(SumError, match="no count"):
        key.read(key.seal([number]), [10])


def test_what_is_no_sealed_number_is_refused() -> None:
    with pytest.raises(SumError, match="shape"):
        parse(np.zeros((2, 66), dtype=np.uint8))
    with pytest.raises(SumError, match="no point"):
        parse(np.zeros((2, 2 * POINT), dtype=np.uint8))
    with pytest.raises(SumError, match="no point"):
        Adder(b"nothing", [1])


def test_numbers_that_cancel_are_refused() -> None:
    key = SealingKey.new()
    point = base_times((5).to_bytes(32, "big"))
    pairs = b"".join(each * 2 for each in (point, negative(point)))
    sealed = np.frombuffer(pairs, dtype=np.uint8).reshape(2, 2 * POINT)
    with pytest.raises(SumError, match="cancel"):
        Adder(key.public, [1]).add(sealed, [np.zeros(2, dtype=np.int64)])
