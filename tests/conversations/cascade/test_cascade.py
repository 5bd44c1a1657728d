"""The cascade: synchronous equals pooled, asynchronous is bounded and measured, both keep to their bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import pooled, random_job, random_tables, run
from tests.oracles.zeroth import batches, first_order, zeroth_order

from colonnade.data.table import Table
from colonnade.errors import Diverged, JobError, PeerLost
from colonnade.losses import LOSSES
from colonnade.models.blackbox import Function, Linear
from colonnade.regularizers import REGULARIZERS
from colonnade.run.federate import Finished, Tables

EXACT: dict[str, Any] = {"precision": "float64", "decay": "none"}


def blocks_of(setting: Tables) -> list[Any]:
    return [setting.train[party].X for party in sorted(setting.train)]


def weights_of(done: Finished) -> list[Any]:
    return [done.shares[party].weights["w"] for party in sorted(done.shares)]


@pytest.mark.parametrize("smoothing", ["gau", "uni"])
@pytest.mark.parametrize("world", ["simulated", "local"])
def test_the_synchronous_algorithm_is_the_pooled_one(smoothing: str, world: str) -> None:
    setting = random_tables(parties=4, active=1)
    cascade = {**EXACT, "directions": 3, "mu": 1e-4}
    train = {"epochs": 2, "batch": 16, "step": 0.2, "regularizer": "nonconvex", "l2": 1e-2}
    done = run(setting, f"synrevel-{smoothing}", world=world, train=train, cascade=cascade)
    _, y = pooled(setting)
    expected = zeroth_order(
        blocks_of(setting), y, LOSSES["logistic"], REGULARIZERS["nonconvex"], batches(len(y), 16, 2, 0),
        l2=1e-2, step=0.2, K=3, mu=1e-4, sphere=smoothing == "uni", seed=0,
    )  # fmt: skip
    for found, due in zip(weights_of(done), expected, strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-9, atol=1e-10)


def test_synchronous_tig_is_pooled_sgd() -> None:
    setting = random_tables(parties=3, active=1)
    done = run(setting, "syntig", train={"epochs": 3, "batch": 16, "step": 0.3}, cascade=EXACT)
    _, y = pooled(setting)
    expected = first_order(
        blocks_of(setting), y, LOSSES["logistic"], REGULARIZERS["l2"], batches(len(y), 16, 3, 0),
        l2=1e-4, step=0.3,
    )  # fmt: skip
    for found, due in zip(weights_of(done), expected, strict=True):
        np.testing.assert_allclose(found, due, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("algorithm", ["asyrevel-gau", "asyrevel-uni", "tig", "synrevel-gau", "syntig"])
def test_every_preset_comes_close_to_the_pooled_optimum_without_being_told_a_step(algorithm: str) -> None:
    setting = random_tables(parties=4, active=2, rows=400, test_rows=400)
    train = {"epochs": 25, "batch": 32, "step": "auto", "l2": 1e-2, "evaluate_every": 0}
    done = run(setting, algorithm, train=train)
    assert done.result.metrics["suboptimality"] < 0.01
    assert done.result.metrics["test_accuracy"] > done.result.pooled["test_accuracy"] - 0.02


def test_an_assumed_delay_shortens_the_step_as_the_theorem_has_it() -> None:
    setting = random_tables(parties=3, active=1, rows=160)

    def step(algorithm: str, **cascade: Any) -> float:
        train = {"epochs": 1, "batch": 16, "step": "auto", "max_delay": 200}
        return float(run(setting, algorithm, train=train, cascade=cascade).result.step["party1"])

    usual = step("asyrevel-gau")
    assert step("asyrevel-gau", assumed_delay=0) == pytest.approx(usual / 4)
    assert step("asyrevel-gau", assumed_delay=7) == pytest.approx(usual / 32)
    # taken in every 9 answers at least, and back at a row within two passes of 10 batches
    assert step("asyrevel-gau", assumed_delay="bound") == pytest.approx(usual / 4 / (9 * (2 * 10 + 1) + 1))
    assert step("synrevel-gau", assumed_delay="bound") == pytest.approx(usual / 4)


def test_staleness_is_nothing_when_synchronous_and_measured_and_bounded_otherwise() -> None:
    setting = random_tables(parties=4, active=1, rows=160)
    train = {"epochs": 6, "batch": 16}
    sync = run(setting, "synrevel-gau", train={**train, "max_delay": 0}).result.staleness
    assert (sync.mean, sync.max, sync.bound) == (0.0, 0, 0)
    late = run(setting, "asyrevel-gau", train=train).result.staleness
    assert 0 < late.mean < late.max <= (late.bound or 0)
    # a client comes back to a row within two passes of 10 batches, and may be silent for 8 answers a client
    assert late.bound == (2 * 10 + 1) * 8 * 4


@pytest.mark.parametrize("algorithm", ["asyrevel-gau", "vafl"])
@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize("more", [0, 100])
@pytest.mark.parametrize("slow", [0, 3])
def test_no_output_that_an_answer_uses_is_older_than_max_delay(
    algorithm: str, ahead: int, more: int, slow: int
) -> None:
    setting = random_tables(parties=4, active=1, rows=160)
    least = (2 * 10 + ahead) * ahead * 4
    network = {"speeds": [0.02 if k == slow else 1.0 for k in range(4)], "us_per_call": 500.0}
    bounded = {"epochs": 12, "batch": 16, "ahead": ahead, "max_delay": least + more}
    late = run(setting, algorithm, train=bounded, network=network).result.staleness
    assert late.bound is not None
    assert 0 < late.max <= late.bound <= least + more


@pytest.mark.parametrize(("ahead", "max_delay"), [(1, 0), (1, 9), (1, 83), (3, 275)])
def test_a_delay_that_cannot_be_kept_is_refused_with_the_least_that_can(ahead: int, max_delay: int) -> None:
    setting = random_tables(parties=4, active=1, rows=160)
    least = (2 * 10 + ahead) * ahead * 4
    with pytest.raises(
        JobError,
        match=rf"train.max_delay: 4 clients, .* over max_delay = {max_delay}; set max_delay = {least}",
    ):
        run(setting, "asyrevel-gau", train={"batch": 16, "ahead": ahead, "max_delay": max_delay})


def test_a_bound_on_delays_keeps_a_slow_client_s_outputs_fresh() -> None:
    setting = random_tables(parties=4, active=1, rows=160)
    slow, train = {"speeds": [1, 1, 1, 0.01], "us_per_call": 500.0}, {"epochs": 12, "batch": 16}
    free = run(setting, "asyrevel-gau", train=train, network=slow).result.staleness
    held = run(setting, "asyrevel-gau", train={**train, "max_delay": 84}, network=slow).result.staleness
    assert free.max > 84 >= held.max


def test_no_client_stays_unheard_for_longer_than_a_bound_on_delays_allows() -> None:
    setting = random_tables(parties=4, active=1, rows=320)
    slow = {"speeds": [1, 1, 1, 0.01], "us_per_call": 50.0}
    train = {"epochs": 4, "batch": 16}
    updates = {}
    for bound in (6, 60):
        max_delay = (2 * 20 + 1) * bound
        done = run(setting, "asyrevel-gau", train={**train, "max_delay": max_delay}, network=slow)
        updates[bound] = done.result.cost.updates_by_party["party3"]
        total = sum(done.result.cost.updates_by_party.values())
        assert total == 4 * 20 * 4
        # between two of its answers the others get at most the bound and what is already waiting
        assert updates[bound] >= total // (bound + 4) - 1
    assert updates[6] > 2 * updates[60]


def test_the_quick_get_more_answers_and_the_run_has_as_many_as_planned() -> None:
    setting = random_tables(parties=4, active=1, rows=320)
    network = {"speeds": [1, 1, 1, 0.1], "us_per_call": 500.0}
    done = run(setting, "asyrevel-gau", train={"epochs": 5, "batch": 16}, network=network)
    updates = done.result.cost.updates_by_party
    assert sum(updates.values()) == done.result.cost.rounds == 5 * 20 * 4
    assert updates["party3"] < 0.5 * updates["party1"]
    # no network slows the server's own client down, and still it does not run away
    assert updates["party0"] <= max(updates["party1"], updates["party2"]) + 1


def test_the_same_seed_gives_the_same_run_and_another_does_not() -> None:
    setting = random_tables(parties=3, active=1)
    network = {"latency_ms": 3.0, "speeds": [1, 0.7, 0.4], "us_per_call": 300.0}
    runs = [
        run(setting, "asyrevel-gau", network=network, seed=seed, train={"epochs": 3}).result
        for seed in (5, 5, 6)
    ]
    same = [
        (r.metrics, r.cost.bytes_by_party, [(m.virtual_seconds, m.loss) for m in r.history]) for r in runs
    ]
    assert same[0] == same[1] != same[2]


@pytest.mark.parametrize("faults", [{"drop": 0.1, "duplicate": 0.1}, {"delay": 0.2}], ids=str)
def test_a_bad_network_does_not_change_the_synchronous_result(faults: dict[str, float]) -> None:
    setting = random_tables(parties=3, active=1)
    good, bad = (
        weights_of(run(setting, "synrevel-gau", network={"faults": plan, "latency_ms": 1.0}))
        for plan in ({}, faults)
    )
    for one, other in zip(good, bad, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_party_that_dies_ends_the_run_with_its_name() -> None:
    setting = random_tables(parties=3, active=1)
    with pytest.raises(PeerLost, match="party2"):
        run(setting, "asyrevel-gau", network={"faults": {"crash": {"party2": 0.01}}, "us_per_call": 1000.0})


def test_the_payload_of_an_update_does_not_depend_on_the_number_of_columns() -> None:
    per_update = []
    for columns in (8, 64):
        setting = random_tables(parties=4, active=1, rows=256, columns=columns)
        result = run(setting, "asyrevel-gau", train={"epochs": 2, "batch": 64}).result
        remote = sum(result.cost.updates_by_party.values()) - result.cost.updates_by_party["party0"]
        kinds = result.cost.bytes_by_kind
        per_update.append((kinds["upload"] / (remote + 3), kinds["reply"] / (remote + 3)))
    # tags grow by a byte or so; the numbers are 5 outputs of 4 bytes a row up, 5 losses of 8 bytes down
    assert per_update[0] == pytest.approx(per_update[1], rel=0.002)
    up, down = per_update[0]
    assert 5 * 64 * 4 < up < 5 * 64 * 4 + 64
    assert 5 * 8 < down < 5 * 8 + 64


def test_tig_sends_one_number_a_row_and_output() -> None:
    setting = random_tables(parties=4, active=1, rows=256)
    result = run(setting, "tig", train={"epochs": 2, "batch": 64}).result
    remote = sum(result.cost.updates_by_party.values()) - result.cost.updates_by_party["party0"]
    assert 64 * 4 < result.cost.bytes_by_kind["reply"] / (remote + 3) < 64 * 4 + 64


def test_a_server_of_its_own_holds_labels_and_no_columns() -> None:
    setting = random_tables(parties=3, active=1, rows=400)
    rows, y = setting.train["party0"].rows, setting.train["party0"].y
    server = Table("hub", (), np.zeros((rows, 0)), y)
    clients = {party: replace(table, y=None) for party, table in setting.train.items()}
    apart = Tables("apart", {"hub": server, **clients}, None, ("hub",))
    done = run(apart, "asyrevel-gau", train={"epochs": 20, "batch": 32, "step": "auto", "l2": 1e-2})
    assert set(done.shares["hub"].weights) == {"w0"}
    assert done.result.cost.updates_by_party["hub"] == 0
    assert done.result.metrics["suboptimality"] < 0.02


def test_one_party_alone_is_client_and_server() -> None:
    done = run(random_tables(parties=1, active=1), "asyrevel-gau", train={"epochs": 3})
    assert done.result.cost.messages == 0
    assert done.result.history[-1].loss < done.result.history[0].loss


def test_questions_under_way_hide_a_long_line() -> None:
    setting = random_tables(parties=3, active=1, rows=320)
    train, far = {"epochs": 3, "batch": 16}, {"latency_ms": 50}
    seconds = [
        run(setting, "asyrevel-gau", train={**train, "ahead": ahead}, network=far).result.cost.virtual_seconds
        for ahead in (1, 4)
    ]
    assert seconds[1] is not None and seconds[0] is not None  # noqa: PT018
    assert seconds[1] < 0.4 * seconds[0]


def test_training_stops_at_its_target() -> None:
    setting = random_tables(parties=3, active=1, rows=400)
    done = run(setting, "asyrevel-gau", train={"epochs": 50, "batch": 32, "step": 0.5, "target": 0.05})
    assert done.result.metrics["suboptimality"] <= 0.05
    assert done.result.cost.epochs < 50


def test_a_step_that_is_too_long_is_said() -> None:
    with pytest.raises(Diverged, match="smaller step"):
        run(
            random_tables(parties=2, active=1, regression=True), "asyrevel-gau",
            train={"loss": "squared", "step": 1e6, "epochs": 20},
        )  # fmt: skip


def test_any_python_object_with_parameters_and_a_forward_call_is_a_model() -> None:
    setting = random_tables(parties=3, active=1, rows=300)
    d = setting.train["party1"].X.shape[1]
    calls = []

    def stepped(w: Any, X: Any) -> Any:
        calls.append(len(X))
        return X @ w[:d] + w[d] * np.sign(X[:, 0])

    # F0 too: a score that saturates, with a weight of its own for every client
    top = Function(lambda w, C: 3 * np.tanh(C @ w), 3, "top", start=lambda rng: np.ones(3))
    mixed = replace(setting, models={"party1": Function(stepped, d + 1)}, head=top)
    done = run(mixed, "asyrevel-gau", train={"epochs": 15, "batch": 32, "step": 0.3})
    assert calls
    assert done.shares["party1"].weights["w"].shape == (d + 1,)
    assert done.result.history[-1].loss < 0.6 * np.log(2)
    assert not np.allclose(done.shares["party0"].weights["w0"], 1.0)
    with pytest.raises(JobError, match="needs gradients"):
        run(mixed, "tig")


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_model_that_runs_away_is_named_by_its_owner() -> None:
    setting = random_tables(parties=3, active=1, rows=100)
    long = replace(setting.train["party1"], X=1e10 * setting.train["party1"].X)
    with pytest.raises(
        Diverged, match=r"party1: outputs of its model are beyond 3e\+38; use a smaller step$"
    ):
        run(
            replace(setting, train={**setting.train, "party1": long}, test=None),
            "asyrevel-gau",
            train={"epochs": 2, "step": 1e30},
        )


def test_what_runs_away_with_numbers_to_predict_says_that_their_unit_may_be_why() -> None:
    setting = random_tables(parties=3, active=1, rows=100, regression=True)
    holder = setting.train["party0"]
    assert holder.y is not None
    far = replace(holder, y=1e3 * (holder.y + 5))
    with pytest.raises(
        Diverged, match="use a smaller step, or give the label in a unit in which it is about 1"
    ):
        run(
            replace(setting, train={**setting.train, "party0": far}, test=None),
            "asyrevel-gau",
            train={"loss": "squared", "epochs": 20, "step": 1.0},  # for labels as they are
            model={"kind": "mlp", "server": {"kind": "linear"}},
        )


def test_networks_and_several_classes() -> None:
    setting = random_tables(parties=2, active=1, rows=300, test_rows=200)
    for tables in (setting.train, setting.test):
        assert tables is not None
        X = np.hstack([tables[p].X for p in sorted(tables)])
        classes = (X[:, 0] > 0).astype(float) + (X[:, 6] > 0.3)
        tables["party0"] = replace(tables["party0"], y=classes)
    done = run(
        setting, "asyrevel-gau",
        train={"loss": "softmax", "epochs": 20, "batch": 32, "step": 0.2, "evaluate_every": 0},
        cascade={"server": "first"},
        model={"kind": "mlp", "hidden": [8], "server": {"kind": "linear"}},
    )  # fmt: skip
    assert done.result.metrics["test_accuracy"] > 0.6
    assert done.result.pooled["test_accuracy"] > 0.75
    assert done.shares["party0"].weights["w0"].shape == ((2 * 3 + 1) * 3,)  # a sum of two embeddings of 3


@pytest.mark.parametrize("algorithm", ["split", "c-vfl", "czofo", "asyrevel-gau", "zoo-vfl"])
def test_as_many_parties_as_classes_learn_all_of_them_without_being_told_how(algorithm: str) -> None:
    setting = random_tables(parties=3, active=1, rows=300, test_rows=200)
    for tables in (setting.train, setting.test):
        assert tables is not None
        told = np.stack([tables[p].X[:, 0] - tables[p].X[:, 1] for p in sorted(tables)[::-1]])
        tables["party0"] = replace(tables["party0"], y=told.argmax(axis=0).astype(float))
    done = run(setting, algorithm, train={"loss": "softmax", "epochs": 30})
    assert done.result.metrics["test_accuracy"] > 0.7
    assert {done.plan.settings.model.of(party).width for party in setting.train} == {3}


@pytest.mark.parametrize(
    ("algorithm", "sections", "said"),
    [
        ("tig", {"model": {"kind": "program", "command": ["x"]}}, "needs gradients, and a program"),
        (
            "tig",
            {"model": {"parties": {"party1": {"kind": "function", "path": "a:b", "parameters": 1}}}},
            "model.parties.party1: tig needs gradients",
        ),
        (
            "asyrevel-gau",
            {"cascade": {"server": "first"}, "model": {"server": {"kind": "program", "command": ["x"]}}},
            "use server = 'zeroth'",
        ),
        ("vfb2-sgd", {"model": {"kind": "mlp"}}, "trains linear models only"),
        ("synrevel-gau", {"train": {"ahead": 2}}, "synrevel-gau is synchronous"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(
    algorithm: str, sections: dict[str, Any], said: str
) -> None:
    setting = random_tables(parties=2, active=1)
    with pytest.raises(JobError, match=said):
        run(setting, algorithm, **sections)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"kind": "program"}, "model: kind = 'program' needs command"),
        ({"kind": "function", "path": "a:b"}, "needs parameters = N"),
        ({"server": {"kind": "torch"}}, "model.server: kind = 'torch' needs path"),
        ({"kind": "linar"}, "model.kind"),
    ],
)
def test_a_model_that_is_not_described_is_refused_where_it_stands(model: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError, match=said):
        random_job(random_tables(parties=2, active=1), "asyrevel-gau", model=model)


def test_an_upload_of_the_wrong_shape_ends_the_run_by_name() -> None:
    setting = random_tables(parties=2, active=1)
    width = setting.train["party1"].X.shape[1]

    class Growing(Linear):
        def forward(self, W: Any, X: Any) -> Any:
            outputs = super().forward(W, X)
            return outputs if len(W) == 1 else np.repeat(outputs, 2, axis=2)

    wrong = replace(setting, models={"party1": Growing(width)})
    with pytest.raises(Exception, match="party1 sent what cannot be: an array of shape"):
        run(wrong, "asyrevel-gau")
