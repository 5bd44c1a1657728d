"""`colonnade bench` without the package of benches says where it lies, and knows every bench with it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from colonnade.cli import main

# the command of the same name hides the module from a plain import
COMMAND = importlib.import_module("colonnade.cli.bench")


def test_benches_that_are_not_installed_are_told_from_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(COMMAND, "import_module", absent)
    done = CliRunner().invoke(main, ["bench", "vfb2", "--quick"])
    assert done.exit_code == 2
    assert "colonnade-bench is not installed" in done.output
    assert "pip install ./bench" in done.output


def test_the_command_and_the_package_name_the_same_benches() -> None:
    benches = pytest.importorskip("colonnade_bench").BENCHES
    assert benches.keys() == COMMAND.BENCHES.keys()


def test_a_bench_in_pieces_can_be_resumed_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = pytest.importorskip("colonnade_bench.pieces")
    asked: list[dict[str, object]] = []

    def side_by_side(folders: object, say: object, **how: object) -> list[Path]:
        asked.append(how)
        return []

    monkeypatch.setattr(pieces, "side_by_side", side_by_side)
    done = CliRunner().invoke(main, ["bench", "vfb2", "--jobs", "2", "--resume", "--only", "curves"])
    assert done.exit_code == 0, done.output
    assert asked == [{"quick": False, "jobs": 2, "only": ["vfb2:curves"], "resume": True}]
    assert "minutes of one core, for the whole part: curves about " in done.output
    asked.clear()
    assert CliRunner().invoke(main, ["bench", "vfb2", "--resume"]).exit_code == 0
    assert asked == [{"quick": False, "jobs": 1, "only": [], "resume": True}], "one piece at a time"


def test_what_all_leaves_out_are_parts_that_there_are() -> None:
    pytest.importorskip("colonnade_bench")
    for name, parts in {**COMMAND.LEFT_OUT, "czofo": [*COMMAND.LEFT_OUT["czofo"], *COMMAND.ON_A_GPU]}.items():
        assert set(parts) <= set(COMMAND._bench(name).PARTS)
    assert set(COMMAND.LEFT_OUT["trees"]) == set(COMMAND._bench("trees").PARTS)


def test_all_benches_go_on_where_they_were(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pieces = pytest.importorskip("colonnade_bench.pieces")
    czofo = pytest.importorskip("colonnade_bench.czofo.czofo")
    asked: list[tuple[list[str], dict[str, object]]] = []

    def side_by_side(folders: dict[str, Path], say: object, **how: object) -> list[Path]:
        asked.append((list(folders), how))
        return []

    monkeypatch.setattr(pieces, "side_by_side", side_by_side)
    parts: list[str] = []

    def run(quick: bool, out: Path, say: object, processes: int, only: tuple[str, ...]) -> list[Path]:
        parts.extend(only)
        return [out / "czofo.md"]

    monkeypatch.setattr(czofo, "run", run)
    monkeypatch.setattr(COMMAND, "_sees_gpu", lambda: False)
    done = CliRunner().invoke(main, ["bench", "all", "--quick", "--jobs", "3", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    ((names, how),) = asked
    assert {"vfb2", "asysqn", "asyrevel", "fdskl", "theorems", "peers"} <= set(names)
    only = how.pop("only")
    assert how == {"quick": True, "jobs": 3, "resume": True}
    assert isinstance(only, list)
    assert {"asysqn:figure2", "vfb2:lossless", "fdskl:splits"} <= set(only)
    assert not {"asysqn:sweep", "vfb2:slow"} & set(only)
    assert "trees" not in names
    assert "a9a" in parts
    assert not {"cifar10", "slow"} & set(parts)
    assert "left out, as they take hours; run them by name: " in done.output
    assert "czofo --only cifar10" in done.output
    assert str(tmp_path / "czofo" / "czofo.md") in done.output
    refused = CliRunner().invoke(main, ["bench", "all", "--seeds", "2"])
    assert refused.exit_code == 2
    assert "--seeds: `all` has no such option" in refused.output
