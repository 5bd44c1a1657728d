"""The cascade over real lines: processes, mutual TLS, and a party whose model is a program in C."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from colonnade.errors import ColonnadeError, ModelError
from colonnade.job import read_job
from colonnade.run.federate import federate

EXAMPLE = Path(__file__).parents[3] / "examples" / "black_box"


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_example_trains_three_kinds_of_models_in_processes_of_their_own(tmp_path: Path) -> None:
    for file in ("job.toml", "function.py", "scorecard.c"):
        shutil.copy(EXAMPLE / file, tmp_path)
    compiler = shutil.which("cc") or ""
    subprocess.run(
        [compiler, "-O2", "-o", tmp_path / "scorecard", tmp_path / "scorecard.c", "-lm"], check=True
    )
    job = read_job(tmp_path / "job.toml")
    job = msgspec.structs.replace(job, train=msgspec.structs.replace(job.train, epochs=12))
    done = federate(job, out=tmp_path / "out")
    assert done.result.world == "network"
    assert done.result.history[-1].loss < 0.5 * np.log(2)
    assert done.result.metrics["test_accuracy"] > 0.9
    program = done.shares["party-2"]
    assert program.updates > 0
    assert np.any(program.weights["w"] != 0)
    assert done.shares["party-1"].weights["w"].shape == (11,)


# answers in this process, where the pooled comparison is made, and gives up in the party's own
MODEL = """
import os, sys
if os.environ.get("OMP_NUM_THREADS") == "1":
    sys.exit(7)
columns = int(sys.stdin.readline().split()[1])
print(1, 1, flush=True)
while head := sys.stdin.readline().split():
    w = [float(sys.stdin.readline()) for _ in range(int(head[1]))]
    x = [float(sys.stdin.readline().split()[0]) for _ in range(int(head[2]))]
    print(*(a * b for a in w for b in x), sep="\\n", flush=True)
"""


def test_a_program_that_ends_ends_the_run_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "job.toml").write_text(
        f"""
        algorithm = "asyrevel-gau"
        world = "network"
        data = {{train = "iris", parties = 2, active = 1, positive = [0]}}
        train = {{loss = "logistic", epochs = 1}}
        network = {{deadline_s = 60.0}}
        [model.parties.party-1]
        kind = "program"
        command = ["{sys.executable}", "model.py"]
        """
    )
    with pytest.raises(ColonnadeError, match=r"party-1: model .* ended with status 7") as found:
        federate(read_job(tmp_path / "job.toml"), out=tmp_path / "out")
    assert isinstance(found.value, ModelError)
