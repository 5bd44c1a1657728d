"""Blind training: the same weights as in clear, for every estimator, loss and world, and what is refused."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from tests.oracles.tables import pooled, random_tables, run, weights

from colonnade.arrays import Floats, Rows
from colonnade.conversations.blind.columns import COARSEST, Turn, fixed
from colonnade.conversations.blind.fixed_point import Lengths
from colonnade.conversations.blind.predict import BlindScorer
from colonnade.conversations.linear.parties.blind import BlindParty
from colonnade.conversations.linear.parties.blind_label_holder import BlindLabelHolder
from colonnade.conversations.linear.parties.word_size import Headroom
from colonnade.conversations.linear.record import LinearShares
from colonnade.conversations.predict import Holding, Session
from colonnade.data.table import Table
from colonnade.errors import DataError, FixedPointOverflow, JobError
from colonnade.losses import LOSSES as LOSS
from colonnade.net.clock import VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.simulated import SimulatedHub
from colonnade.run.federate import Finished, Tables
from colonnade.secure.masked import MaskedSum
from colonnade.secure.streams import PairStreams

BLIND = {"labels": "blind"}
LOSSES: dict[str, dict[str, Any]] = {
    "logistic": {},
    "squared": {"regression": True},
    "softmax": {"classes": 3},
}


def turn_of(party: str, width: int, seed: int = 0) -> Turn:
    """An owner's rotation in the simulated world."""
    return Turn.secret(width, hashlib.sha256(f"{seed} {party} rotation".encode()).digest())


@contextmanager
def noting_bits() -> Iterator[list[int]]:
    """The bits of columns that the label holders of runs choose."""
    found, choose = [], Headroom.column_bits

    def noted(room: Headroom, lengths: Lengths) -> int:
        found.append(choose(room, lengths))
        return found[-1]

    with mock.patch.object(Headroom, "column_bits", noted):
        yield found


def as_veiled(setting: Tables, bits: int) -> Tables:
    """The same tables with all columns but the first party's turned and rounded, as a blind run has them."""

    def grid(party: str, X: Any) -> Floats:
        rounded: Floats = fixed(X, turn_of(party, X.shape[1]), bits).values.astype(np.float64) * 2.0**-bits
        return rounded

    first = next(iter(setting.train))
    both = [
        {party: t if party == first else replace(t, X=grid(party, t.X)) for party, t in tables.items()}
        for tables in (setting.train, setting.test or {})
    ]
    return replace(setting, train=both[0], test=both[1] or None)


def turned_back(done: Finished) -> Floats:
    """The weights of a run on turned columns as weights of the columns."""
    first = next(iter(done.shares))
    return np.concatenate(
        [
            share.weights["w"]
            if party == first
            else turn_of(party, len(share.weights["w"])).back(share.weights["w"])
            for party, share in done.shares.items()
        ]
    )


def train_of(loss: str, **more: Any) -> dict[str, Any]:
    classes = {"classes": 3} if loss == "softmax" else {}
    return {"loss": loss, "epochs": 6, "l2": 0.01, "step": 0.05, **classes, **more}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("estimator", ["sgd", "svrg", "saga"])
@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_weights_are_those_of_a_clear_run_on_the_same_columns(estimator: str, loss: str, l2: float) -> None:
    setting = random_tables(parties=4, active=2, rows=150, test_rows=30, **LOSSES[loss])
    train = train_of(loss, l2=l2)
    with noting_bits() as bits:
        blind = run(setting, f"vfb-{estimator}", train=train, secure=BLIND)
    clear = run(as_veiled(setting, *bits), f"vfb-{estimator}", train=train)
    np.testing.assert_allclose(weights(blind), turned_back(clear), atol=5e-6)
    for name, value in clear.result.metrics.items():
        if name != "suboptimality":
            assert blind.result.metrics[name] == pytest.approx(value, abs=1e-5), name
    assert [moment.epoch for moment in blind.result.history] == [m.epoch for m in clear.result.history]


@pytest.mark.parametrize("parties", [3, 5])
def test_any_number_of_parties_and_a_helper_train_the_same_model(parties: int) -> None:
    setting = random_tables(parties=parties, active=1, rows=80)
    one = run(setting, "vfb-saga", secure=BLIND)
    other = run(setting, "vfb-saga", secure={**BLIND, "helper": f"party{parties - 1}"})
    np.testing.assert_array_equal(weights(one), weights(other))  # exact, whatever the random words


