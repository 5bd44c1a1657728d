"""What a label holder of encrypted trees reads of columns by training twice on labels that it chooses."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.oracles.tables import random_job

from colonnade.conversations.boost.sealed import SealedReader
from colonnade.data.table import Table
from colonnade.run.federate import Tables, run_tables

ROWS, COLUMNS, TARGETS = 2000, 4, 12


def first_sums(monkeypatch: pytest.MonkeyPatch, columns: Any, y: Any) -> Any:
    """What the label holder opens of the first level, and where the bins of every column begin."""
    heard: list[Any] = []
    told = SealedReader.told

    async def noted(self: Any, message: Any, frontier: Any, grid: Any) -> Any:
        found = await told(self, message, frontier, grid)
        heard.append((found, grid))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(SealedReader, "told", noted)
        own = np.random.default_rng(1).standard_normal((ROWS, 2))
        train = {"party0": Table("party0", ("a", "b"), own, y)}
        train["party1"] = Table("party1", tuple(f"p{j}" for j in range(COLUMNS)), columns)
        tables = Tables("random", train, None, ("party0",))
        job = random_job(
            tables,
            "secureboost",
            secure={"labels": "blind"},
            train={"epochs": 1},
            trees={"max_depth": 1, "max_bin": 16},
        )
        run_tables(job, tables)
    return heard[0]


def test_labels_that_are_turned_between_two_runs_show_which_bins_their_rows_are_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The noise of a sum follows from the columns, and cancels; every other row says the same in both runs.

    Noise of its own in every run would hide little more: a label moves a sum by twice its deviation. What
    bounds this is how many runs a party takes part in.
    """
    columns = np.random.default_rng(0).standard_normal((ROWS, COLUMNS))
    y = np.where(np.arange(ROWS) % 2 == 0, 1.0, -1.0)  # as many of both, also after a pair is turned
    plain, grid = first_sums(monkeypatch, columns, y)
    starts = [*np.asarray(grid.start).tolist(), grid.total]
    read: list[list[int]] = []
    for row in range(0, 2 * TARGETS, 2):
        turned = y.copy()
        turned[[row, row + 1]] *= -1
        found, _ = first_sums(monkeypatch, columns, turned)
        moved = (np.asarray(found.sums) - np.asarray(plain.sums)).view(np.int64)[0] >> 32
        # of the pair that row's g has grown; where both share a bin nothing moves
        cuts = pairwise(starts)
        read.append([int(moved[a:b].argmax()) if moved[a:b].any() else -1 for a, b in cuts])
    guess, true = np.array(read), columns[: 2 * TARGETS : 2]
    known = guess >= 0
    assert known.mean() > 0.7
    for column in range(COLUMNS):
        seen = known[:, column]
        assert spearmanr(guess[seen, column], true[seen, column]).statistic > 0.95
