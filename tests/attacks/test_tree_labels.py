"""An owner reads labels off clear gradients, nothing off blind ones, and a little off the nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.oracles.tables import random_job, random_tables

from colonnade.arrays import Floats
from colonnade.attacks.case import Case
from colonnade.attacks.registry import ATTACKS
from colonnade.attacks.transcript import Transcript
from colonnade.attacks.tree_columns import columns_from_histograms
from colonnade.attacks.tree_labels import (
    labels_from_gradients,
    labels_from_nodes,
    nodes_seen,
    with_known_labels,
)
from colonnade.attacks.zeroth_order import judge
from colonnade.metrics import auc
from colonnade.run.federate import run_tables
from colonnade.secure.lattice.arithmetic import code
from colonnade.trees.tree import Forest, Splits

ROWS = 1500


def case_of(
    labels: str, algorithm: str = "secureboost", parties: int = 3, **sections: Any
) -> tuple[Case, Floats, Any]:
    setting = random_tables(parties=parties, active=1, rows=ROWS)
    me = f"party{parties - 1}"
    trees = {"max_depth": 4, "max_bin": 16}
    job = random_job(
        setting,
        algorithm,
        world="local",
        train={"epochs": 6},
        secure={"labels": labels},
        trees=trees,
        **sections,
    )
    transcript = Transcript(me)
    done = run_tables(structs.replace(job, compare=False), setting, tap=transcript.tap)
    y = setting.train["party0"].y
    assert y is not None
    widths = {party: table.width for party, table in setting.train.items()}
    own, share = setting.train[me], done.shares[me]
    case = Case(done.plan, me, transcript, own, share, widths, lambda model: transcript)
    return case, y, (done, setting)


def test_clear_gradients_are_labels() -> None:
    case, y, _ = case_of("clear")
    found = judge(labels_from_gradients(case).scores, y)
    assert found.accuracy == 1.0
    assert found.covered == 1.0


def test_encrypted_gradients_are_noise_unless_the_key_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    case, y, _ = case_of("blind", parties=2)
    assert abs(auc(labels_from_gradients(case).scores, y > 0) - 0.5) < 0.05
    assert nodes_seen(case)

    def zeros(words: Any, out: Any, p: int) -> None:
        out[:] = 0

    monkeypatch.setattr(code(), "ternary", zeros)
    case, y, _ = case_of("blind", parties=2)
    assert judge(labels_from_gradients(case).scores, y).accuracy == 1.0


def test_blind_gradients_are_noise() -> None:
    case, y, _ = case_of("blind")
    found = judge(labels_from_gradients(case).scores, y)
    assert abs(found.auc - 0.5) < 5 * np.sqrt(1 / (12 * ROWS / 2))


@pytest.mark.parametrize("labels", ["clear", "blind"])
def test_the_nodes_that_are_heard_are_those_of_the_trees(labels: str) -> None:
    case, _, (done, setting) = case_of(labels)
    forest = Forest.from_arrays(done.shares["party0"].weights)
    left = {
        number: Splits.from_arrays(done.shares[party].weights).left(setting.train[party].X)
        for number, party in enumerate(done.plan.parties)
    }
    for tree, way in zip(forest.trees, nodes_seen(case), strict=True):
        ends = _leaves(tree, left)
        # rows of one leaf share the last node that was heard, and a node has more leaves than one
        for leaf in np.unique(ends):
            assert len(np.unique(way[ends == leaf])) == 1
        assert 1 < len(np.unique(way)) < len(np.unique(ends))


def _leaves(tree: Any, left: Any) -> Any:
    from colonnade.trees.tree import leaves

    return leaves(tree, left, ROWS)


def test_nodes_say_something_of_labels_though_gradients_say_nothing() -> None:
    case, y, _ = case_of("blind")
    known = np.arange(0, ROWS, ROWS // 40)
    rest = np.setdiff1d(np.arange(ROWS), known)
    score = with_known_labels(nodes_seen(case), known, y)
    assert auc(score[rest], y[rest] > 0) > 0.65
    alone = judge(labels_from_nodes(case).scores, y)
    assert max(alone.auc, 1 - alone.auc) > 0.6


def test_an_audit_knows_them() -> None:
    case, _, _ = case_of("blind")
    applying = {attack.name for attack in ATTACKS if attack.applies(case)}
    assert applying == {"labels from gradients of trees", "labels from nodes of trees"}


def test_the_label_holder_reads_columns_off_histograms() -> None:
    setting = random_tables(parties=3, active=1, rows=400)
    sections: dict[str, Any] = {"train": {"epochs": 30}, "secure": {"labels": "clear"}}
    sections |= {"trees": {"max_depth": 4, "max_bin": 16, "bits": 0}}
    job = random_job(setting, "secureboost", world="local", **sections)
    transcript = Transcript("party0")
    done = run_tables(structs.replace(job, compare=False), setting, tap=transcript.tap)
    own, share = setting.train["party0"], done.shares["party0"]
    case = Case(done.plan, "party0", transcript, own, share, {}, lambda model: transcript)
    assert any(attack.name == "columns from histograms" and attack.applies(case) for attack in ATTACKS)
    found = columns_from_histograms(case)
    for party in ("party1", "party2"):
        X = np.asarray(setting.train[party].X)
        for column in range(X.shape[1]):
            assert abs(np.corrcoef(found.guess[party][:, column], X[:, column])[0, 1]) > 0.8
