"""Two parties train weights that neither knows, and score rows with them; nothing is opened before that."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conversations.encrypted.test_train import BLIND, fit, made
from tests.oracles.accelerated import accelerated
from tests.oracles.tables import random_job

from colonnade.attacks.transcript import Transcript
from colonnade.conversations.linear.encrypted import final_loss, home_columns
from colonnade.conversations.linear.parted import both_blocks, parted_scores, wave_theta
from colonnade.conversations.linear.parted.turned_columns import PartedSizes, TurnedColumns
from colonnade.conversations.linear.parted.wrapped_parts import dot_product, parted
from colonnade.conversations.linear.parties import parted as parties
from colonnade.conversations.peer_line import PeerLine
from colonnade.conversations.predict import Holding
from colonnade.data.table import Table
from colonnade.errors import Aborted, DataError, FixedPointOverflow, JobError, ProtocolError
from colonnade.job import job_from
from colonnade.losses import LOSSES
from colonnade.messages import Announce, Sealed
from colonnade.run.federate import Tables, federate, plan_for
from colonnade.run.launch import launch
from colonnade.run.world import Launch
from colonnade.secure.lattice.ciphertexts import SecretKey, centred
from colonnade.secure.lattice.parameters import LEAN

NEVER = {**BLIND, "reveal": "never"}
T, CUT = LEAN.plain, 26


class Pipe:
    """A line between two parties in this test."""

    def __init__(self) -> None:
        self.queues: dict[str, asyncio.Queue[bytes]] = defaultdict(asyncio.Queue)

    def end(self, me: str, peer: str) -> Any:
        pipe = self

        class End:
            async def seal(self, *messages: Any) -> None:
                for message in messages:
                    await pipe.queues[peer].put(bytes(message))

            async def opened(self, read: Any) -> Any:
                return read(await pipe.queues[me].get())

            def let_open(self, numbers: int, topic: Any = None) -> None:
                """Count nothing: this line has no account."""

        return End()


def between(first: Any, second: Any) -> Any:
    """What both ends of a protocol return."""

    async def both() -> Any:
        pipe = Pipe()
        return await asyncio.gather(first(pipe.end("a", "p")), second(pipe.end("p", "a")))

    return asyncio.run(both())


def in_parts(numbers: np.ndarray, modulus: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    one = rng.integers(0, modulus, len(numbers), dtype=np.uint64)
    other = (numbers.astype(object) - one.astype(object)) % modulus
    return one, other.astype(np.uint64)


QUARTER = 2 ** (CUT - 2)


@settings(max_examples=15, deadline=None)
@given(
    numbers=st.lists(st.integers(-QUARTER, QUARTER - 1), min_size=1, max_size=40),
    factor=st.one_of(st.floats(-40, -1e-4), st.floats(1e-4, 40)),
    seed=st.integers(0, 99),
)
def test_any_multiple_of_numbers_in_parts_is_off_by_little_more_than_a_unit(
    numbers: list[int], factor: float, seed: int
) -> None:
    values = np.array([*numbers, -QUARTER, QUARTER - 1, 0, -1])
    one, other = in_parts(values, 2**CUT, np.random.default_rng(seed))
    a, p = between(
        lambda line: parted(line, LEAN, CUT, one, first=True),
        lambda line: parted(line, LEAN, CUT, other, first=False),
    )
    found = centred((a.times(factor) + p.times(factor)) % np.uint64(T), T)
    rounded = round(abs(factor) * 2**CUT) / 2**CUT * np.sign(factor)
    assert np.abs(found - values * rounded).max() <= 1.5 + 1e-6


def test_all_numbers_of_a_small_range_wrap_as_they_should() -> None:
    """Every number and every part of it, of four bits: the smallest ring that has a quarter."""
    cut = 4
    words = np.array([(x, one) for x in range(-4, 4) for one in range(16)])
    one = words[:, 1].astype(np.uint64)
    other = ((words[:, 0] - words[:, 1]) % 16).astype(np.uint64)
    a, p = between(
        lambda line: parted(line, LEAN, cut, one, first=True),
        lambda line: parted(line, LEAN, cut, other, first=False),
    )
    wraps = (a.wraps + p.wraps) % np.uint64(T)
    assert set(wraps.tolist()) == {0, 1}
    np.testing.assert_array_equal(a.words + p.words - 16 * wraps, words[:, 0] + 4)


def test_inner_products_of_numbers_in_parts_are_exact() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(-300, 300, 5000), rng.integers(-300, 300, 5000)
    (x1, x2), (y1, y2) = in_parts(x, T, rng), in_parts(y, T, rng)
    a, p = between(
        lambda line: dot_product(line, LEAN, x1, y1, first=True),
        lambda line: dot_product(line, LEAN, x2, y2, first=False),
    )
    assert (a + p) % T == int(x @ y) % T


def test_sines_are_the_logistic_function_and_its_loss() -> None:
    z = np.linspace(-wave_theta.REACH, wave_theta.REACH, 4001)
    assert np.abs(wave_theta.theta_of(z) - 0.5 * np.tanh(z / 2)).max() < 0.0102
    rng = np.random.default_rng(0)
    y, weight = rng.choice([-1.0, 1.0], len(z)), rng.uniform(0.1, 2, len(z))
    one, other = in_parts(np.rint(z * 2**CUT / wave_theta.PERIOD), 2**CUT, rng)
    u, v = wave_theta.angles(one, CUT), wave_theta.angles(other, CUT)
    a, p = wave_theta.holder(u, y, weight), wave_theta.owner(v)
    theta = a.own + p.own + (a.products * p.products).sum(axis=0)
    np.testing.assert_allclose(theta, weight * (1 / (1 + np.exp(-z)) - (y > 0)), atol=0.021)
    a, p = wave_theta.holders_loss(u, y, weight), wave_theta.owners_loss(v)
    loss = a.own + p.own + (a.products * p.products).sum(axis=0)
    np.testing.assert_allclose(loss, weight * np.logaddexp(0, -y * z), atol=0.04)
    near = np.abs(z) < 8
    np.testing.assert_allclose(loss[near], (weight * np.logaddexp(0, -y * z))[near], atol=0.003)


def test_turned_columns_have_second_moments_of_one_and_the_penalty_with_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5)) @ rng.standard_normal((5, 5))
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.zeros(500)])  # two directions say nothing more
    penalty = np.full(7, 0.01)
    penalty[2] = 0.0
    found = TurnedColumns(X, penalty, 0.25, 2**30)
    W = found.turn
    moments = 0.25 * X.T @ X / 500 + np.diag(penalty)
    np.testing.assert_allclose(W.T @ moments @ W, np.eye(found.width), atol=1e-8)
    np.testing.assert_allclose(W.T @ np.diag(penalty) @ W, np.diag(found.penalty), atol=1e-8)
    assert found.width == 7


def scores(done: Any, tables: Tables) -> Any:
    """Scores of training rows with both parties' parts."""
    plan, _ = plan_for(job_of(tables), tables)
    holdings = {
        party: Holding(plan, party, share.weights, tables.train[party].X)
        for party, share in done.shares.items()
    }
    return parted_scores.together(holdings)


