"""The benches take a paper's own set as soon as its files are there, with the paper's figures beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from colonnade.data.datasets.loading import load_dataset
from colonnade.job import Data
from colonnade_bench import papers
from colonnade_bench.asyrevel import asyrevel
from colonnade_bench.asyrevel.lossless import TABLE_4, sets_of, table_4
from colonnade_bench.common import Bench
from colonnade_bench.kernel import fdskl
from colonnade_bench.kernel.splits import Splits
from colonnade_bench.linear import asysqn, vfb2
from colonnade_bench.linear.lossless import Lossless
from colonnade_bench.linear.trials import problem
from colonnade_bench.party_tables import read_tables


def quiet(line: str) -> None:
    pass


def write_small(folder: Path, name: str, rows: int, columns: int) -> None:
    """A LIBSVM file in which the first column is the label, with some noise."""
    rng = np.random.default_rng(len(name))
    X = rng.random((rows, columns)) < 0.4
    y = np.where(X[:, 0] ^ (rng.random(rows) < 0.05), 1, -1)
    lines = [
        f"{label:+d} " + " ".join(f"{j + 1}:1" for j in np.flatnonzero(row))
        for label, row in zip(y, X, strict=True)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n")


@pytest.fixture
def w8a(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which a small file lies where w8a would, and nothing else."""
    monkeypatch.setenv("COLONNADE_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, rows in (("w8a", 160), ("w8a.t", 60)):
        write_small(tmp_path / "libsvm", name, rows, 24)
    problem.cache_clear()
    yield tmp_path
    problem.cache_clear()


def test_a_set_is_found_and_its_stand_in_is_not_needed_any_more(w8a: Path) -> None:
    assert papers.here(papers.ASYSQN).found == ["w8a"]
    assert "news20.binary" in papers.here(papers.ASYSQN).missing
    write_small(w8a / "libsvm", "news20", 30, 5)
    assert papers.here(("news20.binary",)) == (["news20-binary"], ["news20.binary"])
    write_small(w8a / "libsvm", "news20.binary", 30, 5)
    assert papers.here(("news20.binary",)) == (["news20.binary"], [])


def test_losslessness_uses_it(w8a: Path, tmp_path: Path) -> None:
    bench = Bench("asysqn", "asysqn", quick=False)
    algorithms = ("asysqn-saga",)
    table = Lossless(papers.here(papers.ASYSQN), algorithms, ("l2",), 1, papers.ASYSQN_TABLE_4)
    table.add(bench, quiet, tmp_path / "out")
    (row,) = bench.grids[0].rows
    assert (row[0], row[-2]) == ("w8a", 90.21)
    assert float(row[3]) > 80  # per cent, of a file in which one column is nearly the label
    assert "rcv1" in bench.grids[0].note
    assert "w8a" not in bench.grids[0].note


def test_fdskl_uses_it(w8a: Path, tmp_path: Path) -> None:
    assert papers.here(papers.FDSKL).found == ["w8a"]
    bench = Bench("fdskl", "fdskl", quick=False)
    Splits(tmp_path / "out").add(bench, ["w8a"], 1, quiet)
    _, errors, times = bench.grids
    assert errors.rows[0][0] == "w8a"
    assert [row[-1] for row in times.rows if row[1] in ("fdskl", "secureboost")] == [1, 17]


def test_asyrevel_uses_it(w8a: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench("asyrevel", "asyrevel", quick=False)
    monkeypatch.setattr("colonnade_bench.asyrevel.lossless.TRIALS", 2)
    assert sets_of(quick=False) == ["w8a"]
    table_4(bench, quiet, ["w8a"], tmp_path / "out", quick=False)
    assert bench.grids[0].title == TABLE_4
    assert bench.grids[0].rows[0][:3] == ["w8a", "asyrevel-gau", 89.85]
    assert bench.grids[0].rows[0][-1] == 2


def test_figures_use_it(w8a: Path, tmp_path: Path) -> None:
    """Every piece of a figure that the benches would run on this machine, and some of them run."""
    whole = {
        asysqn: (
            "rounds:w8a",
            "rounds:backward:w8a",
            "crui:w8a:sgd:0.3",
            "figure2:w8a:saga",
            "figure3:w8a:svrg",
        ),
        asyrevel: ("figure3:w8a:0.4", "figure4:w8a"),
        fdskl: ("figure3:w8a",),
    }
    for bench, pieces in whole.items():
        assert set(pieces) <= set(bench.pieces(quick=False))
    found = {
        "figure2:w8a:saga": asysqn.run,
        "crui:w8a:sgd:0.3": asysqn.run,
        "figure3:w8a:0.4": asyrevel.run,
        "figure4:w8a": asyrevel.run,
    }
    for piece, run in found.items():
        tables, *_ = run(True, tmp_path / "out", quiet, only=(piece,))
        found_tables = json.loads(tables.read_text())["tables"]
        assert found_tables
        for table in found_tables:
            assert {row[0].partition(",")[0] for row in table["rows"]} == {"w8a"}, piece


def test_the_speed_up_is_that_of_the_paper_s_own_set_where_it_is_here(tmp_path: Path, w8a: Path) -> None:
    assert papers.first_here(papers.ASYSQN_FIGURE_4) is None
    for name in ("epsilon_normalized", "epsilon_normalized.t"):
        write_small(w8a / "libsvm", name, 60, 30)
    tables, *_ = asysqn.run(True, tmp_path / "out", quiet, only=("figure4",))
    (table,) = json.loads(tables.read_text())["tables"]
    assert table["note"].startswith("epsilon, 60 rows, batch")


def test_vfb2_s_speed_up_is_that_of_webspam_where_it_is_here(
    tmp_path: Path, w8a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which set it is; 16 million columns take long to prepare, however few of them have numbers."""
    taken: list[str] = []
    monkeypatch.setattr(vfb2, "speedup", lambda bench, costs, say, name, **terms: taken.append(name))
    vfb2.run(True, tmp_path / "out", quiet, only=("speedup",))
    assert taken == []
    write_small(w8a / "libsvm", "webspam_wc_normalized_trigram.svm", 80, 20)
    vfb2.run(True, tmp_path / "out", quiet, only=("speedup",))
    assert taken == ["webspam"]


def test_stand_ins_have_the_figures_of_what_they_stand_for() -> None:
    tables = (papers.VFB2_TABLE_2, papers.ASYSQN_TABLE_4)
    assert {name for table in tables for name, _ in table} <= {*papers.VFB2, *papers.ASYSQN}
    assert {name for name, _ in papers.ASYSQN_TABLE_4} == set(papers.ASYSQN_TABLE_5) == set(papers.ASYSQN)
    assert set(papers.FDSKL_TABLE_4) == set(papers.FDSKL)
    assert set(papers.ASYREVEL) < set(papers.ASYREVEL_TABLE_4)
    assert all(papers.stands_for(stand_in) == own for own, stand_in in papers.STAND_INS.items())


def test_columns_are_dealt_one_by_one_after_one_hot(tmp_path: Path) -> None:
    """Of 2 numbers and 3 columns of 7 words, five parties get 4 or 5 columns each, and the first the ones."""
    rng = np.random.default_rng(1)
    table = {f"word{k}": rng.choice(list("abcdefg"), 90) for k in range(3)}
    table |= {f"n{k}": rng.normal(size=90).round(3) for k in range(2)}
    lines = [",".join([*table, "y"])]
    lines += [",".join(map(str, row)) for row in zip(*table.values(), np.arange(90) % 2, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    data = Data(train=str(tmp_path / "t.csv"), label="y", parties=5, active=2, scale="minmax", missing="zero")
    dealt = read_tables(data, seed=3)
    assert [each.width for each in dealt.train.values()] == [5, 5, 5, 4, 4]
    assert len({c for each in dealt.train.values() for c in each.columns}) == 23
    assert [each.y is not None for each in dealt.train.values()] == [True, True, False, False, False]
    ones = read_tables(msgspec.structs.replace(data, intercept=True), seed=3)
    assert [each.width for each in ones.train.values()] == [6, 5, 5, 4, 4]
    assert dealt.test is not None
    assert [each.columns for each in dealt.test.values()] == [each.columns for each in dealt.train.values()]


def test_the_file_is_read_as_the_set(w8a: Path) -> None:
    train, test = load_dataset("w8a")
    assert (train.rows, len(train.columns)) == (160, 300)
    assert test is not None
    assert test.rows == 60


@pytest.mark.parametrize(
    ("bench", "part", "left_out"),
    [
        (vfb2, "speedup", "Figure 2 is left out: none of webspam, mnist-4v9 is on this machine"),
        (vfb2, "straggling", "straggling is left out: a9a is not on this machine"),
        (asysqn, "figure4", "Figure 4 is left out: none of epsilon, mnist-4v9 is on this machine"),
        (asysqn, "closed-form", "CRUI beside the closed form is left out: mnist is not on this machine"),
    ],
)
def test_a_part_without_a_set_is_named_and_not_passed_over(
    w8a: Path, tmp_path: Path, bench: Any, part: str, left_out: str
) -> None:
    said: list[str] = []
    bench.run(True, tmp_path / "out", said.append, only=[part])
    assert any(line.startswith(left_out) for line in said)


@pytest.mark.parametrize("bench", [vfb2, asysqn, asyrevel])
def test_without_any_set_of_the_papers_a_quick_run_has_one_that_every_machine_has(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLONNADE_DATA", str(tmp_path / "nothing"))
    measured = [piece for piece in bench.pieces(quick=True) if not piece.startswith("sweep")]
    named = {piece.split(":")[1] for piece in measured if piece.count(":") > 1}
    assert papers.BUNDLED in named
    assert not named & {"a9a", "phishing", "uci-credit"}
    lines: list[str] = []
    if bench is vfb2:
        files = vfb2.run(True, tmp_path, lines.append, only=["straggling", "lossless"])
        assert lines[0].startswith("straggling is left out: a9a is not on this machine")
        assert "breast-cancer is not a set of the papers" in files[1].read_text()
