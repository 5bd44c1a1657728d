"""Stored shares score new rows through the secure sum as the pooled model would."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from tests.oracles.dsg import features_of, phi
from tests.oracles.tables import pooled, random_tables, run
from tests.secure.parties import masked

from colonnade import VerticalClassifier, split_columns
from colonnade.arrays import Arrays, Floats
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
        omega, b = features_of(done, owner)
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


def machine(setting: Tables, algorithm: str) -> Finished:
    features = {"features": 16} if algorithm == "fdskl-capped" else {}
    train = {"loss": "logistic", "epochs": 4, "batch": 10, "tolerance": 0.0}
    done = run(setting, algorithm, train=train, kernel={"block": 8, **features})
    kind = "seeds" if algorithm == "fdskl" else "omega"
    assert f"{kind}.party0" in done.shares["party2"].weights
    return done


@pytest.mark.parametrize("algorithm", ["fdskl", "fdskl-capped"])
@pytest.mark.parametrize("active", [1, 2])
def test_new_rows_are_scored_together_and_only_the_asker_learns_the_score(
    tmp_path: Path, active: int, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_predict, "CHUNK", 128)  # several stretches even here
    monkeypatch.setattr(kernel_predict, "FEW", 16)
    done = machine(random_tables(parties=3, active=active, rows=40), algorithm)
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


@pytest.mark.parametrize("algorithm", ["fdskl", "fdskl-capped"])
def test_scores_in_one_process_are_the_naive_sum(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_predict, "CHUNK", 100)
    monkeypatch.setattr(kernel_predict, "FEW", 16)
    setting = random_tables(parties=3, active=2, rows=40)
    done = machine(setting, algorithm)
    X, _ = pooled(setting)
    arrays = {name: share.weights for name, share in done.shares.items()}
    found = KernelShares().together(holdings(done, setting, arrays))
    np.testing.assert_allclose(found, naive(done, X), atol=1e-12)


def test_a_share_of_0_2_has_its_directions_themselves_and_scores_the_same(tmp_path: Path) -> None:
    setting = random_tables(parties=3, active=2, rows=40)
    done = machine(setting, "fdskl")
    old: dict[str, Arrays] = {}
    for name, share in done.shares.items():
        now = KernelShare.from_arrays(share.weights)
        drawn = {owner: part.whole() for owner, part in now.features.items()}
        old[name] = {"outputs": share.weights["outputs"]}
        old[name] |= {f"omega.{owner}": part.omega for owner, part in drawn.items()}
        old[name] |= {f"b.{owner}": part.b for owner, part in drawn.items()}
        if now.alpha is not None:
            old[name]["alpha"] = now.alpha
    X, _ = pooled(setting)
    np.testing.assert_allclose(
        KernelShares().together(holdings(done, setting, old)), naive(done, X), atol=1e-12
    )
    shares = {name: KernelShare.from_arrays(arrays) for name, arrays in old.items()}
    found = federated(shares, setting, root="party1")["party1"]
    assert found is not None
    np.testing.assert_allclose(found, naive(done, X), atol=1e-7)


def holdings(done: Finished, setting: Tables, arrays: dict[str, Arrays]) -> dict[str, Holding]:
    return {name: Holding(done.plan, name, held, setting.train[name].X) for name, held in arrays.items()}
