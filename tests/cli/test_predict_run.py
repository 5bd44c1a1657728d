"""`colonnade predict DIR`: the model that a run kept gives its test rows the very scores of the run."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from colonnade.cli import main
from colonnade.test_scores import TestScores

HEAD = """
[data]
files = {bank = "bank.csv", shop = "shop.csv"}
id = "customer"
label = "default"
"""
MODELS = {
    "linear": 'algorithm = "vfb2-saga"' + HEAD + "[train]\nepochs = 3\n",
    "softmax": 'algorithm = "vfb2-sgd"' + HEAD.replace('"default"', '"city"') + "active = ['shop']\n"
    "[train]\nepochs = 3\nloss = 'softmax'\n",
    "number": 'algorithm = "vfb2-svrg"' + HEAD.replace('"default"', '"income"') + "[train]\nepochs = 3\n"
    "loss = 'squared'\n",
    "kernel": 'algorithm = "fdskl-capped"'
    + HEAD
    + "[train]\nepochs = 3\nloss = 'logistic'\n[kernel]\nfeatures = 32\n"
    "block = 16\n",
    "cascade": 'algorithm = "tig"' + HEAD + "[train]\nepochs = 2\n[model]\noutputs = 2\n"
    "[model.server]\nkind = 'linear'\n",
    "function": 'algorithm = "asyrevel-gau"' + HEAD + "[train]\nepochs = 2\n[model]\nkind = 'function'\n"
    "path = 'mine.py:scores'\nparameters = 5\n",
    "network": 'algorithm = "vafl"' + HEAD + "[train]\nepochs = 2\n[model]\nkind = 'mlp'\nhidden = [4]\n"
    "outputs = 3\n[model.server]\nkind = 'mlp'\nhidden = [4]\n",
}
MINE = """import numpy as np
def scores(w, X):
    return np.tanh(np.asarray(X)[:, :2] @ w[:2] + w[4])[:, None]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    bank, shop, both = ["customer,income,job,default"], ["customer,visits,city"], []
    for k in range(120):
        income, visits = rng.standard_normal(2)
        job, city = rng.choice(["clerk", "nurse", "smith"]), rng.choice(["Bonn", "Ulm", "Trier"])
        y = "yes" if income + visits + (job == "nurse") > 0 else "no"
        bank.append(f"c{k:03},{income:.3f},{job},{y}")
        shop.append(f"c{k:03},{visits:.3f},{city}")
        both.append(f"{income:.3f},{job},{visits:.3f},{city},{y}")
    Path("bank.csv").write_text("\n".join(bank) + "\n")
    Path("shop.csv").write_text("\n".join(shop) + "\n")
    Path("both.csv").write_text("\n".join(["income,job,visits,city,default", *both]) + "\n")
    Path("mine.py").write_text(MINE)


