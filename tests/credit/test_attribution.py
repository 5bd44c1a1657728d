"""SHAP values: equal to the shap package's on the pooled model, and to the definition over all coalitions."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from itertools import combinations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from colonnade import VerticalClassifier, VerticalRegressor
from colonnade.cli import main
from colonnade.credit.attribution import attributions
from colonnade.errors import ShareError
from colonnade.trees.attribution import tree_shapley
from colonnade.trees.tree import LEAF, Forest, Splits, Tree

shap = pytest.importorskip("shap", reason="the shap package has no wheel here")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))
Y = (X[:, 0] + X[:, 1] * X[:, 4] + 0.5 * RNG.normal(size=300) > 0).astype(int)
CLASSES = np.digitize(X[:, 0] + X[:, 3], [-0.5, 0.5])
HOLDERS = {"bank": [0, 1, 2], "shop": [3, 4], "telecom": [5]}
EXACT = {"secure": {"labels": "clear"}, "trees": {"bits": 0, "noise": 0.0, "bin_rows": 1, "node_rows": 1}}


def forest_of(clf: Any) -> tuple[Forest, dict[str, Splits]]:
    plan, shares = clf._model.plan, clf._model.shares
    return Forest.from_arrays(shares[plan.evaluator]), {
        p: Splits.from_arrays(shares[p]) for p in plan.parties
    }


def in_shap(tree: Tree, splits: list[Splits], columns: list[list[int]]) -> dict[str, Any]:
    """One of our trees as shap describes trees."""
    nodes = range(len(tree.party))
    leaf = [int(tree.party[k]) == LEAF for k in nodes]
    own = [None if leaf[k] else splits[int(tree.party[k])] for k in nodes]
    number = [int(tree.split[k]) for k in nodes]
    at = [
        -2 if each is None else columns[int(tree.party[k])][each.column[number[k]]]
        for k, each in enumerate(own)
    ]
    left = np.array([-1 if leaf[k] else int(tree.left[k]) for k in nodes])
    right = np.array([-1 if leaf[k] else int(tree.right[k]) for k in nodes])
    gaps = [each is not None and bool(each.gaps_left[number[k]]) for k, each in enumerate(own)]
    return {
        "children_left": left,
        "children_right": right,
        "children_default": np.where(gaps, left, right),
        "features": np.array(at),
        "thresholds": np.array(
            [0.0 if each is None else each.threshold[number[k]] for k, each in enumerate(own)]
        ),
        "values": np.asarray(tree.value, dtype=np.float64)[:, None],
        "node_sample_weight": np.asarray(tree.cover, dtype=np.float64),
    }


def by_shap(clf: Any, kind: int, rows: np.ndarray) -> np.ndarray:
    forest, splits = forest_of(clf)
    columns, first = [], 0
    for party in clf._model.plan.parties:
        width = len(clf._model.preparations[party].outputs)
        columns.append(list(range(first, first + width)))
        first += width
    trees = [
        in_shap(tree, list(splits.values()), columns)
        for tree, which in zip(forest.trees, forest.kind.tolist(), strict=True)
        if which == kind
    ]
    model = {
        "trees": trees,
        "internal_dtype": np.float64,
        "input_dtype": np.float64,
        "tree_output": "raw_value",
    }
    explainer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    explainer.model.fully_defined_weighting = True  # every node has its cover
    found: np.ndarray = explainer.shap_values(rows, check_additivity=False)
    return found


def ordered(clf: Any, found: Any, rows: np.ndarray) -> np.ndarray:
    """Our columns in the order in which `by_shap` has them: parties of the plan, then their columns."""
    places = [int(column.removeprefix("x")) for _, column in found.columns]
    return rows[:, places]


@pytest.mark.parametrize("gaps", [False, True])
def test_trees_are_those_of_shap(gaps: bool) -> None:
    rows = X.copy()
    if gaps:
        rows[RNG.random(rows.shape) < 0.1] = np.nan
    clf = VerticalClassifier("secureboost", columns=HOLDERS, epochs=8, job=EXACT).fit(rows, Y)
    found = clf.shap_values(rows[:50])
    assert found.kind == "path-dependent"
    np.testing.assert_allclose(found.values, by_shap(clf, 0, ordered(clf, found, rows[:50])), atol=1e-6)
    np.testing.assert_allclose(found.scores, clf.decision_function(rows[:50]), atol=1e-9)
    assert np.abs(found.values).max() > 0.1


def test_trees_of_several_classes_are_those_of_shap() -> None:
    clf = VerticalClassifier("secureboost", columns=HOLDERS, epochs=3, job=EXACT).fit(X, CLASSES)
    found = clf.shap_values(X[:30])
    for kind in range(3):
        np.testing.assert_allclose(
            found.values[:, :, kind], by_shap(clf, kind, ordered(clf, found, X[:30])), atol=1e-6
        )
    np.testing.assert_allclose(found.scores, clf.decision_function(X[:30]), atol=1e-9)


def by_definition(
    forest: Forest, left: Mapping[int, np.ndarray], columns: Mapping[int, list[int]], row: int, count: int
) -> np.ndarray:
    """Shapley values of one row, over all coalitions of columns, each walked down every tree."""

    def walk(tree: Tree, node: int, known: frozenset[int]) -> float:
        party = int(tree.party[node])
        if party == LEAF:
            return float(tree.value[node])
        split, one, other = int(tree.split[node]), int(tree.left[node]), int(tree.right[node])
        if columns[party][split] in known:
            return walk(tree, one if left[party][split, row] else other, known)
        whole = tree.cover[one] + tree.cover[other]
        return float(
            tree.cover[one] / whole * walk(tree, one, known)
            + tree.cover[other] / whole * walk(tree, other, known)
        )

    def value(known: frozenset[int]) -> float:
        return sum(walk(tree, 0, known) for tree in forest.trees)

    found = np.zeros(count)
    for i in range(count):
        others = [j for j in range(count) if j != i]
        for size in range(count):
            weight = factorial(size) * factorial(count - 1 - size) / factorial(count)
            for each in combinations(others, size):
                known = frozenset(each)
                found[i] += weight * (value(known | {i}) - value(known))
    return found


def test_categories_that_are_split_as_sets_are_those_of_the_definition() -> None:
    import pandas as pd

    towns = RNG.choice(list("abcdefgh"), size=300)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": towns, "c": X[:, 4]})
    y = (X[:, 0] + np.isin(towns, list("bdf")) * 2 - 1 > 0).astype(int)
    clf = VerticalClassifier(
        "secureboost", columns={"bank": ["a", "b"], "shop": ["town", "c"]}, epochs=3, job=EXACT
    )
    found = clf.fit(table, y).shap_values(table[:10])
    forest, splits = forest_of(clf)
    assert any(each.sets for each in splits.values())
    made, tables = clf._model.preparations, clf._tables(table[:10])
    left = {k: splits[p].left(made[p].transform(tables[p]).X) for k, p in enumerate(splits)}
    columns = {0: splits["bank"].column.tolist(), 1: (splits["shop"].column + 2).tolist()}
    for row in range(10):
        np.testing.assert_allclose(found.values[row], by_definition(forest, left, columns, row, 4), atol=1e-9)


def test_ways_that_are_long_are_not_tabled() -> None:
    """A chain of twelve columns, one tree: patterns of rows alone, and the same as the definition's sum."""
    d, rows = 12, 5
    inner, nodes = np.arange(d), 2 * d + 1
    party = np.array([0] * d + [LEAF] * (d + 1))
    tree = Tree(
        party=party,
        split=np.r_[inner, np.full(d + 1, -1)],
        left=np.r_[inner[1:], d, np.full(d + 1, -1)],
        right=np.r_[np.arange(d + 1, 2 * d + 1), np.full(d + 1, -1)],
        value=RNG.normal(size=nodes),
        gain=np.zeros(nodes),
        cover=np.r_[np.arange(2.0 * d, d, -1), RNG.random(d + 1) + 0.5],
    )
    forest = Forest(np.zeros(1), (tree,), np.zeros(1, dtype=np.int64))
    left = {0: RNG.random((d, rows)) < 0.7}
    base, found = tree_shapley(forest, left, {0: list(range(d))}, rows, d)
    np.testing.assert_allclose(
        base[0] + found[:, :, 0].sum(axis=1), forest.scores(left, rows)[:, 0], atol=1e-9
    )


