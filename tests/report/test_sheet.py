"""The sheet of a run: what leaves, to whom, how much, who approved, on one side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conversations.test_openings import job_of
from tests.deploy.companies import NAMES, job, lay_out, settled, together
from tests.oracles.tables import random_job, random_tables

from colonnade.cli.folder import SHEET, store
from colonnade.deploy.books.opened import OpenedBooks
from colonnade.deploy.books.sheets import sheet_file
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.settings import read_settings
from colonnade.openings.account import CAUTION, heard
from colonnade.report.page import page
from colonnade.report.sheet import MOST, Sheet, sheet_section
from colonnade.result import Heard, Result, read_result
from colonnade.run.federate import run_tables
from colonnade_bench.tapping import declared


def result_of(algorithm: str = "vfb2-sgd", **sections: Any) -> Result:
    tables = random_tables(rows=60, test_rows=20, active=1)
    job = random_job(tables, algorithm, train={"epochs": 2}, **sections)
    return run_tables(job, tables).result


def test_a_result_says_what_its_run_declared(tmp_path: Path) -> None:
    plan, data = job_of("vfb2-sgd", active=1)
    found = result_of(secure={"labels": "clear"}).opened
    due = heard(declared(plan, data), 60)
    assert sorted(map(repr, found)) == sorted(map(repr, due))


def test_every_run_has_a_sheet_and_so_has_its_report(tmp_path: Path) -> None:
    result = result_of(secure={"labels": "clear"})
    assert tmp_path / SHEET in store(tmp_path, result, plot=False)
    stored = read_result(tmp_path / "result.json")
    assert stored.opened == result.opened
    for text in ((tmp_path / SHEET).read_text("utf-8"), page(stored)):
        assert "theta of rows, the derivative of the loss by their scores" in text
        assert CAUTION in text
        assert "Who approved" in text


def test_epsilon_stands_beside_what_noise_bounds() -> None:
    privacy = {"mechanism": "labels", "epsilon": 2.0}
    found = result_of(secure={"labels": "clear"}, privacy=privacy).opened
    assert {each.epsilon for each in found if each.about == "labels"} == {2.0}
    assert {each.epsilon for each in found if each.about == "columns"} == {None}


def test_who_hears_the_same_shares_a_line_and_one_side_has_so_many() -> None:
    line = Heard(hearer="a", about="labels", of="c", kinds=("weights",), numbers=3, bits=60.0, rows=10)
    told = [line, Heard(**{**{f: getattr(line, f) for f in line.__struct_fields__}, "hearer": "b"})]
    assert '<th scope="row">a, b</th>' in sheet_section(Sheet(title="", facts=(), told=told))
    many = [
        Heard(hearer="a", about="columns", of=f"p{k}", kinds=(), numbers=k, bits=1.0, rows=1)
        for k in range(40)
    ]
    text = sheet_section(Sheet(title="", facts=(), told=many))
    assert text.count("columns of p") == MOST
    assert f"and {40 - MOST} more lines" in text


def test_a_daemon_writes_one_for_every_training(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> str:
        manifest = await daemons["bank"].train(job())
        for name in NAMES:
            await settled(daemons[name])
        return str(manifest.run)

    run = together(consortium, program)
    for name in NAMES:
        settings = read_settings(consortium.config(name))
        text = sheet_file(settings.state, "repaid", run).read_text("utf-8")
        lines = [each for each in OpenedBooks(settings.state).lines() if each.run == run]
        assert lines
        for each in lines:
            assert each.peer in text
            assert f"{each.numbers:,}" in text
        assert "which ids are common" in text
        approved = "operator proposed the run" if name == "bank" else "accepted by policy"
        assert approved in text
