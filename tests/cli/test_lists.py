"""Lists, certificates, and failures that are nobody's input."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.errors import DeadlineExceeded, Refused
from colonnade.job.presets import PRESETS
from colonnade.net.stream.certificates import Credentials


def test_every_algorithm_is_listed() -> None:
    done = CliRunner().invoke(main, ["algorithms"])
    assert done.exit_code == 0
    assert all(name in done.stdout for name in PRESETS)
    listed = json.loads(CliRunner().invoke(main, ["algorithms", "--json"]).stdout)
    assert [entry["name"] for entry in listed] == list(PRESETS)


def test_data_sets_say_whether_they_are_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLONNADE_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a9a").write_text("+1 1:1\n")
    (tmp_path / "a9a.t").write_text("-1 2:1\n")
    (tmp_path / "w8a").write_text("+1 1:1\n")
    (tmp_path / "w8a.t").write_text("-1 2:1\n")
    (tmp_path / "phishing").write_text("")
    done = CliRunner().invoke(main, ["datasets", "--json", "--verify"])
    states = {entry["name"]: entry["state"] for entry in json.loads(done.stdout)}
    assert states["breast-cancer"] == "yes"
    assert states["a9a"] == "damaged"
    assert states["w8a"] == "no checksum"
    assert states["rcv1"] == "no"
    assert "not on this machine" in CliRunner().invoke(main, ["datasets"]).stdout


def test_certificates_that_a_party_can_load(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    done = CliRunner().invoke(main, ["certs", str(folder), "bank", "shop"])
    assert done.exit_code == 0, done.stderr
    assert Credentials.load(folder, "bank", ["shop"]).party == "bank"
    more = CliRunner().invoke(main, ["certs", str(folder), "telecom"])
    assert more.exit_code == 0
    assert Credentials.load(folder, "telecom", ["bank", "shop"]).party == "telecom"


@pytest.mark.parametrize(
    ("parties", "says"),
    [
        (["bank", "bank"], "twice"),
        (["new", "bank"], "not overwritten"),
        (["new", "a/b"], "cannot name a party"),
    ],
)
def test_certificates_are_never_overwritten(tmp_path: Path, parties: list[str], says: str) -> None:
    CliRunner().invoke(main, ["certs", str(tmp_path), "bank"])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = CliRunner().invoke(main, ["certs", str(tmp_path), *parties])
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert says in line
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ZeroDivisionError("by 0"), 1, "--debug"),
        (Refused("shop refused: no"), 3, "shop refused: no"),
        (DeadlineExceeded("the peer\nis late"), 4, "the peer is late"),
    ],
)
def test_every_kind_of_failure_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, says: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("colonnade.cli.lists.table", fail)
    done = CliRunner().invoke(main, ["algorithms"])
    assert done.exit_code == code
    (line,) = done.stderr.splitlines()
    assert line.startswith("colonnade: ")
    assert says in line


def commands(group: click.Group) -> list[str]:
    """Every command that does something, with the group it belongs to."""
    return [
        f"{name} {inner}".rstrip()
        for name, each in group.commands.items()
        for inner in (commands(each) if isinstance(each, click.Group) else [""])
    ]


@pytest.mark.parametrize("command", commands(main))
def test_every_command_has_an_example(command: str) -> None:
    done = CliRunner().invoke(main, [*command.split(), "--help"])
    assert done.exit_code == 0
    assert "Example:" in done.stdout
    assert f"colonnade {command}" in done.stdout
