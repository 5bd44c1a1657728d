"""What parties can find out while trees grow: an owner about labels, the label holder about columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import structs

from colonnade.attacks.case import Case
from colonnade.attacks.transcript import Transcript
from colonnade.attacks.tree_columns import columns_from_histograms
from colonnade.attacks.tree_labels import (
    labels_from_gradients,
    labels_from_nodes,
    nodes_seen,
    with_known_labels,
)
from colonnade.job import job_from
from colonnade.metrics import auc
from colonnade.run.federate import Tables, run_tables
from colonnade_bench.trees.accuracy import dealt

ROUNDS, KNOWN, DRAWS = 5, 40, 10
Cells = list[str]


def labels_at_an_owner(rows: int) -> list[Cells]:
    """The AUC of an owner's guesses at labels, from clear and from blind runs."""
    tables, _ = dealt("uci-credit", 0, rows)
    found: dict[str, Cells] = {}
    for labels in ("clear", "blind"):
        owner = [party for party in tables.train if party not in tables.active][-1]
        case = _case(tables, owner, labels, ROUNDS, {"max_depth": 6, "max_bin": 32})
        y = tables.train[tables.active[0]].y
        if y is None:
            raise RuntimeError("the label holder has labels")
        ways = nodes_seen(case)
        found.setdefault("gradients", []).append(_cell(labels_from_gradients(case).scores, y))
        found.setdefault("nodes alone", []).append(_cell(labels_from_nodes(case).scores, y))
        knowing = [_knowing(ways, case.own.X, y, draw) for draw in range(DRAWS)]
        for place, name in enumerate(("nodes", "own columns")):
            mean = float(np.mean([each[place] for each in knowing]))
            found.setdefault(f"{name}, and {KNOWN} known labels", []).append(f"{mean:.3f}")
    return [[name, *cells] for name, cells in found.items()]


def columns_at_the_label_holder(rows: int, rounds: int) -> Cells:
    """How near the label holder comes to the bins of others' columns: correlations with the columns."""
    tables, _ = dealt("uci-credit", 0, rows)
    case = _case(tables, tables.active[0], "clear", rounds, {"max_depth": 4, "max_bin": 16})
    guess, near = columns_from_histograms(case).guess, []
    for party, columns in guess.items():
        X = np.argsort(np.argsort(np.asarray(tables.train[party].X), axis=0), axis=0)  # bins are of ranks
        near += [abs(float(np.corrcoef(columns[:, j], X[:, j])[0, 1])) for j in range(X.shape[1])]
    known = np.array([each for each in near if np.isfinite(each)])
    return [f"{rows:,}", str(rounds), f"{np.median(known):.2f}", f"{(known > 0.8).sum()} of {len(known)}"]


def _case(tables: Tables, party: str, labels: str, rounds: int, trees: dict[str, int]) -> Case:
    """One party after a run."""
    job = job_from(
        {
            "algorithm": "secureboost",
            "data": {"train": "dealt", "parties": len(tables.train)},
            "secure": {"labels": labels},
            "train": {"epochs": rounds, "evaluate_every": 0},
            "trees": trees,
        }
    )
    transcript = Transcript(party)
    done = run_tables(structs.replace(job, compare=False), tables, tap=transcript.tap)
    widths = {name: table.width for name, table in tables.train.items()}
    return Case(
        done.plan,
        party,
        transcript,
        tables.train[party],
        done.shares[party],
        widths,
        lambda model: transcript,
    )


def _cell(scores: Any, y: Any) -> str:
    """An AUC, whichever way round the guess is, which nobody without a label knows."""
    found = auc(scores, y > 0)
    return f"{max(found, 1 - found):.3f}"


def _knowing(ways: list[Any], X: Any, y: Any, draw: int) -> tuple[float, float]:
    """The AUC on all other rows of who knows some labels: by nodes, and by the own columns alone."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    order = np.random.default_rng(draw).permutation(len(y))
    known, rest = order[:KNOWN], order[KNOWN:]
    own = StandardScaler().fit_transform(np.nan_to_num(np.asarray(X)))
    model = LogisticRegression().fit(own[known], y[known])
    by_nodes = with_known_labels(ways, known, y)
    return auc(by_nodes[rest], y[rest] > 0), auc(model.decision_function(own[rest]), y[rest] > 0)
