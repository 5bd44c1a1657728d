"""Two parties train one model without a third, and neither is sent what it could read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracles.noisy_lbfgs import noisy_lbfgs
from tests.oracles.tables import random_job, weights

from colonnade.attacks.transcript import Transcript
from colonnade.conversations.linear.encrypted import encrypted_products as products
from colonnade.conversations.linear.encrypted import final_loss as measure
from colonnade.conversations.linear.encrypted import home_columns as own_columns
from colonnade.conversations.linear.noisy import noisy_lbfgs as steps
from colonnade.conversations.linear.noisy import product_forms as theta
from colonnade.conversations.linear.parties import encrypted as encrypted
from colonnade.conversations.own_noise import OwnNoise, Tellings
from colonnade.data.table import INTERCEPT, Table
from colonnade.errors import Aborted, DataError, FixedPointOverflow, JobError
from colonnade.job import job_from
from colonnade.losses import LOSSES
from colonnade.messages import Announce, Sealed
from colonnade.run.federate import Finished, Tables, federate, plan_for, run_tables
from colonnade.run.launch import launch
from colonnade.run.resolve import compose
from colonnade.run.world import Launch
from colonnade.secure.lattice.ciphertexts import SecretKey

BLIND = {"labels": "blind"}
ROWS = 1600


def made(
    loss: str = "logistic", *, rows: int = ROWS, test: int = 400, weighted: bool = False, seed: int = 0
) -> Tables:
    """Two parties with three columns each, at the label holder one of ones, and labels of a true model."""
    rng = np.random.default_rng(seed)
    n = rows + test
    X = rng.standard_normal((n, 6))
    z = X @ (0.5 * rng.standard_normal(6)) + 0.3
    y = {
        "logistic": np.where(rng.random(n) < 1 / (1 + np.exp(-z)), 1.0, -1.0),
        "squared": 40 * (z + rng.standard_normal(n)) + 100,
        "poisson": rng.poisson(5 * np.exp(z)).astype(float),
        "gamma": rng.gamma(2, np.exp(z) / 2) + 1e-3,
    }[loss]
    weight = rng.uniform(0.5, 2, n) if weighted else None

    def dealt(cut: slice) -> dict[str, Table]:
        ones = np.ones((len(y[cut]), 1))
        own = np.hstack([X[cut, :3], ones])
        told = None if weight is None else weight[cut] / weight.mean()
        return {
            "party0": Table("party0", ("a", "b", "c", INTERCEPT), own, y[cut], weight=told),
            "party1": Table("party1", ("d", "e", "f"), X[cut, 3:].copy()),
        }

    return Tables("random", dealt(slice(rows)), dealt(slice(rows, None)) if test else None, ("party0",))


def fit(tables: Tables, secure: dict[str, Any] = BLIND, tap: Any = None, **sections: Any) -> Finished:
    train = {"epochs": 100, "l2": 1e-3, **sections.pop("train", {})}
    job = random_job(tables, "lbfgs", train=train, secure=secure, **sections)
    return run_tables(job, tables, **({} if tap is None else {"tap": tap}))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson", "gamma"])
def test_the_model_is_that_of_a_clear_run_but_for_noise(
    monkeypatch: pytest.MonkeyPatch, loss: str, weighted: bool
) -> None:
    tables = made(loss, weighted=weighted)
    secrets = (bytes([k]) * 32 for k in range(256))  # the same noise whenever this is run
    monkeypatch.setattr("colonnade.conversations.gates.secrets.token_bytes", lambda size: next(secrets))
    train = {"loss": loss}
    blind, clear = fit(tables, train=train), fit(tables, {"labels": "clear"}, train=train)
    y = tables.train["party0"].y
    assert y is not None
    unit = float(y.std()) if loss == "squared" else 1.0
    np.testing.assert_allclose(weights(blind) / unit, weights(clear) / unit, atol=0.2)
    for name, value in clear.result.metrics.items():
        if name in ("objective", "test_loss", "test_auc"):
            assert blind.result.metrics[name] == pytest.approx(
                value, rel={"poisson": 0.1, "squared": 0.06}.get(loss, 0.03), abs=0.01
            )
    assert len(blind.result.history) == 1  # nobody knows a loss before


def test_it_is_the_naive_method_on_pooled_columns_with_the_same_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But for the rounding of columns and theta, and with inner products of 40 bits."""
    tables = made(rows=4000, test=0)
    drawn: dict[str, list[Any]] = {"party0": [], "party1": []}
    spreads: dict[str, Any] = {}
    few, gaussian = steps.few_bits, OwnNoise.gaussian
    keys = iter(bytes([k]) * 32 for k in (5, 6))  # the same noise whenever this is run
    monkeypatch.setattr("colonnade.conversations.gates.secrets.token_bytes", lambda size: next(keys))
    monkeypatch.setattr(steps, "few_bits", lambda values: few(values, 40))
    monkeypatch.setattr(theta, "ERROR", 1e-4)
    opened = products.GradientOwner.open

    def noted(self: Any, ring: Any, codes: Any, rows: float, bits: int, *what: Any) -> Any:
        noise = gaussian(self, ring, codes, rows, bits, *what)
        latest.append((noise, bits))
        return noise

    latest: list[Any] = []
    monkeypatch.setattr(OwnNoise, "gaussian", noted)

    async def kept(self: Any, bits: int) -> Any:
        party, asker = self.line.net.me, self.line.peer
        found = await opened(self, bits)
        columns = self.columns
        mine = next(k for k, (noise, b) in enumerate(latest) if len(noise) == len(columns.kept) and b == bits)
        noise, _ = latest.pop(mine)
        drawn[party].append(noise * self.ring.unit / columns.scale / columns.rows * 2.0**-bits)
        assert asker != party
        return found

    monkeypatch.setattr(products.GradientOwner, "open", kept)
    setting_up = encrypted.EncryptedParty.set_up

    async def seen(self: Any) -> None:
        await setting_up(self)
        spreads[self.context.me] = self.columns.spread(self.loudness.rows)

    monkeypatch.setattr(encrypted.EncryptedParty, "set_up", seen)
    done = fit(tables, train={"epochs": 6, "tolerance": 0.0})
    blocks = [np.asarray(table.X) for table in tables.train.values()]
    y = tables.train["party0"].y
    assert y is not None
    noise = [[np.zeros(4), drawn["party1"][0]]]  # of its own first gradient A knows all
    noise += [[a, p] for a, p in zip(drawn["party0"], drawn["party1"][1:], strict=True)]
    l2 = [np.array([1e-3, 1e-3, 1e-3, 0.0]), np.full(3, 1e-3)]
    expected = noisy_lbfgs(
        blocks,
        lambda z: LOSSES["logistic"].dz(z, y),
        noise,
        curvature=0.25,
        l2=l2,
        spread=[spreads["party0"], spreads["party1"]],
    )
    np.testing.assert_allclose(weights(done), np.concatenate(expected), atol=6e-3)


