"""How few rows a leaf may have, where a job does not say: 20 where the loss counts rows, as squares do.

Other losses have XGBoost's bound of 1 on second derivatives, which are below 1 a row.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from tests.oracles.tables import random_tables, run

from colonnade import VerticalClassifier, VerticalRegressor
from colonnade.deploy.terms.contract import Contract, check_terms, terms_from
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import JobError
from colonnade.job import job_from, read_job
from colonnade.job.writing import as_toml
from colonnade.run.federate import federate
from colonnade.trees.tree import LEAF, Forest

CLEAR: dict[str, Any] = {"secure": {"labels": "clear"}}
ROWS = 320
JOB = """
algorithm = "{algorithm}"
compare = false
[data]
files = {{ bank = "bank.csv", shop = "shop.csv" }}
label = "y"
id = "id"
[train]
epochs = 2
{loss}
[secure]
labels = "clear"
[trees]
{trees}
"""


def table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(ROWS, 4)), columns=list("abcd"))
    return X, X["a"] * X["c"] + rng.normal(size=ROWS)


def trained_by_file(folder: Path, y: pd.Series, *, trees: str = "", loss: str = "", **how: str) -> Any:
    X, _ = table()
    ids = [f"n{number}" for number in range(ROWS)]
    X[["a", "b"]].assign(id=ids, y=y).to_csv(folder / "bank.csv", index=False)
    X[["c", "d"]].assign(id=ids).to_csv(folder / "shop.csv", index=False)
    text = JOB.format(algorithm=how.get("algorithm", "secureboost"), trees=trees, loss=loss)
    (folder / "job.toml").write_text(text, encoding="utf-8")
    return federate(read_job(folder / "job.toml"))


def smallest_leaf(weights: Any) -> float:
    """The least sum of second derivatives of a leaf, over all trees."""
    trees = Forest.from_arrays(weights).trees
    return min(float(tree.cover[np.asarray(tree.party) == LEAF].min()) for tree in trees)


@pytest.mark.parametrize("algorithm", ["secureboost", "boosted-sum"])
def test_a_job_file_that_does_not_say_has_20_rows_in_a_leaf_where_a_number_is_predicted(
    tmp_path: Path, algorithm: str
) -> None:
    _, y = table()
    done = trained_by_file(tmp_path, y, trees="bits = 0", algorithm=algorithm)
    assert done.plan.objective.loss == "squared"
    assert done.plan.settings.trees.min_child_weight == 20
    assert smallest_leaf(done.shares["bank"].weights) >= 20 - 1e-9
    said = trained_by_file(tmp_path, y, trees="bits = 0\nmin_child_weight = 1", algorithm=algorithm)
    assert said.plan.settings.trees.min_child_weight == 1
    assert smallest_leaf(said.shares["bank"].weights) < 20


def test_of_classes_and_counts_the_bound_is_1(tmp_path: Path) -> None:
    _, y = table()
    for label, loss in ((y > 0, ""), (pd.cut(y, 3, labels=list("abc")), ""), (y.abs().round(), "poisson")):
        done = trained_by_file(tmp_path, label, loss=f'loss = "{loss}"' if loss else "")
        assert done.plan.settings.trees.min_child_weight == 1


def test_from_python_it_is_the_same() -> None:
    X, y = table()
    common: dict[str, Any] = {"algorithm": "secureboost", "epochs": 2, "parties": 2}
    number = VerticalRegressor(**common, job=CLEAR).fit(X, y)
    assert number._fitted.plan.settings.trees.min_child_weight == 20
    sides = VerticalClassifier(**common, job=CLEAR).fit(X, y > 0)
    assert sides._fitted.plan.settings.trees.min_child_weight == 1
    said = VerticalRegressor(**common, job={**CLEAR, "trees": {"min_child_weight": 3}}).fit(X, y)
    assert said._fitted.plan.settings.trees.min_child_weight == 3


def test_trees_of_classes_are_those_of_a_job_that_says_1() -> None:
    tables = random_tables(active=1)
    plain, said = (
        run(tables, "secureboost", train={"epochs": 2}, trees=trees)
        for trees in ({}, {"min_child_weight": 1.0})
    )
    assert plain.plan.digest() == said.plan.digest()
    for name, array in plain.shares["party0"].weights.items():
        np.testing.assert_array_equal(array, said.shares["party0"].weights[name])


def proposed(loss: str | None, **trees: Any) -> Terms:
    return terms_from(
        {
            "name": "repaid",
            "algorithm": "secureboost",
            "parties": {name: {"data": "rows", "label": name == "bank"} for name in ("bank", "shop")},
            "train": {"epochs": 2} if loss is None else {"epochs": 2, "loss": loss},
            "trees": trees,
            **CLEAR,
        }
    )


@pytest.mark.parametrize(
    ("loss", "number"), [(None, 1.0), ("logistic", 1.0), ("poisson", 1.0), ("squared", 20.0)]
)
def test_between_daemons_the_terms_say_the_number(loss: str | None, number: float) -> None:
    terms = proposed(loss)
    assert terms.trees.min_child_weight == number
    written = msgspec.json.decode(terms.written())["trees"]
    # what 0.2 has by default is not written, and jobs that were signed have the digest that they had
    assert written.get("min_child_weight") == (None if number == 1 else number)
    assert terms.digest() == proposed(loss, min_child_weight=number).digest()
    assert terms_from(tomllib.loads(as_toml(terms))).digest() == terms.digest()  # the file that daemons keep


def test_terms_of_0_2_keep_leaves_of_one_row() -> None:
    """It does not write what is as it is by default, which is 1 for every loss."""
    plain = msgspec.json.decode(proposed("squared", bits=0, categories="numbers").written())
    del plain["trees"]
    terms = msgspec.convert(plain, Terms)
    check_terms(terms, "job")
    assert Contract.of(terms).plan("bank", columns=2, rows=100).settings.trees.min_child_weight == 1


def test_what_is_no_bound_is_refused() -> None:
    for wrong in (-1.0, float("inf"), "few"):
        with pytest.raises(JobError, match=r"trees\.min_child_weight"):
            job_from(
                {
                    "algorithm": "secureboost",
                    "data": {"train": "x.csv", "parties": 2},
                    "trees": {"min_child_weight": wrong},
                }
            )
