"""What is sent of every row goes in pieces, and the outcome is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.tables import random_tables, run, weights

from colonnade.conversations import pieces
from colonnade.conversations.pieces import stretches

SMALL = 64
TRAIN = {"epochs": 4, "batch": 16, "step": 0.1}
CASES: dict[str, dict[str, Any]] = {
    "vfb2-svrg": TRAIN,
    "vfb-sgd": TRAIN,
    "fd-svrg": TRAIN,
    "lbfgs": {"batch": None, "step": "auto", "epochs": 12},
}


@given(st.lists(st.integers(0, 40), min_size=1, max_size=3), st.integers(1, 5), st.integers(1, 20))
def test_every_row_is_in_one_stretch_and_no_piece_has_too_many(
    tables: list[int], width: int, most: int
) -> None:
    cuts = stretches(tables, width, most)
    assert [(s.table, row) for piece in cuts for s in piece for row in range(s.start, s.end)] == [
        (table, row) for table, rows in enumerate(tables) for row in range(rows)
    ]
    assert all(sum(s.end - s.start for s in piece) <= max(1, most // width) for piece in cuts)


@pytest.mark.parametrize("secure", ["masked", "tree", "plain"])
@pytest.mark.parametrize("algorithm", sorted(CASES))
def test_a_run_in_pieces_is_the_run_in_one(
    algorithm: str, secure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = random_tables(rows=300, test_rows=150, active=2)
    options = {"train": CASES[algorithm], "secure": {"sum": secure}, "world": "simulated"}
    whole = run(tables, algorithm, **options)
    monkeypatch.setattr(pieces, "PIECE", SMALL)
    cut = run(tables, algorithm, **options)
    # the papers' trees add real numbers with real masks, so that another cut is another rounding
    np.testing.assert_allclose(weights(cut), weights(whole), atol=1e-9 if secure == "tree" else 1e-12)
    for name, value in whole.result.metrics.items():
        assert cut.result.metrics[name] == pytest.approx(value, abs=1e-8)


def test_several_scores_a_row_are_cut_between_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = random_tables(rows=200, test_rows=90, classes=3)
    train = {**TRAIN, "loss": "softmax", "classes": 3}
    whole = run(tables, "vfb2-svrg", train=train, world="simulated")
    monkeypatch.setattr(pieces, "PIECE", SMALL)
    cut = run(tables, "vfb2-svrg", train=train, world="simulated")
    np.testing.assert_allclose(weights(cut), weights(whole), atol=1e-12)
    assert cut.result.metrics["test_accuracy"] == whole.result.metrics["test_accuracy"]
