"""What keeps scores and weights of two parties apart: each is there for an attack that works without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.attacks.test_encrypted import area, setting
from tests.conversations.encrypted.test_parted import NEVER, between
from tests.conversations.encrypted.test_train import fit, made
from tests.oracles.tables import random_job

from colonnade.attacks.audit import audit_run
from colonnade.conversations.linear.encrypted.encrypted_products import answer_rows, ask_rows
from colonnade.conversations.linear.noisy.product_forms import FORMS, Reaches, code_of
from colonnade.conversations.linear.parted.parted_scores import PartedScorer
from colonnade.conversations.linear.parties import parted
from colonnade.data.table import Table
from colonnade.findings import Finding
from colonnade.run.federate import plan_for
from colonnade.run.gather_result import DataFacts
from colonnade.run.world import Launch
from colonnade.secure.lattice.ciphertexts import SecretKey, centred
from colonnade.secure.lattice.parameters import LEAN
from colonnade.secure.lattice.source import Source

ROWS = 600


def unmask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what hides answers be 0 for the rest of a test."""
    drawn = Source.uniform

    def nothing(self: Source, out: Any, below: int) -> Any:
        found = drawn(self, out, below)
        return np.zeros_like(found) if below == LEAN.plain else found

    monkeypatch.setattr(Source, "uniform", nothing)


def empty_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all secret keys be 0 for the rest of a test."""
    making = SecretKey.__init__

    def nothing(self: Any, *args: Any) -> None:
        making(self, *args)
        self._values = [np.zeros_like(each) for each in self._values]

    monkeypatch.setattr(SecretKey, "__init__", nothing)


def audited(passes: int) -> dict[str, Finding]:
    """What every attack of an audit found in a run in parts."""
    tables = setting()
    job = random_job(tables, "lbfgs", train={"epochs": passes, "l2": 1e-3}, secure=NEVER)
    plan, data = plan_for(job, tables)
    findings = audit_run(job, DataFacts("random"), Launch(plan, data)).findings
    return {f"{each.by}: {each.attack}": each for each in findings}


@pytest.mark.parametrize("masked", [True, False])
def test_scores_of_the_owner_are_read_off_theta_unless_its_words_are_uniform(
    monkeypatch: pytest.MonkeyPatch, masked: bool
) -> None:
    """A knows its own scores, and decrypts sums of products: without P's uniform words that is theta."""
    rng = np.random.default_rng(0)
    u, v, y = rng.standard_normal(ROWS), rng.standard_normal(ROWS), rng.choice([-1.0, 1.0], ROWS)
    holders, owners = (code_of(float(np.abs(each).max())) for each in (u, v))
    reaches = Reaches(holders, owners, weighted=False)
    a = FORMS["logistic"].holder(u, y, None, reaches).whole(12, 6, rng)
    p = FORMS["logistic"].owner(v, reaches).whole(12, 6, rng)
    if not masked:
        unmask(monkeypatch)
    told, _ = between(
        lambda line: ask_rows(line, LEAN, a.products), lambda line: answer_rows(line, LEAN, p.products)
    )
    # A knows the functions: of every row the v that gives what it decrypted
    grid = np.linspace(-3, 3, 301)
    values = FORMS["logistic"].owner(grid, reaches).products
    expected = FORMS["logistic"].holder(u, y, None, reaches).products.T @ values
    guess = grid[np.abs(expected - centred(told, LEAN.plain)[:, None] / 2.0**12).argmin(axis=1)]
    found = abs(float(spearmanr(guess, v).statistic))
    assert (found < 0.15) if masked else (found > 0.5)


