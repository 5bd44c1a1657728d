"""Each protection of an encrypted run is there for an attack that works without it and fails with it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.oracles.tables import random_job

from colonnade.attacks import encrypted
from colonnade.attacks.audit import audit_run
from colonnade.attacks.case import Case
from colonnade.attacks.lattice import reduced
from colonnade.conversations.linear.encrypted import home_columns as own_columns
from colonnade.conversations.linear.noisy import rare as rare
from colonnade.conversations.own_noise import OwnNoise
from colonnade.data.table import Table
from colonnade.findings import Finding
from colonnade.run.federate import Tables, plan_for
from colonnade.run.gather_result import DataFacts
from colonnade.run.world import Launch
from colonnade.secure.lattice.ciphertexts import SecretKey

ROWS, LONELY = 1500, 200


def setting(lonely: int = 0) -> Tables:
    """Labels that P's columns say something of; and columns of P with one row each."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((ROWS, 6))
    y = np.where(X @ rng.standard_normal(6) + 2 * rng.standard_normal(ROWS) > 0, 1.0, -1.0)
    alone = np.zeros((ROWS, lonely))
    alone[np.arange(lonely), np.arange(lonely)] = 1.0
    own = np.hstack([X[:, 3:], alone])
    names = tuple(f"p{j}" for j in range(own.shape[1]))
    train = {
        "party0": Table("party0", ("a", "b", "c"), X[:, :3].copy(), y),
        "party1": Table("party1", names, own),
    }
    return Tables("random", train, None, ("party0",))


def found_in(tables: Tables) -> tuple[dict[str, Finding], Any]:
    """What every attack of an audit found, and P's first gradient's theta."""
    job = random_job(tables, "lbfgs", train={"epochs": 4, "l2": 1e-3}, secure={"labels": "blind"})
    plan, data = plan_for(job, tables)
    done = audit_run(job, DataFacts("random"), Launch(plan, data))
    return {f"{each.by}: {each.attack}": each for each in done.findings}, done


def area(finding: Finding) -> float:
    return float(finding.success.partition("AUC ")[2].split()[0])


def test_with_all_protections_neither_party_reads_the_other() -> None:
    found, _ = found_in(setting())
    assert abs(area(found["party1: labels from ciphertexts"]) - 0.5) < 0.08
    weights = area(found["party1: labels from its own weights"])
    assert area(found["party1: labels from its gradients"]) < weights + 0.05  # its columns say as much
    assert not found["party0: columns from its gradients"].found


def test_without_encryption_theta_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    making = SecretKey.__init__

    def empty(self: Any, *args: Any) -> None:
        making(self, *args)
        self._values = [np.zeros_like(each) for each in self._values]

    monkeypatch.setattr(SecretKey, "__init__", empty)
    found, _ = found_in(setting())
    assert area(found["party1: labels from ciphertexts"]) == 1.0


@pytest.mark.parametrize(
    ("rule", "noise", "read"), [(False, False, True), (False, True, False), (True, False, False)]
)
def test_columns_of_single_rows_are_read_without_the_rule_and_noise(
    monkeypatch: pytest.MonkeyPatch, rule: bool, noise: bool, read: bool
) -> None:
    """Of the rows that have a column of their own; their other columns say little."""
    seen: list[Any] = []
    guess = encrypted.least_theta

    def noted(case: Case, gradient: Any) -> Any:
        theta = guess(case, gradient)
        if case.party == "party1":
            seen.append(theta)
        return theta

    monkeypatch.setattr(encrypted, "least_theta", noted)
    if not rule:
        monkeypatch.setattr(rare, "LIMIT", 2.0)
        for module in (own_columns, encrypted):
            monkeypatch.setattr(module, "steady", lambda X: rare.steady(X, 2.0))
    if not noise:
        silent = OwnNoise.gaussian

        def quiet(self: Any, ring: Any, codes: Any, rows: float, *rest: Any) -> Any:
            return silent(self, ring, codes, 0.0, *rest)

        monkeypatch.setattr(OwnNoise, "gaussian", quiet)
    tables = setting(LONELY)
    found_in(tables)
    y = tables.train["party0"].y
    assert y is not None
    auc = float(roc_auc_score(y[:LONELY] > 0, -seen[0][:LONELY]))
    assert (auc == 1.0) if read else (auc < 0.95)


def knapsack(X: Any, told: Any) -> Any:
    """The labels, 0 or 1, of which the columns' sums are told: a short vector of a lattice."""
    rows = len(X)
    heavy = 2**40
    basis = [
        [2 * int(i == j) for j in range(rows)] + [0] + [heavy * int(v) for v in X[i]] for i in range(rows)
    ]
    basis.append([-1] * rows + [1] + [-heavy * int(v) for v in told])
    for vector in reduced(basis):
        bits = np.array(vector[:rows])
        if not any(vector[rows + 1 :]) and abs(vector[rows]) == 1 and set(np.abs(bits).tolist()) == {1}:
            return (bits * vector[rows] + 1) // 2
    return None


@pytest.mark.parametrize(("noise", "solved"), [(0.0, True), (3.0, False)])
@pytest.mark.parametrize(
    ("rows", "columns", "usual"), [(40, 20, 40), pytest.param(80, 24, 128, marks=pytest.mark.slow)]
)
def test_the_first_gradient_is_a_knapsack_in_the_labels_unless_it_has_noise(
    noise: float, solved: bool, rows: int, columns: int, usual: int
) -> None:
    """Columns of as many bits as a run gives them at the most; noise is that of rows, as a run has it."""
    rng = np.random.default_rng(0)
    X = np.rint(usual * rng.standard_normal((rows, columns))).astype(np.int64)
    y = rng.integers(0, 2, rows)
    told = X.T @ y + np.rint(noise * np.abs(X).max(axis=0) * rng.standard_normal(columns)).astype(np.int64)
    guess = knapsack(X, told)
    assert (guess is not None and np.array_equal(guess, y)) == solved


def test_a_knapsack_without_noise_is_solved_from_few_columns() -> None:
    rng = np.random.default_rng(1)
    X = np.rint(40 * rng.standard_normal((24, 8))).astype(np.int64)
    y = rng.integers(0, 2, 24)
    np.testing.assert_array_equal(knapsack(X, X.T @ y), y)
    assert all(a is not b for a, b in pairwise(X))
