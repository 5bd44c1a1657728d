"""Notebooks are stored with their outputs, and their code runs as it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
LARGEST = 300_000  # bytes, outputs included


def code_cells(path: Path) -> list[dict[str, Any]]:
    """The cells with code, in their order."""
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_there_is_one() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_code_runs_and_prints_as_many_lines_as_are_stored(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("IPython", reason="notebooks need IPython, which the extra docs brings")
    names: dict[str, Any] = {"__name__": path.stem}
    for cell in code_cells(path):
        exec(compile("".join(cell["source"]), path.name, "exec"), names)  # noqa: S102
        stored = [line for output in cell["outputs"] for line in output.get("text", [])]
        assert len(capsys.readouterr().out.splitlines()) == len(stored)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_those_of_one_run_in_order_without_errors(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [o for cell in cells for o in cell["outputs"] if o["output_type"] == "error"]
    assert path.stat().st_size < LARGEST
