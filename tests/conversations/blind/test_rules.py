"""What blind runs hold to, whatever happens.

All blocks of a batch are at one version of the weights, every veiled word has one receiver, and every session
has keys of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from tests.oracles.tables import random_job, random_tables, run

from colonnade.arrays import Words
from colonnade.attacks.transcript import Transcript
from colonnade.conversations.blind.products import NOTHING, BlindProducts, OpenLot
from colonnade.errors import Aborted, FixedPointOverflow, JobError, MalformedMessage, ProtocolError, SumError
from colonnade.messages import AnyMessage, Dealt, Message, Piece, Relay, Unveil, Veil, Veiled, encode
from colonnade.net.endpoint import Endpoint
from colonnade.net.relay import opened, written
from colonnade.result import Moment
from colonnade.run.federate import Tables, plan_for, run_tables
from colonnade.run.launch import launch
from colonnade.run.world import Launch
from colonnade.secure import streams
from colonnade.secure.product import OwnerLot

BLIND = {"labels": "blind"}
TRAIN = {"epochs": 3, "step": 0.05, "batch": 16}
ROUGH = {"faults": {"drop": 0.1, "duplicate": 0.1}, "latency_ms": 1.0}
LATE = {"train": {**TRAIN, "ahead": 3}, "network": ROUGH}
Said = list[tuple[str, str, Message]]


class Listener:
    """Taps every party's wire: who sent what to whom."""

    def __init__(self) -> None:
        self.transcripts: dict[str, Transcript] = {}

    def tap(self, party: str, wire: Any) -> Any:
        return self.transcripts.setdefault(party, Transcript(party)).tap(party, wire)

    @property
    def said(self) -> Said:
        return [(sender, to, what) for sender, each in self.transcripts.items() for to, what in each.said]


def said_in(setting: Tables, algorithm: str, **sections: Any) -> Said:
    """All messages of a run."""
    listener = Listener()
    sections = {"train": TRAIN, "secure": BLIND, **sections}
    run_tables(random_job(setting, algorithm, **sections), setting, tap=listener.tap)
    return listener.said


def words_of(message: Message) -> list[Words]:
    """The words of the ring that a message has."""
    if isinstance(message, Veil):
        return [each for each in (message.moved, message.weights) if each.dtype == np.uint64]
    return [message.values] if isinstance(message, (Veiled, Dealt, Unveil, Piece)) else []


# -- one version ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "sections"),
    [("vfb-svrg", {}), ("vfb2-saga", LATE), ("vfb-sgd", {"secure": {**BLIND, "scores": "hidden"}})],
)
def test_all_blocks_of_a_batch_are_asked_at_one_version(algorithm: str, sections: dict[str, Any]) -> None:
    """Also with batches in flight on a network that loses frames; versions follow each other."""
    versions: dict[int, set[int]] = defaultdict(set)
    for _, _, message in said_in(random_tables(active=1, rows=96), algorithm, **sections):
        if isinstance(message, Veil) and message.moved.dtype == np.uint64:
            versions[message.tag].add(message.version)
    assert all(len(each) == 1 for each in versions.values())
    assert len({version for each in versions.values() for version in each}) >= 12


def older(products: BlindProducts) -> None:
    """Go back to the part of one owner's weights from before the last addition."""
    products.versions["party1"] -= 1


def held_back(products: BlindProducts) -> None:
    """Keep the last addition from one owner."""
    assert products._unsent is not None
    products._unsent.moved["party1"] = NOTHING


