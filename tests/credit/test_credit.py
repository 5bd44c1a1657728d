"""The credit kit against scikit-learn, SciPy and plain loops; points and reasons add up to the score."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import ks_2samp
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

from colonnade.arrays import Floats
from colonnade.cli import main
from colonnade.credit import (
    LinearModel,
    Platt,
    Scaling,
    Scorecard,
    brier,
    coefficient_table,
    gains,
    gini,
    hosmer_lemeshow,
    isotonic,
    ks,
    psi,
    psi_of_columns,
    reliability,
    vif,
)
from colonnade.credit.export import onnx_bytes, to_sklearn
from colonnade.credit.linear import reasons
from colonnade.data.table import RawTable
from colonnade.errors import DataError, ShareError
from colonnade.job import job_from, read_job
from colonnade.report.facts import read_run
from colonnade.report.page import page
from colonnade.run.federate import read, weigh_columns_of
from colonnade.run.resolve import compose
from colonnade.run.run_shares import KeptModel

rng = np.random.default_rng(3)
Z = rng.normal(size=500).round(2)
BAD = rng.random(500) < expit(1.5 * Z - 1)


def test_ks_is_that_of_scipy_and_gini_that_of_scikit_learn() -> None:
    assert ks(Z, BAD) == pytest.approx(ks_2samp(Z[BAD], Z[~BAD]).statistic, abs=1e-12)
    assert gini(Z, BAD) == pytest.approx(2 * roc_auc_score(BAD, Z) - 1, abs=1e-12)
    with pytest.raises(DataError, match="both labels"):
        ks(Z, np.zeros(500, dtype=bool))


def test_the_lift_table_is_that_of_a_loop() -> None:
    order = sorted(range(500), key=lambda k: -Z[k])
    table = gains(Z, BAD, 7)
    at = caught = 0
    for each in table:
        rows = order[at : at + each.rows]
        at, caught = at + each.rows, caught + sum(bool(BAD[k]) for k in rows)
        assert each.bads == sum(bool(BAD[k]) for k in rows)
        assert each.lift == pytest.approx(each.bads / each.rows / BAD.mean())
        assert each.captured == pytest.approx(caught / BAD.sum())
        assert each.cumulative_lift == pytest.approx(caught / at / BAD.mean())
    assert at == 500
    assert table[-1].captured == 1.0


@given(st.floats(-2, 2), st.integers(2, 12))
def test_psi_is_that_of_its_definition(shift: float, bins: int) -> None:
    then, now = Z, Z + shift
    ordered = sorted(then)
    edges = sorted({ordered[-(-k * 500 // bins) - 1] for k in range(1, bins)} - {ordered[-1]})
    total = 0.0
    for low, high in zip([-np.inf, *edges], [*edges, np.inf], strict=True):
        one, other = (max(float(((x > low) & (x <= high)).mean()), 1e-4) for x in (then, now))
        total += (other - one) * np.log(other / one)
    assert psi(then, now, bins) == pytest.approx(total, abs=1e-9)
    assert psi(then, then, bins) == 0


def test_calibration_is_that_of_the_definitions() -> None:
    p = expit(Z)
    assert brier(p, BAD) == pytest.approx(brier_score_loss(BAD, p))
    curve = reliability(p, BAD, 8)
    assert sum(each.rows for each in curve) == 500
    assert sum(each.rows * each.observed for each in curve) == pytest.approx(BAD.sum())
    statistic = 0.0
    for rows in np.array_split(np.argsort(p, kind="stable"), 8):
        expected, seen = p[rows].sum(), BAD[rows].sum()
        mean = expected / len(rows)
        statistic += (seen - expected) ** 2 / (len(rows) * mean * (1 - mean))
    found, value = hosmer_lemeshow(p, BAD, 8)
    assert found == pytest.approx(statistic)
    assert value < 1e-3  # these probabilities are off
    assert hosmer_lemeshow(expit(1.5 * Z - 1), BAD)[1] > 0.05


def test_recalibration_is_that_of_scikit_learn() -> None:
    fitted = LogisticRegression(C=1e9, tol=1e-10).fit(Z[:, None], BAD)
    platt = Platt.fit(Z, BAD)
    assert (platt.slope, platt.shift) == pytest.approx((fitted.coef_[0, 0], fitted.intercept_[0]), abs=1e-4)
    np.testing.assert_allclose(platt(Z), fitted.predict_proba(Z[:, None])[:, 1], atol=1e-4)
    naive = IsotonicRegression(out_of_bounds="clip").fit(Z, BAD.astype(float))
    np.testing.assert_allclose(isotonic(Z, BAD, Z + 0.1), naive.predict(Z + 0.1))


def test_standard_errors_are_those_of_the_likelihood() -> None:
    X = np.column_stack([rng.normal(size=(400, 3)), np.ones(400)])
    X[:, 1] += 0.8 * X[:, 0]
    y = rng.random(400) < expit(X @ [1.0, -0.5, 0.0, 0.3])
    fitted = LogisticRegression(C=1e9, tol=1e-12, fit_intercept=False, max_iter=1000).fit(X, y)
    w = fitted.coef_[0]

    def slope(w: Floats) -> Floats:
        return np.asarray(X.T @ (expit(X @ w) - y))

    step = 1e-5  # the Hessian by differences of the gradient
    H = np.array([(slope(w + step * e) - slope(w - step * e)) / (2 * step) for e in np.eye(4)])
    errors = np.sqrt(np.diag(np.linalg.inv(H)))
    names = [("a", "x"), ("a", "y"), ("b", "z"), ("b", "(intercept)")]
    table = coefficient_table(names, X, w)
    np.testing.assert_allclose([each.error for each in table], errors, rtol=1e-6)
    assert table[0].p < 1e-6 < table[2].p
    for k, each in enumerate(table[:3]):
        others = np.delete(X[:, :3], k, axis=1)
        r2 = LinearRegression().fit(others, X[:, k]).score(others, X[:, k])
        assert each.vif == pytest.approx(1 / (1 - r2))
    assert table[3].vif is None
    assert np.isinf(vif(np.column_stack([X[:, 0], X[:, 0] + 1e-9 * X[:, 1]]))).all()
    repeated = vif(np.column_stack([X[:, 0], X[:, 1], X[:, 0] + X[:, 1], X[:, 2]]))
    assert np.isinf(repeated[:3]).all()
    assert repeated[3] == pytest.approx(vif(X[:, :3])[2])
    twice, both = [("a", "u"), ("a", "v")], np.column_stack([X[:, 0], X[:, 0]])
    with pytest.raises(DataError, match="nothing is penalised"):
        coefficient_table(twice, both, np.ones(2))
    assert coefficient_table(twice, both, np.ones(2), l2=0.1)[0].error > 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kept run on weighed columns of two parties."""
    folder = tmp_path_factory.mktemp("credit")
    draw = np.random.default_rng(8)
    x, v = draw.normal(size=(2, 900))
    word = draw.choice(["red", "blue", ""], size=900)
    bad = draw.random(900) < expit(x + (word == "red") - 1)
    lines = [f"{x[k]:.3f},{v[k]:.3f},{word[k]},{int(bad[k])}" for k in range(900)]
    (folder / "all.csv").write_text("x,v,word,bad\n" + "\n".join(lines) + "\n")
    (folder / "job.toml").write_text(
        'algorithm = "vfb2-svrg"\n[data]\ntrain = "all.csv"\nlabel = "bad"\nwoe = true\n'
        '[data.columns]\nbank = ["x"]\nshop = ["v", "word"]\n[train]\nepochs = 20\n'
    )
    done = CliRunner().invoke(main, ["run", str(folder / "job.toml"), "--out", str(folder / "run"), "--json"])
    assert done.exit_code == 0, done.output
    return folder / "run"


