"""Numbers to predict in any unit: networks give the same model, and what is kept is a plain sum."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from colonnade import VerticalRegressor
from colonnade.conversations.cascade.cascade import hear_unit, take_unit, tell_unit
from colonnade.conversations.cascade.units import NO_UNIT, Unit, applies, head_unit, taken_in, unit_of
from colonnade.errors import JobError, ProtocolError
from colonnade.job import job_from
from colonnade.job.plan import Facts, Plan
from colonnade.messages import Announce
from colonnade.models.blackbox import Linear
from colonnade.run.resolve import compose, resolve

pytest.importorskip("torch")

MLP = {"kind": "mlp", "hidden": [8]}


def numbers(rows: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 6))
    return X, np.maximum(X[:, 0], X[:, 1]) + 0.5 * X[:, 2] * (X[:, 3] > 0) + 0.1 * rng.standard_normal(rows)


def fitted(algorithm: str, X: Any, y: Any) -> VerticalRegressor:
    model = VerticalRegressor(
        algorithm=algorithm, parties=3, model=MLP, epochs=8, random_state=1, world="simulated"
    )
    return model.fit(X, y)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("algorithm", ["split", "czofo", "asyrevel-gau"])
@pytest.mark.parametrize(("unit", "offset"), [(1e6, 0.0), (1e-6, 0.0), (1e3, -5e4)])
def test_the_unit_of_a_label_makes_no_difference(algorithm: str, unit: float, offset: float) -> None:
    X, y = numbers()
    plain, other = fitted(algorithm, X, y), fitted(algorithm, X, unit * y + offset)
    assert plain.score(X, y) > 0.5
    np.testing.assert_allclose((other.predict(X) - offset) / unit, plain.predict(X), atol=0.02)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_what_is_kept_gives_the_loss_that_was_measured() -> None:
    X, y = numbers()
    y = 40 * y + 1000
    model = fitted("split", X, y)
    error = float(np.mean((model.predict(X) - y) ** 2) / 2)
    assert model.result_.metrics["objective"] == pytest.approx(error, rel=0.02)  # and the penalty
    assert error < 0.5 * y.var() / 2


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("server", [{"kind": "linear"}, {"kind": "mlp", "hidden": [8]}])
@pytest.mark.parametrize("algorithm", ["split", "c-vfl", "czofo-coord"])
def test_a_server_with_a_last_layer_of_its_own_takes_the_unit_in(
    algorithm: str, server: dict[str, Any]
) -> None:
    X, y = numbers()
    model = {**MLP, "outputs": 4, "server": server}

    def predicted(unit: float, offset: float) -> tuple[Any, float, float]:
        found = VerticalRegressor(algorithm, parties=3, model=model, epochs=20, random_state=1, l2=1e-3).fit(
            X, unit * y + offset
        )
        metrics = found.result_.metrics
        return (found.predict(X) - offset) / unit, metrics["train_loss"], metrics["objective"]

    plain, loss, objective = predicted(1.0, 0.0)
    other, far_loss, far_objective = predicted(1e6, -5e7)
    assert loss == pytest.approx(np.mean((plain - y) ** 2) / 2, rel=1e-3)
    assert objective > loss
    np.testing.assert_allclose(other, plain, atol=0.05)
    assert far_loss == pytest.approx(1e12 * loss, rel=0.05)
    assert far_objective == pytest.approx(1e12 * objective, rel=0.05)


def test_f0_is_trained_in_a_unit_of_its_own_where_the_job_names_no_step() -> None:
    labels, linear = np.array([1.0, 3.0]), {**MLP, "server": {"kind": "linear"}}
    assert head_unit(plan_of(model=linear), labels) == Unit(1.0, 2.0)
    assert head_unit(plan_of(model=linear), labels, given=True) == NO_UNIT
    for changes in (
        {},
        {"model": linear, "train": {"step": 0.1}},
        {"model": linear, "cascade": {"server_step": 0.1}},
        {"model": linear, "algorithm": "vafl-dp", "privacy": {"mechanism": "gradient", "epsilon": 8.0}},
    ):
        assert head_unit(plan_of(**changes), labels) == NO_UNIT, changes


def test_rows_keep_their_weights_in_any_unit() -> None:
    y = np.array([[3.0, 0.5], [7.0, 1.5]])
    assert Unit(2.0, 5.0).labels(y).tolist() == [[-1.0, 0.5], [1.0, 1.5]]
    assert Unit(2.0, 5.0).scores(np.array([-1.0, 1.0])).tolist() == [3.0, 7.0]


def test_a_linear_layer_takes_the_unit_in() -> None:
    layer, X = Linear(3, 1, bias=True), np.random.default_rng(1).standard_normal((5, 3))
    w = np.arange(1.0, 5.0)
    after = layer.forward(taken_in(layer, w, Unit(30.0, -2.0))[None], X)
    np.testing.assert_allclose(after, 30 * layer.forward(w[None], X) - 2)


def plan_of(**changes: Any) -> Plan[Any]:
    raw: dict[str, Any] = {
        "algorithm": "split",
        "data": {"train": "x.csv", "label": "y", "parties": 3},
        "model": dict(MLP),
        "train": {},
        **changes,
    }
    facts = Facts(columns={"a": 2, "b": 2, "c": 2}, label_holders=("a",), rows=300, task="regression")
    return resolve(compose(job_from(raw)), facts)


def test_f0_has_a_unit_where_described_networks_are_added_up_to_a_number() -> None:
    labels = np.array([1.0, 3.0])
    assert unit_of(plan_of(), labels) == Unit(1.0, 2.0)
    assert unit_of(plan_of(), np.array([7.0, 7.0])) == Unit(1.0, 7.0)
    for changes in (
        {"model": {"kind": "linear"}},
        {"model": {**MLP, "parties": {"b": {"kind": "linear"}}}},
        {"model": {**MLP, "server": {"kind": "linear"}}},
        {"algorithm": "c-vfl"},
    ):
        assert not applies(plan_of(**changes)), changes
        assert unit_of(plan_of(**changes), labels) == NO_UNIT


def test_the_last_layer_takes_the_unit_in() -> None:
    from colonnade.models.network import mlp

    network, X = mlp(4, (5,), 1), np.random.default_rng(2).standard_normal((9, 4))
    w = network.initial(np.random.default_rng(3))
    before, after = (
        network.forward(w[None], X)[0],
        network.forward(taken_in(network, w, Unit(30.0, -2.0))[None], X)[0],
    )
    np.testing.assert_allclose(after, 30 * before - 2, rtol=1e-4, atol=1e-4)
    assert taken_in(network, w, NO_UNIT) is w


def test_a_server_with_a_model_of_its_own_tells_clients_that_there_is_no_unit() -> None:
    sent: list[Any] = []

    class Net:
        async def broadcast(self, message: Announce) -> None:
            sent.append(message.values.tolist())

    def seen(head: object) -> Any:
        return SimpleNamespace(
            plan=plan_of(),
            net=Net(),
            models=SimpleNamespace(head=head),
            label_holder=SimpleNamespace(labels=np.array([1.0, 5.0])),
        )

    assert asyncio.run(tell_unit(seen(None), clients=3)) == Unit(2.0, 1.0)
    assert asyncio.run(tell_unit(seen(object()), clients=3)) == NO_UNIT
    assert sent == [[2.0, 1.0], [1.0, 0.0]]


def test_a_model_given_as_an_object_where_a_network_is_described_is_refused() -> None:
    client: Any = SimpleNamespace(context=SimpleNamespace(me="b", models=SimpleNamespace(own=object())))
    with pytest.raises(JobError, match=r"say kind = 'torch' in \[model.parties.b\]"):
        take_unit(client, Unit(2.0))


@pytest.mark.parametrize("size", [0.0, -1.0])
def test_a_unit_that_is_none_is_refused(size: float) -> None:
    class Net:
        async def recv(self, *_: object, **__: object) -> Announce:
            return Announce(2, np.array([size, 0.0]))

    class Seen:
        plan, net, evaluator = plan_of(), Net(), "a"

    with pytest.raises(ProtocolError, match="a sent a unit of"):
        asyncio.run(hear_unit(Seen()))  # type: ignore[arg-type]
