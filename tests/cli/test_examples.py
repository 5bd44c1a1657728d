"""The examples run as they stand, without a warning but the one that says what a run would open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

OPENINGS = "ignore:between companies this run would tell"


@pytest.mark.parametrize(
    ("name", "writes"), [("breast_cancer.py", "report.html"), ("straggler.py", "straggler.svg")]
)
def test_example(name: str, writes: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-W", OPENINGS, str(EXAMPLES / name), writes]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / writes).stat().st_size > 5000
    assert f"written: {writes}" in done.stdout


def test_every_example_is_run() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == ["breast_cancer.py", "straggler.py"]
