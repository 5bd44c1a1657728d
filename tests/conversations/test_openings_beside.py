"""What is opened beside training: by comparing ids, weighing columns, and scoring rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conversations.test_openings import job_of
from tests.conversations.test_woe import TERMS, binned, labels
from tests.net.worlds import WORLDS, world

from colonnade.conversations.align import AlignTerms, align
from colonnade.conversations.cascade.tensors import HEAD, OWN, restored
from colonnade.conversations.context import NO_MODELS, GivenModels
from colonnade.conversations.predict import Holding, Session
from colonnade.conversations.woe import weigh_as_label_holder, weigh_as_party
from colonnade.errors import Aborted, UndeclaredOpening
from colonnade.messages import Announce, Found, Message, Piece, Score, Tally, Topic, tag_of
from colonnade.models.build import party_model, server_model
from colonnade.net.endpoint import Endpoint
from colonnade.openings.limits import WORD
from colonnade.openings.opening import TOTAL
from colonnade.openings.wire import opened_fields
from colonnade.privacy.counts import CountNoise
from colonnade.privacy.gaussian import delta_of
from colonnade.run.launch import launch
from colonnade.run.party import Party, held_to
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.world import Launch
from colonnade.secure.keys import InProcessIdentity
from colonnade.secure.streams import PairStreams

NOTHING = np.zeros(0)


def left(net: Endpoint) -> dict[Any, Any]:
    """What was declared and not opened, and what was opened and not declared: both must be nothing."""
    limits = net.meter.limits
    due = {key: number for key, number in limits._bytes.items() if number}
    counted = {key: number for key, number in limits._numbers.items() if number}
    for name, topic, root in list(counted):
        if name == TOTAL:  # opened by what goes into it, at those who give
            numbers = counted.pop((name, topic, root))
            if root != net.me:
                due[Piece.__name__, topic, root] = WORD * numbers
    seen = {
        (kind.__name__, topic, to): entry[2]
        for (kind, topic, to), entry in net.meter._sent.items()
        if (kind is Piece or opened_fields(kind)) and entry[2]
    }
    wrong = {key: (due.get(key), seen.get(key)) for key in {*due, *seen} if due.get(key) != seen.get(key)}
    return wrong | counted


def models_of(plan: Any, me: str, arrays: Any, widths: dict[str, int]) -> GivenModels:
    """The networks of a cascade with the weights that training gave them."""
    if plan.conversation != "cascade" or plan.settings.model.server.kind == "sum":
        return NO_MODELS
    specs = plan.settings.model
    own = restored(party_model(specs.of(me), widths[me], "cpu"), OWN, arrays)
    outputs = [specs.of(party).width for party in sorted(widths)]
    head = server_model(specs.server, outputs, plan.objective.classes or 1, "cpu")
    return GivenModels(own, restored(head, HEAD, arrays) if me == plan.evaluator else None)


def scored(name: str, asker: str, beyond: Message | None = None, *, total: bool = False) -> list[Any]:
    """Ask a trained model three times; every party says what was declared and not opened.

    `beyond` is a message more than that, `total` a total more.
    """
    plan, data = job_of(name, "local", parties=3, active=1)
    shares = launch(Launch(plan, data))
    kind, parties = CONVERSATIONS[plan.conversation].share, tuple(sorted(data))
    identities = InProcessIdentity.for_all(parties)
    columns = {party: each.prepare().test for party, each in data.items()}

    async def program(net: Endpoint) -> Any:
        me, by = net.me, plan.evaluator if asker == "label holder" else parties[-1]
        async with Party(identities[me], (net,)) as party:
            held_to(net)
            secrets = await party.join(net, "scores")
            secure = party.secure_sum(net, secrets, plan.secure_sum)
            arrays = shares[me].weights
            models = models_of(plan, me, arrays, {each: table.width for each, table in columns.items()})
            part = kind.scorer(Holding(plan, me, arrays, columns[me].X, models))
            session = Session(net, secure, by, part, PairStreams(me, secrets), limits=net.meter.limits)
            if me != by:
                await session.answer()
            else:
                for rows in ([3], [1, 19, 7], range(20)):
                    await session.ask(np.array(rows))
                await session.end()
            found = left(net)
            if beyond is not None and me == by:
                await net.broadcast(beyond)
            if total:
                await session.total(np.zeros(1))
            await party.leave(net)
            return found

    return world("local")(program, parties)


KINDS = (
    "vfb2-sgd",
    "softmax",
    "never",
    "fdskl",
    "fdskl-capped",
    "secureboost",
    "boosted-sum",
    "networks",
    "tig",
)


@pytest.mark.parametrize("asker", ["label holder", "owner"])
@pytest.mark.parametrize("name", KINDS)
def test_what_scores_open_is_declared_to_the_number(name: str, asker: str) -> None:
    assert scored(name, asker) == [{}, {}, {}]


@pytest.mark.parametrize("name", ["vfb2-sgd", "never", "fdskl-capped", "secureboost", "networks"])
def test_no_score_more_is_opened(name: str) -> None:
    with pytest.raises((UndeclaredOpening, Aborted), match="does not open"):
        scored(name, "label holder", total=True)
    for beyond in (Announce(tag_of(Topic.PREDICT, 2**20), np.zeros(1)), Score(3, np.arange(2))):
        with pytest.raises((UndeclaredOpening, Aborted), match="does not open"):
            scored(name, "label holder", beyond)


@pytest.mark.parametrize("world_", ["local", "tls"])  # processes compute beside it, in no virtual time
@pytest.mark.parametrize("more", [False, True])
def test_comparing_ids_tells_names_of_common_ones_alone(world_: str, more: bool) -> None:
    rng = np.random.default_rng(0)
    common = rng.integers(0, 256, (30, 32), dtype=np.uint8)
    told: dict[str, Any] = {}

    async def program(net: Endpoint) -> Any:
        own = np.random.default_rng(len(net.me) + ord(net.me[0])).integers(0, 256, (40, 32), dtype=np.uint8)
        ids = np.concatenate([common, own[: {"ant": 0, "bee": 25, "cat": 40}[net.me]]])
        declare = held_to(net)

        async def noted(openings: list[Any]) -> None:
            told[net.me] = openings
            await declare(openings)

        async with Party(InProcessIdentity.for_all(net.parties)[net.me], (net,)):
            secrets = {peer: bytes(32) for peer in net.peers}
            found = await align(net, ids, secrets, AlignTerms(order=b"order", declare=noted))
            if more and net.me == "ant":
                await net.send("bee", Found(tag_of(Topic.ALIGN, 2**30), 1, np.zeros((1, 2), dtype=np.uint64)))
            wrong = left(net)
            await net.finish()
            return len(found.rows), wrong

    if more:
        with pytest.raises((UndeclaredOpening, Aborted), match="does not open"):
            world(world_)(program)
        return
    assert world(world_)(program) == [(30, {})] * 3  # all of the leader's ids are common here
    heard = {each.to[0]: (each.told, each.by) for each in told["cat"]}
    assert heard == {"ant": (30, ""), "bee": (55, "ant"), "cat": (70, "ant")}


@pytest.mark.parametrize("world_", WORLDS)
@pytest.mark.parametrize("more", [False, True])
def test_weighing_tells_counts_of_bins_alone(world_: str, more: bool) -> None:
    y = labels()
    told: dict[str, list[Any]] = {}

    async def program(net: Endpoint) -> Any:
        declare, own = held_to(net), binned(net.parties.index(net.me))

        async def noted(openings: list[Any]) -> None:
            told.setdefault(net.me, []).extend(openings)
            await declare(openings)

        first = net.parties[0]
        if net.me == first:
            await weigh_as_label_holder(net, y, own, TERMS, CountNoise(2.0), noted)
        else:
            await weigh_as_party(net, first, own, TERMS, noted)
        wrong = left(net)
        if more and net.me != first:
            some = np.zeros(1, dtype=np.int64)
            await net.send(first, Tally(some, some, some.astype(np.uint8), some, NOTHING.astype(np.uint8)))
        await net.finish()
        return wrong

    if more:
        with pytest.raises((UndeclaredOpening, Aborted), match="does not open"):
            world(world_)(program)
        return
    assert world(world_)(program) == [{}] * 3
    evidence = told["ant"]
    assert [each.to for each in evidence] == [("bee",), ("cat",)]
    for each in evidence:
        assert delta_of(2.0, each.epsilon) == pytest.approx(1e-5, rel=1e-3)
        assert each.numbers == sum(bins.count for bins in binned(1 + (each.to == ("cat",))).bins)