def test_linear_models_are_those_of_shap() -> None:
    clf = VerticalClassifier("lbfgs", columns=HOLDERS, scale="zscore").fit(X, Y)
    found = clf.shap_values(X[:40])
    assert found.kind == "interventional"
    made, tables = clf._model.preparations, clf._tables(X)
    prepared = np.hstack([made[p].transform(tables[p]).X[:, : len(HOLDERS[p])] for p in made])
    w = np.concatenate([clf.coef_[p] for p in made])
    explainer = shap.LinearExplainer(
        (w, float(clf.intercept_)), shap.maskers.Independent(prepared, max_samples=300)
    )
    np.testing.assert_allclose(found.values, explainer.shap_values(prepared[:40]), atol=1e-6)
    np.testing.assert_allclose(found.scores, clf.decision_function(X[:40]), atol=1e-9)
    np.testing.assert_allclose(
        sum(found.by_party().values()) + found.base, clf.decision_function(X[:40]), atol=1e-9
    )
    several = VerticalClassifier("lbfgs", columns=HOLDERS).fit(X, CLASSES)
    np.testing.assert_allclose(several.shap_values(X[:5]).scores, several.decision_function(X[:5]), atol=1e-9)


def test_reasons_raise_the_score_the_most_first() -> None:
    clf = VerticalClassifier("lbfgs", columns=HOLDERS).fit(X, Y)
    found = clf.shap_values(X[:20])
    for row, given in zip(found.values, found.reasons(2), strict=True):
        effects = [effect for _, _, effect in given]
        assert effects == sorted([v for v in row.tolist() if v > 0], reverse=True)[:2]
    with pytest.raises(ShareError, match="one score per row"):
        VerticalClassifier("lbfgs", columns=HOLDERS).fit(X, CLASSES).shap_values(X[:2]).reasons(1)


