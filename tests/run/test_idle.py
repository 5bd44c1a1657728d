"""A party whose columns teach nothing takes part and adds nothing; a run is refused where nobody's do.

Secure sums need every party, so such a party keeps one column of zeros: its share of every score is 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade import VerticalClassifier
from colonnade.errors import DataError
from colonnade.job import job_from
from colonnade.run.examine import examine
from colonnade.run.federate import Finished, federate
from colonnade.run.held_back import HeldBack

ROWS = 160
RNG = np.random.default_rng(5)
X = RNG.normal(size=(ROWS, 3))
Y = np.where(X[:, 0] + X[:, 1] - X[:, 2] + 0.5 * RNG.normal(size=ROWS) > 0, "yes", "no")

COLUMNS: dict[str, list[Any]] = {
    "a": X[:, 0].tolist(),
    "b": X[:, 1].tolist(),
    "c": X[:, 2].tolist(),
    "land": ["de"] * ROWS,
    "note": [f"call {k}" for k in range(ROWS)],
    "y": Y.tolist(),
}
HELD = {"bank": ["a", "b"], "shop": ["c"], "post": ["land", "note"]}


def run(folder: Path, held: dict[str, list[str]], algorithm: str = "lbfgs", **more: Any) -> Finished:
    path = folder / "people.csv"
    names = [*(c for each in held.values() for c in each), "y"]
    rows = zip(*(COLUMNS[c] for c in names), strict=True)
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n")
    data = {"train": str(path), "label": "y", "columns": held, "active": more.pop("active", 1)}
    return federate(job_from({"algorithm": algorithm, "data": data, **more}))


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("lbfgs", {}),
        ("lbfgs", {"world": "network"}),
        ("lbfgs", {"world": "network", "compare": False}),
        ("lbfgs", {"secure": {"sum": "tree"}}),
        ("vfb2-saga", {}),
        ("vfb-sgd", {"secure": {"labels": "blind", "scores": "hidden"}, "train": {"step": 0.3}}),
        ("asysqn-svrg", {"active": 3}),
        ("asysqn-saga", {"active": 3}),
        ("afsvrg-vp", {"active": 3}),
        ("fd-svrg", {"active": 3}),
        ("secureboost", {}),
        ("boosted-sum", {}),
        ("fdskl-capped", {"train": {"epochs": 4}}),
        ("pp-svmv", {}),
        ("asyrevel-gau", {}),
        ("czofo", {"model": {"kind": "mlp"}}),
        ("c-vfl", {}),
    ],
)
def test_every_algorithm_goes_on_beside_a_party_that_teaches_nothing(
    algorithm: str, more: dict[str, Any], tmp_path: Path
) -> None:
    done = run(tmp_path, HELD, algorithm, **more)
    assert done.result.metrics["test_auc"] > 0.85
    (said,) = [text for text in done.result.data.warnings if "adds nothing" in text]
    assert said.startswith("post: every column (land, note) is constant in the training rows or nothing but")


def test_the_model_is_the_one_without_that_party(tmp_path: Path) -> None:
    with_it = run(tmp_path, HELD)
    without = run(tmp_path, {party: HELD[party] for party in ("bank", "shop")})
    for party in ("bank", "shop"):
        assert np.allclose(with_it.shares[party].weights["w"], without.shares[party].weights["w"], atol=1e-6)
    assert not with_it.shares["post"].weights["w"].any()


def test_the_label_holder_may_be_the_one_that_teaches_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, {"post": HELD["post"], "bank": HELD["bank"], "shop": HELD["shop"]})
    assert done.result.metrics["test_auc"] > 0.85


def test_nothing_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="every column of every party is constant"):
        run(tmp_path, {"bank": ["land"], "post": ["note"]})
    job = job_from(
        {
            "algorithm": "lbfgs",
            "data": {
                "train": str(tmp_path / "people.csv"),
                "label": "y",
                "columns": {"bank": ["land"], "post": ["note"]},
            },
        }
    )
    stops = [problem.line for problem in examine(job) if problem.stops]
    assert any("every column of every party is constant" in line for line in stops)
    with pytest.raises(DataError, match="every column of every party is constant"):
        VerticalClassifier(parties=2).fit(np.ones((40, 4)), np.arange(40) % 2)


def test_a_column_that_is_constant_in_one_fold_stops_no_search(tmp_path: Path) -> None:
    COLUMNS["seldom"] = [int(k == 7) for k in range(ROWS)]
    path = tmp_path / "people.csv"
    names = ["a", "b", "c", "seldom", "y"]
    rows = zip(*(COLUMNS[c] for c in names), strict=True)
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n")
    held = {"bank": ["a", "b", "c"], "shop": ["seldom"]}
    data = {"train": str(path), "label": "y", "columns": held}
    job = job_from({"algorithm": "lbfgs", "data": data, "tune": {"folds": 4}})
    folds = HeldBack(job)
    assert all(folds.measure(job, fold)["test_auc"] > 0.8 for fold in folds.folds)


def test_cross_validation_goes_on_in_every_fold() -> None:
    from sklearn.model_selection import cross_val_score

    seldom = np.zeros(ROWS)
    seldom[7] = 1.0
    wide = np.column_stack([X, seldom])
    model = VerticalClassifier(columns={"bank": [0, 1, 2], "shop": [3]})
    assert cross_val_score(model, wide, Y, cv=4).min() > 0.75


def test_gaps_alone_teach_something() -> None:
    flag = np.where(Y == "yes", np.nan, 1.0)
    model = VerticalClassifier(columns={"bank": [0, 1], "shop": [2]}).fit(
        np.column_stack([X[:, :2], flag]), Y
    )
    assert model.score(np.column_stack([X[:, :2], flag]), Y) == 1.0
