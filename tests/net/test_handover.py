"""A message that is handed over in a process is the one that would be decoded, whatever its fields are."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.net.worlds import WORLDS, teach, world

from colonnade.arrays import Numbers
from colonnade.messages import AnyMessage, Backward, Message, Piece, decode, encode
from colonnade.net import handover
from colonnade.net.endpoint import Endpoint
from colonnade.net.handover import handed
from colonnade.openings.wire import FIELDS

KINDS: tuple[type[Message], ...] = get_args(AnyMessage)

integers = st.integers(-(2**63), 2**64 - 1) | st.integers(-200, 300)
arrays = hnp.arrays(
    dtype=st.sampled_from(["<f8", "<u8", "<f4", "<i8", "<u4", "<i4", "<u2", "u1"]),
    shape=hnp.array_shapes(min_dims=1, max_dims=4, min_side=0) | st.integers(0, 9000).map(lambda n: (n,)),
    fill=st.just(1),
)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    Numbers: arrays | arrays.map(lambda array: array[..., ::2]),
    int: integers,
    float: st.floats(allow_nan=False) | integers,
    bool: st.booleans(),
    str: st.text(max_size=64),
    bytes: st.binary(max_size=64),
    tuple[int, ...]: st.lists(integers, max_size=20).map(tuple),
    type(None): st.none(),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Anything that a field of this type may be."""
    if kind in VALUES:
        return VALUES[kind]
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    inner = get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)
    return st.one_of([values_of(each) for each in inner])


def plain(message: Message) -> list[Any]:
    """All of a message but the memory that it is in."""
    values = msgspec.structs.astuple(message)
    return [
        (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else (type(value), value)
        for value in values
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_what_is_handed_over_is_what_would_be_decoded(kind: type[Message], data: st.DataObject) -> None:
    message = kind(*(data.draw(values_of(field.type)) for field in msgspec.structs.fields(kind)))
    payload = encode(message)
    received, size = handed(message)
    assert type(received) is kind
    assert plain(received) == plain(decode(payload))
    assert size == len(payload)
    for value in msgspec.structs.astuple(received):
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable


def test_what_a_round_sends_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of arrays and whole numbers nothing is written: that is what makes the local world fast."""
    monkeypatch.setattr(handover, "encode", lambda message: pytest.fail(f"{message} is written"))
    simple = {
        kind
        for kind in KINDS
        if all(field.type in (Numbers, int, tuple[int, ...]) for field in msgspec.structs.fields(kind))
    }
    assert {Piece, Backward} < simple
    for kind in simple:
        made = {Numbers: np.arange(3.0), int: 300, tuple[int, ...]: (1, 2)}
        handed(kind(*(made[field.type] for field in msgspec.structs.fields(kind))))


class Aged(Piece, frozen=True, tag=1):
    """A piece with one field more, of a type that is copied."""

    age: int = 0


class Noted(Piece, frozen=True, tag=1):
    """A piece with fields more, of types that are written and read."""

    sure: bool = False
    notes: tuple[str, ...] = ()


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("added", [Aged(5, np.arange(3.0), 7), Noted(5, np.arange(3.0), True, ("late",))])
def test_a_field_that_is_added_arrives_in_every_world(
    monkeypatch: pytest.MonkeyPatch, added: Piece, name: str
) -> None:
    teach(monkeypatch, type(added), instead_of=Piece)
    fields = {field.name: "control" for field in msgspec.structs.fields(type(added))}
    monkeypatch.setitem(FIELDS, type(added).__name__, fields)

    async def program(net: Endpoint) -> list[list[Any]]:
        await net.broadcast(added)
        heard = await net.gather(type(added), added.tag)
        await net.finish()
        return [plain(message) for message in heard.values()]

    assert world(name)(program) == [[plain(added)] * 2] * 3
