"""The label holder's attacks on columns: it finds them in the scores of enough measurements, and says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.oracles.tables import random_job, random_tables

from colonnade.attacks.audit import audit_run
from colonnade.attacks.lattice import orthogonal, reduced, short_columns
from colonnade.attacks.registry import ATTACKS
from colonnade.conversations.blind.columns import Turn
from colonnade.findings import Finding
from colonnade.run.federate import Tables, plan_for
from colonnade.run.gather_result import DataFacts
from colonnade.run.world import Launch

SPACE, EXACT = "columns from the space of scores", "columns from exact scores"


def yes_no(tables: Tables) -> Tables:
    """The tables with every second column of the others cut to two values."""

    def cut(X: Any) -> Any:
        X = X.copy()
        X[:, ::2] = X[:, ::2] > 0.7
        return X

    train = {p: t if p == "party0" else replace(t, X=cut(t.X)) for p, t in tables.train.items()}
    return replace(tables, train=train)


def of_one_owner(tables: Tables) -> Tables:
    """The tables with all columns of party2 at party1: party2 is a neutral helper."""
    train, owner, helper = tables.train, tables.train["party1"], tables.train["party2"]
    joined = replace(owner, columns=owner.columns + helper.columns, X=np.hstack([owner.X, helper.X]))
    none = replace(helper, columns=(), X=helper.X[:, :0])
    return replace(tables, train=train | {"party1": joined, "party2": none})


def found_in(tables: Tables, attack: str, epochs: int, seed: int = 0, **secure: Any) -> Finding:
    train = {"epochs": epochs, "batch": 32, "step": 0.3, "tolerance": 0.0}
    job = structs.replace(random_job(tables, "vfb-sgd", train=train, secure=secure, seed=seed), compare=False)
    plan, data = plan_for(job, tables)
    tried = tuple(each for each in ATTACKS if each.name == attack)
    findings = audit_run(job, DataFacts("random"), Launch(plan, data), attacks=tried).findings
    return next(each for each in findings if each.by == "party0")


@pytest.mark.parametrize("labels", ["clear", "blind"])
def test_yes_no_columns_are_found_once_there_are_as_many_measurements_as_columns(labels: str) -> None:
    tables = yes_no(random_tables(parties=3, active=1, rows=400, columns=12))
    enough = found_in(tables, SPACE, 14, labels=labels)
    assert "4 of 4 yes/no columns exactly" in enough.success
    assert enough.found
    assert "0 of 4 yes/no columns exactly" in found_in(tables, SPACE, 2, labels=labels).success


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("turned", [True, False])
def test_whole_numbers_give_normal_columns_away_unless_they_are_turned(
    turned: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = of_one_owner(random_tables(parties=3, active=1, rows=300, columns=15, seed=seed))
    if not turned:
        monkeypatch.setattr(Turn, "secret", lambda width, key: Turn.none(width))
    found = found_in(tables, EXACT, 12, seed, labels="blind", helper="party2")
    assert "of 10 columns" in found.success
    assert found.value == (0.0 if turned else 1.0)


@given(st.integers(1, 140), st.binary(min_size=32, max_size=32))
@settings(max_examples=25, deadline=None)
def test_a_rotation_keeps_inner_products_and_turns_weights_back(width: int, key: bytes) -> None:
    turn, rng = Turn.secret(width, key), np.random.default_rng(width)
    X, w = rng.standard_normal((5, width)), rng.standard_normal(width)
    turned = turn.turned(X, 0, 5)
    np.testing.assert_allclose(turned @ turned.T, X @ X.T, atol=1e-9)
    np.testing.assert_allclose(X @ turn.back(w), turned @ w, atol=1e-9)


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_a_reduced_basis_spans_the_same_lattice_and_is_short(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given_basis = rng.integers(-50, 50, (size, size)) + 200 * np.eye(size, dtype=np.int64)
    basis = np.array(reduced(given_basis.tolist()))
    volume = abs(round(float(np.linalg.det(given_basis))))
    assert abs(round(float(np.linalg.det(basis)))) == volume
    whole = np.linalg.solve(given_basis.T.astype(float), basis.T.astype(float))
    np.testing.assert_allclose(whole, np.rint(whole), atol=1e-6)
    bound = 2 ** ((size - 1) / 4) * volume ** (1 / size)  # what the reduction promises of its first vector
    assert np.linalg.norm(basis[0]) <= bound + 1e-9


def test_what_is_orthogonal_twice_is_all_whole_numbers_of_the_space() -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(-4000, 4000, (40, 3))
    columns = 7 * X @ rng.integers(-(2**30), 2**30, (3, 3))
    rows = [[int(value) for value in row] for row in columns[:9]]
    assert not np.any(np.array(orthogonal(rows, 6), dtype=object).T @ columns[:9].astype(object))
    found = short_columns(columns)
    alike = np.abs(np.corrcoef(found.T, X.T)[:3, 3:]).max(axis=0)
    np.testing.assert_allclose(alike, 1.0, atol=1e-6)
