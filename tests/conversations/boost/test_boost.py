"""Boosted trees over split columns are, split for split, those of naive boosting on pooled ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import pooled, random_tables, run
from tests.oracles.trees import NaiveTrees, Node

from colonnade.conversations.predict import Holding
from colonnade.errors import JobError
from colonnade.job import Trees
from colonnade.run.federate import Finished, Tables
from colonnade.run.registry import CONVERSATIONS
from colonnade.trees.tree import LEAF, Forest, Splits, leaves

SMALL: dict[str, Any] = {
    "max_depth": 3,
    "max_bin": 8,
    "min_child_weight": 0.5,
    "learning_rate": 0.3,
    "bits": 0,  # exact histograms, as the oracle has
}
ROUNDS: dict[str, Any] = {"epochs": 3}


def grown(tables: Tables, *, train: dict[str, Any] | None = None, **sections: Any) -> Finished:
    trees = {**SMALL, **sections.pop("trees", {})}
    algorithm = sections.pop("algorithm", "secureboost")
    return run(tables, algorithm, train={**ROUNDS, **(train or {})}, trees=trees, **sections)


def nodes_of(done: Finished) -> list[Node]:
    """The trees of a run with everybody's splits in their places."""
    holder = done.plan.evaluator
    forest = Forest.from_arrays(done.shares[holder].weights)
    splits = [Splits.from_arrays(done.shares[party].weights) for party in done.plan.parties]

    def node(tree: int, place: int) -> Node:
        found = forest.trees[tree]
        party = int(found.party[place])
        if party == LEAF:
            return {"value": found.value[place]}
        own, number = splits[party], int(found.split[place])
        return {
            "party": party,
            "column": int(own.column[number]),
            "threshold": float(own.threshold[number]),
            "gaps_left": bool(own.gaps_left[number]),
            "gain": float(found.gain[place]),
            "left": node(tree, int(found.left[place])),
            "right": node(tree, int(found.right[place])),
        }

    return [node(tree, 0) for tree in range(len(forest.trees))]


def assert_same(found: Node, wanted: Node) -> None:
    if "value" in wanted:
        assert found["value"] == pytest.approx(wanted["value"], rel=1e-12)
        return
    for key in ("party", "column", "threshold"):
        assert found[key] == wanted[key]
    if wanted["matters"]:
        assert found["gaps_left"] == wanted["gaps_left"]
    assert found["gain"] == pytest.approx(wanted["gain"], rel=1e-9)
    assert_same(found["left"], wanted["left"])
    assert_same(found["right"], wanted["right"])


def naive(tables: Tables, done: Finished, weight: np.ndarray | None = None) -> NaiveTrees:
    plan = done.plan
    X, y = pooled(tables)
    widths = np.cumsum([table.width for table in tables.train.values()])[:-1]
    return NaiveTrees(
        np.split(X, widths, axis=1),
        y,
        plan.settings.trees,
        plan.pace.epochs,
        plan.seed,
        plan.objective.loss,
        plan.objective.classes,
        weight,
    )


def assert_equal_trees(done: Finished, oracle: NaiveTrees) -> None:
    wanted = oracle.fit()
    found = nodes_of(done)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize(
    "trees",
    [
        {},
        {"max_leaves": 5, "gamma": 0.5, "reg_lambda": 0.0},
        {"subsample": 0.6, "colsample_bytree": 0.5},
        {"early_stopping_rounds": 1, "validation_fraction": 0.3, "learning_rate": 1.0},
        {"max_depth": 5, "min_child_weight": 3.0},
        {"max_depth": 5, "monotone_constraints": {"c0": 1, "c4": -1, "c7": 1, "c11": -1}},
    ],
)
def test_trees_are_those_of_naive_boosting_on_pooled_columns(trees: dict[str, Any]) -> None:
    tables = random_tables(active=1)
    done = grown(tables, trees=trees, train={"epochs": 4})
    assert_equal_trees(done, naive(tables, done))


@pytest.mark.parametrize(
    ("options", "train"),
    [
        ({"regression": True}, {"loss": "squared"}),
        ({"classes": 3}, {"loss": "softmax", "classes": 3}),
        ({"sparse": True}, {}),
    ],
)
def test_so_they_are_for_every_loss_and_sparse_columns(
    options: dict[str, Any], train: dict[str, Any]
) -> None:
    tables = random_tables(active=1, **options)
    done = grown(tables, train=train)
    assert_equal_trees(done, naive(tables, done))


