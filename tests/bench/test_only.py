"""`--only` of every bench: what a name stands for, and that one that stands for nothing is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.errors import JobError
from colonnade_bench import BENCHES, pieces
from colonnade_bench.only import meant
from colonnade_bench.papers import BUNDLED

TAKEN_APART = sorted(name for name in BENCHES if pieces.can(name))
WITH_PARTS = sorted(name for name in BENCHES if hasattr(pieces._module(name), "PARTS"))


def refused(*words: str) -> str:
    """The one line that a bench is refused with."""
    done = CliRunner().invoke(main, ["bench", *words])
    assert done.exit_code == 2
    (line,) = done.output.splitlines()
    return line


@pytest.mark.parametrize("name", WITH_PARTS)
def test_an_unknown_part_is_refused_with_those_that_there_are(name: str) -> None:
    line, parts = refused(name, "--quick", "--only", "nosuch"), ", ".join(pieces._module(name).PARTS)
    assert line.endswith(f"--only: {name} has no 'nosuch'; it has {parts}")


@pytest.mark.parametrize("name", WITH_PARTS)
def test_an_unknown_name_behind_any_part_is_refused(name: str) -> None:
    for part in pieces._module(name).PARTS:
        assert f"--only: {name} has no '{part}:nosuch'; behind {part} it has " in refused(
            name, "--quick", "--only", f"{part}:nosuch"
        )


@pytest.mark.parametrize("only", ["mnist4:czofo:nosuch", "slow:a9a:nosuch", "time:czofo"])
def test_an_unknown_name_beside_a_known_one_is_refused(only: str) -> None:
    assert f"--only: czofo has no {only!r}; behind {only.partition(':')[0]} it has " in refused(
        "czofo", "--only", "a9a", "--only", only
    )


def test_names_of_several_cases_are_known() -> None:
    asked = ["mnist4:vafl:c-vfl:czofo:czofo, 4 bits", "slow:gmsc:kept", "time"]
    assert meant("czofo", asked, quick=False) == asked


@pytest.mark.parametrize("name", TAKEN_APART)
def test_a_piece_stands_for_itself_and_its_beginning_for_all_that_begin_so(name: str) -> None:
    module = pieces._module(name)
    known = [*module.pieces(True), *module.LAST]
    assert meant(name, known, quick=True) == known
    for piece in known:
        if (begin := piece.rpartition(":")[0]) and ":" in begin:
            assert meant(name, [begin], quick=True) == [
                each for each in known if each.startswith(f"{begin}:")
            ]


def test_a_beginning_is_refused_with_what_may_follow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLONNADE_DATA", str(tmp_path))
    known = f"figure2:{BUNDLED}"
    with pytest.raises(JobError, match=rf"no '{known}:nosuch'; behind {known} it has sgd, svrg, saga$"):
        meant("asysqn", [f"{known}:nosuch"], quick=True)


@pytest.mark.parametrize(
    ("only", "text"),
    [("vfb2:nosuch", "vfb2 has no 'nosuch'"), ("asysqn:slow", "'asysqn:slow' is of no bench here")],
)
def test_pieces_side_by_side_refuse_unknown_names_too(
    only: str, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["pieces", "vfb2", "--out", str(tmp_path), "--only", "vfb2:slow", only])
    with pytest.raises(SystemExit) as ended:
        pieces.main()
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_one_large_run_at_a_time() -> None:
    assert "large makes one thing at a time" in refused("large", "--only", "csv", "--only", "blind")
