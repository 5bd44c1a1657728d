"""Every command has --json, and then standard output is one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from colonnade.cli import main


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, with their names."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


EVERY = dict(commands(main))


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_json(name: str) -> None:
    (option,) = [each for each in EVERY[name].params if "--json" in each.opts]
    assert isinstance(option, click.Option)
    assert option.is_flag


def said(*arguments: str) -> Any:
    done = CliRunner().invoke(main, [*arguments, "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_way_from_two_files_to_a_page_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert said("example") == ["bank.csv", "shop.csv"]
    made = said("new", "bank.csv", "shop.csv", "--label", "default", "--id", "customer")
    assert (made["written"], made["label_at"]) == ("job.toml", "bank.csv")
    assert set(made["found"]) == {"bank.csv", "shop.csv"}
    assert said("run", "job.toml", "--check") == []
    assert said("run", "job.toml", "--out", "first")["algorithm"] == "lbfgs"
    assert {each["by"] for each in said("audit", "first")} == {"bank", "shop", "any peer"}
    assert said("report", "first") == {"written": "first/report.html"}
    assert said("credit", "card", "first", "--out", "card.json") == {"written": "card.json"}
    files = ("--file", "bank=bank.csv", "--file", "shop=shop.csv")
    assert said("predict", "first", *files, "--out", "scores.csv")["rows"] > 0


def test_lists_and_certificates_in_json(tmp_path: Path) -> None:
    assert {each["name"] for each in said("algorithms")} >= {"lbfgs", "vfb2-saga"}
    made = said("certs", str(tmp_path / "c"), "bank", "shop")
    assert {Path(each["file"]).name for each in made if each["secret"]} == {"ca.key", "bank.key", "shop.key"}
    assert (tmp_path / "c" / "bank.crt").is_file()