@pytest.mark.parametrize(
    ("deviates", "words"),
    [
        (older, "party0 sent Veil .*: it is about weights of version 4, and all blocks are at version 5"),
        (held_back, r"party0 sent Veil .* with moved of \(0, 0\) uint64 values; \(1, \d+\) uint64 were due"),
    ],
)
@pytest.mark.parametrize("ahead", [1, 3])
def test_a_label_holder_that_asks_blocks_at_mixed_versions_is_refused_by_name(
    deviates: Callable[[BlindProducts], None], words: str, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, added = BlindProducts.add, Counter[str]()

    async def mixing(
        self: BlindProducts, lot: OpenLot, batch: int, vectors: slice, t: Words | None = None
    ) -> None:
        await add(self, lot, batch, vectors, t)
        added[self.net.me] += 1
        if self.asks and added[self.net.me] == 5:
            deviates(self)

    monkeypatch.setattr(BlindProducts, "add", mixing)
    with pytest.raises(ProtocolError, match=words):
        run(random_tables(parties=3, active=1), "vfb2-sgd", secure=BLIND, train={**TRAIN, "ahead": ahead})


def test_an_owner_that_stays_at_an_older_version_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its part of the weights no longer fits the label holder's: their sum is noise, and so are scores."""
    add, added = OwnerLot.add, Counter[int]()

    def forgets(self: OwnerLot, batch: int, moved: Words) -> Words:
        change = add(self, batch, moved)
        added[0] += 1
        return np.zeros_like(change) if added[0] == 12 else change

    monkeypatch.setattr(OwnerLot, "add", forgets)
    with pytest.raises((SumError, FixedPointOverflow), match=r"do not fit|beyond the range"):
        run(random_tables(parties=3, active=1), "vfb-sgd", secure=BLIND, train={**TRAIN, "tolerance": 0.0})


# -- one receiver --------------------------------------------------------------------------------------


def receivers(said: Said) -> dict[int, set[str]]:
    """Who is sent each word; what is sent again over a bad network goes to the same party."""
    found: dict[int, set[str]] = defaultdict(set)
    for _, to, message in said:
        for words in words_of(message):
            for word in words.ravel().tolist():
                found[word].add(to)
    return found


@pytest.mark.parametrize(
    ("algorithm", "sections"),
    [
        ("vfb-saga", {}),
        ("vfb2-svrg", LATE),
        ("vfb-sgd", {"secure": {**BLIND, "helper": "party3"}}),
        ("vfb-sgd", {"secure": {**BLIND, "scores": "hidden"}}),
    ],
)
def test_every_veiled_word_of_a_run_has_one_receiver(algorithm: str, sections: dict[str, Any]) -> None:
    said = said_in(random_tables(active=1, rows=96), algorithm, **sections)
    found = receivers(said)
    assert len(found) > 2500
    assert {len(each) for each in found.values()} == {1}
    owners = {to for _, to, message in said if isinstance(message, Veil)}
    assert owners >= {"party1", "party2"}


def test_nobody_who_deals_for_a_block_holds_its_veiled_columns() -> None:
    """A dealer knows what veils columns, and would read them; what it deals is the label holder's alone."""
    said = said_in(random_tables(active=1), "vfb-sgd")
    owners = ("party1", "party2", "party3")
    for kind in (Veiled, Dealt):
        routes = {(sender, to) for sender, to, message in said if isinstance(message, kind)}
        assert routes == {(owner, "party0") for owner in owners}


def test_a_word_for_two_shows_and_the_second_receiver_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hides party1's words is dealt by party2, which would read theta off them."""
    send = Endpoint.send

    async def to_both(self: Endpoint, to: str, message: Message) -> None:
        await send(self, to, message)
        if isinstance(message, Veil) and to == "party1":
            await send(self, "party2", message)

    monkeypatch.setattr(Endpoint, "send", to_both)
    listener, setting = Listener(), random_tables(parties=3, active=1)
    job = random_job(setting, "vfb-sgd", train=TRAIN, secure=BLIND)
    with pytest.raises(ProtocolError, match=r"party0 sent Veil .* twice"):
        run_tables(job, setting, tap=listener.tap)
    assert {"party1", "party2"} in receivers(listener.said).values()


def test_a_personal_message_is_neither_broadcast_nor_passed_on() -> None:
    kinds: tuple[type[Message], ...] = get_args(AnyMessage)
    personal = {kind for kind in kinds if kind.personal}
    assert personal >= {Veil, Veiled, Dealt, Unveil}
    assert not any(kind.relayed for kind in personal)
    veil, parties = Veil(0, NOTHING, NOTHING), ("a", "b", "c")
    with pytest.raises(TypeError, match="not made to travel"):
        written(veil, "a", parties, parties)
    with pytest.raises(MalformedMessage, match="does not travel"):
        opened(Relay(0, b"", encode(veil)), "b", parties)


@pytest.mark.parametrize("verb", ["broadcast", "spread"])
def test_a_label_holder_cannot_broadcast_what_is_for_one_owner(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Endpoint.send

    async def to_all(self: Endpoint, to: str, message: Message) -> None:
        await (getattr(self, verb)(message) if isinstance(message, Veil) else send(self, to, message))

    monkeypatch.setattr(Endpoint, "send", to_all)
    with pytest.raises(TypeError, match="a Veil is for one party"):
        run(random_tables(parties=3, active=1), "vfb-sgd", secure=BLIND, train=TRAIN)


@pytest.mark.parametrize("scores", ["open", "hidden"])
def test_blind_runs_have_no_tree_of_broadcasts(scores: str) -> None:
    with pytest.raises(JobError, match=r"network\.broadcast = 'tree'.*labels = 'clear'"):
        run(
            random_tables(parties=3, active=1),
            "vfb-sgd",
            secure={**BLIND, "scores": scores},
            network={"broadcast": "tree"},
        )


# -- new keys ------------------------------------------------------------------------------------------


PURPOSES = (b"sum", b"columns", b"scored", b"added", b"dealt")
Keys = dict[bytes, set[bytes]]


def session(order: Launch, monkeypatch: pytest.MonkeyPatch, until: int) -> tuple[Keys, Said]:
    """A session of a run, cut off once an epoch is measured: the keys of every purpose, all messages."""
    keys: Keys = defaultdict(set)
    expand, listener = streams._expand, Listener()

    def noted(secret: bytes, info: bytes) -> bytes:
        key = expand(secret, info)
        keys[info].add(key)
        return key

    def stop(moment: Moment) -> None:
        if moment.epoch >= until:
            raise Aborted("cut off")

    monkeypatch.setattr(streams, "_expand", noted)
    with pytest.raises(Aborted):
        launch(replace(order, progress=stop, tap=listener.tap))
    monkeypatch.setattr(streams, "_expand", expand)
    return keys, listener.said


@pytest.mark.parametrize("world", ["local", "simulated"])
@pytest.mark.parametrize("algorithm", ["vfb-svrg", "vfb2-saga"])
def test_a_run_that_goes_on_has_new_keys_for_every_purpose(
    tmp_path: Path, world: str, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of products and of sums; no key is on disk, and no word of the first session comes again."""
    setting = random_tables(parties=3, active=1, rows=60, test_rows=10)
    sections: dict[str, Any] = {"train": {**TRAIN, "epochs": 6}, "secure": BLIND, "world": world}
    plan, data = plan_for(random_job(setting, algorithm, checkpoint={"every": "epoch"}, **sections), setting)
    before, said = session(Launch(plan, data, out=tmp_path), monkeypatch, until=2)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*.gate"))
    after, again = session(Launch(plan, data, out=tmp_path, resume=True), monkeypatch, until=4)

    assert all(any(purpose in info for info in before) for purpose in PURPOSES)
    assert before.keys() == after.keys()
    for info, keys in before.items():
        assert len(keys) == len(after[info]) == (3 if info.endswith(b"sum") else 1)
        assert not keys & after[info]
    assert stored
    assert not any(key in stored for keys in before.values() for key in keys)
    first, second = set(receivers(said)), set(receivers(again))
    assert min(len(first), len(second)) > 1000
    assert not first & second