def test_the_first_gradient_has_noise_of_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = made(test=0)
    X, y = np.asarray(tables.train["party1"].X), tables.train["party0"].y
    assert y is not None
    u = 0.0
    exact = X.T @ LOSSES["logistic"].dz(np.full(len(y), u), y) / len(y)
    off: list[Any] = []
    opened = products.GradientOwner.open

    async def compared(self: Any, bits: int) -> Any:
        found = await opened(self, bits)
        if self.line.net.me == "party1":
            off.append((found - exact) * len(y) / self.columns.largest)
        return found

    monkeypatch.setattr(products.GradientOwner, "open", compared)
    for _ in range(12):
        fit(tables, {**BLIND, "noise": 5.0}, train={"epochs": 1, "tolerance": 0.0})
    deviation = float(np.std(off))
    assert 3.2 < deviation < 9.2


def test_epsilon_asks_for_noise_and_is_reported() -> None:
    tables = made()
    done = fit(tables, {**BLIND, "epsilon": 20.0})
    assert done.shares["party0"].epsilon == 20.0
    assert done.result.metrics["test_auc"] > 0.6


@pytest.mark.parametrize(
    ("secure", "train", "words"),
    [
        ({"products": "dealer"}, {}, "two parties have no third one"),
        ({"epsilon": 1.0, "noise": 3.0}, {}, "secure.epsilon: says how much noise"),
        ({"noise": 0.0}, {}, "secure.noise: 0 rows; from 0.25"),
        ({"helper": "party1"}, {}, "products are encrypted between two parties and nobody deals"),
        ({}, {"loss": "smooth_hinge"}, "theta of the smooth_hinge loss cannot be shared"),
        ({}, {"target": 0.1}, "nobody knows the loss before the end"),
    ],
)
def test_what_does_not_go_together_is_refused(
    secure: dict[str, Any], train: dict[str, Any], words: str
) -> None:
    with pytest.raises(JobError, match=words):
        fit(made(rows=100, test=0), {**BLIND, **secure}, train=train)