def colonnade(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def trained(kind: str, *arguments: str) -> Result:
    Path("job.toml").write_text(MODELS[kind])
    done = colonnade("run", "job.toml", "--out", "out", "--no-pooled", *arguments)
    assert done.exit_code == 0, done.stderr
    return done


def scored(*arguments: str) -> list[dict[str, str]]:
    done = colonnade("predict", "out", *arguments)
    assert done.exit_code == 0, done.stderr
    return list(csv.DictReader(done.stdout.splitlines()))


FILES = ("--file", "bank=bank.csv", "--file", "shop=shop.csv")


@pytest.mark.parametrize(
    ("kind", "world"),
    [
        *((kind, "local") for kind in MODELS if kind != "network"),
        *((kind, "simulated") for kind in ("linear", "kernel")),
        *((kind, "network") for kind in ("linear", "cascade")),
    ],
)
def test_scores_of_the_test_rows_are_those_of_the_run(kind: str, world: str) -> None:
    trained(kind, "--world", world)
    kept = TestScores.read(Path("out/test_scores.csv"))
    rows = {row["id"]: row for row in scored(*FILES)}
    assert kept.ids is not None
    names = [name for name in next(iter(rows.values())) if name.startswith("score")]
    found = np.array([[float(rows[one][name]) for name in names] for one in kept.ids.tolist()])
    np.testing.assert_allclose(found, kept.z.reshape(len(found), -1), rtol=0, atol=1e-8)


def german(text: str) -> str:
    """A file as spreadsheets write it there."""
    return text.replace(",", ";").replace(".", ",")


@pytest.mark.parametrize("said", ["", 'separator = ";"\ndecimal = ","\n'])
@pytest.mark.parametrize("income", ["1,234", "1.234"])  # a fraction and a thousand there, or the reverse
def test_a_row_has_one_score_whatever_the_rows_beside_it_show(said: str, income: str) -> None:
    for name in ("bank.csv", "shop.csv"):
        Path(name).write_text(german(Path(name).read_text()))
    Path("job.toml").write_text(MODELS["linear"].replace("[train]", f"{said}[train]"))
    done = colonnade("run", "job.toml", "--out", "out", "--no-pooled")
    assert done.exit_code == 0, done.stderr
    alone = f"customer;income;job\nc000;{income};nurse\n"
    Path("alone.csv").write_text(alone)
    Path("beside.csv").write_text(alone + "c001;12,5;nurse\n")
    one, beside = (scored("--file", f"bank={n}.csv", "--file", "shop=shop.csv") for n in ("alone", "beside"))
    assert one[0] == beside[0]


def test_networks_too() -> None:
    pytest.importorskip("torch", reason="networks need torch")
    test_scores_of_the_test_rows_are_those_of_the_run("network", "local")


def test_one_joined_table_without_ids_has_numbered_rows() -> None:
    trained("linear")
    apart, joined = scored(*FILES), scored("both.csv")
    assert [row["score"] for row in joined] == [row["score"] for row in apart]
    assert [row["row"] for row in joined[:2]] == ["1", "2"]
    assert {row["predicted"] for row in joined} == {"yes", "no"}


def test_shares_are_private_files_and_nothing_of_an_earlier_run_stays() -> None:
    trained("linear")
    models = Path("out/models")
    assert stat.S_IMODE(models.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in models.glob("*/*"))
    assert stat.S_IMODE(Path("out/test_scores.csv").stat().st_mode) == 0o600
    (models / "shop").rename(models / "post")
    trained("cascade")
    assert {share.name for share in models.iterdir()} == {"bank", "shop"}


def test_the_kept_job_runs_again_and_gives_the_same() -> None:
    trained("linear", "--world", "simulated", "--seed", "3")
    first = Path("out/test_scores.csv").read_text()
    done = colonnade("run", "out/job.toml", "--out", "again")
    assert done.exit_code == 0, done.stderr
    assert Path("again/test_scores.csv").read_text() == first


def test_a_job_of_the_users_own_in_the_folder_is_not_replaced() -> None:
    trained("linear")
    Path("out/job.toml").write_text("# mine\n")
    done = colonnade("run", "job.toml", "--out", "out")
    assert done.exit_code == 2
    assert Path("out/job.toml").read_text() == "# mine\n"


def test_all_that_is_wrong_with_new_rows_is_said_at_once() -> None:
    trained("linear")
    text = Path("bank.csv").read_text().replace("income", "earnings").replace("job", "work")
    Path("new.csv").write_text(text)
    Path("shop2.csv").write_text(Path("shop.csv").read_text().replace(",-", ",minus "))
    done = colonnade("predict", "out", "--file", "bank=new.csv", "--file", "shop=shop2.csv")
    assert done.exit_code == 2
    for words in ("'income', 'job'", "new.csv", "shop2.csv", "'visits' is text"):
        assert words in done.stderr


def test_a_party_that_teaches_nothing_is_scored_without_a_word_about_its_values() -> None:
    same = [f"c{k:03},DE" for k in range(120)]
    Path("shop.csv").write_text("\n".join(["customer,country", *same]) + "\n")
    trained("linear")
    Path("few.csv").write_text("customer,country\nc001,FR\n")
    done = colonnade("predict", "out", "--file", "bank=bank.csv", "--file", "shop=few.csv", "--out", "s.csv")
    assert done.exit_code == 0, done.stderr
    assert "unknown to training" not in done.stderr
    assert "s.csv: 1 row scored" in done.stderr


def test_values_unknown_to_training_are_counted_and_rows_of_one_file_only_left_out() -> None:
    trained("linear")
    Path("few.csv").write_text("customer,visits,city\nc001,0.5,Rome\nc002,1,Ulm\nx,1,Ulm\n")
    done = colonnade("predict", "out", "--file", "bank=bank.csv", "--file", "shop=few.csv")
    assert done.exit_code == 0, done.stderr
    assert "unknown to training in 1 row, such as 'Rome'" in done.stderr
    assert "few.csv: 1 of 3" in done.stderr
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("out",), "one table"),
        (("out", "both.csv", "--file", "bank=bank.csv"), "either"),
        (("out", "--file", "bank=bank.csv"), "no file of shop"),
        (("out", "--file", "bnk=bank.csv", "--file", "shop=shop.csv"), "did you mean 'bank'?"),
        (("out", "--file", "bank"), "PARTY=FILE"),
        (("nowhere", "--file", "bank=bank.csv"), "no such folder"),
        (("empty", "both.csv"), "there is no model"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: tuple[str, ...], says: str) -> None:
    trained("linear")
    Path("empty").mkdir()
    done = colonnade("predict", *arguments)
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_damaged_or_missing_share_and_changed_code_are_refused() -> None:
    trained("function")
    Path("mine.py").write_text(MINE.replace("tanh", "sin"))
    assert "not what they were" in colonnade("predict", "out", *FILES).stderr
    Path("mine.py").write_text(MINE)
    weights = Path("out/models/shop/weights.npz")
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert "is not the file its manifest describes" in colonnade("predict", "out", *FILES).stderr
    weights.parent.rename("elsewhere")
    assert "no share of shop" in colonnade("predict", "out", *FILES).stderr


def test_several_classes_have_probabilities_and_true_comes_back_as_true() -> None:
    Path("soft.toml").write_text(MODELS["softmax"])
    assert CliRunner().invoke(main, ["run", "soft.toml", "--out", "soft", "--no-pooled"]).exit_code == 0
    done = CliRunner().invoke(main, ["predict", "soft", "--file", "bank=bank.csv", "--file", "shop=shop.csv"])
    rows = list(csv.DictReader(done.stdout.splitlines()))
    names = [name for name in rows[0] if name.startswith("probability_")]
    assert len(names) >= 3
    for row in rows:
        likely = {name.removeprefix("probability_"): float(row[name]) for name in names}
        assert sum(likely.values()) == pytest.approx(1)
        assert max(likely, key=lambda name: likely[name]) == row["predicted"]
    text = Path("bank.csv").read_text().replace(",yes", ",TRUE").replace(",no", ",FALSE")
    Path("bank.csv").write_text(text.replace(",1\n", ",true\n").replace(",0\n", ",false\n"))
    Path("linear.toml").write_text(MODELS["linear"])
    assert CliRunner().invoke(main, ["run", "linear.toml", "--out", "bool", "--no-pooled"]).exit_code == 0
    done = CliRunner().invoke(main, ["predict", "bool", "--file", "bank=bank.csv", "--file", "shop=shop.csv"])
    assert {row["predicted"] for row in csv.DictReader(done.stdout.splitlines())} <= {"True", "False"}
