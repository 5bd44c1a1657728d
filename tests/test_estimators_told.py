"""What the estimators tell: warnings about data, new values and openings, reports, and types."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from colonnade import VerticalClassifier, VerticalRegressor
from colonnade.errors import DataError, PrivacyWarning

RNG = np.random.default_rng(0)
ROWS = 300


def customers() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Columns a to d of two companies, and a label that a and c tell something of."""
    frame = pd.DataFrame(RNG.normal(size=(ROWS, 4)), columns=list("abcd"))
    return frame, np.where(frame.a + frame.c + RNG.normal(size=ROWS) > 0, "good", "bad")


HELD = {"bank": ["a", "b"], "shop": ["c", "d"]}


def told(function: Any, *arguments: Any) -> list[str]:
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments)
    assert all(each.filename == __file__ for each in caught)  # at the line of the caller
    return [str(each.message) for each in caught]


@pytest.mark.parametrize("party", ["bank", "shop"])
def test_copies_of_the_label_are_warned_of_wherever_they_are(party: str) -> None:
    X, y = customers()
    X["reason"] = [f"{'paid' if label == 'good' else 'lost'} in {k % 70}" for k, label in enumerate(y)]
    X["copy"] = np.where(y == "good", 1.0, 3.0)
    columns = {**HELD, party: [*HELD[party], "reason", "copy"]}
    said = told(VerticalClassifier(columns=columns).fit, X, y)
    for column in ("reason", "copy"):
        assert (
            f"{party}: column '{column}' tells the label almost by itself; drop it if it is a copy of it"
            in said
        )


def test_columns_left_out_and_unknown_values_are_warned_of() -> None:
    X, y = customers()
    X["same"], X["town"], X["remark"] = (
        1.0,
        RNG.choice(["Rom", "Ulm"], ROWS),
        [f"text {k}" for k in range(ROWS)],
    )
    clf = VerticalClassifier(columns={"bank": ["a", "b", "same"], "shop": ["c", "d", "town", "remark"]})
    said = " ".join(told(clf.fit, X, y))
    assert "bank: 1 constant column left out: same" in said
    assert "column 'remark' has 300 different texts in 300 rows" in said
    assert told(clf.predict, X) == []
    (said,) = told(clf.predict, X.assign(town="Paris"))
    assert said.startswith("shop: column 'town' has values unknown to training in 300 rows, such as 'Paris'")


def test_fit_says_in_one_line_what_it_would_open() -> None:
    X, y = customers()
    with pytest.warns(PrivacyWarning, match="shop can work out the label of every training row"):
        VerticalClassifier(columns=HELD).fit(X, y)
    three = {"bank": ["a"], "shop": ["b", "c"], "telecom": ["d"]}
    with pytest.warns(PrivacyWarning) as caught:
        VerticalClassifier("vfb2-sgd", columns=three, job={"secure": {"labels": "blind"}}).fit(X, y)
    assert "label of every" not in " ".join(str(each.message) for each in caught)


def test_a_report_of_test_rows_has_their_quality(tmp_path: Path) -> None:
    X, y = customers()
    clf = VerticalClassifier(columns=HELD).fit(X[:200], y[:200])
    text = clf.report(tmp_path / "report.html", X[200:], y[200:]).read_text()
    area = roc_auc_score(y[200:] == "good", clf.predict_proba(X[200:])[:, 1])
    for words in (f"{area:.4f}", "bank alone", "ROC curve", "The model", "Calibration"):
        assert words in text
    later = pickle.loads(pickle.dumps(clf)).report(tmp_path / "later.html", X[200:], y[200:]).read_text()  # noqa: S301
    assert f"{area:.4f}" in later
    assert "bank alone" not in later
    assert "ROC curve" not in clf.report(tmp_path / "short.html").read_text()
    with pytest.raises(DataError, match="odd is none of the classes"):
        clf.report(tmp_path / "no.html", X[200:], ["odd"] * 100)
    number = X.a + X.c
    reg = VerticalRegressor(columns=HELD).fit(X[:200], number[:200])
    text = reg.report(tmp_path / "number.html", X[200:], number[200:]).read_text()
    assert f"{r2_score(number[200:], reg.predict(X[200:])):.4f}" in text
    trees = VerticalClassifier(
        "secureboost", columns=HELD, epochs=3, job={"secure": {"labels": "clear"}}
    ).fit(X[:200], y[:200])
    assert "gain" in trees.report(tmp_path / "trees.html", X[200:], y[200:]).read_text()