def with_gaps(tables: Tables, part: float = 0.2) -> Tables:
    rng = np.random.default_rng(5)
    train = {}
    for party, table in tables.train.items():
        X = np.asarray(table.X).copy()
        X[rng.random(X.shape) < part] = np.nan
        train[party] = replace(table, X=X)
    return replace(tables, train=train)


def test_gaps_go_where_they_gain_more() -> None:
    tables = with_gaps(random_tables(active=1))
    done = grown(tables)
    oracle = naive(tables, done)
    assert_equal_trees(done, oracle)


def test_categories_are_split_by_their_numbers_and_their_gaps_go_their_own_way() -> None:
    tables = random_tables(active=1)
    for party, table in tables.train.items():
        X = np.asarray(table.X).copy()
        X[:, 0] = np.digitize(X[:, 0], [-1.0, 0.0, 0.2, 1.0])  # five categories, numbered
        X[:, 1] = X[:, 1] > 0
        tables.train[party] = replace(table, X=X)
    tables = with_gaps(tables, 0.1)
    done = grown(tables, trees={"max_depth": 4})
    assert_equal_trees(done, naive(tables, done))


def test_rows_have_weights() -> None:
    tables = random_tables(active=1)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.5], tables.train["party0"].rows)
    weight /= weight.mean()
    tables.train["party0"] = replace(tables.train["party0"], weight=weight)
    done = grown(tables)
    assert_equal_trees(done, naive(tables, done, weight))


@pytest.mark.parametrize("algorithm", ["secureboost", "boosted-sum"])
@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("told", [{}, {"bits": 6, "bin_rows": 5, "node_rows": 20}])
def test_a_run_equals_its_pooled_twin_to_the_last_bit(algorithm: str, world: str, told: Any) -> None:
    tables = random_tables(active=2, rows=300, test_rows=50)
    done = grown(tables, algorithm=algorithm, world=world, trees={"subsample": 0.8, **told}).result
    assert done.metrics["suboptimality"] == 0.0
    assert {key: done.metrics[key] for key in done.pooled} == done.pooled


@pytest.mark.parametrize("turns", ["gain", "round"])
def test_a_tree_of_boosted_sum_uses_one_partys_columns(turns: str) -> None:
    tables = random_tables(active=1, test_rows=50)
    done = grown(tables, algorithm="boosted-sum", trees={"turns": turns}, train={"epochs": 8})
    forest = Forest.from_arrays(done.shares["party0"].weights)
    owners = [set(tree.party.tolist()) - {LEAF} for tree in forest.trees]
    assert all(len(each) == 1 for each in owners)
    if turns == "round":
        assert [each.pop() for each in owners] == [0, 1, 2, 3, 0, 1, 2, 3]
    for number, party in enumerate(done.plan.parties):  # an owner has its own trees, and their leaves
        own = Forest.from_arrays(done.shares[party].weights).part_of(number, first=number == 0)
        assert len(own.trees) == sum(tree.party[0] == number for tree in forest.trees)


def test_a_label_holder_may_have_no_columns() -> None:
    tables = random_tables(parties=3, active=1)
    first = tables.train["party0"]
    train = {"label": replace(first, X=first.X[:, :0], columns=()), **tables.train}
    train["party0"] = replace(first, y=None)
    done = grown(replace(tables, train=train, active=("label",)))
    same = grown(tables)
    assert done.result.metrics["objective"] == same.result.metrics["train_loss"]


@pytest.mark.parametrize(
    ("train", "words"),
    [
        ({"batch": 16}, "train.batch"),
        ({"step": 0.1}, "trees.learning_rate"),
        ({"l2": 0.5}, "trees.reg_lambda"),
        ({"tolerance": 1e-3}, "early_stopping_rounds"),
        ({"loss": "smooth_hinge"}, "logistic"),
    ],
)
def test_what_makes_no_sense_for_trees_is_refused(train: dict[str, Any], words: str) -> None:
    with pytest.raises(JobError, match=words):
        grown(random_tables(active=1), train=train)


