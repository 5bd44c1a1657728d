"""The linear system of FDSKL: columns come out with a shared seed, and do not with private directions."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.tables import random_job, random_tables

from colonnade.arrays import Floats, Words
from colonnade.attacks.linear_system import error, guessed_directions, solve
from colonnade.conversations.kernel.phases import unpack
from colonnade.conversations.kernel.setup import layout_of
from colonnade.messages import Topic, topic_of
from colonnade.run.federate import Finished, run_tables
from colonnade.secure.masked import MaskedSum

ROWS, COLUMNS, FEATURES = 120, 12, 64
SIGMA = 3.0  # in the job, or announced to everybody


def transcript(monkeypatch: pytest.MonkeyPatch, omega: str) -> tuple[Finished, Floats]:
    """A run, and what the masked sum told the only active party in training, in the order of the rows."""
    setting = random_tables(parties=4, active=1, rows=ROWS, columns=COLUMNS)
    job = random_job(
        setting,
        "fdskl-capped",
        train={"batch": 16, "epochs": 2, "loss": "logistic"},
        kernel={"block": 16, "features": FEATURES, "omega": omega, "sigma": SIGMA, "bits": 32},
        secure={"sum": "masked"},
    )
    heard: dict[int, Words] = {}
    real = MaskedSum.collect

    async def overheard(self: MaskedSum, piece: Words, *, tag: int) -> Words:
        total = await real(self, piece, tag=tag)
        if topic_of(tag) == Topic.TRAIN:
            heard[tag] = total.copy()
        return total

    monkeypatch.setattr(MaskedSum, "collect", overheard)
    done = run_tables(job, setting)
    layout = layout_of(done.plan, ROWS)
    totals = np.empty((ROWS, FEATURES))
    for number, tag in enumerate(sorted(heard)):
        rows = layout.rows(number)
        totals[rows] = unpack(heard[tag], (len(rows), FEATURES), 32)
    return done, totals


def attacked(monkeypatch: pytest.MonkeyPatch, omega: str) -> tuple[float, float]:
    """The attack's error on the columns of the other three parties, and a random guess's."""
    done, totals = transcript(monkeypatch, omega)
    setting = random_tables(parties=4, active=1, rows=ROWS, columns=COLUMNS)
    names = sorted(setting.train)
    me, others = names[0], names[1:]
    share = done.shares[me].weights
    own = setting.train[me].X @ share[f"omega.{me}"]
    widths = {names.index(name): setting.train[name].width for name in others}
    directions = guessed_directions(done.plan, layout_of(done.plan, ROWS), SIGMA, 0, widths)
    truth = np.hstack([np.asarray(setting.train[name].X) for name in others])
    found = solve(totals, own, np.vstack([directions[names.index(name)] for name in others]))
    guess = np.random.default_rng(0).standard_normal(truth.shape)
    return error(found, truth), error(guess, truth)


def test_a_shared_seed_gives_the_others_columns_away(monkeypatch: pytest.MonkeyPatch) -> None:
    found, guess = attacked(monkeypatch, "shared")
    assert found < 1e-8 < 1 < guess


def test_private_directions_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = attacked(monkeypatch, "private")
    assert found > 0.9


def test_with_fewer_features_than_columns_even_known_directions_leave_a_doubt() -> None:
    rng = np.random.default_rng(0)
    X, own = rng.standard_normal((50, 9)), rng.standard_normal((50, 20))
    omega, b = rng.standard_normal((9, 20)) / 5, rng.uniform(0, 6, 20)
    totals = X @ omega + b + own
    assert error(solve(totals, own, omega), X) < 1e-12
    assert error(solve(totals[:, :5], own[:, :5], omega[:, :5]), X) > 0.3


def test_the_error_of_guessing_the_mean_is_one() -> None:
    truth = np.random.default_rng(1).standard_normal((30, 4)) + 5
    assert error(np.zeros_like(truth), truth) == pytest.approx(1)
