"""`colonnade new`: from files to a job that runs as it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from colonnade.cli import main
from colonnade.job import read_job
from colonnade.result import read_result

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
    Path("strangers.csv").write_text(SHOP.replace("customer", "visitor"))
    Path("others.csv").write_text(SHOP.replace("customer", "guest").replace("\nc", "\nd"))


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


def test_the_only_column_that_can_be_the_id_is_it() -> None:
    made = colonnade("new", "bank.csv", "shop.csv", "--label", "default")
    assert made.exit_code == 0, made.stderr
    assert "ids:     'customer': 60 are in all files" in made.stdout
    assert read_job(Path("job.toml")).data.id == "customer"


@pytest.mark.parametrize(
    ("first", "more", "known"),
    [
        (0, ",member", "all of them have customer, member"),
        (45, "", "all have 'customer', of which 15 are in all files"),
        (60, "", "all have 'customer', of which none is in all files; are these the right columns?"),
    ],
)
def test_an_id_that_is_not_evident_is_asked_for(first: int, more: str, known: str) -> None:
    # two columns could be it, or few values are common: then it may be a number that differs by chance
    rows = range(first, first + 60)
    Path("shop.csv").write_text(
        f"customer,visits{more}\n" + "".join(f"c{k},{k % 5}{',' + str(k) if more else ''}\n" for k in rows)
    )
    Path("bank.csv").write_text(
        "customer,member,default\n" + "".join(f"c{k},{k},{k % 2}\n" for k in range(60))
    )
    made = colonnade("new", "bank.csv", "shop.csv", "--label", "default")
    assert made.exit_code == 2
    assert f"--id: say which column joins the files; {known}" in made.stderr


def test_a_few_values_that_are_common_by_chance_are_no_id() -> None:
    Path("sums.csv").write_text(
        "spent\n" + "".join(f"{k + (k % 10 > 0) / 3:.2f}\n" for k in range(0, 600, 9))
    )
    Path("clients.csv").write_text("client,default\n" + "".join(f"{k},{k % 2}\n" for k in range(60)))
    made = colonnade("new", "clients.csv", "sums.csv", "--label", "default")
    assert made.exit_code == 2
    assert "no column that differs from row to row has values in common" in made.stderr


def test_a_job_says_whether_others_learn_labels() -> None:
    Path("club.csv").write_text("customer,member\n" + "".join(f"c{k},{k % 4}\n" for k in range(60)))
    files = ("bank.csv", "shop.csv", "club.csv", "--label", "default", "--id", "customer")
    assert colonnade("new", *files, "--out", "clear.toml", "--clear").exit_code == 0
    assert read_job(Path("clear.toml")).secure.labels == "clear"
    assert colonnade("new", *files).exit_code == 0
    secure = read_job(Path("job.toml")).secure
    assert (secure.labels, secure.scores) == ("blind", "hidden")
    done = colonnade("run", "job.toml", "--no-pooled")
    assert done.exit_code == 0, done.stderr
    assert "nobody learns theta, gradients or scores in training" in " ".join(done.stdout.split())


def test_two_parties_hide_everything_from_each_other_unless_a_job_says_clear() -> None:
    files = ("bank.csv", "shop.csv", "--label", "default", "--id", "customer")
    for out, flags, labels in (
        ("a", (), "blind"),
        ("b", ("--blind",), "blind"),
        ("c", ("--clear",), "clear"),
    ):
        assert colonnade("new", *files, "--out", f"{out}.toml", *flags).exit_code == 0
        job = read_job(Path(f"{out}.toml"))
        assert (job.algorithm, job.secure.labels) == ("lbfgs", labels)
    done = colonnade("run", "a.toml", "--no-pooled")
    assert done.exit_code == 0, done.stderr
    assert "nobody is sent a label, a column or a score" in " ".join(done.stdout.split())
    assert "few rows for this number of columns" in " ".join(done.stdout.split())


def test_several_classes_over_two_parties_are_clear_and_the_job_says_why() -> None:
    classes = "customer;income;branch\n" + "".join(f"c{k};{k};{'abc'[k % 3]}\n" for k in range(60))
    Path("bank.csv").write_text(classes)
    files = ("bank.csv", "shop.csv", "--label", "branch", "--id", "customer")
    assert colonnade("new", *files).exit_code == 0
    assert read_job(Path("job.toml")).secure.labels == "clear"
    assert "several classes: two cannot hide them" in Path("job.toml").read_text()
    refused = colonnade("new", *files, "--out", "other.toml", "--blind")
    assert (refused.exit_code, Path("other.toml").exists()) == (2, False)
    Path("club.csv").write_text("customer,member\n" + "".join(f"c{k},{k % 4}\n" for k in range(60)))
    three = ("bank.csv", "shop.csv", "club.csv", *files[2:], "--out", "three.toml")
    assert colonnade("new", *three).exit_code == 0
    job = read_job(Path("three.toml"))
    assert (job.algorithm, job.secure.labels, job.secure.scores) == ("vfb2-saga", "blind", "open")
    assert "several classes cannot be hidden between two parties" in refused.stderr


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


def test_ids_of_other_names_and_other_looks_are_joined_and_scored() -> None:
    rows = [f'"{k:05d}";{k % 7},5;{"ja" if k % 3 else "nein"}\n' for k in range(60)]
    Path("Käufer.csv").write_text("Kundennr;Umsatz;zahlt\n" + "".join(rows), encoding="cp1252")
    Path("post.csv").write_text("\ufeffbuyer,letters\n" + "".join(f"{k},{k % 5}\n" for k in range(10, 60)))
    made = colonnade("new", "Käufer.csv", "post.csv", "--label", "zahlt", "--id", "Kundennr", "--id", "buyer")
    assert made.exit_code == 0, made.stderr
    assert 'ids:     50 are in all files with keys = [{ kind = "integer" }]' in made.stdout
    assert colonnade("run", "job.toml", "--check").exit_code == 0
    done = colonnade("run", "job.toml")
    assert done.exit_code == 0, done.stderr
    assert "ja is positive, nein is not" in done.stdout
    files = ("--file", "Kaufer=Käufer.csv", "--file", "post=post.csv")
    scored = colonnade("predict", "runs/job", *files, "--out", "scores.csv")
    assert scored.exit_code == 0, scored.stderr
    assert len(Path("scores.csv").read_text().splitlines()) == 51


def test_ids_of_other_names_that_differ_in_case_or_zeros_are_found() -> None:
    Path("one.csv").write_text("key,x,y\n" + "".join(f"C-{k:03},{k % 7},{k % 2}\n" for k in range(60)))
    Path("two.csv").write_text("who,z\n" + "".join(f"c-{k:03},{k % 5}\n" for k in range(60)))
    done = colonnade("new", "one.csv", "two.csv", "--label", "y")
    assert done.exit_code == 2
    assert "by their values it may be --id key --id who" in done.stderr
    made = colonnade("new", "one.csv", "two.csv", "--label", "y", "--id", "key", "--id", "who")
    assert 'ids:     60 are in all files with keys = [{ case = "lower" }]' in made.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("bank.csv", "shop.csv"), "--label: say which column to predict; it may be one of: default, city"),
        (("bank.csv", "shop.csv", "--label", "defalt", "--id", "customer"), "did you mean 'default'?"),
        (("bank.csv", "shop.csv", "--label", "default", "--id", "city"), "bank.csv has no column 'city'"),
        (
            ("bank.csv", "shop.csv", "--label", "customer", "--id", "customer"),
            "'customer' is the id by which the files are joined; name another column",
        ),
        (("bank.csv", "bank.csv", "--label", "default"), "remove it from all files but one"),
        (("bank.csv", "shop.csv", "--parties", "2"), "--parties"),
        (
            ("bank.csv", "strangers.csv", "--label", "default"),
            "by their values it may be --id customer --id visitor",
        ),
        (
            ("bank.csv", "others.csv", "--label", "default"),
            "no column that differs from row to row has values in common",
        ),
        (("bank.csv", "shop.csv", "others.csv", "--id", "a", "--id", "b"), "2 columns for 3 files"),
        (("absent.csv",), "no such file"),
        (("bank.csv", "--label", "default", "--out", "bank.csv"), "is not overwritten"),
    ],
)
def test_what_is_missing_is_asked_for_with_candidates(arguments: tuple[str, ...], says: str) -> None:
    done = colonnade("new", *arguments)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not Path("job.toml").exists()


def test_a_full_libsvm_file_needs_no_label_column() -> None:
    Path("rows.libsvm").write_text("".join(f"{k % 2} 1:{k} 2:{k % 3 + 1}\n" for k in range(40)))
    done = CliRunner().invoke(main, ["new", "rows.libsvm", "--parties", "2", "--out", "full.toml"])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(main, ["run", "full.toml", "--check"]).exit_code == 0


def test_labels_are_counted_as_people_write_them() -> None:
    Path("counted.csv").write_text(
        "customer,x,y\n" + "".join(f"{k},{k},{k % 2 if k else ''}\n" for k in range(9))
    )
    done = CliRunner().invoke(main, ["new", "counted.csv", "--label", "y", "--out", "counted.toml"])
    assert "(0: 4, 1: 4, no label: 1)" in done.output


def test_a_scorecard_of_two_companies_in_three_commands() -> None:
    rng, ids = np.random.default_rng(0), range(1200)
    y = rng.random(1200) < 0.4
    income, visits = rng.normal(size=1200) - y, rng.normal(size=1200) + y
    Path("a.csv").write_text("id,income,bad\n" + "".join(f"i{k},{income[k]:.3f},{y[k]:d}\n" for k in ids))
    Path("b.csv").write_text("id,visits\n" + "".join(f"i{k},{visits[k]:.3f}\n" for k in ids))
    made = colonnade("new", "a.csv", "b.csv", "--label", "bad", "--woe")
    assert made.exit_code == 0, made.stderr
    job = read_job(Path("job.toml"))
    assert (job.data.woe, job.secure.labels) == (True, "blind")
    done = colonnade("run", "job.toml")
    assert done.exit_code == 0, done.stderr
    privacy = read_result(Path("runs/job/result.json")).privacy
    assert "evidence" not in privacy.leaks
    assert any("labels were encrypted" in note for note in privacy.notes)
    card = colonnade("credit", "scorecard", "runs/job", "--json")
    assert card.exit_code == 0, card.stderr
    lines = json.loads(card.stdout)["lines"]
    points = [each["points"] for each in lines if each["column"] == "visits"]
    assert len(points) > 3
    assert points[0] > points[-1] + 20  # many visits are bad
    shown = colonnade("credit", "woe", "job.toml", "--json")
    assert {each["party"] for each in json.loads(shown.stdout)} == {"a", "b"}


def test_weight_of_evidence_needs_two_classes() -> None:
    Path("c.csv").write_text("customer,kind\n" + "".join(f"c{k},{'xyz'[k % 3]}\n" for k in range(60)))
    made = colonnade("new", "c.csv", "shop.csv", "--label", "kind", "--woe")
    assert (made.exit_code, "needs a label of two classes" in made.stderr) == (2, True)


def test_codes_gaps_and_counts_are_named_with_the_line_to_paste() -> None:
    rng = np.random.default_rng(0)
    rows = ["id,zip,income,visits"]
    for k in range(200):
        income = 99999999 if k % 20 == 0 else 20000 + int(rng.integers(0, 30000))
        rows.append(f"c{k},{10000 + int(rng.integers(0, 9))},{income},{k % 9}")
    Path("clinic.csv").write_text("\n".join(rows) + "\n")
    done = colonnade("new", "clinic.csv", "--label", "visits", "--id", "id", "--out", "visits.toml")
    assert done.exit_code == 0, done.stderr
    assert "look at: column 'zip' has whole numbers that may be codes" in done.stdout
    assert 'categorical = ["zip"]' in done.stdout
    assert "na_values.income = [99999999]" in done.stdout
    assert "the label has whole numbers from 0 to 8, taken for 9 classes" in done.stdout
    assert 'loss = "poisson" if it counts something' in done.stdout
    told = json.loads(
        colonnade("new", "clinic.csv", "--label", "zip", "--id", "id", "--out", "zip.toml", "--json").stdout
    )
    assert len(told["look_at"]) == 1  # of the label nothing is a hint: codes are classes
    job = Path("visits.toml")
    job.write_text(job.read_text().replace("[train]\n", '[train]\nloss = "poisson"\n'))
    assert "taken for" not in colonnade("run", "visits.toml", "--no-pooled").stderr
