"""One rank for each party under mpirun: the local world's result bit for bit, and errors with a name."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from colonnade.run.mpi import _pack, _unpack

MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
needs_mpi = pytest.mark.skipif(
    MPIRUN is None or find_spec("mpi4py") is None, reason="no MPI here; pip install 'colonnade[mpi]'"
)
JOB = """
algorithm = "vfb-svrg"
seed = 3
compare = false
[data]
train = "breast-cancer"
parties = {parties}
active = 1
[train]
epochs = {epochs}
batch = 64
step = {step}
tolerance = 0
[secure]
labels = "clear"
[network]
deadline_s = {deadline}
"""


def job(folder: Path, epochs: int = 2, step: float = 0.1, deadline: float = 30.0, parties: int = 3) -> Path:
    path = folder / "job.toml"
    path.write_text(JOB.format(epochs=epochs, step=step, deadline=deadline, parties=parties))
    return path


def command(job: Path, world: str, ranks: int | None = None) -> list[str]:
    start = [] if ranks is None else [str(MPIRUN), "-n", str(ranks)]
    out = str(job.parent / world)
    return [*start, sys.executable, "-m", "colonnade", "run", str(job), "--world", world, "--out", out]


def run(job: Path, world: str, ranks: int | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(job, world, ranks), capture_output=True, text=True, timeout=90)


@needs_mpi
@pytest.mark.slow
def test_ranks_have_the_synchronous_weights_of_the_local_world(tmp_path: Path) -> None:
    path = job(tmp_path, parties=4)
    under_mpi, local = run(path, "mpi", 4), run(path, "local")
    assert under_mpi.returncode == 0, under_mpi.stderr
    assert local.returncode == 0, local.stderr
    one, other = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("mpi", "local"))
    assert one["metrics"] == other["metrics"]
    assert [moment["loss"] for moment in one["history"]] == [moment["loss"] for moment in other["history"]]
    for kind in ("backward", "hello", "piece"):  # checkpoints are announced when time says so
        assert one["cost"]["bytes_by_kind"][kind] == other["cost"]["bytes_by_kind"][kind]
    weights = sorted((tmp_path / "mpi" / "models").rglob("*.npz"))
    assert len(weights) == 4
    for path in weights:
        beside = tmp_path / "local" / path.relative_to(tmp_path / "mpi")
        with np.load(path) as mine, np.load(beside) as theirs:
            assert mine.files == theirs.files
            assert all((mine[name] == theirs[name]).all() for name in mine.files)


TWO = """
algorithm = "lbfgs"
[data]
train = "breast-cancer"
parties = 2
[secure]
labels = "blind"
reveal = "{reveal}"
"""


@pytest.mark.slow
@pytest.mark.parametrize("reveal", ["owner", "never"])
@pytest.mark.parametrize("world", ["network", pytest.param("mpi", marks=needs_mpi)])
def test_two_parties_train_encrypted_in_processes_of_their_own(
    tmp_path: Path, world: str, reveal: str
) -> None:
    path = tmp_path / "job.toml"
    path.write_text(TWO.format(reveal=reveal))
    done, local = run(path, world, 2 if world == "mpi" else None), run(path, "local")
    assert done.returncode == 0, done.stderr
    assert local.returncode == 0, local.stderr
    one, other = (json.loads((tmp_path / name / "result.json").read_text()) for name in (world, "local"))
    assert one["metrics"]["test_auc"] > 0.95
    assert one["metrics"]["test_auc"] == pytest.approx(other["metrics"]["test_auc"], abs=0.03)  # own noise
    assert one["cost"]["epochs"] == other["cost"]["epochs"] == 12
    if reveal == "never":  # else terms follow from how far scores reach, which own noise changes
        sent = [each["cost"]["bytes_by_kind"]["sealed"] for each in (one, other)]
        assert sent[0] == pytest.approx(sent[1], rel=0.01)
    assert one["privacy"]["leaks"] == other["privacy"]["leaks"]


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [None, 2])
def test_too_few_ranks_are_told_how_to_start(tmp_path: Path, ranks: int | None) -> None:
    done = run(job(tmp_path), "mpi", ranks)
    assert done.returncode == 2
    assert f"3 parties need 3 ranks, and this program has {ranks or 1}" in done.stderr
    assert "mpirun -n 3 colonnade run" in done.stderr


@needs_mpi
@pytest.mark.slow
def test_an_error_of_a_party_is_told_once(tmp_path: Path) -> None:
    done = run(job(tmp_path, epochs=30, step=1e9), "mpi", 3)
    assert done.returncode == 2
    assert done.stderr.count("colonnade: ") == 1
    assert "smaller step" in done.stderr


@needs_mpi
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="ranks are found in /proc")
def test_a_rank_that_falls_silent_is_named(tmp_path: Path) -> None:
    started = subprocess.Popen(
        command(job(tmp_path, epochs=10**6, deadline=8), "mpi", 3),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with started:
        said: list[str] = []
        for line in started.stdout or ():
            said.append(line)
            if line.startswith("epoch") and not any(text.startswith("epoch") for text in said[:-1]):
                os.kill(pid_of_rank(2, tmp_path), signal.SIGSTOP)
                stopped = time.monotonic()
    assert time.monotonic() - stopped < 60
    assert started.returncode != 0
    assert any("waited 8 s for" in line for line in said), said


def pid_of_rank(rank: int, folder: Path) -> int:
    """The process of this test's program that has this rank."""
    for entry in Path("/proc").iterdir():
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"PMI_RANK={rank}".encode() in environment and str(folder).encode() in words:
            return int(entry.name)
    raise ProcessLookupError(f"no process has rank {rank}")


def test_a_folder_travels_as_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    (one / "data").mkdir(parents=True)
    (one / "data" / "train.npz").write_bytes(b"\0\1")
    (one / "share.json").write_bytes(b"{}")
    _unpack(_pack(one), other)
    assert (other / "data" / "train.npz").read_bytes() == b"\0\1"
    _unpack(_pack(one, without=("data",)), tmp_path / "third")
    assert [path.name for path in (tmp_path / "third").iterdir()] == ["share.json"]
