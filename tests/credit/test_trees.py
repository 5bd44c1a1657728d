"""Boosted trees with all shares together: exact reasons, importances, an export that scores alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from colonnade import VerticalClassifier, VerticalRegressor
from colonnade.cli import main
from colonnade.credit.boosting import trees_to_sklearn
from colonnade.credit.export import tree_features
from colonnade.credit.linear import reasons
from colonnade.credit.trees import TreeModel
from colonnade.data.read.files import load
from colonnade.data.table import RawTable
from colonnade.report.facts import read_run
from colonnade.run.run_shares import KeptModel
from colonnade.trees.tree import Forest, Splits

JOB = """
algorithm = "{algorithm}"
[data]
files = {{bank = "{folder}/bank.csv", shop = "{folder}/shop.csv", telecom = "{folder}/telecom.csv"}}
id = "id"
label = "bad"
active = ["bank"]
[secure]
labels = "clear"
[train]
epochs = 6
[trees]
max_depth = 3
"""


@pytest.fixture(scope="module", params=["secureboost", "boosted-sum"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on three files: numbers, a text column, and gaps."""
    folder = tmp_path_factory.mktemp(request.param)
    rng = np.random.default_rng(4)
    income, visits, calls = rng.normal(size=(3, 300))
    job = rng.choice(["clerk", "smith", "baker"], 300)
    bad = (income - visits + (job == "smith") + 0.3 * rng.normal(size=300) > 0.4).astype(int)
    columns = {
        "bank": {"income": income.round(4), "bad": bad},
        "shop": {"visits": ["" if k % 9 == 0 else repr(v) for k, v in enumerate(visits.round(4).tolist())]},
        "telecom": {"calls": calls.round(4), "job": job},
    }
    for name, held in columns.items():
        lines = [
            ",".join(["id", *held]),
            *(",".join(map(str, row)) for row in zip(range(300), *held.values(), strict=True)),
        ]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "job.toml").write_text(JOB.format(algorithm=request.param, folder=folder))
    done = CliRunner().invoke(
        main, ["run", str(folder / "job.toml"), "--out", str(folder / "run"), "--no-pooled"]
    )
    assert done.exit_code == 0, done.output
    return folder / "run"


def raw_rows(run: Path) -> dict[str, RawTable]:
    label = {"bank": "bad"}
    return {
        name: load(run.parent / f"{name}.csv", id="id", label=label.get(name))
        for name in ("bank", "shop", "telecom")
    }


def test_reasons_add_up_to_the_score(run: Path) -> None:
    model, tables = TreeModel.of(KeptModel.read(run)), raw_rows(run)
    expected = KeptModel.read(run).scores(tables)
    assert np.allclose(model.scores(tables), expected, atol=1e-9)
    for each, score in zip(reasons(model, tables, tables)[:20], expected, strict=False):
        assert each.score == pytest.approx(score, abs=1e-9)
        assert each.base == pytest.approx(expected.mean(), abs=1e-9)
        assert {column for _, column, _ in each.reasons} == {"income", "visits", "calls", "job"}


def test_importances_are_parts_of_all_gain(run: Path) -> None:
    found = TreeModel.of(KeptModel.read(run)).importances()
    assert sum(each.gain for each in found) == pytest.approx(1)
    assert sum(each.cover for each in found) == pytest.approx(1)
    by_column = {each.column: each for each in found}
    assert by_column["income"].gain > 5 * by_column["calls"].gain
    shown = CliRunner().invoke(main, ["credit", "importance", str(run), "--json"])
    assert [each["column"] for each in json.loads(shown.output)] == [each.column for each in found]
    parts = read_run(run).parts
    assert sum(float(part.gains.sum()) for part in parts if part.gains is not None) == pytest.approx(1)


