"""Products of words: compiled code and NumPy give the same, which is what whole numbers give modulo 2^64."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.secure import words
from colonnade.secure.words import Table, products_of, scores_of, sums_of

if words.COMPILED:
    from colonnade.secure._words import products as compiled_products


def random_words(rng: np.random.Generator, *shape: int) -> Any:
    return rng.integers(0, 2**64, shape, dtype=np.uint64)


def table_of(rng: np.random.Generator, kind: str, *shape: int) -> Table:
    if kind == "uint64":
        return random_words(rng, *shape)  # type: ignore[no-any-return]
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)


@pytest.mark.parametrize("kind", ["int16", "int32", "int64", "uint64"])
@settings(max_examples=40, deadline=None)
@given(
    size=st.tuples(st.integers(1, 30), st.integers(1, 45)),
    count=st.integers(0, 40),
    scored=st.integers(0, 3),
    added=st.integers(0, 3),
    inner=st.lists(st.integers(0, 45), max_size=3),
    seed=st.integers(0, 2**32),
)
def test_products_are_those_of_whole_numbers(
    kind: str, size: tuple[int, int], count: int, scored: int, added: int, inner: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table, rows = table_of(rng, kind, *size), rng.integers(0, size[0], count)
    cuts = np.array([0, *sorted(min(cut, size[1]) for cut in inner), size[1]])
    vectors = random_words(rng, scored, size[1])
    weights = random_words(rng, len(cuts) - 1, added, count)
    X = table.astype(object)[rows]
    due_scores = np.array((vectors.astype(object) @ X.T) % 2**64, dtype=np.uint64).reshape(scored, count)
    blocks = [
        weights[k].astype(object) @ X[:, start:end] % 2**64 if count else np.zeros((added, end - start))
        for k, (start, end) in enumerate(pairwise(cuts))
    ]
    due_sums = np.concatenate(blocks, axis=1).astype(np.uint64)
    for compiled in {words.COMPILED, False}:
        scores, sums = np.empty_like(due_scores), np.empty_like(due_sums)
        multiply = compiled_products if compiled else words._gathered
        multiply(table, rows, vectors, scores, weights, sums, cuts)
        np.testing.assert_array_equal(scores, due_scores)
        np.testing.assert_array_equal(sums, due_sums)


def test_a_table_may_be_a_part_of_a_wider_one(way: bool) -> None:
    rng = np.random.default_rng(0)
    wide, rows = random_words(rng, 20, 9), np.array([3, 19, 3])
    vectors, weights = random_words(rng, 2, 5), random_words(rng, 1, 3)
    part = wide[:, 2:7]
    np.testing.assert_array_equal(scores_of(part, rows, vectors), vectors @ part[rows].T)
    np.testing.assert_array_equal(sums_of(part, rows, weights), weights @ part[rows])


def test_weights_may_be_a_part_of_longer_ones(way: bool) -> None:
    rng = np.random.default_rng(0)
    table, rows, cuts = random_words(rng, 20, 11), np.array([3, 19, 3, 0]), np.array([0, 9, 11])
    own = random_words(rng, 2, 3, 30)[:, ::2, 7:11]
    _, sums = products_of(table, rows, random_words(rng, 0, 11), own, cuts)
    due = [own[k] @ table[rows, start:end] for k, (start, end) in enumerate(pairwise(cuts))]
    np.testing.assert_array_equal(sums, np.concatenate(due, axis=1))


@pytest.mark.parametrize("row", [20, -21, 2**62])
def test_a_row_that_is_not_there_is_refused(way: bool, row: int) -> None:
    table, vectors = np.zeros((20, 3), dtype=np.int16), np.zeros((1, 3), dtype=np.uint64)
    with pytest.raises((ValueError, IndexError)):
        scores_of(table, np.array([0, row]), vectors)


@pytest.mark.skipif(not words.COMPILED, reason="no compiler made _words")
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("table", np.zeros((20, 4), dtype=np.int8), "2, 4 or 8 bytes"),
        ("table", np.zeros((20, 8), dtype=np.int16)[:, ::2], "side by side"),
        ("table", np.zeros((20, 4), dtype=np.int16)[::-1], "side by side"),
        ("table", np.zeros(80, dtype=np.int16), "dimensions"),
        ("rows", np.zeros(3, dtype=np.int32), "64-bit"),
        ("vectors", np.zeros((1, 3), dtype=np.uint64), "shapes"),
        ("scores", np.zeros((1, 2), dtype=np.uint64), "shapes"),
        ("scores", np.zeros((2, 3), dtype=np.uint64), "shapes"),
        ("weights", np.zeros((2, 1, 2), dtype=np.uint64), "shapes"),
        ("weights", np.zeros((3, 1, 3), dtype=np.uint64), "shapes"),
        ("weights", np.zeros((2, 1, 6), dtype=np.uint64)[:, :, ::2], "side by side"),
        ("sums", np.zeros((1, 5), dtype=np.uint64), "shapes"),
        ("cuts", np.array([0, 5, 4]), "other columns"),
        ("cuts", np.array([-1, 2, 4]), "other columns"),
        ("cuts", np.array([0, 3, 2]), "other columns"),
        ("cuts", np.array([0, 2, 3]), "other columns"),
        ("cuts", np.array([1, 2, 4]), "other columns"),
    ],
)
def test_compiled_code_reads_and_writes_nothing_beyond_its_arrays(name: str, value: Any, why: str) -> None:
    fitting: dict[str, Any] = {
        "table": np.zeros((20, 4), dtype=np.int16),
        "rows": np.zeros(3, dtype=np.int64),
        "vectors": np.zeros((1, 4), dtype=np.uint64),
        "scores": np.zeros((1, 3), dtype=np.uint64),
        "weights": np.zeros((2, 1, 3), dtype=np.uint64),
        "sums": np.zeros((1, 4), dtype=np.uint64),
        "cuts": np.array([0, 2, 4]),
    }
    compiled_products(*fitting.values())
    with pytest.raises(ValueError, match=why):
        compiled_products(*(fitting | {name: value}).values())


@pytest.mark.skipif(not words.COMPILED, reason="no compiler made _words")
def test_compiled_code_writes_into_nothing_that_is_read_only() -> None:
    scores = np.zeros((1, 1), dtype=np.uint64)
    scores.setflags(write=False)
    none, one = np.zeros((1, 0, 0), dtype=np.uint64), np.zeros((1, 1), dtype=np.uint64)
    with pytest.raises((ValueError, BufferError)):
        compiled_products(one, np.array([0]), one, scores, none, none[0], np.array([0, 1]))


def test_nothing_that_is_asked_for_is_nothing(way: bool) -> None:
    table, no_rows = np.ones((3, 2), dtype=np.int16), np.zeros(0, dtype=np.int64)
    scores, sums = products_of(
        table,
        no_rows,
        np.ones((1, 2), dtype=np.uint64),
        np.ones((1, 1, 0), dtype=np.uint64),
        np.array([0, 2]),
    )
    assert scores.shape == (1, 0)
    np.testing.assert_array_equal(sums, [[0, 0]])
