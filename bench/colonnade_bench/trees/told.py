"""What owners tell of histograms: what it gives away of single rows, what it costs in accuracy, and bytes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from msgspec import structs

from colonnade.attacks.case import Case
from colonnade.attacks.registry import ATTACKS
from colonnade.attacks.transcript import Transcript
from colonnade.attacks.tree_bins import bins_from_small_sums
from colonnade.attacks.verdict import on_bins
from colonnade.conversations.boost import veiled
from colonnade.data.table import Table
from colonnade.job import job_from
from colonnade.result import Moment
from colonnade.run.federate import Tables, run_tables
from colonnade_bench.trees.accuracy import dealt

ENDS = ("colonnade.conversations.boost.column_owner.pays", "colonnade.conversations.boost.label_holder.pays")
TREES, PARTIES = 100, 3
SMALL_SUMS = next(attack for attack in ATTACKS if attack.name == "bins from small sums")
Cells = list[str]


def bins_found(rows: int, trees: int, bits: int) -> Cells:
    """How many of others' bins the label holder gets right, row by row."""
    tables, _ = dealt("uci-credit", 0, rows)
    me, heard = tables.active[0], Transcript(tables.active[0])
    done = run_tables(_job(trees, {"bits": bits}, "clear", len(tables.train)), tables, tap=heard.tap)
    case = Case(done.plan, me, heard, tables.train[me], done.shares[me], {}, lambda model: heard)
    found = on_bins(SMALL_SUMS, case, bins_from_small_sums(case), tables.train)
    return [f"{rows:,}", str(trees), str(bits), f"{found.value:.1%}", f"{found.baseline:.1%}"]


def quality(name: str, splits: Sequence[int], quick: bool) -> Cells:
    """AUC of test rows with exact histograms, and with what owners tell by default."""
    cells = [name]
    for bits in (0, 6):
        found = []
        for split in splits:
            tables, _ = dealt(name, split, 2000 if quick else None)
            job = _job(10 if quick else TREES, {"bits": bits}, "clear", len(tables.train))
            found.append(run_tables(job, tables).result.metrics["test_auc"])
        cells.append(f"{np.mean(found):.4f}")
    return cells


def bytes_of(rows: int, columns: int, bins: int, *, veil: bool) -> Cells:
    """Megabytes of a blind run of 100 trees, of which few are grown, and processor time of a tree."""
    when, sent, few = [], [], 6

    def note(moment: Moment) -> None:
        when.append(time.process_time())
        sent.append(moment.bytes / 1e6)

    def rule(rules: Any, count: int, trees: int, grid: Any) -> bool:
        return veil and veiled.pays(rules, count, TREES, grid)

    job = _job(few, {"max_bin": bins}, "blind", PARTIES)
    job = structs.replace(job, train=structs.replace(job.train, evaluate_every=few // 2))
    with patch(ENDS[0], rule), patch(ENDS[1], rule):
        run_tables(job, _made_up(rows, columns, bins), progress=note)
    tree = (sent[1] - sent[0]) / (few - few // 2)
    once = max(0.0, sent[0] - tree * (few // 2))
    seconds = (when[1] - when[0]) / (few - few // 2)
    way = "veiled" if veil else "orders"
    sizes = f"{once:.0f}", f"{tree:.2f}", f"{once + TREES * tree:.0f}", f"{seconds:.2f}"
    return [f"{rows:,} x {columns}", str(bins), way, *sizes]


def _job(trees: int, how: dict[str, Any], labels: str, parties: int) -> Any:
    plain = {
        "algorithm": "secureboost",
        "data": {"train": "dealt", "parties": parties},
        "secure": {"labels": labels},
        "train": {"epochs": trees, "evaluate_every": 0},
        "trees": how,
    }
    return structs.replace(job_from(plain), compare=False)


def _made_up(rows: int, columns: int, bins: int) -> Tables:
    """Columns of numbers or, of two bins, of yes and no, dealt to three parties of which one holds labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    if bins == 2:
        X = (rng.random((rows, columns)) < rng.uniform(0.01, 0.3, columns)).astype(np.float64)
    score = X[:, :20].sum(axis=1) + rng.standard_normal(rows)
    y = np.where(score > np.median(score), 1.0, -1.0)
    train = {}
    for number, block in enumerate(np.array_split(np.arange(columns), PARTIES)):
        names, own = tuple(f"c{j}" for j in block), np.ascontiguousarray(X[:, block])
        train[f"party-{number}"] = Table(f"party-{number}", names, own, y if number == 0 else None)
    return Tables("made up", train, None, ("party-0",))
