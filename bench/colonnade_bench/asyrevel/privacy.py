"""Beyond AsyREVEL's paper: what its replies give away, and what differential privacy leaves of that.

The attack runs on the transcript of one client. `passive` is a client that does nothing but take part;
`probing` sends crafted outputs, which nobody can tell from those of a black box. Accuracy of an attack is
at the threshold that suits it best, so that one without information comes out at the baseline.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from colonnade.arrays import Floats
from colonnade.attacks.transcript import Transcript
from colonnade.attacks.zeroth_order import DIGITS, Probe, Recovery, judge, passive, read_off
from colonnade.conversations.cascade.row_order import BatchRows, passes_of
from colonnade.job import Job, job_from
from colonnade.run.federate import Finished, Tables, plan_for, run_tables
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.party_tables import first_rows, label_of

CLIENT = "party-1"
# batch, epochs, directions, step; single rows are the paper's setting, and the automatic step, which does not
# know the batch, is too long for them
PASSIVE = ((1, 2, 1, 1e-3), (16, 10, 4, "auto"))


def privacy(bench: Bench, say: Say, *, tables: Tables, quick: bool) -> None:
    """Accuracy under privacy, and the attack against the same runs."""
    rows: list[list[Any]] = []
    attacks: list[list[Any]] = []
    for epsilon in (None, 8.0, 1.0):
        say(f"privacy: epsilon {epsilon or 'none'}")
        job = job_for(tables, 2048, 8 if quick else 20, 8, epsilon)
        transcript = Transcript(CLIENT)
        run = run_tables(job, tables, tap=transcript.tap)
        reached, spent = run.result.metrics, run.result.privacy.epsilon
        rows.append([epsilon, spent, 100 * reached["test_accuracy"], reached["test_auc"]])
        say(f"attack: a client that probes, epsilon {epsilon or 'none'}")
        attacks.append(["probing, batch 2048", epsilon, *_row(probe_run(job, tables))])
        if epsilon == 1.0:
            attacks.append(["passive, batch 2048", epsilon, *_row(passive_attack(transcript, run, tables))])
    few = replace(tables, train=first_rows(tables.train, 500 if quick else 2000))
    n = few.train[CLIENT].rows
    for batch, epochs, K, step in PASSIVE:
        say(f"attack: a client that only takes part, batch {batch}")
        transcript = Transcript(CLIENT)
        run = run_tables(job_for(few, batch, epochs, K, None, step), few, tap=transcript.tap)
        found = passive_attack(transcript, run, few)
        attacks.append([f"passive, batch {batch}, {n} rows", None, *_row(found)])
    note = (
        "a9a, 8 parties, batch 2048, 8 directions, clip 1, delta 1e-5; epsilon covers all replies together."
    )
    heads = ["epsilon", "epsilon spent", "test accuracy %", "test AUC"]
    bench.grids.append(Grid("Private replies", heads, rows, note))
    heads = ["attack", "epsilon", "labels recovered", "AUC", "rows heard of", "baseline"]
    bench.grids.append(Grid("Labels from zeroth-order differences", heads, attacks))


def passive_attack(transcript: Transcript, run: Finished, tables: Tables) -> Recovery:
    """What a client that only took part works out from what it heard."""
    return judge(passive(transcript, run.plan, tables.train[CLIENT].rows), _labels(tables))


def probe_run(job: Job, tables: Tables) -> Recovery:
    """What a client works out in the same run if it asks what it wants to know."""
    (plan, _), n = plan_for(job, tables), tables.train[CLIENT].rows
    private = plan.privacy.mechanism != "none"
    vectors = plan.settings.questions.directions + 1
    probe = Probe(BatchRows(passes_of(plan, CLIENT, n)), n, vectors, 1 if private else DIGITS)
    transcript = Transcript(CLIENT)
    run_tables(job, replace(tables, models={CLIENT: probe}), tap=transcript.tap)
    return judge(read_off(probe, transcript, plan), _labels(tables))


def job_for(
    tables: Tables, batch: int, epochs: int, K: int, epsilon: float | None, step: float | str = "auto"
) -> Job:
    """AsyREVEL with K directions, and with private replies if there is an epsilon."""
    terms = {} if epsilon is None else {"mechanism": "scalar", "epsilon": epsilon}
    train = {
        "loss": "logistic",
        "regularizer": "nonconvex",
        "batch": batch,
        "epochs": epochs,
        "tolerance": 0.0,
        "step": step,
    }
    data = {"train": tables.dataset, "parties": len(tables.train), "active": 1}
    sections = {
        "train": {**train, "evaluate_every": 0},
        "cascade": {"directions": K},
        "privacy": terms,
        "secure": {"labels": "clear"},
    }
    return job_from({"algorithm": "asyrevel-gau", "compare": False, "data": data, **sections})


def _labels(tables: Tables) -> Floats:
    return label_of(tables.train, tables.active[0])


def _row(found: Recovery) -> list[float]:
    return [found.accuracy, found.auc, found.covered, found.baseline]