@pytest.mark.parametrize("empty", [True, False])
def test_labels_of_weights_in_parts_are_read_off_ciphertexts_of_a_key_of_zeros_alone(
    monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    if empty:
        empty_keys(monkeypatch)
    found = audited(passes=2)
    auc = area(found["party1: labels from ciphertexts"])
    assert (auc == 1.0) if empty else abs(auc - 0.5) < 0.08
    assert not [name for name in found if "gradients" in name or "own weights" in name]  # nobody is told any


@pytest.mark.parametrize(
    ("masked", "empty", "least"), [(True, False, 0.0), (False, False, 0.4), (False, True, 0.6)]
)
def test_columns_of_the_owner_are_read_off_parts_that_are_not_uniform(
    monkeypatch: pytest.MonkeyPatch, masked: bool, empty: bool, least: float
) -> None:
    """A puts together all it decrypts and holds: with keys of zeros it has its own weights, too, and takes
    its own score off."""
    if not masked:
        unmask(monkeypatch)
    if empty:
        empty_keys(monkeypatch)
    found = audited(passes=6)["party0: columns from its parts"]
    assert found.value is not None
    assert found.baseline is not None
    if masked:
        assert found.value < 0.09  # of 1,500 rows three columns reach 0.08 by chance in one of a hundred
        assert not found.found
    else:
        assert found.value > least
        assert found.low is not None
        assert found.low > found.baseline  # more than its own columns and labels say


@pytest.mark.parametrize("empty", [True, False])
def test_parts_of_the_owner_say_nothing_of_labels_unless_they_are_whole(
    monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    """With keys of zeros P has the scores of its own columns, which say something of the label."""
    if empty:
        empty_keys(monkeypatch)
    auc = area(audited(passes=6)["party1: labels from its parts"])
    assert (auc > 0.6) if empty else abs(auc - 0.5) < 0.08


@pytest.mark.parametrize("apart", [True, False])
def test_who_chooses_rows_reads_its_weights_off_scores_but_for_how_far_they_were_moved(
    monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    """P asks for rows that differ in its own columns alone: noise of a row is its teller's, and cancels."""
    ending, ended = parted.PartedParty.end, {}

    def noted(self: Any, factors: Any) -> None:
        object.__setattr__(self.context, "apart", apart)
        ending(self, factors)
        ended[self.context.me] = self

    monkeypatch.setattr(parted.PartedParty, "end", noted)
    tables = made(rows=ROWS, test=0)
    done = fit(tables, NEVER)
    plan, _ = plan_for(random_job(tables, "lbfgs", secure=NEVER), tables)
    same, chosen = np.zeros((4, 4)), np.vstack([np.zeros(3), np.diag([20.0] * 3)])
    asking, telling = (
        PartedScorer.of(done.shares[party].weights, plan, party) for party in ("party1", "party0")
    )
    _, z = between(
        lambda line: telling.total(line, same, "party1"), lambda line: asking.total(line, chosen, "party1")
    )
    owner = ended["party1"]
    parts = (owner.final[0] + ended["party0"].final[1]) % np.uint64(LEAN.plain)
    exact = owner.columns.turn @ (centred(parts, LEAN.plain) / owner.sizes.weights)
    off = float(np.abs((z[1:] - z[0]) / 20 - exact).max())
    assert (off > 4e-3) if apart else (off < 1e-3)  # half a standard error is about 0.02 here


LONELY = 9


def test_why_daemons_answer_no_owner_that_asks_for_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of columns with a row each, moved by half a standard error, are those rows' labels: who chooses
    rows would read them (`tests/deploy/test_two.py` has the refusal)."""
    X = np.hstack([np.random.default_rng(1).standard_normal((ROWS, 3)), np.zeros((ROWS, LONELY))])
    X[np.arange(LONELY), np.arange(3, 3 + LONELY)] = 1.0
    tables = made(rows=ROWS, test=0)
    own = Table("party1", tuple(f"p{j}" for j in range(X.shape[1])), X)
    tables = replace(tables, train={**tables.train, "party1": own})
    ending = parted.PartedParty.end

    def between_companies(self: Any, factors: Any) -> None:
        object.__setattr__(self.context, "apart", True)
        ending(self, factors)

    monkeypatch.setattr(parted.PartedParty, "end", between_companies)
    done = fit(tables, NEVER, train={"l2": 1e-5})
    plan, _ = plan_for(random_job(tables, "lbfgs", secure=NEVER), tables)
    same, chosen = np.zeros((LONELY + 1, 4)), np.eye(3 + LONELY)[2:]
    chosen[0] = 0.0
    asking, telling = (
        PartedScorer.of(done.shares[party].weights, plan, party) for party in ("party1", "party0")
    )
    _, z = between(
        lambda line: telling.total(line, same, "party1"), lambda line: asking.total(line, chosen, "party1")
    )
    y = tables.train["party0"].y
    assert y is not None
    assert np.array_equal(np.sign(z[1:] - z[0]), y[:LONELY])
