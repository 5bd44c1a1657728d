"""What an owner of columns reads of a run between two parties by choosing its job, or by breaking it off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conversations.encrypted.test_train import made
from tests.deploy.companies import job
from tests.oracles.tables import random_job

from colonnade.arrays import Floats
from colonnade.conversations.linear.encrypted import encrypted_products as products
from colonnade.conversations.linear.encrypted import home_columns as own_columns
from colonnade.conversations.linear.parties import encrypted as encrypted
from colonnade.conversations.own_noise import OwnNoise
from colonnade.conversations.peer_line import PeerLine
from colonnade.deploy.books.opened import Opened, OpenedBooks
from colonnade.deploy.policy.cost_limits import check_floors
from colonnade.deploy.settings import Limits
from colonnade.errors import Aborted, CheckpointError, ProtocolError, Refused
from colonnade.openings.account import heard
from colonnade.openings.opening import Extent
from colonnade.run.federate import Tables, plan_for
from colonnade.run.launch import launch
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.world import Launch

pytestmark = pytest.mark.usefixtures("same_noise")
ROWS = 1200
AS_IT_COMES = Limits()
BLIND = {"labels": "blind"}


@pytest.fixture
def same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise whenever these tests are run."""
    keys = iter(bytes([k]) * 32 for k in range(1, 250))
    monkeypatch.setattr("colonnade.conversations.gates.secrets.token_bytes", lambda size: next(keys))


class Heard:
    """Every gradient that the owner is told, in rows: so that noise of S rows has a deviation of S there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gradients: list[Floats] = []
        opened = products.GradientOwner.open

        async def noted(owner: Any, bits: int) -> Floats:
            found = await opened(owner, bits)
            if owner.line.net.me == "party1":
                self.gradients.append(found * ROWS / owner.columns.largest)
            return found

        monkeypatch.setattr(products.GradientOwner, "open", noted)


def true_gradient(tables: Tables) -> Floats:
    """The first gradient of the owner's columns in the same unit: it follows from labels alone."""
    y, X = tables.train["party0"].y, np.asarray(tables.train["party1"].X)
    assert y is not None
    ones = np.mean(y > 0)  # the label holder's intercept begins where it fits all labels
    found: Floats = X.T @ (ones - (y > 0)) / np.abs(X).max(axis=0)
    return found


def off(told: Floats, tables: Tables) -> float:
    return float(np.sqrt(np.mean((told - true_gradient(tables)) ** 2)))


def broken_off(tables: Tables, folder: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> list[Floats]:
    """Break a run off in its second pass, each time with the other sign on all columns; what was heard."""
    heard = Heard(monkeypatch)
    train = {"epochs": 4, "l2": 1e-3, "tolerance": 0.0}
    job = random_job(tables, "lbfgs", train=train, secure=BLIND, checkpoint={"every": 3})
    plan, data = plan_for(job, tables)
    one_pass, columns = encrypted.EncryptedParty.one_pass, own_columns.HomeColumns
    session = [0]

    async def cut(self: Any) -> Any:
        if self.lbfgs.state.steps == 1 and self.context.me == "party1":
            raise Aborted("cut off")
        return await one_pass(self)

    def turned(X: Any, *rest: Any) -> Any:
        return columns(-X if session[0] % 2 and X.shape[1] == 3 else X, *rest)

    monkeypatch.setattr(encrypted.EncryptedParty, "one_pass", cut)
    monkeypatch.setattr(encrypted, "HomeColumns", turned)
    for session[0] in range(times):
        with pytest.raises(Aborted):
            launch(Launch(plan, data, out=folder, resume=session[0] > 0))
    return heard.gradients


def test_noise_cannot_be_cancelled_by_breaking_a_run_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = made(rows=ROWS, test=0)
    with monkeypatch.context() as patched:  # the same noise again and nothing else
        patched.setattr(OwnNoise, "of", staticmethod(lambda gates: OwnNoise(gates.secret())))
        one, other = broken_off(tables, tmp_path / "same", patched, 2)
        assert off((one - other) / 2, tables) < 0.6  # the gradient, but for how columns are rounded
    with monkeypatch.context() as patched:
        one, other = broken_off(tables, tmp_path / "more", patched, 2)
        assert off((one - other) / 2, tables) > 1.5


def test_a_run_is_not_broken_off_any_number_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointError, match="pass 0 of this run was told 9 times"):
        broken_off(made(rows=ROWS, test=0), tmp_path, monkeypatch, 12)