def test_trees_of_what_owners_tell_are_about_as_good_and_their_leaves_have_the_scores_of_their_rows() -> None:
    tables = random_tables(active=1, rows=1500, test_rows=1500)
    trees = {"max_depth": 4, "max_bin": 32, "min_child_weight": 1.0}
    exact, told = (
        grown(tables, trees={**trees, "bits": bits}, train={"epochs": 30}).result.metrics for bits in (0, 6)
    )
    assert told["test_auc"] > exact["test_auc"] - 0.01
    done = grown(tables, trees={**trees, "bits": 6}, train={"epochs": 1})
    forest, y = Forest.from_arrays(done.shares["party0"].weights), tables.train["party0"].y
    left = {
        number: Splits.from_arrays(done.shares[party].weights).left(tables.train[party].X)
        for number, party in enumerate(done.plan.parties)
    }
    at, p = leaves(forest.trees[0], left, 1500), 1 / (1 + np.exp(-forest.base[0]))
    assert y is not None
    for leaf in np.unique(at):
        g, n = float((p - (y[at == leaf] > 0)).sum()), int((at == leaf).sum())
        wanted = -0.3 * g / (n * p * (1 - p) + 1)
        assert forest.trees[0].value[leaf] == pytest.approx(wanted, rel=1e-2, abs=1e-3)


def test_an_owner_does_not_tell_a_few_rows_from_all_others() -> None:
    tables = random_tables(active=1, rows=400)
    done = grown(tables, trees={"max_depth": 6, "bits": 6, "bin_rows": 12, "node_rows": 30, "max_bin": 32})
    forest = Forest.from_arrays(done.shares["party0"].weights)
    for number, party in enumerate(done.plan.parties):
        sides = Splits.from_arrays(done.shares[party].weights).left(tables.train[party].X)
        assert number == 0 or len(sides)
        if number:
            rows = np.minimum(sides.sum(axis=1), (~sides).sum(axis=1))
            assert (rows >= 12).all()
    assert len(forest.trees) == 3


def test_numbers_out_of_range_are_refused() -> None:
    for key, value in (
        ("max_depth", 0),
        ("max_bin", 256),
        ("subsample", 0.0),
        ("gamma", -1.0),
        ("max_leaves", 1),
        ("bits", 2),
        ("bits", 9),
        ("bin_rows", -1),
        ("noise", 11.0),
    ):
        with pytest.raises(JobError, match=f"trees.{key}"):
            grown(random_tables(active=1), trees={key: value})


def test_defaults_are_those_of_the_section() -> None:
    assert run(random_tables(active=1), "secureboost", train=ROUNDS).plan.settings.trees == Trees(
        bits=6, categories="sets"
    )


@pytest.mark.parametrize("algorithm", ["secureboost", "boosted-sum"])
def test_scores_only_rise_with_columns_that_are_constrained(algorithm: str) -> None:
    tables, rng = random_tables(active=1, rows=400), np.random.default_rng(3)
    columns = {"c1": 1, "c6": -1}
    constrained, free = (
        grown(
            tables,
            algorithm=algorithm,
            trees={"max_depth": 5, "monotone_constraints": each},
            train={"epochs": 20},
        )
        for each in (columns, {})
    )
    for name, direction in columns.items():
        worst = []
        for done in (constrained, free):
            rows = {party: rng.standard_normal((40, table.width)) for party, table in tables.train.items()}
            party = next(party for party, table in tables.train.items() if name in table.columns)
            place, steps = tables.train[party].columns.index(name), []
            for value in np.linspace(-3, 3, 30):
                rows[party][:, place] = value
                held = {
                    who: Holding(done.plan, who, done.shares[who].weights, rows[who])
                    for who in done.plan.parties
                }
                steps.append(CONVERSATIONS["boost"].share.together(held))
            worst.append((direction * np.diff(steps, axis=0)).min())
        assert worst[0] >= -1e-12
        assert worst[1] < -1e-3, "without the constraint some scores fall"


def test_a_constraint_of_a_column_that_nobody_has_is_refused() -> None:
    with pytest.raises(JobError, match="2 columns are named and the parties have 1"):
        grown(random_tables(active=1), trees={"monotone_constraints": {"c1": 1, "age": 1}})