def test_a_network_that_loses_and_repeats_frames_changes_nothing() -> None:
    setting = random_tables(parties=3, active=1, rows=60)
    calm = run(setting, "vfb-svrg", secure=BLIND, train={"epochs": 4})
    faults = {"faults": {"drop": 0.1, "duplicate": 0.1, "corrupt": 0.05}, "latency_ms": 1.0}
    rough = run(setting, "vfb-svrg", secure=BLIND, train={"epochs": 4}, network=faults)
    np.testing.assert_array_equal(weights(calm), weights(rough))


def test_weights_that_shrink_for_long_are_sent_anew() -> None:
    """alpha falls to e^-12 over the run: without beginning anew its numbers would leave the range."""
    setting = random_tables(parties=3, active=1, rows=64)
    train = train_of("logistic", epochs=60, l2=0.5, step=0.1, batch=16, tolerance=0.0)
    with noting_bits() as bits:
        blind = run(setting, "vfb-sgd", train=train, secure=BLIND)
    clear = run(as_veiled(setting, *bits), "vfb-sgd", train=train)
    np.testing.assert_allclose(weights(blind), turned_back(clear), atol=2e-6)


def scores(done: Finished) -> Floats:
    """The scores of the test rows, as the label holder measured them."""
    found = done.shares[done.plan.evaluator].test_scores
    assert found is not None
    return np.asarray(found)


@pytest.mark.parametrize("estimator", ["sgd", "svrg", "saga"])
def test_scores_are_those_of_a_clear_run_and_coarser_columns_would_move_them(estimator: str) -> None:
    setting = random_tables(parties=4, active=1, rows=600, test_rows=400)
    train = train_of("logistic", step=0.5, l2=0.0)
    clear = run(setting, f"vfb-{estimator}", train=train)
    fine = run(setting, f"vfb-{estimator}", train=train, secure=BLIND)
    with mock.patch.object(Headroom, "column_bits", return_value=COARSEST):
        coarse = run(setting, f"vfb-{estimator}", train=train, secure=BLIND)
    apart = np.abs(scores(fine) - scores(clear)).max()
    assert apart < 1e-4 < np.abs(scores(coarse) - scores(clear)).max()


def test_columns_of_long_rows_are_written_as_coarsely_as_they_must_be() -> None:
    setting = random_tables(parties=3, active=1, rows=200)
    with noting_bits() as bits:
        for factor in (1.0, 30.0, 1000.0):
            tables = {party: replace(table, X=table.X * factor) for party, table in setting.train.items()}
            run(replace(setting, train=tables), "vfb-sgd", secure=BLIND, train={"step": 0.1 / factor**2})
    assert bits[0] > bits[1] >= bits[2] == COARSEST


@pytest.mark.parametrize("estimator", ["sgd", "saga"])
def test_weights_that_outgrow_their_room_are_sent_anew_with_fewer_bits(estimator: str) -> None:
    """One batch an epoch: the room is for one step, and many go the same way."""
    setting = random_tables(parties=3, active=1, rows=64, regression=True)
    alike = {
        party: replace(table, X=1 + table.X / 8, y=None if table.y is None else table.y + 9)
        for party, table in setting.train.items()
    }
    setting = replace(setting, train=alike)
    train = train_of("squared", epochs=60, batch=64, step=0.005, l2=0.0, tolerance=0.0, evaluate_every=0)
    clear = run(setting, f"vfb-{estimator}", train=train)
    with mock.patch.object(BlindParty, "renew", autospec=True, side_effect=BlindParty.renew) as renewed:
        blind = run(setting, f"vfb-{estimator}", train=train, secure=BLIND)
    assert any(not call.kwargs for call in renewed.call_args_list)  # not only in the end
    np.testing.assert_allclose(weights(blind), weights(clear), atol=1e-5)
    with (
        mock.patch.object(BlindLabelHolder, "settle", autospec=True, return_value=False),
        pytest.raises(FixedPointOverflow, match="beyond the range"),
    ):
        run(setting, f"vfb-{estimator}", train=train, secure=BLIND)


