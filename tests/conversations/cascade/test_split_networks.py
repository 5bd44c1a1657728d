"""Split networks: split learning is the whole network's SGD, the others train too and keep to their bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.oracles import split
from tests.oracles.tables import pooled, random_job, random_tables, run
from tests.oracles.zeroth import batches

from colonnade.attacks.transcript import Transcript
from colonnade.conversations.cascade.record import CASCADE, EXCHANGE
from colonnade.conversations.pooling import Pooled
from colonnade.data.table import Table
from colonnade.errors import JobError
from colonnade.messages import Reply, Upload
from colonnade.models.network import NeuralNetwork, mlp
from colonnade.run.federate import Tables, run_tables
from colonnade.run.registry import CONVERSATIONS

EXACT: dict[str, Any] = {"precision": "float64", "decay": "none"}
NETWORKS: dict[str, Any] = {
    "kind": "mlp",
    "hidden": [8],
    "outputs": 4,
    "server": {"kind": "mlp", "hidden": [8]},
}
FRAMEWORKS = ("czofo", "czofo-central", "czofo-coord", "czofo-ef", "split", "vafl", "c-vfl")


@pytest.fixture(autouse=True)
def without_pooled_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the pooled comparison: Adam on all columns takes seconds, and these tests do not look at it."""
    for record in (CASCADE, EXCHANGE):
        unpooled = replace(record, pooled=lambda plan, columns: Pooled(0.0, {}))
        monkeypatch.setitem(CONVERSATIONS, record.name, unpooled)


def test_split_learning_is_the_whole_network_trained_pooled() -> None:
    setting = split.networks()
    done = run(
        setting, "split", train={"epochs": 5, "batch": 16, "step": 0.3, "l2": 1e-3},
        cascade={**EXACT, "server_step": 0.2},
    )  # fmt: skip
    bottoms, head = split.whole(setting)
    _, y = pooled(setting)
    rounds = batches(160, 16, 5, 0)
    assert len(rounds) == 50
    before = split.flat(head)
    blocks = [setting.train[party].X for party in sorted(setting.train)]
    split.train(bottoms, head, blocks, y, rounds, steps=(0.3, 0.2), l2=1e-3)
    assert np.abs(split.flat(head) - before).max() > 0.05
    for party, module in zip(sorted(setting.train), bottoms, strict=True):
        np.testing.assert_allclose(done.shares[party].weights["w"], split.flat(module), atol=1e-10)
    np.testing.assert_allclose(done.shares["party0"].weights["w0"], split.flat(head), atol=1e-10)


def test_deltas_by_coordinate_lead_where_the_gradient_leads() -> None:
    # one client: the order in which several are heard depends on what an answer costs
    setting = random_tables(parties=1, active=1, rows=160, columns=4)
    below: dict[str, Any] = {"party0": NeuralNetwork(split.bottom(), precision="float64")}
    setting = replace(setting, models=below, head=mlp(3, (8,), 1, "float64"))
    train = {"epochs": 2, "batch": 16, "step": 0.3}
    exact, near = (
        run(setting, name, train=train, cascade={**EXACT, "mu": 1e-4, **bits})
        for name, bits in (("vafl", {}), ("czofo-coord", {"forward_bits": 32, "backward_bits": 32}))
    )
    for name, w in exact.shares["party0"].weights.items():
        np.testing.assert_allclose(near.shares["party0"].weights[name], w, atol=1e-6)


@pytest.mark.parametrize("algorithm", FRAMEWORKS)
def test_every_framework_trains_networks(algorithm: str) -> None:
    setting = random_tables(parties=2, active=1, rows=600, test_rows=600)
    train = {"epochs": 20, "batch": 32, "step": 0.05 if algorithm == "c-vfl" else 0.2, "evaluate_every": 0}
    done = run(setting, algorithm, train=train, model=NETWORKS)
    assert done.result.metrics["test_accuracy"] > 0.87


