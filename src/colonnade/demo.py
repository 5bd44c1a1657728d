"""The demonstration: four departments of a hospital train one model, none of them shows its columns.

The data is real: the breast cancer set that comes with scikit-learn, 569 patients and 30 measures of the
nuclei of a cell sample. It is dealt out as four CSV files, each with the rows in an order of its own;
the clinic's file has the diagnosis. The job then runs in the network world: one process per department,
mutual TLS between them. What is shown here is what any consortium would do with its own files and job.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from colonnade.baselines.pooled import fit_pooled
from colonnade.config import Job, read_job
from colonnade.data.deal import deal
from colonnade.federation import Run, federate
from colonnade.losses import LOSSES
from colonnade.regularizers import REGULARIZERS
from colonnade.worlds import Progress

# ten measures, each as mean, standard error and worst value over the nuclei of a sample
MEASURES = {
    "radiology": ("radius", "perimeter", "area"),
    "pathology": ("compactness", "concavity", "concave points"),
    "laboratory": ("texture", "smoothness"),
    "clinic": ("symmetry", "fractal dimension"),
}
HOLDER = "clinic"
EPOCHS = 40
_FILES = "\n".join(f'{party} = "data/{party}.csv"' for party in MEASURES)
JOB = f"""\
# Four departments, one model. Change anything and run it again: colonnade run job.toml
algorithm = "vfb2-sgd"
world = "network"        # one process per department, mutual TLS
seed = 0

[data]
id = "patient"           # rows are joined by it; here in clear, every department has the same patients
label = "diagnosis"      # a column of the clinic's file only
active = ["{HOLDER}"]
scale = "zscore"         # every department scales its own columns
intercept = true
test_fraction = 0.25

[data.files]
{_FILES}

[train]
epochs = {EPOCHS}
batch = 32
l2 = 1e-3

[secure]
sum = "masked"           # partial scores are masked; only their total can be read
"""


@dataclass(frozen=True)
class Demo:
    """A finished demonstration: the run, the columns of each department, and the clinic on its own."""

    run: Run
    columns: dict[str, int]
    alone: dict[str, float]


def run_demo(folder: Path, progress: Progress = lambda moment: None) -> Demo:
    """The whole demonstration, in a folder of its own."""
    columns = lay_out(folder)
    job = read_job(folder / "job.toml")
    run = federate(job, progress=progress, out=folder)
    return Demo(run, columns, _alone(job))


def lay_out(folder: Path) -> dict[str, int]:
    """Write the four files and the job; how many columns each department holds."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    bunch = load_breast_cancer()
    diagnosis = [str(bunch.target_names[k]) for k in bunch.target]
    held = {}
    for number, (party, measures) in enumerate(MEASURES.items()):
        mine = [j for j, name in enumerate(bunch.feature_names) if any(m in name for m in measures)]
        order = np.random.default_rng([0, number]).permutation(len(diagnosis))
        with (folder / "data" / f"{party}.csv").open("w", newline="", encoding="utf-8") as file:
            write = csv.writer(file).writerow
            label = ["diagnosis"] if party == HOLDER else []
            write(["patient", *(str(bunch.feature_names[j]) for j in mine), *label])
            for row in order:
                label = [diagnosis[row]] if party == HOLDER else []
                write([f"P{row + 1:04}", *(float(bunch.data[row, j]) for j in mine), *label])
        held[party] = len(mine)
    (folder / "job.toml").write_text(JOB, encoding="utf-8")
    return held


def learnt(party: str) -> str:
    """What this run tells a department about the others' data, whether it looks or not."""
    if party == HOLDER:
        return "each patient's total score, so the sum of the other three's"
    return "theta of each patient, so the diagnosis and the total score"


def _alone(job: Job) -> dict[str, float]:
    """What the clinic can do with its own columns: the reason to federate."""
    hand = deal(job.data, task="binary", seed=job.seed).hands[HOLDER]
    _, train, test = hand.prepare()
    assert train.y is not None and test is not None and test.y is not None  # noqa: S101, PT018  its own labels
    loss, penalty = LOSSES["logistic"], REGULARIZERS["l2"]
    fit = fit_pooled(train.X, train.y, loss, penalty, job.train.l2)
    return fit.metrics(loss, test.X, test.y, job.train.l2 * penalty.value(fit.w))
