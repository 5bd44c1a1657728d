"""Stored shares score new rows through the secure sum as the pooled model would."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from tests.oracles.dsg import phi
from tests.oracles.tables import pooled, random_tables, run
from tests.secure.parties import masked

from colonnade import VerticalClassifier, split_columns
from colonnade.arrays import Floats
from colonnade.conversations.kernel import predict as kernel_predict
from colonnade.conversations.kernel.predict import KernelScorer, KernelShare, KernelShares
from colonnade.conversations.predict import Holding, Session
from colonnade.errors import JobError
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.run.federate import Finished, Tables


def naive(done: Finished, X: Floats) -> Floats:
    f = np.zeros(len(X))
    for owner in done.result.active:
        omega = np.vstack([share.weights[f"omega.{owner}"] for share in done.shares.values()])
        b = np.sum([share.weights[f"b.{owner}"] for share in done.shares.values()], axis=0)
        for i, alpha in enumerate(done.shares[owner].weights["alpha"]):
            f += alpha * phi(X, omega[:, i], b[i])
    return f


def stored(done: Finished, folder: Path) -> dict[str, KernelShare]:
    """Every party's share, written to a file of its own and read back."""
    shares = {}
    for party, share in done.shares.items():
        np.savez(folder / f"{party}.npz", **share.weights)
        with np.load(folder / f"{party}.npz", allow_pickle=False) as file:
            shares[party] = KernelShare.from_arrays({name: file[name] for name in file.files})
    return shares


def federated(shares: dict[str, KernelShare], setting: Tables, root: str) -> dict[str, Floats | None]:
    """What every party gets from one prediction over the masked sum."""
    names = list(shares)

    async def program() -> dict[str, Floats | None]:
        hub = LocalHub()
        clock = RealClock()
        nets = [Endpoint(name, tuple(names), hub.wire(name), clock, run=1) for name in names]

        async def take_part(net: Endpoint) -> Floats | None:
            scorer = KernelScorer(shares[net.me], setting.train[net.me].X)
            return await Session(net, masked(net), root, scorer).score_all()

        scores = await asyncio.gather(*(take_part(net) for net in nets))
        for net in nets:
            await net.close()
        return dict(zip(names, scores, strict=True))

    return asyncio.run(program())


@pytest.mark.parametrize("active", [1, 2])
def test_new_rows_are_scored_together_and_only_the_asker_learns_the_score(
    tmp_path: Path, active: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_predict, "CHUNK", 128)  # several stretches even here
    done = run(
        random_tables(parties=3, active=active, rows=40),
        "fdskl-capped",
        train={"loss": "logistic", "epochs": 4},
        kernel={"block": 8, "features": 32},
    )
    new = random_tables(parties=3, active=active, rows=25, seed=9)
    scores = federated(stored(done, tmp_path), new, root="party0")
    X, _ = pooled(new)
    found = scores["party0"]
    assert found is not None
    np.testing.assert_allclose(found, naive(done, X), atol=1e-7)
    assert scores["party1"] is None
    assert scores["party2"] is None
    assert np.abs(found).max() > 1e-3


def test_the_run_itself_measures_test_rows_by_the_same_scores() -> None:
    setting = random_tables(parties=3, active=2, rows=60, test_rows=50)
    done = run(
        setting, "fdskl-capped", train={"loss": "logistic", "epochs": 6}, kernel={"block": 8, "features": 32}
    )
    assert setting.test is not None
    X = np.hstack([np.asarray(table.X) for table in setting.test.values()])
    y = setting.test["party0"].y
    assert done.result.metrics["test_accuracy"] == np.mean(np.where(naive(done, X) >= 0, 1.0, -1.0) == y)


def test_the_estimators_train_kernels_too() -> None:
    X = np.random.default_rng(4).standard_normal((400, 4))
    y = np.linalg.norm(X, axis=1) > 1.9
    parties = split_columns(X[:300], y[:300], parties=4, active=2)
    clf = VerticalClassifier("fdskl-capped", epochs=20, tolerance=0, batch=64).fit(parties)
    assert clf.score(split_columns(X[300:], y[300:], like=parties)) > 0.85
    with pytest.raises(JobError, match="no intercept"):
        VerticalClassifier("fdskl-capped", intercept=True).fit(parties)


def test_scores_in_one_process_are_the_naive_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_predict, "CHUNK", 100)
    setting = random_tables(parties=3, active=2, rows=40)
    done = run(
        setting, "fdskl-capped", train={"loss": "logistic", "epochs": 2}, kernel={"block": 8, "features": 32}
    )
    X, _ = pooled(setting)
    holdings = {
        name: Holding(done.plan, name, share.weights, setting.train[name].X)
        for name, share in done.shares.items()
    }
    found = KernelShares().together(holdings)
    np.testing.assert_allclose(found, naive(done, X), atol=1e-12)