def test_an_export_scores_as_the_model_does(run: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    done = CliRunner().invoke(main, ["credit", "export", str(run), str(path), "--json"])
    assert done.exit_code == 0, done.output
    kept, tables = KeptModel.read(run), raw_rows(run)
    model = TreeModel.of(kept)
    X = np.hstack([np.asarray(made.transform(tables[p]).X) for p, made in model.preparations.items()])
    assert X.shape[1] == len(json.loads(done.output)["features"])
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    score, probability = session.run(None, {"columns": X})
    assert np.allclose(score[:, 0], kept.scores(tables), atol=1e-9)
    assert np.allclose(probability[:, 0], 1 / (1 + np.exp(-score[:, 0])))
    refused = CliRunner().invoke(main, ["credit", "export", str(run), str(tmp_path / "model.skops"), "--raw"])
    assert refused.exit_code == 2
    assert "write .onnx or .skops, without --raw" in refused.output


def test_scikit_learn_s_own_trees_score_alike(run: Path, tmp_path: Path) -> None:
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    done = CliRunner().invoke(main, ["credit", "export", str(run), str(path)])
    assert done.exit_code == 0, done.output
    fitted = skops.load(path, trusted=skops.get_untrusted_types(file=path))
    kept, tables = KeptModel.read(run), raw_rows(run)
    model = TreeModel.of(kept)
    X = np.hstack([np.asarray(made.transform(tables[p]).X) for p, made in model.preparations.items()])
    z = kept.scores(tables)
    frame = pd.DataFrame(X, columns=fitted.feature_names_in_)
    assert np.allclose(fitted.decision_function(frame), z, atol=1e-9)
    assert np.allclose(fitted.predict_proba(frame)[:, 1], 1 / (1 + np.exp(-z)))
    assert fitted.classes_.tolist() == ["0", "1"]
    assert (fitted.predict(frame) == np.where(z > 0, "1", "0")).all()


@pytest.mark.parametrize("loss", ["squared", "poisson", "softmax"])
def test_other_losses_are_exported_to_scikit_learn_too(loss: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    job = {"secure": {"labels": "clear"}, "trees": {"max_depth": 2}}
    common: dict[str, Any] = {"parties": 2, "algorithm": "secureboost", "epochs": 3, "job": job}
    if loss == "softmax":
        y = np.argmax(X[:, :3], axis=1)
        model: Any = VerticalClassifier(**common).fit(X, y)
        expected = model.decision_function(X)
    else:
        y = rng.poisson(np.exp(X[:, 0])) if loss == "poisson" else X[:, 0] + X[:, 2]
        model = VerticalRegressor(loss=loss, **common).fit(X, y)
        expected = model.predict(X)
    held = model._fitted
    parties = held.plan.parties
    trees = TreeModel(
        Forest.from_arrays(held.shares[held.plan.evaluator]),
        {party: Splits.from_arrays(held.shares[party]) for party in parties},
        {party: held.preparations[party] for party in parties},
        loss,
        ("0", "1", "2") if loss == "softmax" else (),
    )
    places = [
        int(c.removeprefix("x")) if isinstance(c, str) else c for p in parties for c in model.columns_[p]
    ]
    fitted = trees_to_sklearn(trees, tree_features(trees))
    frame = pd.DataFrame(X[:, places], columns=fitted.feature_names_in_)
    found = fitted.decision_function(frame) if loss == "softmax" else fitted.predict(frame)
    assert np.allclose(found, expected, atol=1e-9)


def test_an_estimator_says_what_its_columns_did() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    model = VerticalClassifier(
        columns={"bank": [0, 1], "shop": [2], "telecom": [3]},
        algorithm="secureboost",
        epochs=5,
        job={"secure": {"labels": "clear"}},
    ).fit(X, X[:, 0] + X[:, 2] > 0)
    found = model.feature_importances_
    assert sum(float(gain.sum()) for gain in found.values()) == pytest.approx(1)
    assert min(found["bank"][0], found["shop"][0]) > 10 * max(found["bank"][1], found["telecom"][0])
    with pytest.raises(AttributeError, match="these are not trees"):
        _ = VerticalClassifier(parties=2, tolerance=0.1).fit(X, X[:, 0] > 0).feature_importances_
