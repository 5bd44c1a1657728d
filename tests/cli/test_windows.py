"""Without what only Linux and macOS have: all in one process works, the rest is refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Windows has none of these; what it has and Linux has not cannot be tried here (asyncio here needs
# socket.AF_UNIX for itself)
TAKEN_AWAY = """
import asyncio, os, sys
for module in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[module] = None
for owner, names in (
    (os, "fork getuid geteuid nice sched_getaffinity sched_yield readv"),
    (asyncio, "start_unix_server open_unix_connection"),
):
    for name in names.split():
        delattr(owner, name)
import colonnade.run.fork_server
colonnade.run.fork_server.SUPPORTED = False
from colonnade.cli import main
main()
"""


def without_posix(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command where these modules and functions are missing."""
    command = [sys.executable, "-c", TAKEN_AWAY, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_from_two_files_to_scores(tmp_path: Path) -> None:
    for words in (
        ["example"],
        ["new", "bank.csv", "shop.csv", "--label", "default", "--id", "customer"],
        ["run", "job.toml", "--report"],
        ["predict", "runs/job", "--file", "bank=bank.csv", "--file", "shop=shop.csv", "--out", "scores.csv"],
    ):
        done = without_posix(tmp_path, *words)
        assert not done.returncode, done.stderr
    assert (tmp_path / "runs/job/report.html").stat().st_size
    assert (tmp_path / "scores.csv").read_text("utf-8").count("\n") > 1000


def test_parties_as_processes_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    data = '[data]\ntrain = "breast_cancer"\nparties = 3\n'
    job.write_text(f'algorithm = "lbfgs"\nworld = "network"\n{data}', "utf-8")
    done = without_posix(tmp_path, "run", "job.toml", "--out", "there")
    assert done.returncode == 2
    assert "needs Linux or macOS" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "there").exists()


def test_a_daemon_is_refused(tmp_path: Path) -> None:
    settings = Path(__file__).parents[2] / "examples/deploy/bank.toml"
    (tmp_path / "party.toml").write_text(settings.read_text("utf-8"), "utf-8")
    for words in ([], ["--status"], ["--check"]):
        done = without_posix(tmp_path, "party", *words)
        assert done.returncode == 2, done.stderr
        assert "needs Linux or macOS" in done.stderr
        assert done.stderr.count("\n") == 1
