"""What parties are worth: coalitions trained in a run are those that pooled retraining makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.baselines.pooled import fit_pooled, pool
from colonnade.errors import JobError
from colonnade.job import job_from
from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of
from colonnade.openings.account import heard
from colonnade.openings.opening import Extent
from colonnade.regularizers import REGULARIZERS, Penalty
from colonnade.result import Worth
from colonnade.run.coalitions import trained, whole_openings
from colonnade.run.federate import Finished, federate, prepare
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import compose
from colonnade.worth import Game


def job(algorithm: str = "lbfgs", dataset: str = "breast-cancer", **sections: Any) -> dict[str, Any]:
    data = {"train": dataset, "parties": 3, "active": 1}
    plain = {"algorithm": algorithm, "world": "local", "data": data, "value": True, "compare": False}
    return {**plain, **sections}


def run(plain: dict[str, Any], out: Path | None = None) -> tuple[Finished, Worth]:
    done = federate(job_from(plain), out=out)
    assert done.result.worth is not None
    return done, done.result.worth


def test_every_coalition_is_the_pooled_model_of_its_columns() -> None:
    plain = job(train={"l2": 1e-2, "tolerance": 1e-9})
    _, worth = run(plain)
    _, order = prepare(compose(job_from(plain)))
    tables = {party: data.prepare() for party, data in order.data.items()}
    loss, y = LOSSES["logistic"], tables["party-0"].train.y
    test = tables["party-0"].test
    assert y is not None
    assert test is not None
    assert test.y is not None
    assert worth.trainings == 7
    assert [len(each.parties) for each in worth.coalitions].count(1) == 3
    for each in worth.coalitions:
        blocks, unseen = [np.ones((len(y), 1))], [np.ones((len(test.y), 1))]
        for party in each.parties:
            own = [k for k, name in enumerate(tables[party].train.columns) if name != "(intercept)"]
            blocks.append(tables[party].train.X[:, own])
            unseen.append(tables[party].test.X[:, own])  # type: ignore[union-attr]
        fit = fit_pooled(pool(blocks), y, loss, Penalty(REGULARIZERS["l2"], 1e-2, 0.0, (0,)))
        pooled = metrics_of(loss, fit.scores(pool(unseen)), test.y)
        assert each.metrics == pytest.approx(pooled, abs=2e-4), each.parties
    whole = {tuple(each.parties): each.metrics for each in worth.coalitions}
    added = whole["party-0", "party-1", "party-2"]["test_loss"] - whole[()]["test_loss"]
    assert sum(value["test_loss"][0] for value in worth.values.values()) == pytest.approx(added)


@pytest.mark.parametrize(
    ("algorithm", "dataset", "more"),
    [
        ("vfb2-svrg", "breast-cancer", {"train": {"epochs": 3}, "world": "simulated"}),
        ("vfb2-svrg", "breast-cancer", {"train": {"epochs": 3}, "secure": {"labels": "blind"}}),
        ("lbfgs", "breast-cancer", {"secure": {"labels": "blind", "scores": "hidden"}}),
        ("lbfgs", "diabetes", {"secure": {"labels": "blind"}}),
        ("lbfgs", "wine", {}),
        ("secureboost", "breast-cancer", {"train": {"epochs": 3}}),
        ("fdskl", "breast-cancer", {"train": {"epochs": 2}}),
        ("split", "breast-cancer", {"train": {"epochs": 2}}),
        ("asysqn-svrg", "breast-cancer", {"train": {"epochs": 2}}),
    ],
)
def test_every_kind_of_model_says_what_parties_are_worth(
    algorithm: str, dataset: str, more: dict[str, Any]
) -> None:
    _, worth = run(job(algorithm, dataset, **more))
    assert set(worth.values) == {"party-0", "party-1", "party-2"}
    whole = {tuple(each.parties): each.metrics for each in worth.coalitions}
    assert len(whole) == 8
    added = whole["party-0", "party-1", "party-2"]["test_loss"] - whole[()]["test_loss"]
    assert sum(value["test_loss"][0] for value in worth.values.values()) == pytest.approx(added)


def test_two_parties_alone_are_encrypted_in_every_training() -> None:
    data = {"train": "breast-cancer", "parties": 2, "active": 1}
    done, worth = run(job(data=data, secure={"labels": "blind", "few_rows": True}))
    assert worth.trainings == 3
    assert done.result.privacy.leaks == ["few-rows", "values"]


def test_others_hear_values_rounded_to_their_intervals() -> None:
    done, worth = run(job(secure={"labels": "blind"}))
    for party in ("party-1", "party-2"):
        told = done.shares[party].worth
        assert told is not None
        assert not told.coalitions
        for player, metrics in worth.values.items():
            for name, (value, low, high) in metrics.items():
                near, least, most = told.values[player][name]
                assert low <= near <= high
                assert least <= value <= most
                step = 2.0 ** np.floor(np.log2(most - least))
                assert near % (step / 8) == 0  # few bits


def test_a_party_of_noise_is_worth_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows, ids = 4000, np.arange(4000)
    x = rng.normal(size=(rows, 2))
    y = (x.sum(axis=1) + rng.normal(size=rows) > 0).astype(int)
    np.savetxt(tmp_path / "a.csv", np.c_[ids, x[:, 0], y], "%g", ",", header="id,x,y", comments="")
    np.savetxt(tmp_path / "b.csv", np.c_[ids, x[:, 1]], "%g", ",", header="id,z", comments="")
    noise = np.c_[ids, rng.normal(size=(rows, 3))]
    np.savetxt(tmp_path / "c.csv", noise, "%g", ",", header="id,r,s,t", comments="")
    files = {name: str(tmp_path / f"{name}.csv") for name in "abc"}
    data = {"files": files, "label": "y", "id": "id", "active": ["a"]}
    for secure in ({}, {"labels": "blind"}):
        _, worth = run(job(data=data, secure=secure))
        for metric, (_, low, high) in worth.values["c"].items():
            assert low <= 0 <= high, metric
        assert worth.values["b"]["test_auc"][1] > 0.05


def test_all_trainings_are_declared() -> None:
    composition = compose(job_from(job(secure={"labels": "blind"})))
    _, order = prepare(composition)
    plan, extent = order.plan, Extent(400, 100, {"party-0": 5, "party-1": 5, "party-2": 5})
    once = CONVERSATIONS[plan.conversation].openings(plan, extent)
    whole = heard(whole_openings(plan, once, extent), 400)
    alone = {(each.hearer, each.about, each.of): each for each in heard(once, 400)}
    for each in whole:
        before = alone[each.hearer, each.about, each.of]
        assert each.numbers >= 7 * before.numbers
        told = each.about == "labels" and each.hearer != "party-0"
        assert ("values" in each.kinds) == told
    assert len(trained(Game.of(plan.parties, plan.seed))) == 6


def test_what_cannot_be_said_is_refused() -> None:
    with pytest.raises(JobError, match="value: every coalition"):
        compose(job_from(job(secure={"labels": "blind", "epsilon": 1.0})))
    with pytest.raises(JobError, match="value: every coalition"):
        compose(job_from(job("vfb2-svrg", privacy={"mechanism": "labels", "epsilon": 1.0})))