def test_other_algorithms_and_more_parties_say_what_they_can() -> None:
    tables = made(rows=100, test=0)
    job: Any = {"secure": {**BLIND, "products": "encrypted"}}
    with pytest.raises(JobError, match="vfb2-saga multiplies by a third party's words"):
        run_tables(random_job(tables, "vfb2-saga", **job), tables)


@pytest.mark.parametrize("reveal", ["owner", "never"])
def test_more_columns_than_a_first_matrix_is_made_of_are_refused_before_it_is_tried(reveal: str) -> None:
    tables = made(rows=40, test=0)
    names = tuple(f"d{j}" for j in range(3001))
    tables.train["party1"] = Table("party1", names, np.zeros((40, 3001)))
    with pytest.raises(JobError, match="of at most 3,000; use fewer columns"):
        fit(tables, {**BLIND, "reveal": reveal})


def test_columns_of_single_rows_end_a_run_by_name() -> None:
    tables = made(rows=30, test=0)
    table = tables.train["party1"]
    lonely = np.zeros((30, 2))
    lonely[3, 0] = lonely[5, 1] = 1.0
    tables.train["party1"] = Table("party1", ("g", "h"), lonely)
    assert table.rows == 30
    with pytest.raises(JobError, match="every column of party1 says something of few rows alone"):
        fit(tables)


@pytest.mark.parametrize("largest", [1e6, 1e12])
def test_labels_that_differ_too_much_in_size_end_in_words_or_in_a_model(largest: float) -> None:
    tables = made("gamma", rows=200, test=0)
    y = tables.train["party0"].y
    assert y is not None
    y[7] = largest
    try:
        assert np.isfinite(weights(fit(tables, train={"loss": "gamma"}))).all()
    except FixedPointOverflow as error:
        assert "differ so much in size" in str(error) or "beyond what e^z" in str(error)  # noqa: PT017


def numbers(message: Any) -> Iterator[Any]:
    if isinstance(message, Sealed):
        yield message.body
    if isinstance(message, Announce):
        yield message.values


def test_what_is_sent_in_the_open_is_few_numbers_and_the_rest_looks_uniform() -> None:
    tables = made(test=0)
    transcripts: dict[str, Transcript] = {}

    def tap(party: str, wire: Any) -> Any:
        return transcripts.setdefault(party, Transcript(party)).tap(party, wire)

    fit(tables, tap=tap)
    for transcript in transcripts.values():
        heard = [message for _, message in transcript.heard]
        sealed = np.concatenate([m.body for m in heard if isinstance(m, Sealed)])
        counts = np.bincount(sealed, minlength=256)
        expected = len(sealed) / 256
        assert float(((counts - expected) ** 2 / expected).sum()) < 256 + 8 * np.sqrt(512)
        open_numbers = sum(np.size(m.values) for m in heard if isinstance(m, Announce))
        assert open_numbers < 12 * (43 * 3 + 6) + 40  # of 1,600 rows none is among them


