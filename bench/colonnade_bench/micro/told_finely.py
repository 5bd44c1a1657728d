"""What rounding and noise of what is told cost: quality on test rows with and without, bytes and time.

    python -m colonnade_bench.micro.told_finely [--set uci-credit] [--splits 3]

Each path as it comes between companies, beside the same without: weights of blind runs as exact as they are
computed, histograms of trees without noise or joined bins, gradients of two parties with the least noise that
a job may have, counts behind weight of evidence without noise. Test AUC and accuracy in points of a hundred.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from colonnade.conversations.predict import Holding
from colonnade.errors import DataError
from colonnade.job import job_from
from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of
from colonnade.run import inprocess
from colonnade.run.federate import prepare
from colonnade.run.launch import launch
from colonnade.run.party import Work
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import compose

Sections = Mapping[str, Any]
BLIND: Sections = {"secure": {"labels": "blind"}}
WOE: Sections = {"parties": 4, "algorithm": "lbfgs", "secure": {"labels": "clear"}, "woe": True}
PATHS: dict[str, tuple[Sections, Sections, Sections]] = {
    "`vfb2-svrg`, blind, weights as told": (
        {"algorithm": "vfb2-svrg", "parties": 4, **BLIND},
        {"apart": True},
        {"apart": False},
    ),
    "`secureboost`, blind": (
        {"algorithm": "secureboost", "parties": 4, **BLIND},
        {},
        {"trees": {"bits": 0}},
    ),
    "`lbfgs`, two parties": (
        {"algorithm": "lbfgs", "parties": 2, **BLIND},
        {},
        {"secure": {"labels": "blind", "noise": 0.25}},
    ),
    "`lbfgs` on weight of evidence": (WOE, {"table": {"noise": 2.0}}, {}),
}


def trained(name: str, split: int, terms: Sections) -> tuple[float, float, float, float]:
    """Return test AUC and accuracy in points, megabytes, and seconds of processor time of a run."""
    data = {"train": name, "parties": terms["parties"], "active": 1}
    if terms.get("woe"):
        data["woe"] = True
    plain = {"algorithm": terms["algorithm"], "world": "local", "seed": split, "compare": False, "data": data}
    for section in ("secure", "trees"):
        if section in terms:
            plain[section] = terms[section]
    if "table" in terms:
        plain["woe"] = terms["table"]
    began = time.process_time()
    apart = partial(Work, apart=bool(terms.get("apart")))
    with mock.patch.object(inprocess, "Work", apart):
        _, order = prepare(compose(job_from(plain)))
        order = order.ready()
        shares = launch(order)
    spent = time.process_time() - began
    plan, kind = order.plan, CONVERSATIONS[order.plan.conversation].share
    tables = {party: each.prepare().test or each.prepare().train for party, each in order.data.items()}
    held = {p: Holding(plan, p, shares[p].weights, tables[p].X) for p in plan.parties}
    truth = tables[plan.evaluator].labels
    if truth is None:
        raise DataError(f"{plan.evaluator} holds no label")
    found = metrics_of(LOSSES[plan.objective.loss], kind.together(held), truth)
    sent = sum(share.traffic.bytes_sent for share in shares.values()) / 1e6
    return 100 * found["test_auc"], 100 * found["test_accuracy"], sent, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--set", default="uci-credit")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[])
    given = parser.parse_args()
    print("| path | AUC | without | accuracy | without | MB | without | CPU s | without |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (common, told, exact) in PATHS.items():
        if given.only and not any(word in name for word in given.only):
            continue
        runs = [
            np.mean([trained(given.set, split, {**common, **terms}) for split in range(given.splits)], axis=0)
            for terms in (told, exact)
        ]
        formats = ("{:.2f}", "{:.2f}", "{:.1f}", "{:.1f}")
        cells = [f.format(run[k]) for k, f in enumerate(formats) for run in runs]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
