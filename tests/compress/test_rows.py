"""Compression with a memory for every row: both ends agree, nothing is lost, and it arrives."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from colonnade.compress.quantize import Quantizer
from colonnade.compress.rows import Changes, Late
from colonnade.compress.topk import TopK

ROWS, WIDTH = 20, 6


def test_changes_bring_the_receiver_to_what_was_meant() -> None:
    rng = np.random.default_rng(0)
    start = rng.standard_normal((ROWS, WIDTH)).astype(np.float32)
    top, table = TopK(0.2), start.copy()
    client = Changes(top, start.copy())
    meant = rng.standard_normal((ROWS, WIDTH)).astype(np.float32)
    gaps = []
    for _ in range(12):
        for rows in rng.permutation(ROWS).reshape(4, 5):
            packed = client.pack(rows, meant[None, rows])
            assert packed.nbytes == 8 * 6  # a fifth of 30 numbers
            table[rows] = Changes(top, table).added(packed, table[rows])[0]
        np.testing.assert_array_equal(table, client.there)
        gaps.append(np.abs(table - meant).max())
    assert gaps[0] > 0.1  # one pass is not enough
    assert gaps[-1] < 1e-6


@pytest.mark.parametrize("bits", [2, 4])
def test_changes_in_few_bits_get_as_exact_as_one_likes(bits: Literal[2, 4]) -> None:
    rng = np.random.default_rng(2)
    meant = rng.standard_normal((ROWS, WIDTH))
    nearest = Quantizer(bits, None)
    client, table, gaps = Changes(nearest, np.zeros((ROWS, WIDTH))), np.zeros((ROWS, WIDTH)), []
    for _ in range(40):
        for rows in rng.permutation(ROWS).reshape(4, 5):
            packed = client.pack(rows, meant[None, rows])
            assert packed.nbytes == 8 + -(-30 * bits // 8)
            table[rows] = Changes(nearest, table).added(packed, table[rows])[0]
        np.testing.assert_array_equal(table, client.there)
        gaps.append(float(np.abs(table - meant).max()))
    alone = nearest.decode(nearest.encode(None, meant)[0], meant.shape)
    assert np.abs(alone - meant).max() > 0.1  # which is what is left without a memory, for ever
    assert gaps[-1] < 1e-5


def test_what_is_left_out_of_a_row_comes_with_its_next_message() -> None:
    rng = np.random.default_rng(1)
    late = Late(TopK(4), np.zeros((ROWS, WIDTH)))
    meant, sent = np.zeros((ROWS, WIDTH)), np.zeros((ROWS, WIDTH))
    for _ in range(30):
        for rows in rng.permutation(ROWS).reshape(4, 5):
            x = rng.standard_normal((5, WIDTH)) + 1.0
            sent[rows] += late.top.decode(late.pack(rows, x), x.shape)
            meant[rows] += x
    np.testing.assert_allclose(sent + late.error, meant, atol=1e-9)
    # the error stays bounded while the sums grow
    assert np.abs(late.error).max() < 0.5 * np.abs(meant).max()


def test_a_part_is_of_every_message() -> None:
    assert TopK(0.25).size((10, 10)) == 8 * 25
    assert TopK(0.001).size((3, 3)) == 8
    assert TopK(400).size((3, 3)) == 8 * 9
