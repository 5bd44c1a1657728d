"""One vocabulary: a job that ran on one machine is proposed to companies by adding lines to it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.deploy.negotiate.proposals import read_proposal
from colonnade.deploy.terms.contract import check_terms, read_terms, terms_from
from colonnade.deploy.terms.terms import Proposal, Terms
from colonnade.errors import JobError
from colonnade.job import job_from
from colonnade.job.vocabulary import IN_TERMS
from colonnade.job.writing import as_toml

BETWEEN = 'name = "credit"\n'
HERE = """algorithm = "lbfgs"
world = "local"
[data]
files = {bank = "bank.csv", shop = "shop.csv"}
active = ["bank"]
id = "customer"
label = "default"
test_fraction = 0.25
keys = [{case = "lower"}]
scale = "minmax"
categorical = ["town"]
missing = "mean"
rare = 3
intercept = false
positive = ["yes"]
[train]
epochs = 5
"""
PARTIES = """[parties]
bank = {data = "customers", label = true}
shop = {data = "customers"}
"""
OLD = """name = "credit"
algorithm = "vfb2-svrg"
[parties]
bank = {data = "customers", label = true}
shop = {data = "customers"}
[align]
keys = [{kind = "text", trim = true, case = "lower"}]
minimum = 10
[split]
test = 0.25
validation = 0.1
[prepare]
scale = "minmax"
categorical = ["town"]
missing = "mean"
rare = 3
intercept = false
positive = ["yes"]
woe = true
[secure]
labels = "clear"
"""
DIGEST = (
    "50f270cd4f10566c5ce66d5b9a8e06e4ef804cd992989f7dbd09e4068212130a"  # of OLD, as release 0.2.0 says it
)
VALUES: dict[str, Any] = {
    "data.test_fraction": 0.3,
    "data.validation_fraction": 0.1,
    "data.keys": [{"kind": "integer"}],
    "data.scale": "maxabs",
    "data.categorical": ["town"],
    "data.missing": "zero",
    "data.rare": 4,
    "data.intercept": False,
    "data.positive": ["yes"],
    "data.woe": True,
}
ONE_MACHINE = {"algorithm": "lbfgs", "data": {"train": "a.csv", "parties": 2}}
COMPANIES = {"name": "x", "algorithm": "lbfgs"} | tomllib.loads(PARTIES)


def with_key(plain: dict[str, Any], key: str, value: object) -> dict[str, Any]:
    section, name = key.split(".")
    return {**plain, section: {**plain.get(section, {}), name: value}}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    bank = [f"C{k},{k * 7 % 11},{k % 3},{'yes' if k % 3 == k % 2 else 'no'}" for k in range(80)]
    Path("bank.csv").write_text("\n".join(["customer,income,town,default", *bank]) + "\n")
    Path("shop.csv").write_text("customer,visits\n" + "".join(f"c{k},{k % 5}\n" for k in range(80)))
    return tmp_path


def test_a_job_that_ran_here_is_proposed_by_adding_a_name_and_parties(files: Path) -> None:
    Path("job.toml").write_text(HERE)
    ran = CliRunner().invoke(main, ["run", "job.toml", "--no-pooled", "--out", "one"])
    assert ran.exit_code == 0, ran.stderr
    assert "note:" not in ran.stderr

    Path("both.toml").write_text(BETWEEN + HERE + PARTIES)
    notes: list[str] = []
    terms = read_terms(Path("both.toml"), notes.append)
    received = read_proposal(msgspec.json.encode(Proposal(train=terms))).train
    assert received == terms
    data = check_terms(received, "job").terms.job().data
    here = job_from(tomllib.loads(HERE)).data
    for key in ("scale", "categorical", "missing", "rare", "intercept"):
        assert getattr(data, key) == getattr(here, key), key
    assert terms.split.test == here.test_fraction
    assert terms.align.keys == here.keys
    assert list(terms.prepare.positive or ()) == here.positive
    assert "data.files, data.label, data.id, data.active: for `colonnade run` alone" in notes[0]
    assert "world: for `colonnade run` alone" in notes[1]
    assert len(notes) == 2


def test_the_file_with_parties_still_runs_here(files: Path) -> None:
    Path("both.toml").write_text(BETWEEN + HERE + PARTIES)
    checked = CliRunner().invoke(main, ["run", "both.toml", "--check"])
    assert checked.exit_code == 0, checked.stdout
    assert "name, parties: for `colonnade train` alone, without effect here" in checked.stdout
    assert job_from(tomllib.loads(BETWEEN + HERE + PARTIES)) == job_from(tomllib.loads(HERE))


def test_a_file_of_0_2_has_the_digest_it_had_and_is_written_in_the_words_of_today() -> None:
    notes: list[str] = []
    terms = terms_from(tomllib.loads(OLD), tell=notes.append)
    assert terms.digest() == DIGEST
    assert notes == [f"{old} is now called {word}; both are read" for word, old in IN_TERMS.items()]
    told: list[str] = []
    text = as_toml(terms)
    assert terms_from(tomllib.loads(text), tell=told.append) == terms
    assert not told, text


def test_the_words_are_those_of_the_terms_and_all_are_tried() -> None:
    assert VALUES.keys() == IN_TERMS.keys()
    kept = {"align": {"changed", "minimum", "method"}, "split": set(), "prepare": set()}
    for section, others in kept.items():
        (field,) = [each for each in msgspec.structs.fields(Terms) if each.name == section]
        named = {f"{section}.{key}" for key in field.type.__struct_fields__ if key not in others}
        assert named == {old for old in IN_TERMS.values() if old.startswith(f"{section}.")}


@pytest.mark.parametrize("word", IN_TERMS)
def test_an_old_word_means_the_same_to_both_commands_with_a_note(word: str) -> None:
    old, value = IN_TERMS[word], VALUES[word]
    for read, plain in ((job_from, ONE_MACHINE), (terms_from, COMPANIES)):
        notes: list[str] = []
        found = read(with_key(plain, old, value), tell=notes.append)
        assert notes[0] == f"{old} is now called {word}; both are read"
        assert found == read(with_key(plain, word, value))
        assert found == read(with_key(with_key(plain, word, value), old, value))
        if not (read is job_from and word == "data.validation_fraction"):
            assert found != read(plain)
        other = [{"kind": "date"}] if word == "data.keys" else "other"
        with pytest.raises(JobError, match=rf"{old} = .* and {word} = .*differ; drop {old}"):
            read(with_key(with_key(plain, word, other), old, value))


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("data.scale", "huge", "data.scale: 'huge' is not one of 'auto'"),
        ("prepare.scale", "huge", "data.scale: 'huge' is not one of 'auto'"),
        ("data.keys", [{"kind": "huge"}], r"data.keys\[0\].kind: 'huge' is not one of 'text'"),
        ("data.scal", "auto", "unknown key data.scal; did you mean data.scale?"),
        ("split.tset", 0.1, "unknown key split.tset; did you mean split.test?"),
        ("data.validation_fracton", 0.1, "did you mean data.validation_fraction?"),
        ("data.weight", "w", "data.weight: between companies say weight = true for who holds the label"),
        ("data.active", ["shop"], "data.active names shop, but under .parties. the label is at bank"),
    ],
)
def test_mistakes_are_named_in_the_words_of_the_file(key: str, value: object, text: str) -> None:
    with pytest.raises(JobError, match=text):
        terms_from(with_key(COMPANIES, key, value))
    with pytest.raises(JobError, match="data: expected a section"):
        terms_from({**COMPANIES, "data": 3})


def test_code_is_left_out_where_the_settings_of_a_party_have_it_by_name() -> None:
    plain = {**COMPANIES, "algorithm": "asyrevel-gau", "model": {"kind": "torch", "path": "net.py:Net"}}
    with pytest.raises(JobError, match="carries no code"):
        terms_from(plain)
    notes: list[str] = []
    terms = terms_from(with_key(plain, "model.name", "net"), tell=notes.append)
    assert b"net.py" not in terms.written()
    assert "model.path: for `colonnade run` alone" in notes[0]


def test_a_job_for_the_other_command_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "here.toml").write_text(HERE)
    with pytest.raises(JobError, match=r"it needs a name and \[parties\]"):
        read_terms(tmp_path / "here.toml")
    (tmp_path / "there.toml").write_text(OLD)
    done = CliRunner().invoke(main, ["run", str(tmp_path / "there.toml")])
    assert done.exit_code != 0
    assert isinstance(done.exception, JobError | SystemExit)
