"""`colonnade describe` on one machine: pandas' and statsmodels' numbers, and what companies would be told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.oracles import least_squares as oracle

from colonnade.cli import main
from colonnade.data.table import INTERCEPT, Table
from colonnade.describe.description import Description
from colonnade.describe.joint import JointCorrelations
from colonnade.describe.own import UnitColumns
from colonnade.errors import DataError, JobError
from colonnade.job import job_from
from colonnade.run.describe import describe_job
from colonnade.run.federate import read
from colonnade.run.resolve import compose

ROWS = 1200
TOWNS = np.array(["Bonn", "Ulm", "Kiel", "Trier"])


def frame(rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    common = rng.normal(size=rows)
    data = pd.DataFrame(
        {
            "income": 2000 + 300 * (common + rng.normal(size=rows)),
            "age": 40 + 9 * rng.normal(size=rows),
            "orders": 5 + 2 * (common + rng.normal(size=rows)),
            "spent": 80 + 30 * rng.normal(size=rows) + 20 * common,
            "town": TOWNS[rng.choice(4, size=rows, p=[0.5, 0.3, 0.15, 0.05])],
        }
    )
    score = 0.8 * common + 0.5 * (data.age - 40) / 9 - 0.7 * (data.town == "Kiel")
    data["default"] = (score + rng.logistic(size=rows) > 0.4).astype(int)
    data["amount"] = 100 * score + 50 * rng.normal(size=rows)
    return data


def job(tmp_path: Path, label: str = "default", **data: Any) -> Any:
    other = "amount" if label == "default" else "default"
    frame().drop(columns=[other]).to_csv(tmp_path / "all.csv", index=False)
    columns = {"bank": ["income", "age"], "shop": ["orders", "spent", "town"]}
    return {
        "algorithm": "lbfgs",
        "data": {"train": str(tmp_path / "all.csv"), "label": label, "columns": columns}
        | {"test_fraction": 0.2, "scale": "zscore"}
        | data,
        "secure": {"labels": "clear"},
    }


def raw_rows(plain: Any) -> pd.DataFrame:
    """The training rows as the files have them, and the label."""
    parties = read(compose(job_from(plain))).parties
    by_column = {c: data.train.column(c) for data in parties.values() for c in data.train.columns}
    return (
        pd.DataFrame(by_column).infer_objects().assign(label=np.asarray(parties["bank"].train.y, dtype=float))
    )


def training_rows(found: Description, plain: Any) -> pd.DataFrame:
    """Prepared columns in pandas' way, of the rows that were described, in the order of the description."""
    raw = raw_rows(plain).rename(columns={"label": "(label)"})
    towns = pd.get_dummies(raw.town, prefix="town", prefix_sep="=")
    numbers = pd.concat([raw.drop(columns=["town"]), towns], axis=1)
    return numbers[[name for _, name in found.joint.names]].astype(float)


@pytest.mark.parametrize("label", ["default", "amount"])
def test_what_is_computed_equals_closed_forms(tmp_path: Path, label: str) -> None:
    plain = job(tmp_path, label)
    found = describe_job(job_from(plain))
    data = training_rows(found, plain)
    joint = found.joint
    assert joint.names[-1] == ("bank", "(label)")
    np.testing.assert_allclose(joint.correlations, data.corr().to_numpy(), atol=1e-6)
    X = ((data - data.mean()) / data.std(ddof=0)).to_numpy()[:, :-1]
    y = data["(label)"].to_numpy()
    expected = oracle.logit(X, (y > 0).astype(float)) if label == "default" else oracle.ols(X, y)
    for name in ("beta", "error", "statistic", "p"):
        values = [getattr(each, name) for each in joint.columns]
        np.testing.assert_allclose(values, getattr(expected, name), atol=1e-6)
    np.testing.assert_allclose([each.vif for each in joint.columns], oracle.vif(X), rtol=1e-6)
    assert joint.fit is not None
    assert joint.fit.model == ("logistic" if label == "default" else "least squares")
    assert found.repeated == {"shop": ["town=Bonn"]}  # the most common one, with which others are compared


