"""What audits make of `lbfgs` with dealers: with its protections, and with one of them off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import random_job

from colonnade.attacks.audit import audit_run
from colonnade.conversations.linear.noisy import whole_columns as whole_columns
from colonnade.conversations.own_noise import OwnNoise
from colonnade.data.table import Table
from colonnade.findings import Finding
from colonnade.run.federate import Tables, plan_for
from colonnade.run.gather_result import DataFacts
from colonnade.run.world import Launch
from colonnade.secure.product import Lot

ROWS = 1500


def setting(lonely: int = 0) -> Tables:
    """Labels that columns say little of, yes/no columns among them; and columns of one row each at party1."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((ROWS, 9)) < 0.4, 1.0, 0.0)
    y = np.where(X @ rng.standard_normal(9) + 3 * rng.standard_normal(ROWS) > 0, 1.0, -1.0)
    alone = np.zeros((ROWS, lonely))
    alone[np.arange(lonely), np.arange(lonely)] = 1.0
    blocks = [X[:, :3], np.hstack([X[:, 3:6], alone]), X[:, 6:]]
    train = {
        f"party{k}": Table(f"party{k}", tuple(f"c{k}_{j}" for j in range(own.shape[1])), own.copy())
        for k, own in enumerate(blocks)
    }
    train["party0"] = Table("party0", train["party0"].columns, blocks[0].copy(), y)
    return Tables("random", train, None, ("party0",))


def found_in(tables: Tables, **secure: Any) -> dict[str, Finding]:
    job = random_job(tables, "lbfgs", train={"epochs": 12, "l2": 1e-3}, secure={"labels": "blind", **secure})
    plan, data = plan_for(job, tables)
    done = audit_run(job, DataFacts("random"), Launch(plan, data))
    return {f"{each.by}: {each.attack}": each for each in done.findings}


def area(finding: Finding) -> float:
    return float(finding.success.partition("AUC ")[2].split()[0])


@pytest.mark.parametrize("scores", ["open", "hidden"])
def test_with_its_protections_no_owner_reads_labels(scores: str) -> None:
    found = found_in(setting(), scores=scores)
    for party in ("party1", "party2"):
        assert abs(area(found[f"{party}: labels from veiled words"]) - 0.5) < 0.08
        weights = area(found[f"{party}: labels from its own weights"])
        assert area(found[f"{party}: labels from its gradients"]) < weights + 0.05
    reads = found["party0: columns from the space of scores"].found
    assert not reads or scores == "open"  # as many passes as columns tell the space that they span
    derived = [each for name, each in found.items() if name.endswith("labels from products, together")]
    assert derived
    assert derived[0].success == "dL/dz of every row"


def test_without_masks_theta_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = Lot.masks
    monkeypatch.setattr(Lot, "masks", lambda lot, streams: [each * 0 for each in masks(lot, streams)])
    assert area(found_in(setting())["party1: labels from veiled words"]) > 0.99


def test_without_the_rule_of_rare_columns_and_noise_their_rows_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first gradient of a column with one row is that row's theta."""
    usual = area(found_in(setting(lonely=700))["party1: labels from its gradients"])
    monkeypatch.setattr(whole_columns, "steady", lambda X: np.arange(X.shape[1]))
    monkeypatch.setattr(OwnNoise, "words", lambda self, sizes, *what: np.zeros(len(sizes), dtype=np.int64))
    read = area(found_in(setting(lonely=700))["party1: labels from its gradients"])
    assert read > usual + 0.15
