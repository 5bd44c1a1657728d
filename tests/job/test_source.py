"""What is a source and what is not; passwords are refused, references to them are looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from colonnade.errors import DataError, JobError
from colonnade.job import job_from, read_job
from colonnade.job.source import Address, checked_text, open_address, source_of

SECRET = "Zebra-42"  # noqa: S105


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://bank:{SECRET}@host/db#t",
        f"postgresql://bank:{SECRET}/x@host/db#t",
        f"postgresql://bank:{SECRET}#x@host/db#t",
        f"postgresql://bank:12/{SECRET}@host/db#t",
        f"postgresql://:{SECRET}@host/db#t",
        f"postgresql://host/db?password={SECRET}#t",
        f"postgresql://host/db?user=a&sslpassword={SECRET}#select 1",
        f"POSTGRESQL://bank:{SECRET}@host/db#t",
        f"s3://key:{SECRET}@bucket/x.parquet",
        f"s3://bucket/x.parquet?secret_key={SECRET}",
        f"mariadb://bank:x{{DB}}{SECRET}@host/db#t",
    ],
)
def test_a_password_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(DataError, match="in it, which others could read; write") as caught:
        source_of(text)
    assert SECRET not in str(caught.value)
    with pytest.raises(JobError) as refused:
        job_from({"algorithm": "lbfgs", "data": {"train": text, "parties": 2}})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://host:5432/db#select mail from t where mail like '%@%'",
        "postgresql://host:5432/db?options=a@b#t",
        "postgresql://bank:{DB_PASSWORD}@host/db#t",
        "postgresql://bank:{file:/run/secrets/db}@host/db#t",
        "postgresql://bank:{keyring:risk-db/bank}@host/db#t",
        "postgresql://host/db?password={DB_PASSWORD}#t",
        "s3://bucket/a:b@c.parquet",
    ],
)
def test_what_is_no_password_is_let_through(text: str) -> None:
    assert str(source_of(text)) == text


def test_references_are_looked_up_and_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a/b c\n", "utf-8")
    monkeypatch.setenv("USER_PASSWORD", "p@:/#")
    address = Address(f"postgresql://u:{{USER_PASSWORD}}@h/d?x={{file:{tmp_path / 'secret'}}}", "t")
    found = open_address(address)
    assert found.uri == "postgresql://u:p%40%3A%2F%23@h/d?x=a%2Fb%20c"
    assert found.hidden("p@:/# or p%40%3A%2F%23, a/b c") == "*** or ***, ***"
    assert "p@:" not in str(address) + repr(address)
    monkeypatch.delenv("USER_PASSWORD")
    with pytest.raises(DataError, match="there is no environment variable USER_PASSWORD"):
        open_address(address)


def test_a_reference_may_name_an_entry_of_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring")
    entries = {("risk/db", "bank"): "p@:/#"}
    monkeypatch.setattr(keyring, "get_password", lambda service, user: entries.get((service, user)))
    found = open_address(Address("postgresql://bank:{keyring:risk/db/bank}@h/d", "t"))
    assert found.uri == "postgresql://bank:p%40%3A%2F%23@h/d"
    assert found.hidden("p@:/#") == "***"
    for name, said in {"risk/db/shop": "the keyring has no risk/db/shop", "risk": "names no user"}.items():
        with pytest.raises(DataError, match=said):
            open_address(Address(f"postgresql://bank:{{keyring:{name}}}@h/d", "t"))


def test_a_machine_without_a_keyring_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring")
    none = pytest.importorskip("keyring.backends.fail").Keyring()  # what is there on such a machine
    monkeypatch.setattr(keyring, "get_password", none.get_password)
    with pytest.raises(DataError, match=r"\{keyring:risk/bank\} cannot be read: No recommended backend"):
        open_address(Address("postgresql://bank:{keyring:risk/bank}@h/d", "t"))


def test_an_address_is_a_text_or_a_table_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(
        'algorithm = "lbfgs"\n[data]\nid = "id"\nlabel = "y"\nactive = ["a"]\n'
        'files.a = {uri = "postgresql://h/d", table = "risk.people"}\n'
        'files.b = {uri = "sqlite:x.db", query = "select * from t"}\n',
        "utf-8",
    )
    files = read_job(tmp_path / "job.toml").data.files
    assert files == {
        "a": "postgresql://h/d#risk.people",
        "b": f"sqlite:{tmp_path / 'x.db'}#select * from t",  # noqa: S608
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"uri": "postgresql://h/d"}, "names no table"),
        ({"uri": "postgresql://h/d", "table": "t", "query": "select 1"}, "write"),
        ({"uri": "postgresql://h/d", "query": "t"}, "begins with select"),
        ({"url": "postgresql://h/d"}, "unknown key"),
        ({"table": "t"}, "write"),
        ({"uri": "s3://b/x.parquet", "table": "t"}, "have no tables"),
        ("mongodb://h/d#t", "is not a kind of source"),
    ],
)
def test_what_is_no_source_is_refused_by_name(given: object, said: str) -> None:
    with pytest.raises(JobError, match=said) as caught:
        checked_text(given, "data.train")
    assert str(caught.value).startswith("data.train")


def test_short_names() -> None:
    named = {"postgresql://h/d#risk.people": "risk.people", "sqlite:a/b.db#select 1": "b.db"}
    named |= {"s3://b/x/y.parquet?region=eu": "y.parquet", "s3://b/x/": "x"}
    for text, name in named.items():
        source = source_of(text)
        assert isinstance(source, Address)
        assert source.name == name