@pytest.mark.parametrize("label", ["default", "amount"])
def test_what_is_computed_equals_statsmodels(tmp_path: Path, label: str) -> None:
    api = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    influence = pytest.importorskip("statsmodels.stats.outliers_influence")
    plain = job(tmp_path, label)
    joint = describe_job(job_from(plain)).joint
    data = training_rows(describe_job(job_from(plain)), plain)
    units = (data - data.mean()) / data.std(ddof=0)
    X = api.add_constant(units.iloc[:, :-1].to_numpy())
    if label == "default":
        fit = api.Logit((data["(label)"] > 0).astype(float), X).fit(disp=0, tol=1e-12)
    else:
        fit = api.OLS(units["(label)"].to_numpy(), X).fit()
        assert joint.fit is not None
        assert joint.fit.r2 == pytest.approx(fit.rsquared, abs=1e-6)
    parts = {"beta": fit.params, "error": fit.bse, "statistic": fit.tvalues, "p": fit.pvalues}
    for name, values in parts.items():
        got = [getattr(each, name) for each in joint.columns]
        np.testing.assert_allclose(got, np.asarray(values)[1:], atol=1e-6)
    inflation = [influence.variance_inflation_factor(X, k + 1) for k in range(len(joint.columns))]
    np.testing.assert_allclose([each.vif for each in joint.columns], inflation, rtol=1e-6)


def test_columns_are_described_as_pandas_does(tmp_path: Path) -> None:
    data = frame()
    data.loc[data.index[::7], "income"] = np.nan
    data.loc[data.index[::9], "town"] = None
    data = data.drop(columns=["amount"])
    plain = job(tmp_path)
    data.to_csv(tmp_path / "all.csv", index=False)
    found = describe_job(job_from(plain))
    data = raw_rows(plain).replace("", None)
    by_name = {each.column: each for columns in found.parties.values() for each in columns}
    told = data.describe()
    income = by_name["income"]
    assert (income.rows, income.gaps) == (len(data), int(data.income.isna().sum()))
    names = ["mean", "deviation", "least", "lower", "median", "upper", "most"]
    expected = [told.income[key] for key in ("mean", "std", "min", "25%", "50%", "75%", "max")]
    assert [getattr(income, name) for name in names] == pytest.approx(expected)
    town = by_name["town"]
    assert (town.distinct, town.top) == (4, data.town.mode()[0])
    assert (town.top_rows, town.gaps) == (int((data.town == town.top).sum()), int(data.town.isna().sum()))


def test_what_companies_would_be_told_has_noise_and_is_in_steps(tmp_path: Path) -> None:
    plain = job_from(job(tmp_path))
    exact, told = describe_job(plain).joint, describe_job(plain, 0.5).joint
    steps = np.array(told.correlations) * 2**6  # 960 rows: steps of 1/64
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)
    off = np.array(told.correlations) - np.array(exact.correlations)
    assert 0 < np.abs(off).max() < 6 * told.noise
    assert told.fit is not None
    assert told.fit.model == "least squares"
    assert told.columns[1].error is not None
    assert told.columns[1].error > told.error  # its noise is in it


def test_noise_is_in_standard_errors_so_that_intervals_hold() -> None:
    """Of least squares from noisy correlations 95% of the intervals hold what exact ones give, or more."""
    rng = np.random.default_rng(1)
    rows, width, tau = 2000, 6, 0.02
    within = []
    for _ in range(200):
        X = rng.normal(size=(rows, width)) + 0.7 * rng.normal(size=(rows, 1))
        beta = rng.normal(size=width) / 4
        y = X @ beta + rng.normal(size=rows)
        R = np.corrcoef(np.column_stack([X, y]).T)
        noise = np.triu(rng.normal(size=R.shape) * tau, 1)
        names = tuple(("p", f"c{k}") for k in range(width + 1))
        found = JointCorrelations(names, R + noise + noise.T, rows, True, tau).statistics()
        true = beta * np.sqrt(1.49) / np.sqrt(beta @ (np.eye(width) + 0.49) @ beta + 1)
        for each, value in zip(found.columns, true, strict=True):
            assert each.beta is not None
            assert each.error is not None
            within.append(abs(each.beta - value) < 1.96 * each.error)
    assert 0.93 < np.mean(within) < 0.99


def test_columns_that_noise_cannot_tell_apart_have_no_coefficients() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=1000)
    X = np.column_stack(
        [x, x + 0.01 * rng.normal(size=1000), rng.normal(size=1000), x + rng.normal(size=1000)]
    )
    R, names = np.asarray(np.corrcoef(X.T)), (("a", "x"), ("b", "x"), ("b", "z"), ("a", "(label)"))
    exact = JointCorrelations(names, R, 1000, True).statistics()
    noisy = JointCorrelations(names, R, 1000, True, 0.02).statistics()
    assert exact.columns[0].vif > 5000
    assert not exact.crowded
    assert noisy.crowded
    assert noisy.fit is None
    assert noisy.columns[0].beta is None
    assert 5 < noisy.columns[0].vif < 20  # a lower bound