def job_of(tables: Tables, secure: dict[str, Any] = NEVER, **train: Any) -> Any:
    return random_job(tables, "lbfgs", train={"epochs": 100, "l2": 1e-3, **train}, secure=secure)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_model_is_that_of_plain_accelerated_gradients_and_near_the_optimum(
    loss: str, weighted: bool
) -> None:
    tables = made(loss, weighted=weighted)
    done = fit(tables, NEVER, train={"loss": loss})
    table = tables.train["party0"]
    y, weight = table.y, 1.0 if table.weight is None else table.weight
    assert y is not None
    z = scores(done, tables)
    unit = float(y.std()) if loss == "squared" else 1.0
    clear = fit(tables, {"labels": "clear"}, train={"loss": loss})
    X = np.hstack([np.asarray(each.X) for each in tables.train.values()])
    w = np.concatenate([np.asarray(share.weights["w"]) for share in clear.shares.values()])
    np.testing.assert_allclose(z / unit, X @ w / unit, atol=0.25)
    assert np.corrcoef(z, X @ w)[0, 1] > 0.999
    for name, off in (("objective", 0.04), ("test_loss", 0.02)):  # of 1,600 rows, noise of 3
        assert done.result.metrics[name] == pytest.approx(clear.result.metrics[name], rel=off, abs=0.01)
    assert not {"w", "part"} & {key for share in done.shares.values() for key in share.weights}
    if weighted:
        return  # heavier rows are counted with by a power of two
    kind = LOSSES[loss]
    rate = (y > 0).mean()
    start = float(np.log(rate / (1 - rate))) if loss == "logistic" else kind.start(y)
    step = 2.0 ** round(np.log2(unit)) / 4  # the score that all begin with is known to a quarter
    start = round(start / step) * step
    penalties = [np.array([1e-3, 1e-3, 1e-3, 0.0]), np.full(3, 1e-3)]
    expected = accelerated(
        [np.asarray(each.X) for each in tables.train.values()],
        penalties,
        lambda scores: weight * kind.dz(scores, y),
        curvature=0.25 if loss == "logistic" else 1.0,
        start=start,
        steps=12,
    )
    np.testing.assert_allclose(z / unit, expected / unit, atol=0.06)


