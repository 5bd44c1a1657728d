"""Held-back training rows choose what becomes of outliers: kept where they tell, else drawn nearer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade import VerticalRegressor
from colonnade.data.prepare.party_data import PartyData, Recipe
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.split.outliers import FOLDS, choose
from colonnade.data.table import RawTable
from colonnade.errors import FixedPointOverflow
from colonnade.job import job_from
from colonnade.run.federate import federate
from colonnade.run.held_back import HeldBack
from colonnade.run.resolve import compose

ROWS = 300


def rows(mistakes: bool, seed: int = 1) -> tuple[Any, Any]:
    """Columns of which one has a long tail that the number to predict follows, or a few mistakes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 4))
    if not mistakes:
        X[:, 0] = rng.lognormal(0.0, 3.0, ROWS)
    y = X @ [3.0, 1.0, -1.0, 0.5] + 0.1 * rng.normal(size=ROWS)
    if mistakes:
        X[[20, 150], 0] += [1e4, -1e4]
    return X, y


def party(values: Any, tails: Any = "bend") -> PartyData:
    raw = RawTable("bank", tuple(f"x{j}" for j in range(values.shape[1])), values)
    return PartyData("bank", raw, None, Recipe(tails=tails))


@pytest.mark.parametrize(("mistakes", "words"), [(False, "kept as they are"), (True, "drawn nearer")])
def test_outliers_stay_where_the_number_follows_them(mistakes: bool, words: str) -> None:
    X, y = rows(mistakes)
    model = VerticalRegressor(parties=2).fit(X[:250], y[:250])
    said = [text for done in model.result_.data.done.values() for text in done]
    assert any(text.startswith(f"outliers are {words}") for text in said)
    if not mistakes:
        assert model.score(X[250:], y[250:]) > 0.99


def test_commands_and_estimators_choose_alike_and_a_search_as_well(tmp_path: Path) -> None:
    X, y = rows(mistakes=False)
    lines = [",".join(map(repr, [*row, value])) for row, value in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["a,b,c,d,y", *lines]) + "\n")
    data = {"train": str(tmp_path / "a.csv"), "label": "y", "parties": 2}
    told: list[str] = []
    job = job_from({"algorithm": "lbfgs", "data": data})
    done = federate(job, tell=told.append)
    assert "trying on held-back training rows what becomes of outliers" in told
    assert any("outliers are kept" in text for text in done.result.data.done["party-0"])
    assert done.result.metrics["r2"] > 0.99
    folds = HeldBack(job)
    assert folds.measure(job, folds.folds[0])["r2"] > 0.99


@pytest.mark.parametrize(
    "job",
    [
        {"algorithm": "vfb2-saga", "secure": {"labels": "clear"}},
        {"algorithm": "lbfgs", "data": {"scale": "zscore"}},
        {"algorithm": "lbfgs", "train": {"loss": "poisson"}},
        {"algorithm": "secureboost", "secure": {"labels": "clear"}},
    ],
)
def test_nothing_is_tried_where_it_is_dear_or_not_asked_for(job: dict[str, Any], tmp_path: Path) -> None:
    X, y = rows(mistakes=False)
    y = np.maximum(y, 0.0)
    lines = [",".join(map(repr, [*row, value])) for row, value in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["a,b,c,d,y", *lines]) + "\n")
    data = {"train": str(tmp_path / "a.csv"), "label": "y", "parties": 2, **job.pop("data", {})}
    told: list[str] = []
    federate(job_from({**job, "data": data, "compare": False}), tell=told.append)
    assert not any("trying" in text for text in told)


@pytest.mark.parametrize(
    ("job", "tails"),
    [
        ({"algorithm": "lbfgs"}, "keep"),
        ({"algorithm": "vfb2-saga", "secure": {"labels": "clear"}}, "bend"),
        ({"algorithm": "lbfgs", "train": {"loss": "poisson"}}, "cap"),
        ({"algorithm": "secureboost", "secure": {"labels": "clear"}}, "cap"),
    ],
)
def test_where_nothing_is_tried_outliers_stay_if_training_gets_to_the_optimum_with_them(
    job: dict[str, Any], tails: str
) -> None:
    composition = compose(job_from({**job, "data": {"train": "a.csv", "parties": 2}}))
    assert (composition.tails("regression"), composition.tails("binary")) == (tails, "cap")


def test_test_rows_have_no_part_in_the_choice() -> None:
    X, _ = rows(mistakes=False)
    seen: list[tuple[int, int]] = []

    def measure(parties: Any) -> Any:
        (data,) = parties.values()
        seen.append((data.train.rows, data.test.rows))
        return np.ones(data.test.rows)

    found = choose({"bank": party(X)}, measure, seed=0)
    assert found is not None
    assert found.tails == "bend"  # which is safer where both are as good
    assert "which may be chance" in found.said()
    assert seen == [(200, 100)] * (2 * FOLDS)


def test_columns_that_cannot_be_trained_on_as_they_are_are_drawn_nearer() -> None:
    X, _ = rows(mistakes=True)

    def measure(parties: Any) -> Any:
        if parties["bank"].recipe.tails == "keep":
            raise FixedPointOverflow("too large")
        return np.full(parties["bank"].test.rows, 2.0)

    found = choose({"bank": party(X)}, measure, seed=0)
    assert found is not None
    assert found.tails == "bend"


def test_nothing_is_tried_without_outliers_or_with_very_few_rows() -> None:
    X = np.random.default_rng(0).random((ROWS, 3))

    def never(parties: Any) -> Any:
        raise AssertionError("nothing was to be tried")

    assert choose({"bank": party(X)}, never, seed=0) is None
    far = np.vstack([X[:20], [[1e6, 1.0, 1.0]]])
    assert choose({"bank": party(far)}, never, seed=0) is None
    assert choose({"bank": party(rows(mistakes=True)[0], "cap")}, never, seed=0) is None


def test_a_new_row_far_beyond_all_others_is_scored_as_one_that_is_far() -> None:
    values = np.array([[0.0], [1.0], [2.0], [100.0]])
    raw = RawTable("bank", ("x",), values)
    kept = Preparation.fit(raw, tails="keep")
    new = RawTable("bank", ("x",), np.array([[1e300], [1100.0], [500.0], [-1e300], [np.nan]]))
    X = kept.transform(new).X[:, 0]
    assert X[0] == X[1] > X[2] > 0 > X[3]
    assert np.isfinite(X).all()
    assert np.allclose(kept.transform(raw).X, (values - 25.75) / np.std(values))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_difference_within_chance_does_not_turn_the_choice(order: int) -> None:
    X, _ = rows(mistakes=False)
    noise = np.random.default_rng(order).normal(size=2 * ROWS)
    drawn = iter(np.split(noise, 2 * FOLDS))

    def measure(parties: Any) -> Any:  # two treatments that are as good as each other, up to chance
        return (1.0 + 0.05 * next(drawn)) ** 2

    found = choose({"bank": party(X)}, measure, seed=order)
    assert found is not None
    assert (found.tails, found.sure) == ("bend", False)