def test_a_job_of_many_passes_has_no_noise_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A penalty that keeps all weights at nothing, the least noise that a job may have, and no end."""
    tables = made(rows=ROWS, test=0)
    heard = Heard(monkeypatch)
    train = {"epochs": 150, "l2": 1e6, "tolerance": 0.0}
    plan, data = plan_for(random_job(tables, "lbfgs", train=train, secure={**BLIND, "noise": 0.25}), tables)
    launch(Launch(plan, data))
    assert len(heard.gradients) == 150
    assert off(np.mean(heard.gradients, axis=0), tables) < 0.15


@pytest.mark.parametrize(
    ("train", "secure", "told"),
    [
        (
            {"epochs": 150, "tolerance": 0.0},
            {"noise": 0.25},
            "noise of 0.25 rows in 150 gradients leaves 0.02 rows",
        ),
        ({"epochs": 10_000, "tolerance": 0.0}, {}, "noise of 3 rows in 10000 gradients leaves 0.03 rows"),
        ({"epochs": 100}, {"noise": 0.25}, "noise of 0.25 rows in 12 gradients leaves 0.072 rows"),
        ({"epochs": 100}, {"epsilon": 100.0}, "secure.epsilon = 100 leaves 0.095 rows"),
    ],
)
def test_no_job_leaves_gradients_without_noise(train: Any, secure: Any, told: str) -> None:
    between = ("bank", "shop")
    terms = job(between, algorithm="lbfgs", train=train, secure={**BLIND, **secure})
    with pytest.raises(Refused, match=f"{told}.*below limits.gradients_noise = 0.4"):
        check_floors(Limits(), terms)
    check_floors(Limits(gradients_noise=0.01), terms)


@pytest.mark.parametrize("secure", [{}, {"noise": 10.0}, {"epsilon": 8.0}, {"labels": "clear"}])
def test_usual_jobs_have_enough(secure: Any) -> None:
    terms = job(("bank", "shop"), algorithm="lbfgs", train={"epochs": 100}, secure={**BLIND, **secure})
    check_floors(Limits(), terms)
    check_floors(Limits(), job(algorithm="lbfgs", train={"epochs": 100}, secure={**BLIND, **secure}))


@pytest.mark.parametrize("said", [-900, 0])
def test_columns_that_are_said_to_be_too_small_are_refused(
    monkeypatch: pytest.MonkeyPatch, said: int
) -> None:
    """Noise goes by how large columns are said to be; no column's largest number is below the usual one."""
    telling = PeerLine.tell

    async def lies(line: PeerLine, *told: int) -> None:
        if line.net.me == "party1" and len(told) == 2 + 3:
            told = (*told[:2], *(said for _ in told[2:]))
        await telling(line, *told)

    monkeypatch.setattr(PeerLine, "tell", lies)
    tables = made(rows=ROWS, test=0)
    plan, data = plan_for(random_job(tables, "lbfgs", train={"epochs": 3}, secure=BLIND), tables)
    with pytest.raises(ProtocolError, match="party1 says that a column's largest number"):
        launch(Launch(plan, data))


def test_a_label_holder_that_says_that_noise_is_less_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of the owner's hides its scores: how loud it is, is no matter of the label holder's alone."""
    telling = PeerLine.tell

    async def lies(line: PeerLine, *told: int) -> None:
        if line.net.me == "party0" and len(told) == 2:
            told = (told[0] - 1, told[1])
        await telling(line, *told)

    monkeypatch.setattr(PeerLine, "tell", lies)
    tables = made(rows=ROWS, test=0)
    plan, data = plan_for(random_job(tables, "lbfgs", train={"epochs": 3}, secure=BLIND), tables)
    with pytest.raises(ProtocolError, match="party0 says that noise is less than the job does"):
        launch(Launch(plan, data))


def test_noise_hides_the_row_that_weighs_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows' weights are the label holder's to choose: one row that is nearly all would be the gradient."""
    loud, drawn = set(), OwnNoise.gaussian

    def noted(self: Any, ring: Any, codes: Any, rows: float, *rest: Any) -> Any:
        loud.add(rows)
        return drawn(self, ring, codes, rows, *rest)

    monkeypatch.setattr(OwnNoise, "gaussian", noted)
    tables = made(rows=ROWS, test=0, weighted=True)
    weight = np.ones(ROWS)
    weight[7] = 5.0
    train = {**tables.train, "party0": replace(tables.train["party0"], weight=weight)}
    tables = replace(tables, train=train)
    plan, data = plan_for(random_job(tables, "lbfgs", train={"epochs": 2}, secure=BLIND), tables)
    launch(Launch(plan, data))
    assert min(loud) >= 3.0 * weight[7]


def test_runs_add_up_and_the_account_is_what_ends_them(tmp_path: Path) -> None:
    """Columns of signs drawn by chance, others in every run: least squares over enough runs reads labels."""
    rng, rows, columns, S = np.random.default_rng(7), 1000, 20, 3.0 / np.sqrt(12)  # what 12 passes leave
    theta = rng.choice([-0.5, 0.5], rows)
    right = {}
    for runs in (1, 10, 100):
        X = rng.choice([-1.0, 1.0], (rows, runs * columns))
        told = X.T @ theta + S * rng.standard_normal(runs * columns)
        ridge = 4 * S**2 * np.eye(rows)  # the variance of noise over that of theta
        right[runs] = float(np.mean(np.sign(np.linalg.solve(X @ X.T + ridge, X @ told)) == 2 * theta))
    assert right[1] < 0.6
    assert right[10] < 0.75
    assert right[100] > 0.99
    tables = made(rows=rows, test=0)
    plan, data = plan_for(random_job(tables, "lbfgs", train={"epochs": 100}, secure=BLIND), tables)
    extent = Extent(rows, 0, dict.fromkeys(data, columns))
    openings = CONVERSATIONS[plan.conversation].openings(plan, extent)
    told_to = [each for each in heard(openings, rows) if (each.hearer, each.about) == ("party1", "labels")]
    books = OpenedBooks(tmp_path)

    def book(run: int, epsilon: float | None = None, limits: Limits = AS_IT_COMES) -> None:
        books.book(limits, [Opened.of(each, f"{run}", "job", "loans", columns, epsilon) for each in told_to])

    for run in range(10):
        book(run)
    with pytest.raises(Refused, match=r"limits\.opened_label_numbers_per_row = 2.5"):
        book(10)
    book(9)  # what goes on tells the same again
    book(10, epsilon=1.0)  # noise bounds what this one tells
    with pytest.raises(Refused, match=r"limits\.opened_label_bits_per_row = 23"):
        book(11, 1.0, Limits(opened_label_bits_per_row=23.0))