def training_rows(run: Path) -> dict[str, RawTable]:
    return {party: data.train for party, data in read(compose(read_job(run / "job.toml"))).parties.items()}


def test_points_and_reasons_add_up_to_the_score(run: Path) -> None:
    kept = KeptModel.read(run)
    model, tables = LinearModel.of(kept), training_rows(run)
    z = kept.scores(tables)
    np.testing.assert_allclose(model.scores(tables), z, atol=1e-12)
    exact = Scaling(pdo=30, base_score=500, base_odds=20, rounded=False)
    card = Scorecard.of(model, exact)
    np.testing.assert_allclose(card.score(model, tables), exact.points(z), atol=1e-9)
    assert exact.points(logit(np.array([1 / 21])))[0] == pytest.approx(500)
    assert exact.points(logit(np.array([1 / 41])))[0] == pytest.approx(530)
    rounded = Scorecard.of(model, Scaling())
    assert all(each.points == int(each.points) for each in rounded.lines)
    assert np.abs(rounded.score(model, tables) - Scaling().points(z)).max() <= 0.5 * (3 + 1)
    for row, each in enumerate(reasons(model, tables, tables)[:50]):
        assert each.base + sum(effect for _, _, effect in each.reasons) == pytest.approx(z[row], abs=1e-12)
        assert each.base == pytest.approx(z.mean())
    assert psi_of_columns(model.blocks["shop"].preparation.woe, tables["shop"], tables["shop"]) == {
        "v": 0.0,
        "word": 0.0,
    }


