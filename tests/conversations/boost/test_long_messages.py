"""Rows without end: messages go in pieces, large arrays lie in files, and trees stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conversations.boost.test_blind import grown
from tests.oracles.tables import random_tables

from colonnade.conversations.boost import blind, long_messages
from colonnade.trees import bins, mapped_arrays


@pytest.mark.parametrize("labels", ["clear", "blind"])
@pytest.mark.parametrize("sections", [{"trees": {"subsample": 0.7}}, {"algorithm": "boosted-sum"}])
def test_pieces_and_files_change_nothing(
    labels: str, sections: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = random_tables(active=1, rows=500, test_rows=40)
    whole = grown(tables, labels, world="local", **dict(sections))
    monkeypatch.setattr(long_messages, "PIECE", 48)
    monkeypatch.setattr(mapped_arrays, "LARGE", 0)
    monkeypatch.setattr(blind, "MANY", 100)
    monkeypatch.setattr(blind, "TOLD", 100)
    cut = grown(tables, labels, world="local", **dict(sections))
    assert cut.result.cost.messages > 2 * whole.result.cost.messages
    assert cut.result.metrics == whole.result.metrics
    for party, share in whole.shares.items():
        for name, array in share.weights.items():
            np.testing.assert_array_equal(cut.shares[party].weights[name], array)


def test_large_bins_lie_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((300, 2))
    cuts = bins.Cuts.of(X, 8)
    small = cuts.codes(X)
    monkeypatch.setattr(mapped_arrays, "LARGE", 600)
    large = cuts.codes(X)
    assert isinstance(large.base, np.memmap)
    assert small.base is None
    np.testing.assert_array_equal(large, small)
