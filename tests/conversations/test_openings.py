"""What a run declares to open is what crosses: compared with tapped transcripts of every conversation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from tests.hostile.worlds import TRAININGS
from tests.net.worlds import PARTIES, WORLDS, world
from tests.oracles.tables import random_job, random_tables

from colonnade.arrays import Numbers
from colonnade.conversations.context import Context
from colonnade.errors import Aborted, JobError, UndeclaredOpening
from colonnade.job.presets import PRESETS
from colonnade.messages import Announce, AnyMessage, Message, Piece, Topic, tag_of
from colonnade.net.endpoint import Endpoint
from colonnade.net.meter import Meter, weighed
from colonnade.openings.account import heard
from colonnade.openings.declaration import Declaration
from colonnade.openings.leaks import Leak
from colonnade.openings.limits import OpeningLimits
from colonnade.openings.opening import PRODUCT, Extent, Opening, sent, summed
from colonnade.openings.wire import opened_fields
from colonnade.run import notes
from colonnade.run.coalitions import train
from colonnade.run.federate import plan_for
from colonnade.run.launch import launch
from colonnade.run.party import Party, Work
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.world import Launch
from colonnade.secure.keys import InProcessIdentity
from colonnade_bench.tapping import allowed, declared, tapped

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    **TRAININGS,
    "blind-svrg": ("vfb2-svrg", {"secure": {"labels": "blind"}, "train": {"step": "auto"}}),
    "blind-sgd": ("vfb2-sgd", {"secure": {"labels": "blind"}}),
    "never": ("vfb2-sgd", {"secure": {"labels": "blind", "reveal": "never"}}),
    "proofs": ("vfb2-svrg", {"secure": {"labels": "blind", "reveal": "never", "proofs": 2}}),
    "hidden": ("vfb-sgd", {"secure": {"labels": "blind", "scores": "hidden"}, "train": {"step": 0.1}}),
    "softmax": ("vfb2-svrg", {"train": {"loss": "softmax", "classes": 3, "step": "auto"}, "classes": 3}),
    "asysqn-batch": ("asysqn-svrg", {"direction": {"pairs": "batch"}}),
    "coarse trees": ("secureboost", {"trees": {"bits": 4, "max_depth": 3}}),
    "coarse blind trees": (
        "secureboost",
        {"secure": {"labels": "blind"}, "trees": {"bits": 4, "max_depth": 3}},
    ),
    "encrypted trees": (
        "secureboost",
        {"secure": {"labels": "blind"}, "parties": 2, "trees": {"max_depth": 3}},
    ),
    "dealt": ("lbfgs", {"secure": {"labels": "blind"}, "rows": 800}),
    "dealt, hidden": ("lbfgs", {"secure": {"labels": "blind", "scores": "hidden"}, "rows": 800}),
    "dealt, proofs": (
        "lbfgs",
        {
            "secure": {"labels": "blind", "scores": "hidden", "proofs": 2},
            "rows": 800,
            "train": {"epochs": 12},  # with fewer it is no optimum
        },
    ),
    "encrypted": (
        "lbfgs",
        {"secure": {"labels": "blind", "products": "encrypted"}, "parties": 2, "rows": 800},
    ),
    "encrypted, never": (
        "lbfgs",
        {"secure": {"labels": "blind", "reveal": "never"}, "parties": 2, "rows": 800},
    ),
    "fdskl-uncached": ("fdskl", {"kernel": {"cache": False}}),
    "vafl-dp": ("vafl-dp", {"privacy": {"epsilon": 8.0, "delta": 1e-5}}),
    "noisy labels": ("vfb2-saga", {"privacy": {"mechanism": "labels", "epsilon": 2.0}, "active": 1}),
    "noisy scalars": (
        "synrevel-gau",
        {"privacy": {"mechanism": "scalar", "epsilon": 8.0, "delta": 1e-5, "clip": 1.0}, "active": 1},
    ),
    "joint, own pace": ("vfb2-sgd", {"train": {"direction": "lbfgs", "step": "auto"}}),
    "networks": (
        "split",
        {"model": {"kind": "mlp", "hidden": [4], "outputs": 2, "server": {"kind": "linear"}}},
    ),
    "tree sums": ("vfb-sgd", {"secure": {"sum": "tree"}}),
    "sets of trees": ("secureboost", {"trees": {"bits": 6, "categories": "sets"}}),
}
for algorithm in PRESETS:  # and every other one as it comes
    if algorithm not in {each for each, _ in RUNS.values()}:
        RUNS[algorithm] = (algorithm, {})


def job_of(name: str, world: str = "simulated", active: int = 2, **tables: Any) -> tuple[Any, Any]:
    algorithm, sections = RUNS[name]
    blind = sections.get("secure", {}).get("labels") == "blind"
    classes = sections.get("classes", 2)
    tables = {"rows": 60, **{key: sections[key] for key in ("parties", "rows") if key in sections}, **tables}
    alone = blind or "active" in sections or algorithm == "vafl-dp"
    data = random_tables(test_rows=20, active=1 if alone else active, classes=classes, **tables)
    sections = {
        key: value for key, value in sections.items() if key not in ("classes", "parties", "rows", "active")
    }
    trains = {"epochs": 2, **sections.get("train", {})}
    return plan_for(random_job(data, algorithm, world=world, **{**sections, "train": trains}), data)


@pytest.mark.parametrize("name", RUNS)
def test_nothing_crosses_that_is_not_declared(name: str) -> None:
    plan, data = job_of(name, "local")
    due, seen = allowed(declared(plan, data)), tapped(plan, data)
    assert not {key: (numbers, due[key]) for key, numbers in seen.items() if numbers > due[key]}


@pytest.mark.parametrize("name", ["blind", "hidden", "dealt", "dealt, hidden", "encrypted"])
def test_an_owner_of_more_columns_than_may_be_told_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more: dict[str, Any] = {"rows": 1200} if RUNS[name][0] == "lbfgs" else {}  # or rows are few as it is
    plan, data = job_of(name, active=1, **more)
    widths = {party: each.prepare().train.width for party, each in data.items() if party != plan.evaluator}
    most = max(widths.values()) - 1
    monkeypatch.setattr("colonnade.run.party.Context", lambda **known: Context(**{**known, "widest": most}))
    said = rf"party\d has {most + 1} columns, and of \d+ rows at most {most} weights are told, one for 50"
    with pytest.raises(JobError, match=said):
        launch(Launch(plan, data))
    monkeypatch.setattr(
        "colonnade.run.party.Context", lambda **known: Context(**{**known, "widest": most + 1})
    )
    launch(Launch(plan, data))


@pytest.mark.parametrize(
    "name",
    [
        "vfb2-sgd",
        "vfb2-svrg",
        "vfb-saga",
        "blind",
        "blind-svrg",
        "never",
        "proofs",
        "hidden",
        "fdskl",
        "fdskl-capped",
        "fdskl-uncached",
        "pp-svmv",
        "softmax",
        "dealt",
        "dealt, hidden",
    ],
)
def test_what_a_plan_decides_is_declared_to_the_number(name: str) -> None:
    plan, data = job_of(name, "local", active=1)
    due, seen = allowed(declared(plan, data)), tapped(plan, data)
    beside = {Topic.GATE, Topic.PAUSE}  # words, at the most
    if name.startswith("dealt"):
        beside |= {Topic.BLIND}  # how many columns there are
    kernel = plan.conversation == "kernel"  # test rows are projected in pieces, each up to a word too many
    wrong = {
        key: (seen[key], numbers)
        for key, numbers in due.items()
        if key[1] not in beside
        and key[0] != PRODUCT
        and seen[key] != numbers
        and not (kernel and key[1] == Topic.EVALUATE)
    }
    assert not wrong


def program_of(name: str) -> tuple[str, Any]:
    """Return what a run converses in, and the program of a party that trains."""
    plan, data = job_of(name, parties=3)
    names = dict(zip(sorted(data), PARTIES, strict=False))
    renamed = msgspec.structs.replace
    identities = InProcessIdentity.for_all(tuple(names.values()))
    plan = renamed(
        plan,
        parties=tuple(names[each] for each in plan.parties),
        label_holders=tuple(names[each] for each in plan.label_holders),
        blind=plan.blind
        and renamed(
            plan.blind, dealers={names[owner]: names[dealer] for owner, dealer in plan.blind.dealers.items()}
        ),
    )
    tables = {names[party]: each.prepare() for party, each in data.items()}

    async def program(net: Endpoint) -> Any:
        known = {party: each.train.width for party, each in tables.items()}
        work = Work(plan, tables[net.me].train, tables[net.me].test, columns=known)
        async with Party(identities[net.me], (net,)) as party:
            return await train(party, work, net)

    return plan.conversation, program


async def one_more_total(context: Any, me: str) -> None:
    tag = tag_of(Topic.TRAIN, 2**30)
    if me == context.evaluator:
        await context.sum.collect(np.zeros(1), tag=tag)
    else:
        await context.sum.give(np.zeros(1), root=context.evaluator, tag=tag)


async def one_more_number(context: Any, me: str) -> None:
    if me == context.evaluator:
        await context.net.broadcast(Announce(tag_of(Topic.SNAPSHOT, 2**30), np.zeros(1)))


@pytest.mark.parametrize("more", [one_more_total, one_more_number])
@pytest.mark.parametrize("name", ["vfb-saga", "tree sums", "blind", "lbfgs", "fdskl", "secureboost", "tig"])
@pytest.mark.parametrize("world_", WORLDS)
def test_one_number_more_does_not_leave(
    world_: str,
    name: str,
    more: Callable[[Any, str], Coroutine[Any, Any, None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name == "lbfgs" and more is one_more_total:
        pytest.skip("its products may be summed again, so that there is room for one")
    conversation, program = program_of(name)
    record = CONVERSATIONS[conversation]

    async def converse(context: Any) -> Any:
        found = await record.converse(context)
        await more(context, context.net.me)
        return found

    # for all parties at once: they run in one process, and would put back each other's patches
    monkeypatch.setitem(CONVERSATIONS, conversation, replace(record, converse=converse))
    with pytest.raises((UndeclaredOpening, Aborted), match="does not open"):  # at a peer, it may be the abort
        world(world_)(program)


@pytest.mark.parametrize("plan_has", [True, False])
def test_words_at_checkpoints_are_declared_where_there_are_any(plan_has: bool) -> None:
    tables = random_tables(rows=60)
    kept = {"checkpoint": {"every": 3}} if plan_has else {}
    plan, _ = plan_for(random_job(tables, "vfb2-sgd", **kept), tables)
    assert (plan.checkpoints is not None) == plan_has
    for place in (True, False):
        found = CONVERSATIONS[plan.conversation].openings(plan, Extent(60, checkpoints=place))
        assert any(each.kind == "progress" for each in found) == (plan_has and place)


@pytest.mark.parametrize(
    ("name", "kind", "fewer"),
    [
        ("encrypted", "column gradients", 1),
        ("encrypted", "losses", 1),
        ("dealt", "column gradients", 1),
        ("dealt, hidden", "column gradients", 1),
        ("encrypted, never", "scores", 1),
        ("encrypted, never", "losses", 1),
        ("encrypted trees", "histograms", 10**6),  # at the most: how many bins are joined is the data's
    ],
)
def test_a_product_more_is_not_opened(
    name: str, kind: str, fewer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, data = job_of(name, "local", active=1)
    launch(Launch(plan, data))
    written = Declaration.product

    def less(self: Declaration, what: Any, numbers: float, *rest: Any, **more: Any) -> None:
        written(self, what, numbers - fewer * (what == kind), *rest, **more)

    monkeypatch.setattr(Declaration, "product", less)
    with pytest.raises((UndeclaredOpening, Aborted), match=r"does not open \d+ products"):
        launch(Launch(plan, data))


def test_a_number_more_that_there_is_room_for_was_booked() -> None:
    """Declarations are the most that may be opened: who fills the room tells what is in the books."""
    plan, data = job_of("lbfgs", active=1)  # its products may be summed again
    openings, root = declared(plan, data), plan.evaluator
    meter = Meter()
    meter.hold_to(OpeningLimits(openings, root))
    peer = next(party for party in plan.parties if party != root)
    one = weighed(Announce(tag_of(Topic.TRAIN, 1), np.zeros(1)))
    channel = Announce.__name__, int(Topic.TRAIN)
    room = [each for each in openings if (each.by, each.channel) == (root, channel) and peer in each.to]
    numbers = sum(each.numbers for each in room)
    for _ in range(numbers):
        meter.sent(one, peer, 50)
    with pytest.raises(UndeclaredOpening, match="does not open"):
        meter.sent(one, peer, 50)
    assert numbers > tapped(plan, data)[*channel, root, peer] / 8  # there was room
    about = {(peer, each.about) for each in room}
    booked = sum(each.bits for each in heard(openings, 60) if (each.hearer, each.about) in about)
    assert booked >= 64 * numbers


def test_what_was_sent_before_there_were_limits_does_not_count() -> None:
    meter, one = Meter(), weighed(Announce(tag_of(Topic.TRAIN, 1), np.zeros(1)))
    piece = weighed(Piece(tag_of(Topic.TRAIN, 1), np.zeros(1)))
    for each in (one, piece) * 3:
        meter.sent(each, "b", 50)
    limits = OpeningLimits((), "a")
    meter.hold_to(limits)
    about: Any = {"of": ("a",), "to": ("b",), "numbers": 2}
    announced = Opening(kind="stops", about="labels", by="a", channel=sent(Announce, Topic.TRAIN), **about)
    summed_up = Opening(kind="scores", about="columns", channel=summed(Topic.TRAIN), **about)
    for opening in (announced, summed_up) * 2:  # said as the run goes on, and once more
        limits.allow(opening)
        weight = one if opening is announced else piece
        for _ in range(2):
            meter.sent(weight, "b", 50)
        with pytest.raises(UndeclaredOpening, match="does not open"):
            meter.sent(weight, "b", 50)
    assert meter.messages() == 6 + 8  # what is refused was not sent


KINDS = [kind for kind in get_args(AnyMessage) if opened_fields(kind)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("world_", WORLDS)
def test_a_field_more_does_not_leave(world_: str, kind: type[Message]) -> None:
    made: dict[Any, Any] = {Numbers: np.arange(3.0), int: 1, float: 1.0, bool: True, tuple[int, ...]: ()}
    wider = msgspec.defstruct(
        kind.__name__,
        [("more", Numbers, np.zeros(1))],
        bases=(kind,),
        frozen=True,
        tag=kind.__struct_config__.tag,
    )
    fields = [made.get(field.type) for field in msgspec.structs.fields(kind)]
    message: Any = wider(*fields)

    async def program(net: Endpoint) -> bool:
        with pytest.raises(UndeclaredOpening, match=f"{kind.__name__}.more"):
            await net.send(net.peers[0], message)
        await net.finish()
        return True

    assert all(world(world_)(program))


def test_the_table_of_the_threat_model_is_what_its_command_prints() -> None:
    """In a process of its own: tests have labels in clear where nothing is said."""
    page = (Path(__file__).parents[2] / "docs" / "threat-model.md").read_text("utf-8")
    command = [sys.executable, "-m", "colonnade_bench.micro.openings"]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert len(table.splitlines()) > len(PRESETS)
    assert table in page


LABELS = {"thetas", "gradients", "labels", "replies"}
COMES_TO: dict[str, set[Leak]] = {
    "scores": {"scores"},
    "outputs": {"outputs"},
    "distances": {"similarity"},
    "projections": {"similarity"},
    "histograms": {"nodes"},
}


@pytest.mark.parametrize("name", RUNS)
def test_what_a_run_is_said_to_leak_is_what_it_declares(name: str) -> None:
    """Words for policies and reports, and the account: neither knows of something that the other does not."""
    plan, data = job_of(name, active=1)
    holders, blind = set(plan.label_holders), plan.blind
    told = [each for each in declared(plan, data) if each.numbers >= each.rows > 1 or each.about == "labels"]
    leaks = notes.leaks(
        CONVERSATIONS[plan.conversation],
        plan.privacy,
        plan.secure_sum,
        len(plan.parties),
        blind=blind is not None,
        encrypted=blind is not None and blind.encrypted is not None,
    )
    exact = [
        each for each in told if each.about == "labels" and each.kind in LABELS and set(each.to) - holders
    ]
    assert ("labels" in leaks) == (bool(exact) and plan.privacy.mechanism == "none")
    for each in told:
        if each.about == "columns" and set(each.to) & holders:
            assert COMES_TO.get(each.kind, set()) <= set(leaks), each


@pytest.mark.parametrize("algorithm", ["secureboost", "boosted-sum"])
@pytest.mark.parametrize(("labels", "bits", "depth"), [("clear", 0, 3), ("blind", 6, 3), ("clear", 6, 4)])
def test_trees_that_grow_whole_open_what_they_declare(
    algorithm: str, labels: str, bits: int, depth: int
) -> None:
    data = random_tables(rows=4000, parties=3, active=1, regression=True, test_rows=100)
    trees: dict[str, Any] = {
        "bits": bits,
        "max_depth": depth,
        "max_bin": 16,  # of which orders of rows send less than veiled bins
        "bin_rows": 2,
        "node_rows": 4,
        "noise": 0.01,
    }
    trees = trees if bits else {"bits": 0, "max_depth": depth, "max_bin": 8}
    trees["categories"] = "numbers"  # or every column has room for 256 of them
    sections = {"train": {"epochs": 2, "loss": "squared"}, "secure": {"labels": labels}, "trees": trees}
    plan, made = plan_for(random_job(data, algorithm, world="local", **sections), data)
    due, seen = allowed(declared(plan, made)), tapped(plan, made)
    assert not {key: (numbers, due[key]) for key, numbers in seen.items() if numbers > due[key]}
    splits = due["Divide", 0, "party0", "party1"], seen["Divide", 0, "party0", "party1"]
    assert splits[0] == 2 * (2**depth - 1) * 12
    if algorithm == "secureboost":
        assert splits[1] == splits[0]  # every node was split
        told = "Joined" if bits else "Histograms"
        assert seen[told, 0, "party1", "party0"] >= 0.3 * due[told, 0, "party1", "party0"]


def test_what_splits_of_trees_tell_of_labels_is_counted() -> None:
    plan, data = job_of("blind trees")
    told = heard(declared(plan, data), 60)
    assert {each.hearer for each in told if each.about == "labels"} == set(plan.parties) - {plan.evaluator}