def delayed_sgd(setting: Tables, ahead: int, train: dict[str, Any]) -> Floats:
    """Mini-batch SGD on pooled columns whose gradients are those of `ahead` - 1 rounds before."""
    X, y = pooled(setting)
    loss, n = LOSS[train["loss"]], len(y)
    w, past, per_epoch = np.zeros(X.shape[1]), [np.zeros(X.shape[1])] * ahead, -(-n // train["batch"])
    for epoch in range(train["epochs"]):
        order = np.random.default_rng([0, epoch]).permutation(n)
        past = [w] * ahead  # at the end of an epoch all rounds are finished
        for rows in np.array_split(order, per_epoch):
            theta = loss.dz(X[rows] @ past[0], y[rows])
            w = w - train["step"] * (X[rows].T @ theta / len(rows) + train["l2"] * w)
            past = [*past[1:], w]
    return w


@pytest.mark.parametrize("ahead", [2, 3])
def test_batches_in_flight_are_all_scored_at_weights_of_one_version(ahead: int) -> None:
    setting = random_tables(parties=3, active=1, rows=96)
    train = train_of("logistic", epochs=3, batch=8, ahead=ahead, evaluate_every=0)
    with noting_bits() as bits:
        done = run(setting, "vfb2-sgd", train=train, secure=BLIND)
    expected = delayed_sgd(as_veiled(setting, *bits), ahead, train)
    widths = np.cumsum([len(share.weights["w"]) for share in done.shares.values()])[:-1]
    parts = zip(done.shares, np.split(expected, widths), strict=True)
    back = [w if party == "party0" else turn_of(party, len(w)).back(w) for party, w in parts]
    np.testing.assert_allclose(weights(done), np.concatenate(back), atol=2e-6)
    # every epoch begins with nothing in flight, and has twelve rounds
    delays = [min(k, ahead - 1) for k in range(12)]
    stale = done.result.staleness
    assert stale.mean == pytest.approx(np.mean(delays))
    assert (stale.max, stale.bound) == (ahead - 1, ahead - 1)
    assert done.result.cost.launched_by_party == {"party0": 36}


def test_what_is_refused_about_delays_is_what_blind_rounds_cannot_keep() -> None:
    setting = random_tables(parties=4, active=3, rows=96)
    train = train_of("logistic", epochs=2, batch=8, evaluate_every=0)
    kept = run(setting, "vfb2-sgd", train={**train, "max_delay": 2}, secure=BLIND)
    assert (kept.result.staleness.max, kept.result.staleness.bound) == (2, 2)
    with pytest.raises(JobError, match=r"ahead = 3 .* 2 updates late, over max_delay = 1; set ahead = 2"):
        run(setting, "vfb2-sgd", train={**train, "max_delay": 1}, secure=BLIND)
    with pytest.raises(JobError, match=r"train\.stale = 2: in a blind run one label holder"):
        run(setting, "vfb2-sgd", train={**train, "stale": 2}, secure=BLIND)


@pytest.mark.parametrize("estimator", ["svrg", "saga"])
def test_asynchronous_training_ends_at_the_same_model(estimator: str) -> None:
    setting = random_tables(parties=4, active=2, rows=400)
    train = {"step": "auto", "epochs": 40, "l2": 0.05, "ahead": 3}
    done = run(setting, f"vfb2-{estimator}", train=train, secure=BLIND)
    assert done.result.metrics["suboptimality"] < 1e-4


def test_the_automatic_step_is_that_of_a_clear_run() -> None:
    setting = random_tables(parties=3, active=1, rows=400)
    train = {"step": "auto", "epochs": 4}
    clear = run(setting, "vfb-saga", train=train)
    blind = run(setting, "vfb-saga", train=train, secure=BLIND)
    first = setting.active[0]
    assert blind.result.step[first] == pytest.approx(clear.result.step[first], rel=0.05)
    assert blind.result.metrics["objective"] == pytest.approx(clear.result.metrics["train_loss"], abs=2e-3)


def test_a_run_ends_by_itself_at_all_parties() -> None:
    setting = random_tables(parties=3, active=1, rows=100)
    done = run(setting, "vfb-svrg", train={"epochs": 300, "l2": 0.1, "tolerance": 1e-4}, secure=BLIND)
    assert done.result.converged
    assert done.result.history[-1].epoch < 300


def test_columns_that_leave_no_room_for_steps_are_refused() -> None:
    setting = random_tables(parties=3, active=1, rows=60)
    wild = {
        party: table if party == "party0" else replace(table, X=table.X * 5e4)
        for party, table in setting.train.items()
    }
    with pytest.raises(FixedPointOverflow, match="leave no room"):
        run(replace(setting, train=wild), "vfb-sgd", secure=BLIND, compare=False, train={"step": 1e-12})


def test_scores_that_may_have_wrapped_around_are_refused() -> None:
    setting = random_tables(parties=3, active=1, rows=60, regression=True)
    train = {"loss": "squared", "step": 1.9, "epochs": 40, "tolerance": 0.0}
    with pytest.raises(FixedPointOverflow, match="beyond the range"):
        run(setting, "vfb-sgd", secure=BLIND, compare=False, train=train)


@pytest.mark.parametrize(
    ("algorithm", "sections", "words"),
    [
        ("vfb-sgd", {"train": {"l1": 0.1}}, "drop train.l1"),
        ("vfb-sgd", {"train": {"regularizer": "nonconvex"}}, "use 'l2'"),
        ("vfb-svrg", {"train": {"direction": "lbfgs"}}, "train.direction = 'plain'"),
        ("asysqn-svrg", {}, "set secure.labels = 'clear'"),
    ],
)
def test_what_cannot_be_blind_is_refused_with_the_way_out(
    algorithm: str, sections: dict[str, Any], words: str
) -> None:
    with pytest.raises(JobError, match=words):
        run(random_tables(parties=3, active=1), algorithm, secure=BLIND, **sections)


def test_a_sum_that_shows_pieces_is_refused() -> None:
    with pytest.raises(JobError, match="use sum = 'masked'"):
        run(random_tables(parties=3, active=1), "vfb-sgd", secure={**BLIND, "sum": "plain"})


# -- weights that nobody learns ----------------------------------------------------------------------


def holdings(done: Finished, tables: dict[str, Table]) -> dict[str, Holding]:
    return {
        party: Holding(done.plan, party, dict(share.weights), tables[party].X)
        for party, share in done.shares.items()
    }


def asked_jointly(held: dict[str, Holding], asker: str, rows: Rows) -> dict[str, Floats | None]:
    """What every party has after all rows were scored, and then some once more."""

    async def program(net: Endpoint) -> Floats | None:
        pairs = {p: hashlib.sha256(repr(sorted((net.me, p))).encode()).digest() for p in net.peers}
        scorer = LinearShares().scorer(held[net.me])
        session = Session(net, MaskedSum(net, pairs), asker, scorer, PairStreams(net.me, pairs))
        await session.score_all()
        return await scorer.score(session, rows)

    async def everybody() -> list[Floats | None]:
        hub = SimulatedHub()
        ends = [Endpoint(p, tuple(held), hub.wire(p), VirtualClock(1.0), run=1, deadline=60) for p in held]
        return list(await asyncio.gather(*map(program, ends)))

    return dict(zip(held, run_virtual(everybody()), strict=True))


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("asker", ["party0", "party2"])
def test_rows_are_scored_with_weights_that_nobody_has(loss: str, asker: str) -> None:
    setting = random_tables(parties=4, active=1, rows=120, test_rows=50, **LOSSES[loss])
    train = train_of(loss)
    known = run(setting, "vfb-saga", train=train, secure=BLIND)
    kept = run(setting, "vfb-saga", train=train, secure={**BLIND, "reveal": "never"})
    assert setting.test is not None
    assert all("w" not in kept.shares[party].weights for party in ("party1", "party2", "party3"))
    expected = LinearShares().together(holdings(known, setting.test))
    np.testing.assert_allclose(LinearShares().together(holdings(kept, setting.test)), expected, atol=1e-4)
    found = asked_jointly(holdings(kept, setting.test), asker, np.array([3, 1, 49]))
    assert [party for party, z in found.items() if z is not None] == [asker]
    np.testing.assert_allclose(np.asarray(found[asker]), expected[[3, 1, 49]], atol=1e-4)


def test_rows_far_longer_than_those_of_training_are_refused() -> None:
    setting = random_tables(parties=3, active=1, rows=60, test_rows=5)
    done = run(setting, "vfb-sgd", secure={**BLIND, "reveal": "never"})
    assert setting.test is not None
    wild = {party: replace(table, X=table.X * 1e3) for party, table in setting.test.items()}
    held = holdings(done, wild)["party1"]
    assert held.plan.blind is not None
    with pytest.raises(DataError, match="longer than any of training"):
        _ = BlindScorer(held, held.plan.blind).columns


@pytest.mark.parametrize("size", [0.99, 1.01, -1.01])
def test_a_score_of_the_label_holder_s_own_that_could_wrap_around_is_refused(size: float) -> None:
    """Others add less than 2^62 to it: below 2^62 the total is right, and from there on it is not read."""
    setting = random_tables(parties=3, active=1, rows=60, test_rows=5)
    assert setting.test is not None
    held = holdings(run(setting, "vfb-sgd", secure={**BLIND, "reveal": "never"}), setting.test)
    desk = held["party0"]
    w, unit = desk.arrays["w"], float(desk.arrays["unit"][0]) * 2.0 ** -int(desk.arrays["bits"][0])
    X = np.array(desk.X)
    X[3] = size * 2.0**62 * unit * w / (w @ w)
    held["party0"] = replace(desk, X=X)
    if abs(size) < 1:
        found = asked_jointly(held, "party0", np.array([3, 1]))["party0"]
        np.testing.assert_allclose(np.asarray(found), LinearShares().together(held)[[3, 1]], atol=1e-4)
        return
    with pytest.raises(FixedPointOverflow, match="does not fit the range of the model"):
        asked_jointly(held, "party0", np.array([3, 1]))