def test_what_has_no_parts_is_refused() -> None:
    clf = VerticalRegressor("fdskl", parties=2, epochs=1, tolerance=0.0).fit(X, X[:, 0])
    with pytest.raises(ShareError, match="linear models and boosted trees"):
        clf.shap_values(X[:2])
    fitted = VerticalClassifier("lbfgs", columns=HOLDERS).fit(X, Y)._model
    arrays: dict[str, Any] = {party: {} for party in fitted.plan.parties}
    tables = dict.fromkeys(arrays)
    with pytest.raises((ShareError, AttributeError)):
        attributions(fitted.plan, fitted.preparations, arrays, tables, {})  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["lbfgs", "secureboost"])
def test_predict_explains(algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = np.c_[np.arange(300), X, Y]
    names = "id,a,b,c,d,e,f,y"
    np.savetxt("all.csv", table, "%.6g", ",", header=names, comments="")
    Path("job.toml").write_text(
        f'algorithm = "{algorithm}"\ncompare = false\n[data]\ntrain = "all.csv"\nlabel = "y"\nid = "id"\n'
        'columns = {bank = ["a", "b"], shop = ["c", "d", "e", "f"]}\n[train]\nepochs = 20\n'
        '[secure]\nlabels = "clear"\n'
    )
    assert CliRunner().invoke(main, ["run", "job.toml", "--out", "run"]).exit_code == 0
    words = ["predict", "run", "all.csv", "--explain", "--reasons", "2", "--out", "scores.csv"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.stderr
    with Path("scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    parts = [name for name in rows[0] if name.startswith("shap_")]
    assert parts == ["shap_bank.a", "shap_bank.b", "shap_shop.c", "shap_shop.d", "shap_shop.e", "shap_shop.f"]
    for row in rows:
        total = float(row["base"]) + sum(float(row[name]) for name in parts)
        assert total == pytest.approx(float(row["score"]), abs=1e-9)
        if row["reason_1"]:
            assert float(row["effect_1"]) == max(float(row[name]) for name in parts)
