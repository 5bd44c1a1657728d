"""Benches in pieces: what pieces write is joined to one bench, and what takes too long is stopped."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from colonnade_bench import BENCHES, pieces

TINY = """
import time
from colonnade_bench.common import Bench, Grid, kept

TITLE, PARTS, LAST = "tiny", {"first": "", "second": "", "sum": ""}, ("sum:kept",)

def pieces(quick):
    return ["second:b", "second:a", "first"]

def run(quick, out, say, *, only=(), tables=None):
    bench = Bench("tiny", TITLE, quick)
    part, _, which = only[0].partition(":")
    if which == "b" and quick:
        time.sleep(600)
    if part == "sum":
        found = [kept(out / f"{name}.json", name, None) for name in ("a" if quick else "ab")]
        bench.grids.append(Grid("sum", ["of"], [[sum(found)]]))
    else:
        if which:
            kept(out / f"{which}.json", which, lambda: ord(which))
        bench.grids.append(Grid(part, ["which"], [[which]], "a note"))
    return bench.write(tables or out)
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bench of three parts, in a module that other processes find, too."""
    (tmp_path / "tiny_bench.py").write_text(TINY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(BENCHES, "tiny", "tiny_bench")
    return tmp_path / "out"


def test_pieces_side_by_side_are_one_bench(tiny: Path) -> None:
    written = pieces.side_by_side({"tiny": tiny}, lambda line: None, jobs=2)
    found = json.loads(written[0].read_text())
    assert [(grid["title"], grid["rows"]) for grid in found["tables"]] == [
        ("first", [[""]]), ("second", [["b"], ["a"]]), ("sum", [[ord("a") + ord("b")]])
    ]  # fmt: skip
    assert written[1].name == "tiny.md"
    said: list[str] = []
    pieces.side_by_side({"tiny": tiny}, said.append, resume=True)
    assert [line.partition(": ")[0] for line in said] == ["tiny sum:kept"]  # the others had ended


@pytest.mark.usefixtures("real_data")
def test_benches_take_turns_with_the_pieces_that_are_asked_for() -> None:
    folders = {name: Path(name) for name in ("vfb2", "asysqn")}
    found = pieces.in_turns(folders, quick=False, only=("vfb2:slow", "asysqn:slow"))
    assert [piece.bench for piece in found[:4]] == ["vfb2", "asysqn", "vfb2", "asysqn"]
    assert {piece.name.partition(":")[0] for piece in found} == {"slow"}


@pytest.mark.slow
def test_what_takes_too_long_is_stopped_and_the_rest_is_there(tiny: Path) -> None:
    said: list[str] = []
    began = time.monotonic()
    written = pieces.side_by_side({"tiny": tiny}, said.append, quick=True, jobs=3, minutes=0.6)
    assert time.monotonic() - began < 120
    assert said[-2] == "out of time: 1 pieces stopped, 0 not begun"
    found = json.loads(written[0].read_text())
    assert [grid["title"] for grid in found["tables"]] == ["first", "second", "sum"]
    assert found["tables"][1]["rows"] == [["a"]]


@pytest.mark.parametrize("name", ["vfb2", "asysqn", "fdskl", "asyrevel"])
@pytest.mark.parametrize("quick", [True, False])
def test_every_piece_belongs_to_a_part(name: str, quick: bool) -> None:
    module = pieces._module(name)
    listed = [*module.pieces(quick), *module.LAST]
    assert {piece.partition(":")[0] for piece in listed} <= set(module.PARTS)
    assert len(set(listed)) == len(listed)