def test_a_rare_class_is_begun_at_its_odds_to_a_quarter() -> None:
    tables = made(rows=6000, test=0)
    table, rng = tables.train["party0"], np.random.default_rng(3)
    X = np.hstack([np.asarray(each.X) for each in tables.train.values()])
    z = X @ np.array([0.3, 0, 0.3, -5, 0.3, 0.3, 0.3])
    assert table.y is not None
    table.y[:] = np.where(rng.random(6000) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    rate = (table.y > 0).mean()
    assert rate < 0.02
    done, clear = fit(tables, NEVER), fit(tables, {"labels": "clear"})
    start = float(done.shares["party0"].weights["start"][0])
    assert start == round(4 * np.log(rate / (1 - rate))) / 4
    assert float(done.shares["party1"].weights["start"][0]) == 0.0
    loss = float(np.logaddexp(0, -table.y * scores(done, tables)).mean())
    assert loss < 1.02 * clear.result.metrics["objective"]


def test_test_rows_have_the_scores_of_both_parts_with_a_little_noise() -> None:
    tables = made()
    done = fit(tables, NEVER)
    assert tables.test is not None
    told = done.shares["party0"].test_scores
    exact = scores(done, Tables("random", tables.test, None, ("party0",)))
    assert told is not None
    off = told - exact
    assert 0.002 < float(off.std()) < 0.008
    assert abs(float(off.mean())) < 0.002


def test_nothing_is_in_the_open_but_sizes_and_the_rest_looks_uniform() -> None:
    tables = made(test=0)
    transcripts: dict[str, Transcript] = {}

    def tap(party: str, wire: Any) -> Any:
        return transcripts.setdefault(party, Transcript(party)).tap(party, wire)

    fit(tables, NEVER, tap=tap)
    for party, transcript in transcripts.items():
        heard = [message for _, message in transcript.heard]
        sealed = np.concatenate([m.body for m in heard if isinstance(m, Sealed)])
        counts = np.bincount(sealed, minlength=256)
        expected = len(sealed) / 256
        assert float(((counts - expected) ** 2 / expected).sum()) < 256 + 8 * np.sqrt(512)
        told = [m for m in heard if isinstance(m, Announce)]
        # three sizes of A and one of each; in the end a sum in parts, two sizes of the loss, bytes
        assert sum(np.size(m.values) for m in told) <= 8, party


def test_parts_are_uniform_whatever_labels_and_columns_are() -> None:
    """The own parts of weights at both, of two runs that could not differ more."""
    kept: list[np.ndarray] = []
    for sign in (-1.0, 1.0):
        for seed in range(6):
            tables = made(rows=400, test=0, seed=seed)
            y = tables.train["party0"].y
            assert y is not None
            y *= sign
            done = fit(tables, NEVER, train={"epochs": 3, "tolerance": 0.0})
            for share in done.shares.values():
                kept += [np.asarray(share.weights[key]) / T for key in ("own", "others")]
    values = np.sort(np.concatenate(kept))
    places = (np.arange(len(values)) + 0.5) / len(values)
    assert float(np.abs(values - places).max()) < 1.63 / np.sqrt(len(values))  # Kolmogorov and Smirnov, 1%


def test_the_same_model_comes_of_parts_that_differ_in_every_run() -> None:
    tables = made(rows=600, test=0)
    one, other = (fit(tables, NEVER) for _ in range(2))
    np.testing.assert_allclose(scores(one, tables), scores(other, tables), atol=0.06)
    for party in one.shares:
        first, second = (np.asarray(done.shares[party].weights["own"]) for done in (one, other))
        assert not np.array_equal(first, second)


def test_few_rows_and_lonely_columns_train_as_nothing_of_them_is_told() -> None:
    tables = made(rows=120, test=0)
    lonely = np.zeros((120, 2))
    lonely[3, 0] = lonely[5, 1] = 1.0
    tables.train["party1"] = Table("party1", ("g", "h"), lonely)
    done = fit(tables, NEVER)
    assert np.isfinite(scores(done, tables)).all()
    assert not any("few rows" in note for note in done.result.privacy.notes)


def test_a_run_that_goes_on_is_the_same_and_has_new_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = made(rows=1200, test=0)
    job = random_job(
        tables, "lbfgs", train={"epochs": 7, "tolerance": 0.0}, secure=NEVER, checkpoint={"every": 3}
    )
    plan, data = plan_for(job, tables)
    seeds: list[bytes] = []
    encrypt, one_pass = SecretKey.encrypt, parties.PartedParty.one_pass

    def noted(self: Any, messages: Any) -> Any:
        found = encrypt(self, messages)
        seeds.append(found.seed)
        return found

    async def cut(self: Any, *which: Any) -> None:
        if self.passed == 5 and self.context.me == "party1":
            raise Aborted("cut off")
        await one_pass(self, *which)

    monkeypatch.setattr(SecretKey, "encrypt", noted)
    whole = launch(Launch(plan, data))
    with monkeypatch.context() as patched:
        patched.setattr(parties.PartedParty, "one_pass", cut)
        with pytest.raises(Aborted):
            launch(Launch(plan, data, out=tmp_path))
    resumed = launch(Launch(plan, data, out=tmp_path, resume=True))
    assert len(set(seeds)) == len(seeds) > 100
    found = []
    for shares in (whole, resumed):
        holdings = {p: Holding(plan, p, shares[p].weights, tables.train[p].X) for p in shares}
        found.append(parted_scores.together(holdings))
    np.testing.assert_allclose(found[0], found[1], atol=0.05)


def test_rows_travel_in_stretches_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_columns, "ROWS", 500)
    monkeypatch.setattr(final_loss, "ROWS", 20_000)  # each stretch is told with noise
    monkeypatch.setattr(parted_scores, "CHUNK", 150)
    monkeypatch.setattr(parties, "FEW", 100)  # some rows alone in early passes, as of many
    tables = made(rows=1600)
    done, clear = fit(tables, NEVER), fit(tables, {"labels": "clear"})
    assert done.result.metrics["objective"] == pytest.approx(clear.result.metrics["objective"], rel=0.03)
    assert both_blocks.rows_of_tables(1600, 7) == [500, 500, 500, 107]


