"""What every bench shares: results as JSON, tables as Markdown, lines as a figure.

A bench is a module with `run(quick, out, say)`: it measures, says what it is doing a line at a time, and
returns the files it wrote. Ours stands beside the paper's, and what was not measured is a dash.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from colonnade import __version__

Say = Callable[[str], None]


@dataclass(frozen=True)
class Grid:
    """A table: a title, column heads and rows of numbers or words."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [f"## {self.title}", ""]
        lines += [_line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line([_text(cell) for cell in row]) for row in self.rows]
        return "\n".join(lines + (["", self.note] if self.note else []))


@dataclass(frozen=True)
class Panel:
    """One plot: named lines of (x, y); with `bars` every line is one point, drawn as a bar of length x."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    log: bool = False
    bars: bool = False
    marked: Sequence[str] = ()  # bars that stand out


@dataclass
class Bench:
    """What a bench has measured so far, and how it is written."""

    name: str
    title: str
    quick: bool
    grids: list[Grid] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def made(self, pieces: Iterable[str], measure: Callable[[str], None], out: Path) -> list[Path]:
        """Measure piece by piece and write what there is after each: a full run takes long."""
        for piece in pieces:
            measure(piece)
            self.write(out)
        return self.write(out)

    def write(self, out: Path) -> list[Path]:
        """Write NAME.json with every number, NAME.md with the tables, NAME.png with the lines."""
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / f"{self.name}.json", out / f"{self.name}.md"]
        whole = {
            "bench": self.name,
            "quick": self.quick,
            "machine": machine(),
            "tables": [asdict(grid) for grid in self.grids],
            "lines": [asdict(panel) for panel in self.panels],
            **self.data,
        }
        paths[0].write_text(json.dumps(whole, indent=2, default=float) + "\n", encoding="utf-8")
        head = [f"# {self.title}", "", f"{'Quick run' if self.quick else 'Full run'} on {machine()}.", ""]
        text = "\n".join(head) + "\n" + "\n\n".join(grid.markdown() for grid in self.grids) + "\n"
        paths[1].write_text(text, encoding="utf-8")
        if self.panels:
            from colonnade_bench.drawing import drawn  # who measures on a bare machine draws elsewhere

            paths.append(drawn(self.panels, self.title, out / f"{self.name}.png"))
        return paths


def kept(path: Path, question: Any, answer: Callable[[], Any] | None) -> Any:
    """The answer that an earlier run stored for the same question; else finds it out and stores it.

    So a bench of hours can go on where it was stopped, and processes can work for one table. Questions and
    answers are plain numbers and words. LookupError where there is no answer and no way to find it out.
    """
    asked = json.loads(json.dumps(question))
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["question"] == asked:
            return found["answer"]
    if answer is None:
        raise LookupError(f"{path}: not found out yet")
    found = {"question": asked, "answer": json.loads(json.dumps(answer()))}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.part")
    draft.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
    return found["answer"]


def growth_exponent(points: Sequence[tuple[float, float]]) -> float:
    """The exponent p of y ~ x^p, by least squares on logarithms.

    >>> round(growth_exponent([(1.0, 2.0), (2.0, 8.0), (4.0, 32.0)]), 6)
    2.0
    """
    x, y = np.log(np.asarray(points, dtype=np.float64)).T
    return float(np.polyfit(x, y, 1)[0])


def machine() -> str:
    """This machine and its software, in a few words."""
    python = platform.python_version()
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {python}, Colonnade {__version__}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return "-" if math.isnan(cell) else f"{cell:.4g}"
    return str(cell)