def test_a_run_that_goes_on_tells_nothing_twice_and_has_new_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off in the fourth pass, it ends with the weights that it would have had, but for noise on top."""
    monkeypatch.setattr(Tellings, "before", lambda self, purpose, number: 0)
    tables = made(rows=1200, test=0)
    train = {"epochs": 7, "l2": 1e-3, "tolerance": 0.0}
    job = random_job(tables, "lbfgs", train=train, secure=BLIND, checkpoint={"every": 3})
    plan, data = plan_for(job, tables)
    secrets = iter(bytes([k]) * 32 for k in range(1, 200))
    seeds: list[bytes] = []
    told: list[Any] = []
    encrypt, opened = SecretKey.encrypt, products.GradientOwner.open
    monkeypatch.setattr("colonnade.conversations.gates.secrets.token_bytes", lambda size: next(secrets))

    def noted(self: Any, messages: Any) -> Any:
        found = encrypt(self, messages)
        seeds.append(found.seed)
        return found

    async def heard(self: Any, bits: int) -> Any:
        found = await opened(self, bits)
        told.append((self.line.net.me, found))
        return found

    monkeypatch.setattr(SecretKey, "encrypt", noted)
    monkeypatch.setattr(products.GradientOwner, "open", heard)
    one_pass = encrypted.EncryptedParty.one_pass

    async def cut(self: Any) -> Any:
        if self.lbfgs.state.steps == 5 and self.context.me == "party1":
            raise Aborted("cut off")
        return await one_pass(self)

    with monkeypatch.context() as patched:
        patched.setattr(encrypted.EncryptedParty, "one_pass", cut)
        with pytest.raises(Aborted):
            launch(Launch(plan, data, out=tmp_path))
    first = list(told)
    told.clear()
    launch(Launch(plan, data, out=tmp_path, resume=True))
    assert len(set(seeds)) == len(seeds) > 40  # no key and no ciphertext twice
    for party in ("party0", "party1"):
        before = [g for who, g in first if who == party]
        after = [g for who, g in told if who == party]
        again = 5 - 3  # passes that were made twice
        assert len(before) + len(after) == 7 + again - (party == "party0")
        for one, other in zip(before[-again:], after[:again], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4 * float(np.abs(one).max()) + 1e-7)


def test_keys_of_encrypted_runs_are_named_where_nothing_reads_them() -> None:
    tables = made(rows=100, test=0)
    job = random_job(tables, "lbfgs", secure={"labels": "clear", "noise": 2.0, "few_rows": True})
    assert {"secure.noise", "secure.few_rows"} <= set(compose(job).unused())
    for parties in (2, 3, 4):
        data = {"train": "a9a", "parties": parties}
        for given in ({"noise": 2.0, "few_rows": True}, {"epsilon": 3.0}):
            told = {"algorithm": "lbfgs", "data": data, "secure": {"labels": "blind", **given}}
            assert not compose(job_from(told)).unused()
    saga = job_from({"algorithm": "vfb2-saga", "data": data, "secure": {"noise": 2.0}})
    assert "secure.noise" in compose(saga).unused()


@pytest.mark.slow
def test_a9a_is_near_its_optimum_and_as_good_as_in_clear() -> None:
    """The mean of three runs, as their noise differs."""
    try:
        runs = [federate(job_from({**A9A, "secure": BLIND})).result.metrics for _ in range(3)]
        clear = federate(job_from({**A9A, "secure": {"labels": "clear"}})).result.metrics
    except DataError as error:
        pytest.skip(f"a9a is not on this machine: {error}")
    above = np.mean([each["suboptimality"] for each in runs]) / clear["objective"]
    assert above < 0.006
    assert abs(np.mean([each["test_accuracy"] for each in runs]) - clear["test_accuracy"]) < 0.003
    assert abs(np.mean([each["test_auc"] for each in runs]) - clear["test_auc"]) < 0.005


A9A = {"algorithm": "lbfgs", "world": "local", "data": {"train": "a9a", "parties": 2}}


def test_many_rows_travel_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = iter(bytes([k]) * 32 for k in (5, 6))  # the same noise whenever this is run
    monkeypatch.setattr("colonnade.conversations.gates.secrets.token_bytes", lambda size: next(keys))
    for module in (own_columns, products, measure):
        monkeypatch.setattr(module, "ROWS", 500)
    monkeypatch.setattr(products, "AT_ONCE", 2**17)
    monkeypatch.setattr(encrypted, "ROWS", 500)
    asked = products.Asked
    monkeypatch.setattr(
        encrypted, "Asked", lambda rows, width, together, codes: asked(rows, width, together, codes, 500)
    )
    tables = made(rows=1600)
    clear = fit(tables, {"labels": "clear"}).result.metrics
    assert fit(tables).result.metrics["objective"] == pytest.approx(clear["objective"], rel=0.03)
