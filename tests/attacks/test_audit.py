"""An audit: deltas are told apart where the paper's formula promises privacy; real mechanisms pass."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from colonnade.attacks.epsilon import epsilon_at_least
from colonnade.losses import LOSSES
from colonnade.models.blackbox import Differentiable, Linear
from colonnade.optim.deltas import Deltas, DeltasServer
from colonnade.optim.replies import Head
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.accountant import epsilon_of, multiplier_for
from colonnade.privacy.label_noise import label_points, noisy_labels
from colonnade.privacy.mechanisms import NoisyScalars
from colonnade.privacy.noise import Noise
from colonnade_bench.czofo.paper_epsilon import Observed, claimed_epsilon, claimed_epsilon_of_a_reply

ROWS, OUTPUTS, DIRECTIONS, TRIALS = 64, 8, 4, 4000


def test_replies_of_deltas_are_told_apart_where_the_paper_claims_a_small_epsilon() -> None:
    rng = np.random.default_rng(0)
    C = rng.standard_normal((ROWS, OUTPUTS))
    y = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    other = y.copy()
    other[0] *= -1  # one label: all that the two data sets differ in
    head = Head(Linear(OUTPUTS, 1), LOSSES["logistic"], rng.standard_normal(OUTPUTS))
    deltas = Deltas("gaussian", DIRECTIONS, 1e-3)
    server, own = DeltasServer(head, deltas), slice(0, OUTPUTS)

    def reply(labels: np.ndarray, trial: int) -> np.ndarray:
        return server.answer(C, own, C[None], labels, (1, trial))

    hits = alarms = 0
    for trial in range(TRIALS):
        # the client knows the directions of the round and what either data set would have answered
        expected = [reply(labels, trial) for labels in (y, other)]
        secret = trial % 2
        heard = reply((y, other)[secret], trial)
        says = int(np.abs(heard - expected[1]).sum() < np.abs(heard - expected[0]).sum())
        hits += secret and says
        alarms += (1 - secret) and says
    found = epsilon_at_least(hits, alarms, TRIALS // 2)
    assert isinstance(head.model, Differentiable)
    gradients = ROWS * head.model.input_gradient(head.w, C, head.dz(C, y))
    seen = Observed.of(gradients)
    claimed = claimed_epsilon_of_a_reply(seen, rows=ROWS, q=DIRECTIONS, d=OUTPUTS)
    assert found > 6
    assert claimed < 1 < 6 * claimed < found


def test_the_claim_is_the_formula_of_the_supplement() -> None:
    seen = Observed(zeta=0.5, trace=8.0)
    # Equation 15: sqrt(8 / (2 * 4)) = 1 > 2 sqrt(2 ln(1.25 / delta)) 0.5 / (100 epsilon)
    epsilon = np.sqrt(2 * np.log(1.25 / 1e-5)) / 100
    assert claimed_epsilon_of_a_reply(seen, rows=100, q=2, d=4) == pytest.approx(epsilon)
    # Equation 21 has the step and no root: 0.5 * 1 instead of 1
    one, T = 2 * epsilon, 10
    whole = np.sqrt(2 * T * np.log(1e5)) * one + T * one * (np.exp(one) - 1)
    assert claimed_epsilon(seen, rows=100, q=2, d=4, step=0.5, replies=T) == pytest.approx(whole)
    assert claimed_epsilon(seen, rows=1, q=2000, d=4, step=1e-3, replies=T) == np.inf


def test_the_trace_is_that_of_estimates_along_gaussian_directions() -> None:
    rng = np.random.default_rng(1)
    g, u = rng.standard_normal(5), rng.standard_normal((200_000, 5))
    estimates = (u @ g)[:, None] * u
    assert Observed.of(g[None]).trace == pytest.approx(estimates.var(axis=0).sum(), rel=0.02)
    assert Observed.of(np.stack([g, 2 * g])).zeta == pytest.approx(2 * np.linalg.norm(g))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_an_audit_never_finds_more_than_randomised_response_has(epsilon: float) -> None:
    trials = 200_000
    hits, alarms = (
        int((Noise().response(np.full(trials, label), 10, epsilon) == 1).sum()) for label in (1, 0)
    )
    assert 0.8 * epsilon < epsilon_at_least(hits, alarms, trials, confidence=0.9999) <= epsilon


@pytest.mark.parametrize("task", ["logistic", "softmax", "squared"])
def test_an_audit_never_finds_more_than_noisy_labels_have(task: str) -> None:
    trials, epsilon, draws = 100_000, 1.0, 3
    y = np.array([-1.0, 1.0]) if task != "softmax" else np.array([0.0, 2.0])
    points, _, sensitivity = label_points(y, LOSSES[task], 1.0, 3 if task == "softmax" else None)
    assert np.linalg.norm(points[1] - points[0]) == pytest.approx(sensitivity)
    multiplier = multiplier_for(epsilon, 1e-5, draws)
    labels = noisy_labels(np.repeat(y, trials), LOSSES[task], 1.0, multiplier)
    way = np.atleast_1d((points[1] - points[0]) / sensitivity)

    def mean_of_draws(row: int) -> np.ndarray:
        told = [labels(trials * row + np.arange(trials)).reshape(trials, -1) @ way for _ in range(draws)]
        return np.asarray(np.mean(told, axis=0))

    threshold = float(np.quantile(mean_of_draws(0), 0.99))
    hits, alarms = (int((mean_of_draws(row) > threshold).sum()) for row in (1, 0))
    assert 0.3 < epsilon_at_least(hits, alarms, trials, confidence=0.9999) <= epsilon
    assert epsilon_of(multiplier, draws, 1e-5) == pytest.approx(epsilon, rel=1e-3)


def test_an_audit_never_finds_more_than_noisy_replies_have() -> None:
    """The worst that a client can ask: one label alone decides which end of the clip a row is at."""
    trials, epsilon = 3000, 8.0
    keys = (number.to_bytes(32, "big") for number in itertools.count())
    smoothing, multiplier = Smoothing("gaussian", 1, 1.0, True), multiplier_for(epsilon, 1e-5, 1)
    mechanism = NoisyScalars(smoothing, 1.0, multiplier, lambda: Noise(next(keys)))
    z = np.array([[0.0], [50.0], [-50.0]])
    said = [
        np.array([mechanism(LOSSES["logistic"].value(z, np.array([y])))[0] for _ in range(trials)])
        for y in (1.0, -1.0)
    ]
    threshold = float(np.quantile(said[0], 0.97))
    hits, alarms = (int((each > threshold).sum()) for each in (said[1], said[0]))
    assert 1 < epsilon_at_least(hits, alarms, trials, confidence=0.9999) <= epsilon