def test_a_result_is_shown_in_a_line() -> None:
    X, y = customers()
    shown = repr(VerticalClassifier(columns=HELD).fit(X, y).result_)
    assert shown.startswith("<Result of lbfgs on X: 2 parties; train_loss 0.")
    assert shown.endswith("gives away scores, labels, two-parties>")


def test_numbers_of_any_size_are_numbers_or_refused() -> None:
    y = [0, 1, 0, 1]
    for X in (
        [[10**30, 1], [2, 3], [4, 5], [1, 2]],
        pd.DataFrame({"a": [10**25, 2, 3, 4], "b": [1, 2, 3, 4]}),
    ):
        assert VerticalClassifier(parties=2).fit(X, y).n_features_in_ == 2
    for X in (
        [[10**400, 1], [2, 3], [4, 5], [1, 2]],
        pd.DataFrame({"a": [10**400, 2, 3, 4], "b": [1, 2, 3, 4]}),
    ):
        with pytest.raises(DataError):
            VerticalClassifier(parties=2).fit(X, y)


def test_explainers_call_a_model() -> None:
    X, y = customers()
    clf = VerticalClassifier(columns=HELD).fit(X, y)
    np.testing.assert_array_equal(clf(X), clf.predict_proba(X))
    hinge = VerticalClassifier(columns=HELD, loss="smooth_hinge").fit(X, y)
    np.testing.assert_array_equal(hinge(X), hinge.decision_function(X))
    reg = VerticalRegressor(columns=HELD).fit(X, X.a + X.c)
    np.testing.assert_array_equal(reg(X), reg.predict(X))


TYPED = """
from colonnade import VerticalClassifier, VerticalRegressor
clf = VerticalClassifier(parties=2)
clf.fit([[1.0]], [1]).predict_proba([[1.0]]).sum()
clf.predict_prob([[1.0]])
VerticalRegressor().scores_
"""


def test_a_type_checker_sees_a_typing_error(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "mine.py").write_text(TYPED)
    words = [sys.executable, "-m", "mypy", "--no-error-summary", "--follow-imports=silent", "mine.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stdout
    assert '"VerticalClassifier" has no attribute "predict_prob"' in lines[0]
    assert '"VerticalRegressor" has no attribute "scores_"' in lines[1]


@pytest.mark.parametrize("parties", [2, 3])
def test_blind_labels_train_as_companies_would_and_repr_says_what_would_be_told(parties: int) -> None:
    rng = np.random.default_rng(parties)
    X = rng.normal(size=(1500, 6))
    y = X[:, 0] + X[:, -1] + rng.normal(size=1500) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        clear = VerticalClassifier(parties=parties).fit(X, y)
        blind = VerticalClassifier(parties=parties, labels="blind").fit(X, y)
        again = VerticalClassifier(parties=parties, job={"secure": {"labels": "blind"}}).fit(X, y)
    told = blind._model.plan.blind
    assert clear._model.plan.blind is None
    assert told is not None
    assert told.told is not None
    assert told.told.noise == 3.0
    assert told == again._model.plan.blind
    assert blind.n_iter_ == 12
    for party, w in clear.coef_.items():
        assert not np.array_equal(blind.coef_[party], w)  # noise of three rows
        # noise is drawn anew: in sixty runs the farthest weight was 0.07 off in the mean, 0.15 at the most
        np.testing.assert_allclose(blind.coef_[party], w, atol=0.3)
    assert repr(VerticalClassifier(labels="blind")) == "VerticalClassifier(labels='blind')"
    for clf, words in ((clear, "can work out the label of every training row"), (blind, "")):
        first, line = repr(clf).split("\n")[0], repr(clf).split("\n")[-1]
        assert first.startswith("VerticalClassifier(")
        assert line.startswith("between companies this run would tell: ")
        assert words in line
        assert ("label of every" in line) == (clf is clear)
    assert (
        repr(blind).endswith("no number of a training row") == (parties == 2)  # with three A hears scores
    )


def test_weights_that_nobody_knows_are_no_coefficients() -> None:
    X, y = customers()
    clf = VerticalClassifier(columns=HELD, labels="blind", job={"secure": {"reveal": "never"}}).fit(X, y)
    assert clf.score(X, y) > 0.7
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match=f"{name}: nobody knows weights"):
            getattr(clf, name)