@pytest.mark.parametrize("algorithm", ["czofo", "czofo-coord", "vafl", "c-vfl"])
def test_nobody_has_to_choose_a_step(algorithm: str) -> None:
    setting = random_tables(parties=2, active=1, rows=600, test_rows=600)
    model = {"outputs": 2, "server": {"kind": "linear"}}
    train = {"epochs": 20, "batch": 32, "step": "auto", "evaluate_every": 0}
    done = run(setting, algorithm, train=train, model=model)
    assert done.result.metrics["test_accuracy"] > 0.9


@pytest.mark.parametrize("smoothing", ["sphere", "rademacher"])
@pytest.mark.parametrize("per", ["batch", "sample"])
def test_directions_of_every_kind_train_several_classes(smoothing: str, per: str) -> None:
    setting = random_tables(parties=2, active=1, rows=600, test_rows=400, classes=3)
    done = run(
        setting, "czofo", model=NETWORKS,
        train={"loss": "softmax", "epochs": 15, "batch": 32, "step": 0.5, "evaluate_every": 0},
        cascade={"smoothing": smoothing, "per": per, "directions": 40, "server_step": 0.3},
    )  # fmt: skip
    assert done.result.metrics["test_accuracy"] > 0.75


def test_clients_may_have_outputs_of_different_sizes_and_labels_may_be_numbers() -> None:
    setting = random_tables(parties=3, active=1, rows=600, test_rows=400, regression=True)
    model = {"outputs": 2, "parties": {"party1": {"outputs": 5}}, "server": {"kind": "mlp", "hidden": [16]}}
    train = {"loss": "squared", "epochs": 15, "batch": 32, "step": 0.02, "evaluate_every": 0}
    done = run(setting, "czofo", train=train, model=model, cascade={"server_step": 0.02})
    assert done.shares["party1"].weights["w"].size == 4 * 5
    assert done.shares["party0"].weights["w0"].size == (2 + 5 + 2) * 16 + 16 + 16 + 1
    assert done.result.metrics["r2"] > 0.8


def test_four_bits_cost_little_and_the_seed_repeats_a_run() -> None:
    setting = random_tables(parties=2, active=1, rows=400, test_rows=600)
    train = {"epochs": 15, "batch": 32, "step": 0.2, "evaluate_every": 0}
    few: dict[str, Any] = {"forward_bits": 4, "backward_bits": 4, "forward_range": "column"}
    runs = [
        run(setting, "czofo", train=train, model=NETWORKS, cascade=bits).result
        for bits in (
            few, few, {"forward_bits": 32, "backward_bits": 32}, {**few, "forward_rounding": "nearest"}
        )
    ]  # fmt: skip
    assert runs[0].metrics == runs[1].metrics != runs[3].metrics
    for rounded in (runs[0], runs[3]):
        assert rounded.metrics["test_accuracy"] > runs[2].metrics["test_accuracy"] - 0.03
    assert runs[0].cost.bytes_sent < 0.35 * runs[2].cost.bytes_sent


def apart(rows: int) -> Tables:
    """A server that only serves, and two clients."""
    setting = random_tables(parties=2, active=1, rows=rows)
    server = Table("hub", (), np.zeros((rows, 0)), setting.train["party0"].y)
    clients = {party: replace(table, y=None) for party, table in setting.train.items()}
    return Tables("apart", {"hub": server, **clients}, None, ("hub",))


ROWS, BATCH, WIDTH = 60_000, 64, 64


