"""The demonstration: four departments of a hospital, from four files to a prediction for new patients.

The data is real: the breast cancer set that comes with scikit-learn, 569 patients and 30 measures of the
nuclei of a cell sample. It is dealt out as four CSV files. Every department lacks some patients, has its own
order and spells ids in its own way; the clinic's file has the diagnosis. Some patients are new: nobody has
trained on them. Then everything happens as it would between companies, with the same commands: certificates,
a daemon per department, a proposal, private alignment, training, a share at each, scores of new patients.
"""

from __future__ import annotations

import asyncio
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.baselines.pooled import fit_pooled
from colonnade.data.table import RawTable, Table
from colonnade.deploy import commands, shares
from colonnade.deploy.contract import read_terms
from colonnade.deploy.rows import load_rows, split_rows
from colonnade.deploy.session import Event
from colonnade.deploy.settings import Settings, read_settings
from colonnade.deploy.terms import Terms
from colonnade.deploy.training import RunCost
from colonnade.errors import ColonnadeError, DataError, PeerUnreachable
from colonnade.job import Job
from colonnade.losses import LOSSES
from colonnade.net.stream.certificates import issue, make_authority
from colonnade.net.stream.port import free_ports
from colonnade.regularizers import REGULARIZERS, Penalty
from colonnade.run.federate import Finished, Tables, compare, plan_for
from colonnade.run.gathered import Source, result_of
from colonnade.run.processes import stop_all
from colonnade.run.world import Launch

# ten measures, each as mean, standard error and worst value over the nuclei of a sample
MEASURES = {
    "radiology": ("radius", "perimeter", "area"),
    "pathology": ("compactness", "concavity", "concave points"),
    "laboratory": ("texture", "smoothness"),
    "clinic": ("symmetry", "fractal dimension"),
}
SPELLING = {"radiology": "P{:04}", "pathology": "p{:04}", "laboratory": " P{:04} ", "clinic": "P{:04}"}
HOLDER = "clinic"
NEW = 40
KEPT = 0.95
EPOCHS = 40
START_S = 60.0

_PARTIES = "\n".join(
    f'{party} = {{ data = "patients"{", label = true" if party == HOLDER else ""} }}' for party in MEASURES
)
JOB = f"""\
# What the clinic proposes; the others check it against their own policy and data, and accept or refuse.
name = "diagnosis"
algorithm = "vfb2-saga"

[parties]
{_PARTIES}

[align]
keys = [{{ kind = "text", trim = true, case = "lower" }}]  # departments spell ids in their own ways

[split]
test = 0.25

[prepare]
scale = "zscore"         # every department scales its own columns

[train]
epochs = {EPOCHS}
batch = 32
l2 = 1e-3

[secure]
labels = "blind"         # nobody but the clinic learns a diagnosis, or what one follows from
"""
_SETTINGS = """\
name = "{party}"
listen = "127.0.0.1:{port}"

[peers]
{peers}

[data.patients]
file = "patients.csv"
id = "patient"
{label}
[data.new]
file = "new.csv"
id = "patient"

[policy]
algorithms = ["vfb2-sgd", "vfb2-svrg", "vfb2-saga"]
min_rows = 100
min_parties = 3
accept = ["scores"]  # what this family of algorithms gives away where labels are blind, see docs/blind.md
"""

Tell = Callable[[Event], None]


@dataclass(frozen=True)
class Demo:
    """A finished demonstration: the run, each department's part in it, and how the clinic does alone."""

    run: Finished
    columns: dict[str, int]
    held: dict[str, int]
    common: int
    align_bytes: int
    alone: dict[str, float]
    scores: list[tuple[str, float, str]]


def run_demo(folder: Path, tell: Tell = lambda event: None) -> Demo:
    """Run the whole demonstration in this folder and return its numbers."""
    lay_out(folder)
    settings = {party: read_settings(folder / "parties" / party / "party.toml") for party in MEASURES}
    terms = read_terms(folder / "job.toml")
    with daemons(settings):
        tell(Event("starting four daemons"))
        wait_connected(settings)
        asyncio.run(_ask(settings[HOLDER], commands.TrainRequest(terms), tell))
        new = _ids(folder / "parties" / HOLDER / "new.csv")
        found = asyncio.run(_ask(settings[HOLDER], commands.PredictRequest(terms.name, [new], "new"), tell))
    scores = [
        (name, row["probability"], row["label"]) for name, row in zip(new, found["rows"], strict=True) if row
    ]
    return _gather(settings, terms, scores)


