"""The command as a process: exit codes, streams, Ctrl-C, and help that answers at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COLONNADE = [sys.executable, "-m", "colonnade"]
LONG = """
algorithm = "vfb2-sgd"
[data]
train = "breast-cancer"
parties = 3
active = 2
[train]
epochs = 1000000
"""


def colonnade(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COLONNADE, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


def test_version(tmp_path: Path) -> None:
    done = colonnade("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout.split()[0]) == (0, "colonnade")


def test_bad_input(tmp_path: Path) -> None:
    done = colonnade("run", "absent.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "colonnade: absent.toml: there is no such job file\n"
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_where(tmp_path: Path) -> None:
    done = colonnade("--debug", "run", "absent.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "read_job" in done.stderr


def test_help_does_not_wait_for_heavy_libraries() -> None:
    heavy = ("sklearn", "scipy", "matplotlib", "pyarrow")
    code = f"import sys, colonnade.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("world", ["local", "simulated"])
def test_ctrl_c_ends_with_one_line(tmp_path: Path, world: str) -> None:
    (tmp_path / "job.toml").write_text(LONG)
    command = [*COLONNADE, "run", "job.toml", "--world", world]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=pipe,
        stderr=pipe,
        text=True,
        start_new_session=True,
        # whoever runs the tests in the background has interrupts ignored, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("epoch "):  # it trains
            assert process.poll() is None
        begin = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - begin < 25
    assert out == ""
    assert [line for line in err.splitlines() if line.startswith("colonnade")] == [
        "colonnade: stopped; no result was written"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["job.toml"]