@pytest.mark.parametrize(
    ("secure", "train", "words"),
    [
        ({}, {"loss": "poisson"}, "theta of the poisson loss cannot be made of scores in parts"),
        ({}, {"loss": "gamma"}, "theta of the gamma loss cannot be made of scores in parts"),
        ({"epsilon": 2.0}, {}, "no gradient is told that epsilon could be of"),
    ],
)
def test_what_does_not_go_together_is_refused(
    secure: dict[str, Any], train: dict[str, Any], words: str
) -> None:
    with pytest.raises(JobError, match=words):
        fit(made(rows=100, test=0), {**NEVER, **secure}, train=train)


def test_rows_that_leave_too_few_bits_are_refused() -> None:
    with pytest.raises(FixedPointOverflow, match="9 are the least"):
        PartedSizes.of(T, 2**22, 1.0)
    sizes = PartedSizes.of(T, 32_561, 1.0)
    # |x| |theta| at the most, a quarter of the range: columns of length sqrt(4 n), theta of sqrt(n)
    assert 2 * 32_561 * 2.0 ** (sizes.columns + sizes.theta) * 1.02 < T / 4


@pytest.mark.parametrize("numbers", [[-3, 0, 0], [0, -1, 0], [200, 0, 0], [1, 1]])
def test_sizes_that_cannot_be_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, numbers: list[int]
) -> None:
    telling = PeerLine.tell

    async def hostile(self: Any, *told: int) -> None:
        if self.net.me == "party0" and len(told) == 3:
            told = tuple(numbers)
        await telling(self, *told)

    monkeypatch.setattr(PeerLine, "tell", hostile)
    with pytest.raises(ProtocolError, match="party0"):
        fit(made(rows=200, test=0), NEVER, train={"epochs": 2, "tolerance": 0.0})


@pytest.mark.parametrize("party", ["party0", "party1"])
@pytest.mark.parametrize("at", [0, 1, 3, 6, 9, 14])
@pytest.mark.parametrize("wrong", ["short", "long"])
def test_bytes_that_nobody_writes_are_refused(
    monkeypatch: pytest.MonkeyPatch, party: str, at: int, wrong: str
) -> None:
    sealing, sent = PeerLine.seal, [0]

    async def hostile(self: Any, *parts: Any) -> None:
        for part in parts:
            body = bytes(part)
            if self.net.me == party:
                if sent[0] == at:
                    body = body[:-8] if wrong == "short" else body + bytes(8)
                sent[0] += 1
            await sealing(self, body)

    monkeypatch.setattr(PeerLine, "seal", hostile)
    with pytest.raises(ProtocolError, match=party):
        fit(made(rows=200, test=40), NEVER, train={"epochs": 3, "tolerance": 0.0})


@pytest.mark.slow
def test_a9a_is_nearer_its_optimum_than_with_noise() -> None:
    job = {"algorithm": "lbfgs", "world": "local", "data": {"train": "a9a", "parties": 2}, "secure": NEVER}
    try:
        found = federate(job_from(job)).result.metrics
    except DataError as error:
        pytest.skip(f"a9a is not on this machine: {error}")
    optimum = found["objective"] - found["suboptimality"]
    assert abs(found["suboptimality"]) / optimum < 0.006
    assert found["test_accuracy"] > 0.847
    assert found["test_auc"] > 0.899
