"""What owners tell of histograms: what it gives away of single rows, what it costs in accuracy, and bytes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
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
EXACT = "exact"
BITS: dict[str, Any] = {"bits": 6, "bin_rows": 0, "node_rows": 0, "noise": 0.0}
WAYS: dict[str, dict[str, Any]] = {
    EXACT: {"bits": 0},
    "few bits alone": BITS,
    "few bits, joined bins": BITS | {"bin_rows": 10},
    "few bits, no small nodes": BITS | {"node_rows": 40},
    "few bits, noise": BITS | {"noise": 0.5},
    "all but joined bins": {"bin_rows": 0},
    "all but small nodes": {"node_rows": 0},
    "all but noise": {"noise": 0.0},
    "all, noise 0.125": {"noise": 0.125},
    "all, as they come": {},
}
"""What owners tell: all of it exactly, one or two of the means against reading rows, and all of them."""
TOLD_SETS: dict[str, tuple[range, list[int]]] = {
    "uci-credit": (range(10), [30, TREES]),
    "phishing": (range(10), [TREES]),
    "givemesomecredit": (range(10), [TREES]),
    "a9a": (range(1), [TREES]),  # it has test rows of its own
}
"""Splits, and how many trees there are."""
Cells = list[str]


def bins_found(rows: int, trees: int, told: Mapping[str, Any], seed: int = 0) -> tuple[float, float]:
    """How many of others' bins the label holder gets right, row by row, and how many by guessing."""
    tables, _ = dealt("uci-credit", seed, rows)
    me, heard = tables.active[0], Transcript(tables.active[0])
    done = run_tables(_job(trees, told, "clear", len(tables.train)), tables, tap=heard.tap)
    case = Case(done.plan, me, heard, tables.train[me], done.shares[me], {}, lambda model: heard)
    found = on_bins(SMALL_SUMS, case, bins_from_small_sums(case), tables.train)
    return found.value or 0.0, found.baseline or 0.0


def right(rows: int, trees: int, way: str) -> Cells:
    """A line of what the label holder gets right with one way of telling."""
    value, baseline = bins_found(rows, trees, WAYS[way])
    return [f"{rows:,}", str(trees), way, f"{value:.1%}", f"{baseline:.1%}"]


def quality(name: str, splits: Sequence[int], rounds: int, most: int | None = None) -> list[Cells]:
    """Test AUC of every way of telling in points, and how much more AUC and accuracy it has than exact
    histograms: splits are paired, and the standard error of the mean of differences stands beside it."""
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for split in splits:
        tables, _ = dealt(name, split, most)
        for way, told in WAYS.items():
            metrics = run_tables(_job(rounds, told, "clear", len(tables.train)), tables).result.metrics
            found[way].append((metrics["test_auc"], metrics["test_accuracy"]))
    cells = []
    for way, pairs in found.items():
        points, exact = 100 * np.array(pairs), 100 * np.array(found[EXACT])
        more, count = points - exact, len(pairs)
        error = more.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.full(2, np.nan)
        beside = [f"{m:+.2f} ({e:.2f})" for m, e in zip(more.mean(axis=0), error, strict=True)]
        cells.append([name, str(count), str(rounds), way, f"{points[:, 0].mean():.2f}", *beside])
    return cells


def bytes_of(data: str | tuple[int, int], bins: int, *, veil: bool) -> Cells:
    """Megabytes of a blind run of 100 trees, of which few are grown, and processor time of a tree: of a known
    set, or of made-up rows and columns."""
    tables = dealt(data, parties=PARTIES)[0] if isinstance(data, str) else _made_up(*data, bins)
    when, sent, few = [], [], 6

    def note(moment: Moment) -> None:
        when.append(time.process_time())
        sent.append(moment.bytes / 1e6)

    def rule(rules: Any, count: int, trees: int, grid: Any) -> bool:
        return veil and veiled.pays(rules, count, TREES, grid)

    job = _job(few, {"max_bin": bins}, "blind", PARTIES)
    job = structs.replace(job, train=structs.replace(job.train, evaluate_every=few // 2))
    with patch(ENDS[0], rule), patch(ENDS[1], rule):
        run_tables(job, tables, progress=note)
    tree = (sent[1] - sent[0]) / (few - few // 2)
    once = max(0.0, sent[0] - tree * (few // 2))
    seconds = (when[1] - when[0]) / (few - few // 2)
    way = "veiled" if veil else "orders"
    sizes = f"{once:.0f}", f"{tree:.2f}", f"{once + TREES * tree:.0f}", f"{seconds:.2f}"
    name = data if isinstance(data, str) else f"{data[0]:,} x {data[1]}"
    return [name, str(bins), way, *sizes]


def _job(trees: int, how: Mapping[str, Any], labels: str, parties: int) -> Any:
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