def test_the_report_has_the_points_of_every_bin(run: Path) -> None:
    one = read_run(run)
    card = Scorecard.of(LinearModel.of(KeptModel.read(run)))
    assert [line for part in one.parts for line in part.points] == card.lines
    assert "Scorecard: points of every bin" in page(one)


def test_exports_score_as_the_model_does(run: Path, tmp_path: Path) -> None:
    skops, runtime = pytest.importorskip("skops.io"), pytest.importorskip("onnxruntime")
    model, tables = LinearModel.of(KeptModel.read(run)), training_rows(run)
    z = model.scores(tables)
    X = np.hstack([b.preparation.transform(tables[p]).X for p, b in model.blocks.items()])
    keep = [o != "(intercept)" for b in model.blocks.values() for o in b.preparation.outputs]
    for name in ("model.onnx", "model.skops"):
        done = CliRunner().invoke(main, ["credit", "export", str(run), str(tmp_path / name), "--json"])
        assert json.loads(done.output)["features"] == ["bank.x", "shop.v", "shop.word"]
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    score, probability = session.run(None, {"columns": X[:, keep]})
    np.testing.assert_allclose(score[:, 0], z, atol=1e-9)
    np.testing.assert_allclose(probability[:, 0], expit(z), atol=1e-9)
    fitted = skops.load(tmp_path / "model.skops")
    np.testing.assert_allclose(fitted.coef_ @ X[:, keep].T + fitted.intercept_, z[None], atol=1e-9)


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kept run on columns with gaps, outliers, text with rare values, and labels that are words."""
    folder = tmp_path_factory.mktemp("messy")
    draw = np.random.default_rng(5)
    x = np.where(draw.random(600) < 0.02, 1e4, draw.normal(size=600))
    v = [f"{each:.3f}" if keep else "" for each, keep in zip(draw.normal(size=600), draw.random(600) > 0.1,
                                                             strict=True)]  # fmt: skip
    word = draw.choice(["red", "blue", "", "once", "seldom"], size=600, p=[0.5, 0.4, 0.09, 0.005, 0.005])
    bad = draw.random(600) < expit(np.clip(x, -3, 3) + (word == "red") - 1)
    lines = [f"{x[k]:.3f},{v[k]},{word[k]},{'late' if bad[k] else 'paid'}" for k in range(600)]
    (folder / "all.csv").write_text("x,v,word,end\n" + "\n".join(lines) + "\n")
    (folder / "job.toml").write_text(
        'algorithm = "vfb2-svrg"\n[data]\ntrain = "all.csv"\nlabel = "end"\npositive = ["late"]\nrare = 10\n'
        '[data.columns]\nbank = ["x"]\nshop = ["v", "word"]\n[train]\nepochs = 20\n'
    )
    done = CliRunner().invoke(main, ["run", str(folder / "job.toml"), "--out", str(folder / "run"), "--json"])
    assert done.exit_code == 0, done.output
    return folder / "run"


def test_a_pipeline_takes_raw_columns(messy: Path, run: Path, tmp_path: Path) -> None:
    skops, pandas = pytest.importorskip("skops.io"), pytest.importorskip("pandas")
    path = tmp_path / "model.skops"
    done = CliRunner().invoke(main, ["credit", "export", str(messy), str(path), "--raw", "--json"])
    assert json.loads(done.output)["features"] == ["bank.x", "shop.v", "shop.word"]
    fitted = skops.load(path, trusted=skops.get_untrusted_types(file=path))
    model, tables = LinearModel.of(KeptModel.read(messy)), training_rows(messy)
    raw = pandas.read_csv(messy.parent / "all.csv", keep_default_na=False, na_values={"v": [""]})
    raw = raw.rename(columns={"x": "bank.x", "v": "shop.v", "word": "shop.word"})
    z = fitted.decision_function(raw)
    known = {round(float(each), 9) for each in model.scores(tables)}
    assert sum(round(float(each), 9) in known for each in z) >= 480 - 2  # the rows that were trained on
    assert fitted.classes_.tolist() == ["paid", "late"]
    unseen = raw.head(1).assign(**{"shop.word": "green"})
    other = raw.head(1).assign(**{"shop.word": "once"})
    assert fitted.decision_function(unseen) == fitted.decision_function(other)
    refused = CliRunner().invoke(main, ["credit", "export", str(run), str(tmp_path / "woe.skops"), "--raw"])
    assert (refused.exit_code, "weighed (woe)" in refused.output) == (2, True)


def test_points_and_exports_are_of_logistic_models(run: Path) -> None:
    model = LinearModel.of(KeptModel.read(run))
    other = LinearModel(model.blocks, "squared")
    for made in (Scorecard.of, to_sklearn, onnx_bytes):
        with pytest.raises(ShareError, match="trained on the squared loss"):
            made(other)


@pytest.mark.parametrize("command", ["measure", "scorecard", "coefficients", "card"])
def test_commands_answer_in_words_and_in_json(run: Path, command: str) -> None:
    words = CliRunner().invoke(main, ["credit", command, str(run)])
    plain = CliRunner().invoke(main, ["credit", command, str(run), "--json"])
    assert words.exit_code == plain.exit_code == 0, words.output + plain.output
    assert json.loads(plain.output)
    missing = CliRunner().invoke(main, ["credit", command, str(run / "nothing")])
    assert missing.exit_code == 2


def test_scores_of_a_run_are_stable_against_themselves(run: Path) -> None:
    done = CliRunner().invoke(main, ["credit", "stability", str(run), str(run / "test_scores.csv"), "--json"])
    assert json.loads(done.output) == {"psi": 0.0, "rows": 180}


def test_woe_of_a_job_is_printed(run: Path) -> None:
    done = CliRunner().invoke(main, ["credit", "woe", str(run / "job.toml"), "--json"])
    found = {(each["party"], each["column"]): each["iv"] for each in json.loads(done.output)}
    assert found[("bank", "x")] > found[("shop", "v")]
    job = job_from({"algorithm": "vfb2-svrg", "data": {"train": str(run.parent / "all.csv"), "parties": 2,
                                                       "label": "bad"}})  # fmt: skip
    assert set(weigh_columns_of(job)) == {"party-0", "party-1"}