def lay_out(folder: Path) -> None:
    """Write every department's folder (files, certificates, settings), and the job."""
    from sklearn.datasets import load_breast_cancer

    shutil.rmtree(folder / "parties", ignore_errors=True)
    _certify(folder)
    ports = dict(zip(MEASURES, free_ports(len(MEASURES)), strict=True))
    bunch = load_breast_cancer()
    diagnosis = [str(bunch.target_names[k]) for k in bunch.target]
    new = set(np.random.default_rng(0).permutation(len(diagnosis))[:NEW].tolist())
    for number, (party, measures) in enumerate(MEASURES.items()):
        mine = folder / "parties" / party
        rng = np.random.default_rng([0, number])
        order = rng.permutation(len(diagnosis))
        known = [row for row in order if row not in new and rng.random() < KEPT]
        columns = [j for j, name in enumerate(bunch.feature_names) if any(m in name for m in measures)]
        for file, rows in (("patients", known), ("new", [row for row in order if row in new])):
            labels = diagnosis if party == HOLDER and file == "patients" else None
            _write(mine / f"{file}.csv", party, bunch, rows, columns, labels)
        peers = "\n".join(f'{peer} = "127.0.0.1:{ports[peer]}"' for peer in MEASURES if peer != party)
        label = 'label = "diagnosis"\n' if party == HOLDER else ""
        text = _SETTINGS.format(party=party, port=ports[party], peers=peers, label=label)
        (mine / "party.toml").write_text(text, encoding="utf-8")
    (folder / "job.toml").write_text(JOB, encoding="utf-8")


def _certify(folder: Path) -> None:
    """Give every department its certificate and key, and delete the authority: nobody keeps another's key."""
    with tempfile.TemporaryDirectory(prefix="colonnade-authority-") as made:
        authority = Path(made)
        make_authority(authority)
        for party in MEASURES:
            issue(authority, party)
        for party in MEASURES:
            mine = folder / "parties" / party / "certificates"
            mine.mkdir(parents=True)
            for name in ["ca.crt", f"{party}.key", *(f"{peer}.crt" for peer in MEASURES)]:
                shutil.copy2(authority / name, mine / name)


def _write(
    path: Path, party: str, bunch: Any, rows: list[int], columns: list[int], labels: list[str] | None
) -> None:
    """Write these patients and columns as CSV, with the ids as this department spells them."""
    with path.open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file).writerow
        write(
            ["patient", *(str(bunch.feature_names[j]) for j in columns), *(["diagnosis"] if labels else [])]
        )
        for row in rows:
            label = [labels[row]] if labels else []
            write([SPELLING[party].format(row + 1), *(float(bunch.data[row, j]) for j in columns), *label])


@contextmanager
def daemons(settings: dict[str, Settings]) -> Iterator[None]:
    """Run one daemon per department, each a process, and stop all of them in the end."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    processes = []
    try:
        for each in settings.values():
            with each.path("log.txt").open("wb") as log:
                command = [
                    sys.executable,
                    "-m",
                    "colonnade",
                    "party",
                    "--config",
                    str(each.path("party.toml")),
                ]
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))  # noqa: S603
        yield
    finally:
        stop_all(processes)


def wait_connected(settings: dict[str, Settings]) -> None:
    """Wait until every department is connected to every other."""
    until = time.monotonic() + START_S
    for each in settings.values():
        while True:
            try:
                status = asyncio.run(_ask(each, commands.StatusRequest(), lambda event: None))
                if all(line["up"] and line["version"] for line in status["peers"].values()):
                    break
                reason = str({peer: line["reason"] for peer, line in status["peers"].items()})
            except PeerUnreachable as error:
                reason = str(error)
            if time.monotonic() > until:
                raise PeerUnreachable(f"{each.name} is not connected after {START_S:g} s: {reason}")
            time.sleep(0.1)


async def _ask(settings: Settings, request: commands.Request, tell: Tell) -> Any:
    """The daemon's result for a request; ColonnadeError if it answers with an error."""
    async for message in commands.ask(settings, request):
        if isinstance(message, commands.EventReply):
            tell(message.event)
        elif message.error is not None:
            raise ColonnadeError(f"{settings.name}: {message.error}")
        else:
            return message.result
    return None