@pytest.mark.parametrize(
    ("algorithm", "bits", "megabytes", "framing"),
    [
        ("split", None, 61.44, 0.002),
        ("vafl", None, 61.44, 0.002),
        ("czofo", 8, 7.90, 0.01),
        ("czofo", 4, 3.96, 0.02),
        ("czofo", 2, 2.00, 0.04),
    ],
)
def test_an_epoch_takes_the_bytes_of_the_formula(
    algorithm: str, bits: int | None, megabytes: float, framing: float
) -> None:
    batches_run = 5
    setting, hub = apart(batches_run * BATCH), Transcript("hub")
    cascade = {"directions": 100, **({"forward_bits": bits, "backward_bits": bits} if bits else {})}
    model = {"outputs": WIDTH, "server": {"kind": "linear"}}
    jobs = [
        random_job(
            setting, algorithm, model=model, cascade=cascade,
            train={"epochs": epochs, "batch": BATCH, "evaluate_every": 0},
        )
        for epochs in (1, 2)
    ]  # fmt: skip
    one = run_tables(jobs[0], setting, tap=hub.tap)
    ups = [m.outputs.nbytes for _, m in hub.heard if isinstance(m, Upload)]
    downs = [m.values.nbytes for _, m in hub.said if isinstance(m, Reply) and m.values.size]
    assert len(downs) == 2 * batches_run
    assert len(set(ups)) == len(set(downs)) == 1
    epoch = ROWS / BATCH * 2 * (ups[0] + downs[0])
    assert epoch == pytest.approx(megabytes * 1e6, rel=0.01)
    two = run_tables(jobs[1], setting)
    costs = [done.result.cost for done in (one, two)]
    pairs, payload = 2 * batches_run, ups[0] + downs[0]
    assert costs[1].payload_bytes - costs[0].payload_bytes == pairs * payload
    sealed = (costs[1].sealed_bytes - costs[0].sealed_bytes) / pairs
    assert sealed == 22 * sum(-(-(size + 30) // 2**14) for size in (ups[0], downs[0]))  # TLS 1.3 records
    sent = (costs[1].bytes_sent - costs[0].bytes_sent) / pairs
    assert 0 < sent - sealed - payload < framing * payload


@pytest.mark.parametrize(
    ("algorithm", "sections", "said"),
    [
        ("czofo", {"model": {"kind": "program", "command": ["x"]}}, "czofo needs gradients"),
        ("czofo", {"model": {"server": {"kind": "program", "command": ["x"]}}}, "model.server: czofo needs"),
        ("czofo", {"privacy": {"mechanism": "scalar", "epsilon": 1.0}}, "czofo sends deltas"),
        ("czofo", {"cascade": {"forward_bits": 3}}, "forward_bits"),
        ("czofo", {"cascade": {"local_steps": 0}}, "local_steps: 0"),
        ("czofo-coord", {"cascade": {"per": "batch"}}, "use per = 'sample'"),
        ("czofo-coord", {"cascade": {"smoothing": "sphere"}}, "no random directions"),
        ("vafl", {"cascade": {"per": "sample"}}, "does not reply with deltas"),
        ("split", {"cascade": {"forward_range": "column"}}, "set forward_bits = 8"),
        ("split", {"train": {"ahead": 2}}, "split is synchronous"),
        ("zoo-vfl", {"cascade": {"forward_bits": 8}}, "differences of nearly equal numbers"),
        ("split", {"cascade": {"local_steps": 5}}, "use c-vfl"),
        ("c-vfl", {"cascade": {"forward_top": 0.1}}, "no earlier ones"),
        ("c-vfl", {"privacy": {"mechanism": "gradient", "epsilon": 1.0}}, "replies with embeddings"),
        ("c-vfl", {"privacy": {"mechanism": "scalar", "epsilon": 1.0}}, "sends the labels"),
        ("syn-zoo-vfl", {"cascade": {"local_steps": 2}}, "its outputs as they were"),
        ("zoo-vfl", {"cascade": {"forward_top": 0.1}}, "the row comes back, but"),
        ("czofo", {"cascade": {"backward_top": 0.1}}, "the row comes back, but"),
        ("czofo", {"cascade": {"forward_top": 0.1, "forward_bits": 8}}, "drop forward_bits"),
        ("split", {"cascade": {"forward_memory": True}}, "32 bits leave nothing out"),
        ("split", {"cascade": {"forward_rounding": "nearest"}}, "only outputs in few bits are rounded"),
        ("czofo", {"cascade": {"forward_memory": True, "forward_bits": 1}}, "errors would not shrink"),
        ("c-vfl", {"cascade": {"forward_memory": True}}, "none of the earlier ones"),
        ("czofo", {"cascade": {"forward_memory": True, "forward_top": 0.1}}, "drop one of the two"),
        ("split", {"cascade": {"backward_top": 1.5}}, "neither a part between 0 and 1 nor a whole number"),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_reason(
    algorithm: str, sections: dict[str, Any], said: str
) -> None:
    with pytest.raises(JobError, match=said):
        run(random_tables(parties=2, active=1), algorithm, **sections)


def test_the_result_says_that_deltas_hide_nothing() -> None:
    done = run(random_tables(parties=2, active=1), "czofo", train={"epochs": 1})
    assert any("not differentially private" in note for note in done.result.privacy.notes)
    assert done.result.privacy.epsilon is None


@pytest.mark.parametrize(
    ("name", "options"),
    [("sgd", {"momentum": 0.9}), ("adam", {}), ("rmsprop", {"alpha": 0.9})],
    ids=["momentum", "adam", "rmsprop"],
)
def test_optimisers_of_torch_train_the_whole_network_as_torch_does(
    name: str, options: dict[str, Any]
) -> None:
    setting = split.networks()
    done = run(
        setting, "split", train={"epochs": 5, "batch": 16, "step": 0.01, "l2": 1e-3},
        cascade={**EXACT, "server_step": 0.02, "optimizer": name, "optimizer_options": options},
    )  # fmt: skip
    bottoms, head = split.whole(setting)
    _, y = pooled(setting)
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}[name]
    blocks = [setting.train[party].X for party in sorted(setting.train)]
    split.train(
        bottoms, head, blocks, y, batches(160, 16, 5, 0),
        steps=(0.01, 0.02), l2=1e-3, optimiser=kind, options=options,
    )  # fmt: skip
    for party, module in zip(sorted(setting.train), bottoms, strict=True):
        np.testing.assert_allclose(done.shares[party].weights["w"], split.flat(module), atol=1e-10)
    np.testing.assert_allclose(done.shares["party0"].weights["w0"], split.flat(head), atol=1e-10)


@pytest.mark.parametrize("algorithm", ["czofo", "zoo-vfl", pytest.param("c-vfl", marks=pytest.mark.slow)])
def test_adam_needs_no_step(algorithm: str) -> None:
    setting = random_tables(parties=2, active=1, rows=600, test_rows=600)
    train = {"epochs": 15, "batch": 32, "evaluate_every": 0}
    cascade = {"optimizer": "adam", "directions": 40}
    done = run(setting, algorithm, train=train, model=NETWORKS, cascade=cascade)
    assert done.result.metrics["test_accuracy"] > 0.85


def test_an_optimiser_that_is_not_there_is_an_error_of_the_job() -> None:
    with pytest.raises(JobError, match=r"cascade\.optimizer: torch has no 'adma'"):
        run(random_tables(parties=2, active=1), "split", cascade={"optimizer": "adma"})


@pytest.mark.parametrize("algorithm", ["split", "vafl", "czofo"])
def test_the_largest_numbers_are_enough_where_the_others_are_remembered(algorithm: str) -> None:
    """A top of all numbers is the plain run; a fifth of them has almost its accuracy for half its bytes."""
    # one client: the order in which several are heard depends on what an answer costs
    setting = random_tables(parties=2 if algorithm == "split" else 1, active=1, rows=600, test_rows=600)
    train = {"epochs": 12, "batch": 32, "step": 0.2, "evaluate_every": 0}
    plain = {"forward_bits": 32, "backward_bits": 32, "directions": 60}

    def top(k: float) -> dict[str, Any]:
        back = {"backward_bits": 32} if algorithm == "czofo" else {"backward_top": k}
        return {"forward_top": k, "directions": 60, **back}

    exact, all_of_them, few = (
        run(setting, algorithm, train=train, model=NETWORKS, cascade=cascade)
        for cascade in (plain, top(10**6), top(0.2))
    )
    for party, share in exact.shares.items():
        for name, w in share.weights.items():
            np.testing.assert_allclose(all_of_them.shares[party].weights[name], w, atol=2e-3)
    assert few.result.metrics["test_accuracy"] > exact.result.metrics["test_accuracy"] - 0.03
    if algorithm == "split":
        assert few.result.cost.bytes_sent < 0.65 * exact.result.cost.bytes_sent
