"""The tutorial's commands run in their order, print what it shows, and leave the files that it names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text("utf-8")
STEP = re.compile(r"^ {4}colonnade (.*)$|^```text\n((?:.*\n)*?)```$", re.M)  # a command, or what it prints


def form(line: str) -> str:
    """A line of output without its numbers and its layout."""
    return " ".join(re.sub(r"\d[\d.,]*", "0", line).split())


def test_every_command_does_what_the_page_says(tmp_path: Path) -> None:
    printed, commands = "", 0
    for step in STEP.finditer(PAGE):
        command, shown = step.groups()
        if command is not None:
            words = [sys.executable, "-m", "colonnade", *shlex.split(command)]
            done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            printed, commands = form(done.stdout), commands + 1
        else:
            for line in shown.splitlines():
                assert form(line) in printed, line
    assert commands >= 5
    named = ["report.html", "result.json", "models", "test_scores.csv", "job.toml"]
    assert all(f"`{name}" in PAGE for name in named)
    for path in ["bank.csv", "shop.csv", "scores.csv", *(f"runs/job/{name}" for name in named)]:
        assert (tmp_path / path).exists(), path