def _gather(settings: dict[str, Settings], terms: Terms, scores: list[tuple[str, float, str]]) -> Demo:
    """The demonstration's numbers, from all folders and a pooled model: no department could do this."""
    stored = {party: shares.load(each.state / "models", terms.name) for party, each in settings.items()}
    costs = {
        party: msgspec.json.decode(
            (each.state / "books" / f"{stored[party].manifest.model}.json").read_bytes(), type=RunCost
        )
        for party, each in settings.items()
    }
    train, test, held = _joined(settings, terms, stored)
    job: Job = terms.job()
    plan, data = plan_for(job, Tables("patients", train, test, terms.active))
    trained = {party: cost.train for party, cost in costs.items()}
    pooled = compare(Launch(plan, data))
    run = Finished(
        job, plan, result_of(Source("breast cancer, four departments"), plan, trained, pooled), trained
    )
    return Demo(
        run=run,
        columns={party: len(share.manifest.columns) for party, share in stored.items()},
        held=held,
        common=stored[HOLDER].manifest.rows["common"],
        align_bytes=sum(cost.align_bytes for cost in costs.values()),
        alone=_alone(train[HOLDER], test[HOLDER], job),
        scores=scores,
    )


def _joined(
    settings: dict[str, Settings], terms: Terms, stored: dict[str, shares.StoredShare]
) -> tuple[dict[str, Table], dict[str, Table], dict[str, int]]:
    """Every department's prepared rows, joined in clear: exactly those that alignment found."""
    own = {
        party: load_rows(each, "patients", terms.align.keys, label=party == HOLDER)
        for party, each in settings.items()
    }
    names = {party: [row.tobytes() for row in each.ids] for party, each in own.items()}
    common = sorted(set.intersection(*(set(each) for each in names.values())))
    packed = np.frombuffer(b"".join(common), dtype=np.uint8).reshape(-1, 32)
    kept, _, tested = split_rows(packed, terms.split, terms.seed)
    tables: dict[str, tuple[Table, Table]] = {}
    for party, each in own.items():
        place = {name: row for row, name in enumerate(names[party])}
        raw = each.table.take(np.array([place[name] for name in common]))
        tables[party] = _prepared(raw, kept, stored[party]), _prepared(raw, tested, stored[party])
    held = {party: len(each) for party, each in names.items()}
    return {p: t[0] for p, t in tables.items()}, {p: t[1] for p, t in tables.items()}, held


def _prepared(raw: RawTable, rows: Rows, share: shares.StoredShare) -> Table:
    """These rows with labels and columns as they were in training."""
    part = raw.take(rows)
    y = share.labels.transform(part.y) if share.labels is not None and part.y is not None else None
    return share.preparation.transform(replace(part, y=None, ids=None), y)


def learnt(party: str) -> str:
    """What this run tells a department about the others' data, whether it looks or not."""
    if party == HOLDER:
        return "who is a patient of all four; each one's total score, so the sum of the other three's"
    return "who is a patient of all four; in the end the weights of its own columns, and no diagnosis"


def _alone(train: Table, test: Table, job: Job) -> dict[str, float]:
    """The metrics of the clinic's own columns alone: the reason to federate."""
    loss, penalty = (
        LOSSES["logistic"],
        Penalty(REGULARIZERS["l2"], job.train.l2_for(train.rows), free=train.free),
    )
    fit = fit_pooled(train.X, _labels(train), loss, penalty)
    return fit.metrics(loss, test.X, _labels(test), penalty.value(fit.w))


def _labels(table: Table) -> Floats:
    """The labels of a table; DataError if it has none."""
    if table.y is None:
        raise DataError(f"{table.name} has no labels; the clinic's file should have the diagnosis")
    return table.y


def _ids(path: Path) -> list[str]:
    """The ids of the patients in a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return [row["patient"] for row in csv.DictReader(file)]
