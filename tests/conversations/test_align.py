"""Alignment finds exactly the rows that a join finds, in one order everywhere, and shows nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pytest
from tests.hostile.altering import Altered
from tests.hostile.peer import Attack, Program, played

from colonnade.arrays import Words
from colonnade.conversations import align as alignment
from colonnade.conversations.align import Alignment, AlignTerms, Method, align, compute_pool, layout
from colonnade.conversations.align.follower_base import Help
from colonnade.conversations.align.order import twice
from colonnade.errors import (
    AlignmentError,
    ChangedIds,
    ColonnadeError,
    DuplicateIds,
    EmptyIntersection,
    ProtocolError,
)
from colonnade.messages import Found, Message, Roster, Transfer, decode, encode
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.frame import DATA, unpack
from colonnade.net.local import LocalHub
from colonnade.net.network import Wire
from colonnade.net.tapped import TappedWire
from colonnade.run.party import first_cause

NAMES = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")


def digests(ids: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    packed = b"".join(hashlib.sha256(str(i).encode()).digest() for i in ids)
    return np.frombuffer(packed, dtype=np.uint8).reshape(-1, 32)


METHODS: tuple[Method, ...] = get_args(Method)
ALL_WAYS = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(autouse=True)
def _any_number_of_ids_by_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "FEW", 0)


def secret(one: str, other: str) -> bytes:
    return hashlib.sha256(repr(sorted((one, other))).encode()).digest()


def together(
    sets: Sequence[Sequence[Any]], terms: Sequence[AlignTerms] | None = None, heard: list[bytes] | None = None
) -> list[Alignment]:
    """Align these sets in one process; the first real error of any party is raised."""

    async def main() -> list[Alignment]:
        hub, names = LocalHub(), NAMES[: len(sets)]

        def wire(me: str) -> Wire:
            if heard is None:
                return hub.wire(me)
            return TappedWire(hub.wire(me), lambda to, frame: heard.append(frame))

        nets = [Endpoint(me, names, wire(me), RealClock(), run=1, deadline=60) for me in names]

        async def one(k: int) -> Alignment:
            pairs = {peer: secret(names[k], peer) for peer in nets[k].peers}
            try:
                return await align(
                    nets[k], digests(sets[k]), pairs, terms[k] if terms else AlignTerms(order=b"o")
                )
            except BaseException as error:
                cause = first_cause(error)
                if isinstance(cause, ColonnadeError):
                    for net in nets:
                        net.fail(cause)
                    raise cause from error
                raise

        try:
            return await asyncio.gather(*(one(k) for k in range(len(sets))))
        finally:
            for net in nets:
                await net.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("q", "method"), [*((q, "curve") for q in range(2, 9)), *((q, "ot") for q in (2, 3, 5))]
)
def test_the_rows_of_a_join_in_one_order_everywhere(q: int, method: Method) -> None:
    rng = np.random.default_rng(q)
    sets = [rng.permutation(np.flatnonzero(rng.random(300) < 0.9)).tolist() for _ in range(q)]
    found = together(sets, [AlignTerms(order=b"o", method=method)] * q)
    common = set(sets[0]).intersection(*sets[1:])
    picked = [[ids[row] for row in each.rows] for ids, each in zip(sets, found, strict=True)]
    assert set(picked[0]) == common
    assert all(each == picked[0] for each in picked)
    assert len({each.digest for each in found}) == 1
    assert found[0].sizes == {name: len(ids) for name, ids in zip(NAMES, sets, strict=False)}


@ALL_WAYS
def test_several_chunks_lots_and_tables(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "CHUNK", 50)
    monkeypatch.setattr(layout, "BUCKET", 100)
    monkeypatch.setattr(layout, "LOT", 200)
    sets = [list(range(700)), list(range(300, 1300)), list(range(200, 900))]
    found = together(sets, [AlignTerms(method=method)] * 3)
    assert sorted(sets[1][row] for row in found[1].rows) == list(range(300, 700))
    assert layout.tables_for(len(sets[1])) == 10
    assert (layout.lots_for(700), layout.tables_for(1000, 4), layout.tables_for(700, 4)) == (4, 8, 8)


@ALL_WAYS
def test_one_common_id_among_many(method: Method) -> None:
    found = together([[7], list(range(500))], [AlignTerms(method=method)] * 2)
    assert found[1].rows.tolist() == [7]


def test_the_order_depends_on_the_job_and_not_on_the_files() -> None:
    one = together([list(range(50)), list(range(50))])
    other = together([list(range(49, -1, -1)), list(range(50))])
    assert (one[1].rows == other[1].rows).all()
    elsewhere = together([list(range(50))] * 2, [AlignTerms(order=b"p")] * 2)
    assert (one[1].rows != elsewhere[1].rows).any()


@ALL_WAYS
def test_no_id_and_no_plain_hash_of_one_is_sent(method: Method) -> None:
    heard: list[bytes] = []
    sets = [["marker-4711", "a", "b"], ["marker-4711", "b", "c"], ["marker-4711", "b"]]
    together(sets, [AlignTerms(method=method)] * 3, heard)
    said = b"".join(heard)
    assert len(said) > 500
    for name in ("marker-4711", "a" * 8):
        assert name.encode() not in said
    for digest in digests(["marker-4711", "b"]):
        assert digest.tobytes()[:8] not in said
        assert digest.tobytes()[16:24] not in said


def test_the_leader_cannot_tell_who_lacks_an_id() -> None:
    """What is left of an id that some party lacks is noise, whether one lacks it or all do."""
    found = together([["x", "y"], ["x", "p", "q"], ["x", "y", "r"]])
    assert [len(each.rows) for each in found] == [1, 1, 1]


def test_duplicates_are_named_by_row() -> None:
    with pytest.raises(DuplicateIds, match="rows 2 and 4 have the same id"):
        together([["a", "b", "c", "b"], ["a", "b"]])


def test_nothing_in_common() -> None:
    with pytest.raises(EmptyIntersection, match="fewer ids are common to all parties than the 1 "):
        together([["a"], ["b"]])
    with pytest.raises(EmptyIntersection, match="brings no ids"):
        together([["a"], []])


def test_too_little_in_common() -> None:
    ids = [[f"mine {k}" for k in range(9)], [f"yours {k}" for k in range(9)]]
    texts = set()
    for common in ([], ["a"], ["a", "b"]):
        with pytest.raises(
            EmptyIntersection, match="fewer ids are common to all parties than the 9 "
        ) as error:
            together([[*mine[len(common) :], *common] for mine in ids], [AlignTerms(minimum=9)] * 2)
        texts.add(str(error.value))
    assert len(texts) == 1  # how many there are is not told


def test_sets_too_small_for_what_is_demanded_are_not_compared() -> None:
    with pytest.raises(EmptyIntersection, match="ant brings 2 ids, 10 common ones are demanded; nothing was"):
        together([["a", "b"], ["b", "a", "c"]], [AlignTerms(minimum=10), AlignTerms()])


def test_what_peers_announce_is_looked_at_before_any_id_is_compared() -> None:
    async def refuse(rosters: Mapping[str, Roster]) -> None:
        assert rosters["bee"].size == 2
        raise ChangedIds("other ids")

    with pytest.raises(ChangedIds, match="other ids"):
        together([["a"], ["a", "b"]], [AlignTerms(admit=refuse), AlignTerms()])


def test_rules_must_agree() -> None:
    with pytest.raises(AlignmentError, match="normalises ids in another way"):
        together([["a"], ["a"]], [AlignTerms(rules="lower"), AlignTerms(rules="keep")])
    with pytest.raises(AlignmentError, match="compares ids in another way"):
        together([["a"], ["a"]], [AlignTerms(method="ot"), AlignTerms()])


@ALL_WAYS
def test_processes_find_what_a_thread_finds(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    sets, terms = [list(range(60)), list(range(20, 100))], [AlignTerms(method=method)] * 2
    inline = together(sets, terms)
    monkeypatch.setattr(compute_pool, "ENOUGH", 0)
    assert [each.digest for each in together(sets, terms)] == [each.digest for each in inline]


def test_few_ids_are_compared_on_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "FEW", 21)
    heard: list[bytes] = []
    together([list(range(20)), list(range(40))], [AlignTerms(method="ot")] * 2, heard)
    assert Transfer not in kinds(heard)
    together([list(range(21)), list(range(40))], [AlignTerms(method="ot")] * 2, heard)
    assert Transfer in kinds(heard)


def kinds(heard: list[bytes]) -> set[type[Message]]:
    """The kinds of all messages in these frames."""
    opened = [unpack(frame) for frame in heard]
    return {type(decode(payload)) for header, payload in opened if header.kind == DATA}


def test_a_worker_that_dies_is_an_error_of_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_pool, "ENOUGH", 0)

    async def main() -> None:
        async with compute_pool.ComputePool(1) as workers:
            await workers.run(os._exit, 3)

    with pytest.raises(AlignmentError, match="a process that compared ids has ended"):
        asyncio.run(main())


def test_ids_that_are_alike_in_their_first_bytes_are_not_the_same() -> None:
    ids = np.zeros((5, 32), dtype=np.uint8)
    ids[:, 31] = [1, 2, 3, 2, 4]
    assert twice(ids) == [(1, 3)]


class Padding(Attack):
    """A leader that names more common ids than it found."""

    def __init__(self, names: Callable[[Words], Words]) -> None:
        super().__init__(np.random.default_rng(0))
        self.names = names

    def of(self, message: Message) -> Altered | None:
        if not isinstance(message, Found):
            return None
        names = self.names(message.names)
        self.done = Altered("padded", [encode(Found(message.tag, len(names), names))])
        return self.done


def programs(method: Method, sets: Mapping[str, Sequence[Any]]) -> dict[str, Program]:
    def party(me: str) -> Program:
        async def program(net: Endpoint) -> Alignment:
            pairs = {peer: secret(me, peer) for peer in net.peers}
            try:
                return await align(net, digests(list(sets[me])), pairs, AlignTerms(method=method))
            except BaseException as error:
                await net.abort(first_cause(error))
                raise

        return program

    return {me: party(me) for me in sets}


def repeated(found: Words) -> Words:
    return np.repeat(found, 5, axis=0)


def made_up(found: Words) -> Words:
    return np.arange(20, dtype=np.uint64).reshape(-1, 2)


@pytest.mark.parametrize(("names", "method"), [(repeated, "curve"), (made_up, "curve"), (made_up, "ot")])
def test_a_leader_cannot_name_more_common_ids_than_there_are(
    names: Callable[[Words], Words], method: Method
) -> None:
    """Two of ten ids are common; with more of them it would get past any number that is demanded."""
    sets = {"ant": [*range(2), *range(100, 108)], "bee": range(40), "cat": range(50)}
    ends = played(programs(method, sets), "ant", Padding(names), virtual=False, brief=20)
    for me in ("bee", "cat"):
        assert isinstance(ends[me], AlignmentError)
        assert "ant named common ids that" in str(ends[me])


class Beside(Attack):
    """A leader that covers rows which are no words of the code, to find out bits of a peer's choices."""

    def of(self, message: Message) -> Altered | None:
        super().of(message)
        if not isinstance(message, Transfer) or message.tag != layout.tag(layout.AlignStep.COVERED):
            return None
        rows = message.rows.copy()
        rows[5] ^= np.uint64(2**64 - 1)
        self.done = Altered("beside the code", [encode(Transfer(message.tag, message.seed, rows))])
        return self.done


def test_a_leader_that_leaves_the_code_gets_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """All bits of a row are wrong, so half of them show in the check: nobody guesses 256 bits."""
    computed: list[int] = []
    monkeypatch.setattr(Help, "computed", lambda self, rows, values: computed.append(len(rows)))
    sets = {"ant": range(10), "bee": range(40)}
    ends = played(programs("ot", sets), "ant", Beside(np.random.default_rng(0)), virtual=False, brief=20)
    assert isinstance(ends["bee"], ProtocolError)
    assert "ant sent what cannot be: sums of rows that are no words of the code" in str(ends["bee"])
    assert not computed
    played(programs("ot", sets), "ant", Attack(np.random.default_rng(0)), virtual=False, brief=20)
    assert computed == [40]  # where the leader is honest
