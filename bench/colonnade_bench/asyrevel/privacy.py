"""Beyond AsyREVEL's paper: what its replies give away, and what differential privacy leaves of that.

The attack runs on the transcript of one client. `passive` is a client that does nothing but take part;
`probing` sends crafted outputs, which nobody can tell from those of a black box. Accuracy of an attack is
at the threshold that suits it best, so that one without information comes out at the baseline.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from colonnade.attacks.transcript import Transcript
from colonnade.attacks.zeroth_order import DIGITS, Probe, Recovery, judge, passive, read_off
from colonnade.conversations.cascade.client import Passes, Walk
from colonnade.job import Job, job_from
from colonnade.job.rules import batch_of
from colonnade.run.federate import Setting
from colonnade.run.launch import run_local
from colonnade.run.party import Assignment, Share
from colonnade_bench.common import Bench, Grid, Say

CLIENT = "party-1"


def privacy(bench: Bench, say: Say, *, setting: Setting, quick: bool) -> None:
    """Accuracy under privacy, and the attack against the same runs."""
    rows: list[list[Any]] = []
    attacks: list[list[Any]] = []
    for epsilon in (None, 8.0, 1.0):
        say(f"privacy: epsilon {epsilon or 'none'}")
        job = _job(setting, 2048, 8 if quick else 20, 8, epsilon)
        transcript = Transcript(CLIENT)
        shares = _run(job, setting, transcript)
        server = shares[setting.active[0]]
        rows.append(
            [epsilon, server.epsilon, 100 * server.metrics["test_accuracy"], server.metrics["test_auc"]]
        )
        say(f"attack: a client that probes, epsilon {epsilon or 'none'}")
        attacks.append(["probing, batch 2048", epsilon, *_row(probe_run(job, setting))])
        if epsilon == 1.0:
            names, n = sorted(setting.train), setting.train[CLIENT].rows
            found = judge(passive(transcript, job, names, n), _labels(setting))
            attacks.append(["passive, batch 2048", epsilon, *_row(found)])
    few = _first_rows(setting, 500 if quick else 2000)
    names, n = sorted(few.train), few.train[CLIENT].rows
    for batch, epochs, K in ((1, 2, 1), (16, 10, 4)):
        say(f"attack: a client that only takes part, batch {batch}")
        job, transcript = _job(few, batch, epochs, K, None), Transcript(CLIENT)
        _run(job, few, transcript)
        found = judge(passive(transcript, job, names, n), _labels(few))
        attacks.append([f"passive, batch {batch}, {n} rows", None, *_row(found)])
    note = (
        "a9a, 8 parties, batch 2048, 8 directions, clip 1, delta 1e-5; epsilon covers all replies together."
    )
    heads = ["epsilon", "epsilon spent", "test accuracy %", "test AUC"]
    bench.grids.append(Grid("Private replies", heads, rows, note))
    heads = ["attack", "epsilon", "labels recovered", "AUC", "rows heard of", "baseline"]
    bench.grids.append(Grid("Labels from zeroth-order differences", heads, attacks))


def probe_run(job: Job, setting: Setting) -> Recovery:
    """The same run with one client that asks what it wants to know."""
    names, n = sorted(setting.train), setting.train[CLIENT].rows
    walk = Walk(Passes(n, batch_of(job, n), (job.seed, names.index(CLIENT) + 1)))
    private = job.privacy.mechanism != "none"
    probe = Probe(walk, n, job.cascade.directions + 1, 1 if private else DIGITS)
    transcript = Transcript(CLIENT)
    _run(job, setting, transcript, probe)
    return judge(read_off(probe, transcript, job, names), _labels(setting))


def _job(setting: Setting, batch: int, epochs: int, K: int, epsilon: float | None) -> Job:
    terms = {} if epsilon is None else {"mechanism": "scalar", "epsilon": epsilon}
    train = {"loss": "logistic", "regularizer": "nonconvex", "batch": batch, "epochs": epochs}
    data = {"train": setting.dataset, "parties": len(setting.train), "active": 1}
    sections = {"train": {**train, "evaluate_every": 0}, "cascade": {"directions": K}, "privacy": terms}
    return job_from({"algorithm": "asyrevel-gau", "world": "local", "data": data, **sections})


def _run(job: Job, setting: Setting, transcript: Transcript, probe: Probe | None = None) -> dict[str, Share]:
    given = {
        party: Assignment(
            job,
            table,
            setting.test[party] if setting.test else None,
            setting.active,
            model=probe if party == CLIENT else None,
        )
        for party, table in setting.train.items()
    }
    return run_local(given, lambda moment: None, transcript.tap)


def _first_rows(setting: Setting, rows: int) -> Setting:
    train = {
        party: replace(table, X=table.X[:rows], y=None if table.y is None else table.y[:rows])
        for party, table in setting.train.items()
    }
    return replace(setting, train=train)


def _labels(setting: Setting) -> Any:
    return setting.train[setting.active[0]].y


def _row(found: Recovery) -> list[float]:
    return [found.accuracy, found.auc, found.covered, found.baseline]
