"""Columns of categories are split by the best of all sets, and stored splits say which."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.oracles.tables import random_job, random_tables, run

from colonnade.attacks.audit import audit_run
from colonnade.conversations.predict import Holding
from colonnade.errors import JobError
from colonnade.job import Trees
from colonnade.run.federate import Finished, Tables, plan_for
from colonnade.run.gather_result import DataFacts
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.world import Launch
from colonnade.trees import sets
from colonnade.trees.bins import MOST_BINS, Cuts
from colonnade.trees.gradients import Units, joined, parted
from colonnade.trees.splits import SplitScorer
from colonnade.trees.tree import Splits


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), categories=st.integers(2, 7), gaps=st.booleans())
def test_the_set_that_goes_left_is_the_best_of_all(seed: int, categories: int, gaps: bool) -> None:
    rng = np.random.default_rng(seed)
    column = rng.integers(0, categories, (200, 1)).astype(float)
    if gaps:
        column[rng.random(200) < 0.2] = np.nan
    cuts = Cuts.of(column, 64, categories=[0])
    codes, grid = cuts.codes(column)[0], cuts.grid
    g, h = rng.integers(-30, 31, 200), np.full(200, 5)
    words = joined(g, h)
    histogram = np.zeros((1, grid.total), dtype=np.uint64)
    np.add.at(histogram[0], codes, words)
    rules = Trees(min_child_weight=0.0, reg_lambda=0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sets, "SMOOTH", 0.0)
        scorer = SplitScorer(rules, Units(1.0, 1.0))
        total = np.array([words.sum(dtype=np.uint64)])
        best = scorer.best(histogram, total, grid, np.array([True]))
    sums = [tuple(int(part[k]) for part in parted(histogram[0])) for k in range(grid.total)]
    bins, gains = [k for k in range(grid.total) if sums[k][1]], []
    for size in range(1, len(bins)):
        for some in itertools.combinations(bins, size):
            parts = [
                [sum(sums[k][i] for k in each) for i in (0, 1)] for each in (some, set(bins) - set(some))
            ]
            whole = [sum(part[i] for part in parts) for i in (0, 1)]
            gains.append(sum(a * a / b for a, b in parts) - whole[0] ** 2 / whole[1])
    assert best.gain[0] == pytest.approx(max(gains), rel=1e-9, abs=1e-6)
    assert best.sets is not None
    left = sets.unpacked_set(best.sets[0])[codes]
    assert words[left].sum(dtype=np.uint64) == best.left[0]


def test_rare_categories_share_a_bin_where_there_are_more_than_bytes_can_tell() -> None:
    column = np.repeat(np.arange(400.0), np.arange(1, 401))[:, None]
    column = np.concatenate([column, [[np.nan]]])
    cuts = Cuts.of(column, 64, categories=[0])
    codes = cuts.codes(column)[0]
    assert cuts.grid.width.tolist() == [MOST_BINS + 1]
    assert codes[-1] == MOST_BINS
    assert (codes[column[:, 0] < 400 - MOST_BINS] == 0).all()
    assert codes[-2] == MOST_BINS - 1, "the commonest has the last bin before that of gaps"


def categorical(rows: int = 600, *, gaps: float = 0.0) -> Tables:
    """A table in which the label follows from which category it is and not from its number."""
    tables, rng = random_tables(active=1, rows=rows, test_rows=rows), np.random.default_rng(2)
    effect = rng.permutation(np.linspace(-3, 3, 24))
    made: dict[str, dict[str, Any]] = {"train": {}, "test": {}}
    codes = {part: rng.integers(0, 24, rows) for part in made}
    for part, parties in (("train", tables.train), ("test", tables.test or {})):
        for party, table in parties.items():
            X = np.asarray(table.X).copy()
            if party == "party2":
                X[:, 0] = np.where(rng.random(rows) < gaps, np.nan, codes[part])
                table = replace(table, categories=(0,))
            y = (
                None
                if table.y is None
                else np.where(effect[codes[part]] + rng.normal(0, 1, rows) > 0, 1.0, -1.0)
            )
            made[part][party] = replace(table, X=X, y=y)
    return replace(tables, train=made["train"], test=made["test"])


def grown(tables: Tables, **sections: Any) -> Finished:
    trees = {"max_depth": 3, **sections.pop("trees", {})}
    train = {"epochs": 8, **sections.pop("train", {})}
    return run(tables, sections.pop("algorithm", "secureboost"), train=train, trees=trees, **sections)


def test_sets_find_what_numbers_do_not() -> None:
    numbers, as_sets = (
        grown(categorical(), trees={"categories": each}).result.metrics["test_auc"]
        for each in ("numbers", "sets")
    )
    assert as_sets > numbers + 0.02


@pytest.mark.parametrize("bits", [0, 6])
@pytest.mark.parametrize("algorithm", ["secureboost", "boosted-sum"])
@pytest.mark.parametrize("labels", ["clear", "blind"])
def test_a_run_with_sets_equals_its_pooled_twin_and_is_stored(bits: int, algorithm: str, labels: str) -> None:
    tables = categorical(300, gaps=0.1)
    done = grown(tables, algorithm=algorithm, trees={"bits": bits}, secure={"labels": labels})
    assert {key: done.result.metrics[key] for key in done.result.pooled} == done.result.pooled
    stored = done.shares["party2"].weights
    splits = Splits.from_arrays(stored)
    assert splits.sets
    assert set(splits.column[list(splits.sets)].tolist()) == {0}
    again = splits.arrays()
    for name in again:
        np.testing.assert_array_equal(again[name], stored[name])
    assert tables.test is not None
    held = {
        who: Holding(done.plan, who, done.shares[who].weights, tables.test[who].X)
        for who in done.plan.parties
    }
    z = CONVERSATIONS["boost"].share.together(held)
    y = tables.test["party0"].y
    assert y is not None
    assert ((z > 0) == (y > 0)).mean() == pytest.approx(done.result.metrics["test_accuracy"])


def test_splits_of_0_2_are_read_and_those_without_sets_are_written_as_there() -> None:
    splits = Splits(np.array([1, 0]), np.array([0.5, np.inf]), np.array([True, False]))
    stored = splits.arrays()
    assert set(stored) == {"splits.column", "splits.threshold", "splits.gaps_left"}
    assert not Splits.from_arrays(stored).sets


def test_a_category_has_no_direction() -> None:
    with pytest.raises(JobError, match="column of categories"):
        grown(categorical(100), trees={"monotone_constraints": {"c6": 1}})


@pytest.mark.parametrize("labels", ["clear", "blind"])
def test_an_audit_reads_runs_with_categories_and_gaps(labels: str) -> None:
    tables = categorical(300, gaps=0.1)
    trees = {"max_depth": 3, "max_bin": 8}
    job = random_job(
        tables, "secureboost", world="local", train={"epochs": 8}, trees=trees, secure={"labels": labels}
    )
    plan, data = plan_for(structs.replace(job, compare=False), tables)
    found = audit_run(job, DataFacts("random"), Launch(plan, data)).findings
    tried = {finding.attack for finding in found}
    assert {"labels from gradients of trees", "labels from nodes of trees"} <= tried
    assert ("bins from small sums" in tried) == (labels == "clear")
