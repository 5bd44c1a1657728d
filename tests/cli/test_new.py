"""`colonnade new`: from files to a job that runs as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from colonnade.cli import main
from colonnade.job import read_job

BANK = "customer;income;default\n" + "".join(
    f"c{k};{k % 7},5;{'yes' if k % 3 else 'no'}\n" for k in range(60)
)
SHOP = "customer,visits,city\n" + "".join(
    f"c{k},{k % 5 or ''},{'Bonn' if k % 2 else 'Ulm'}\n" for k in range(60)
)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bank.csv").write_text(BANK)
    Path("shop.csv").write_text(SHOP)


def colonnade(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_two_commands_from_files_to_a_model_and_a_report() -> None:
    made = colonnade("new", "bank.csv", "shop.csv", "--label", "default", "--id", "customer")
    assert made.exit_code == 0, made.stderr
    for words in (
        "60 rows",
        "semicolons",
        "gaps: visits (12 rows)",
        "text: customer, city",
        "'default' is in bank",
    ):
        assert words in made.stdout
    done = colonnade("run", "job.toml", "--report")
    assert done.exit_code == 0, done.stderr
    assert Path("runs/job/report.html").is_file()
    job = read_job(Path("job.toml"))
    assert (list(job.data.files or ()), job.data.active) == (["bank", "shop"], ["bank"])


def test_every_key_that_is_commented_out_is_one() -> None:
    assert colonnade("new", "bank.csv", "--label", "default", "--parties", "2").exit_code == 0
    text = Path("job.toml").read_text()
    live = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    Path("all.toml").write_text(live.replace('drop = ["..."]', "").replace('categorical = ["..."]', ""))
    assert read_job(Path("all.toml")).compare is False


def test_the_holder_of_the_label_is_found_wherever_it_is() -> None:
    assert colonnade("new", "shop.csv", "bank.csv", "--label", "default", "--id", "customer").exit_code == 0
    assert read_job(Path("job.toml")).data.active == ["bank"]


def test_files_of_the_same_name_are_different_parties() -> None:
    Path("a").mkdir()
    Path("a/bank.csv").write_text(SHOP)
    files = ("bank.csv", "a/bank.csv", "--label", "default", "--id", "customer", "--out", "a/my job.toml")
    assert colonnade("new", *files).exit_code == 0
    job = read_job(Path("a/my job.toml"))
    assert [Path(path).resolve() for path in (job.data.files or {}).values()] == [
        Path("bank.csv").resolve(),
        Path("a/bank.csv").resolve(),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("bank.csv", "shop.csv"), "--label: say which column to predict; it may be one of: default, city"),
        (
            ("bank.csv", "shop.csv", "--label", "default"),
            "--id: say which column joins the files; it may be: customer",
        ),
        (("bank.csv", "shop.csv", "--label", "defalt", "--id", "customer"), "did you mean 'default'?"),
        (("bank.csv", "shop.csv", "--label", "default", "--id", "city"), "bank.csv has no column 'city'"),
        (
            ("bank.csv", "shop.csv", "--label", "customer", "--id", "customer"),
            "remove it from all files but one",
        ),
        (("bank.csv", "shop.csv", "--parties", "2"), "--parties"),
        (("absent.csv",), "no such file"),
        (("bank.csv", "--label", "default", "--out", "bank.csv"), "is not overwritten"),
    ],
)
def test_what_is_missing_is_asked_for_with_candidates(arguments: tuple[str, ...], says: str) -> None:
    done = colonnade("new", *arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not Path("job.toml").exists()