def test_constants_repeats_and_intercepts_are_left_out_and_named() -> None:
    x = np.arange(200.0)
    X = np.column_stack([x, np.full(200, 3.0), 2 * x + 1, (x % 3 == 0), np.ones(200)])
    own = UnitColumns.of(Table("shop", ("a", "b", "c", "d", INTERCEPT), X))
    assert own.names == ("a", "d")
    assert own.repeated == ("b", "c")


def test_what_cannot_be_described_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"data\.woe: statistics are of columns as they are"):
        describe_job(job_from(job(tmp_path, woe=True)))
    with pytest.raises(DataError, match="statistics count every row once"):
        UnitColumns.of(Table("a", ("x",), np.ones((2, 1)), weight=np.ones(2)))
    with pytest.raises(DataError, match="all labels are the same"):
        UnitColumns.of(Table("a", ("x",), np.eye(2)[:, :1]), np.ones(2))


@pytest.mark.parametrize("algorithm", ["secureboost", "vfb2-svrg"])
def test_statistics_do_not_depend_on_the_algorithm(tmp_path: Path, algorithm: str) -> None:
    plain = job(tmp_path)
    first = describe_job(job_from(plain)).joint
    plain["data"]["scale"] = "auto"
    other = describe_job(job_from({**plain, "algorithm": algorithm})).joint
    np.testing.assert_allclose(other.correlations, first.correlations, atol=0.02)  # outliers are capped


def test_the_command_prints_tables_and_json(tmp_path: Path) -> None:
    text = json.dumps(job(tmp_path)["data"]["train"])
    lines = ['algorithm = "lbfgs"', "[data]", f"train = {text}", 'label = "default"', "parties = 2"]
    (tmp_path / "job.toml").write_text("\n".join([*lines, "[secure]", 'labels = "clear"', ""]))
    shown = CliRunner().invoke(main, ["describe", str(tmp_path / "job.toml")])
    assert shown.exit_code == 0, shown.stderr
    for words in ("correlations", "logistic, columns in deviations", "VIF", "left out", "exact"):
        assert words in shown.stdout
    plain = CliRunner().invoke(main, ["describe", str(tmp_path / "job.toml"), "--json", "--as-told"])
    assert json.loads(plain.stdout)["joint"]["noise"] > 0
    none = CliRunner().invoke(main, ["describe", str(tmp_path / "no.toml")])
    assert (none.exit_code, "there is no such job file" in none.stderr) == (2, True)


def described(data: pd.DataFrame, folder: Path) -> str:
    """Return what the command prints of a file with these rows."""
    data.to_csv(folder / "all.csv", index=False)
    (folder / "job.toml").write_text(
        'algorithm = "lbfgs"\n[data]\ntrain = "all.csv"\nlabel = "default"\nparties = 2\n'
        '[secure]\nlabels = "clear"\n'
    )
    shown = CliRunner().invoke(main, ["describe", str(folder / "job.toml")])
    assert shown.exit_code == 0, shown.stderr
    return shown.stdout


def test_dates_are_shown_as_dates(tmp_path: Path) -> None:
    data = frame().drop(columns="amount")
    data["since"] = (pd.Timestamp("2020-03-01") + pd.to_timedelta(np.arange(len(data)), unit="D")).strftime(
        "%d.%m.%Y"
    )
    data["at"] = "09:30"
    data.loc[::2, "at"] = "18:00"
    shown = described(data, tmp_path)
    (since,) = (line for line in shown.splitlines() if line.startswith("since "))
    assert len(re.findall(r"202\d-\d\d-\d\d", since)) == 6  # the mean and five quantiles
    (at,) = (line for line in shown.splitlines() if line.startswith("at "))
    assert "1970" not in at


def test_the_command_says_why_there_are_no_coefficients(tmp_path: Path) -> None:
    data = frame().drop(columns="amount")
    data.loc[data.default == 1, "town"] = data.town.replace("Trier", "Ulm")  # nobody of Trier is positive
    shown = described(data, tmp_path)
    assert "there are no coefficients: some columns tell the label of all rows that have them" in shown
