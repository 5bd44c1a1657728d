"""`colonnade run --check`: every problem at once, with counts and remedies, and nothing is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from colonnade.cli import main

ROWS = [f"c{k},{k % 7},{'nurse' if k % 4 else ''},{'yes' if k % 3 else 'no'}" for k in range(40)]
ROWS[3] = "c3,,smith,no"
GOOD = """
algorithm = "vfb2-sgd"
[data]
files = {bank = "bank.csv", shop = "shop.csv"}
id = "customer"
label = "default"
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bank.csv").write_text("\n".join(["customer,income,job,default", *ROWS]) + "\n")
    Path("shop.csv").write_text("customer,visits\n" + "".join(f"c{k},{k % 5}\n" for k in range(40)))


def check(job: str, *arguments: str) -> Result:
    Path("job.toml").write_text(job)
    return CliRunner().invoke(main, ["run", "job.toml", "--check", *arguments])


def test_a_job_that_runs_has_nothing_to_put_right() -> None:
    done = check(GOOD)
    assert done.exit_code == 0, done.stdout
    assert done.stdout.startswith("nothing stops this run")
    assert not Path("runs").exists()


def test_all_problems_are_listed_at_once_with_counts_and_remedies() -> None:
    bad = GOOD.replace("vfb2-sgd", "fdskl") + (
        'missing = "error"\nintercept = true\ncategorical = ["jobb", "job"]\n'
        "[cascade]\nmu = 0.1\n[network]\nlatency_ms = 3.0\n[model]\nkind = 'mlp'\n"
    )
    Path("out").mkdir()
    Path("out/thesis.txt").write_text("mine")
    done = check(bad, "--out", "out", "--json")
    assert done.exit_code == 2
    found = {(each["where"], each["stops"]): each for each in json.loads(done.stdout)}
    assert ("data.intercept", True) in found
    assert ("model", True) in found
    assert ("out", True) in found
    assert found["data.categorical", True]["remedy"] == 'categorical = ["job"]'
    assert ("cascade.mu", False) in found
    assert ("network.latency_ms", False) in found
    gaps = [each for each in json.loads(done.stdout) if each["remedy"] == 'missing = "auto"']
    assert [(each["where"], each["count"]) for each in gaps] == [("bank.csv", 1), ("bank.csv", 10)]
    assert "stops  bank.csv: column 'income' is empty in 1 row\n" in check(bad).stdout


def test_a_remedy_that_is_pasted_puts_it_right() -> None:
    assert check(GOOD + 'missing = "error"\n').exit_code == 2
    assert check(GOOD + 'missing = "auto"\n').exit_code == 0


def test_every_file_is_looked_at() -> None:
    done = check(GOOD.replace("bank.csv", "bnk.csv").replace("shop.csv", "shp.csv"))
    assert done.exit_code == 2
    assert "did you mean 'bank.csv'?" in done.stdout
    assert "did you mean 'shop.csv'?" in done.stdout


def test_a_column_that_looks_like_an_index_may_be_dropped_with_one_line() -> None:
    Path("shop.csv").write_text("customer,visits,row\n" + "".join(f"c{k},{k % 5},{k}\n" for k in range(40)))
    done = check(GOOD)
    assert done.exit_code == 0, done.stdout
    assert "column 'row'" in done.stdout
    assert 'drop = ["row"]' in done.stdout


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ("[kernel]\nfeatures = 9\n", "kernel.features"),
        ("[cascade]\nmu = 0.1\n", "cascade.mu"),
        ("[network]\nspeeds = [1, 2]\n", "network.speeds"),
        ("[network.faults]\ndrop = 0.1\n", "network.faults"),
        ("[network]\nwork_ms = 1.0\n", "network.work_ms"),
        ('[network]\ntransport = "tls"\n', "network.transport"),
    ],
)
def test_a_key_without_effect_is_named_by_a_run_too(lines: str, key: str) -> None:
    Path("job.toml").write_text(GOOD + "[train]\nepochs = 1\n" + lines)
    done = CliRunner().invoke(main, ["run", "job.toml"])
    assert done.exit_code == 0, done.stderr
    assert f"note: {key} has no effect" in done.stderr


def test_keys_of_the_simulated_world_are_none_without_effect_there() -> None:
    done = check(GOOD + "[network]\nlatency_ms = 1.0\nspeeds = [1, 2]\n", "--world", "simulated")
    assert "has no effect" not in done.stdout


def test_what_is_wrong_with_every_file_is_listed_at_once() -> None:
    Path("bank.csv").write_text("customer,income,default\n" + "".join(f"c{k},{k},\n" for k in range(40)))
    Path("shop.csv").write_text("name,visits\n" + "".join(f"c{k},{k % 5}\n" for k in range(40)))
    done = check(GOOD)
    assert done.exit_code == 2
    assert "stops  bank.csv: no row has a label\n" in done.stdout
    assert "stops  shop.csv: no id column 'customer'; there is name, visits\n" in done.stdout


def test_a_column_in_doubt_is_named_once() -> None:
    rows = [f"c{k},{k if k % 9 else 'unknown'},{'yes' if k % 3 else 'no'}" for k in range(40)]
    Path("bank.csv").write_text("\n".join(["customer,income,default", *rows]) + "\n")
    done = check(GOOD)
    assert done.exit_code == 0
    assert done.stdout.count("'income'") == 1


def test_gaps_of_a_column_that_no_file_has(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(
        "age,rent,y\n" + "".join(f"{k},{3 * k},{k % 2}\n" for k in range(40))
    )
    (tmp_path / "job.toml").write_text(
        'algorithm = "lbfgs"\n[data]\ntrain = "people.csv"\nlabel = "y"\nparties = 2\n'
        "na_values = {rant = -999, age = -1}\n"
    )
    told = CliRunner().invoke(main, ["run", str(tmp_path / "job.toml"), "--check"])
    assert "data.na_values: no file has 'rant'" in " ".join(told.output.split())
    assert "na_values = {age = -1}" in told.output
