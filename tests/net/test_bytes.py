"""Bytes from outside: whatever they are, they become a message or a named refusal, and nothing else."""

from __future__ import annotations

import contextlib
import sys

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colonnade.arrays import Numbers
from colonnade.errors import MalformedMessage, OversizedMessage
from colonnade.messages import Message, Piece, decode, encode
from colonnade.net.frame import Header, pack, route_of, unpack
from colonnade.net.framing import RECORD, Splitter, plain_split, prefix, split, stream_framing

numbers = st.sampled_from([0, 1, 2**16 - 1, 2**16]) | st.integers(0, 2**32 - 1)
routes = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 255), st.integers(0, 255))
headers = st.builds(
    Header,
    kind=st.integers(0, 63),
    route=st.integers(0, 2**32 - 1),
    sequence=numbers,
    acknowledged=numbers,
)
json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=4)
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        assert isinstance(decode(data), Message)


@given(st.lists(json, max_size=6))
@example([1, 0, [0, [2**62, 2**62], b""]])
@example([1, 0, [0, [-1], b"12345678"]])
@example([1, 0, [-1, [1], b"12345678"]])
@example([1, 0, [0, {}, b""]])
@example([1, 2**70 % 2**64, [0.0, [0], b""]])
def test_any_msgpack_is_a_message_or_malformed(data: list[object]) -> None:
    with contextlib.suppress(MalformedMessage):
        assert isinstance(decode(msgspec.msgpack.encode(data)), Message)


@given(
    values=hnp.arrays(
        dtype=st.sampled_from(["<f8", "<u8", "<f4", "<i8", "<u4", "<i4", "<u2", "u1"]),
        shape=hnp.array_shapes(min_dims=1, max_dims=4, min_side=0),
    )
)
def test_arrays_arrive_bit_for_bit_and_cannot_be_changed(values: Numbers) -> None:
    got = decode(encode(Piece(tag=1, values=values)))
    assert isinstance(got, Piece)
    assert got.values.dtype == values.dtype
    assert got.values.shape == values.shape
    assert got.values.tobytes() == values.tobytes()
    assert not got.values.flags.writeable


@given(headers, st.binary(max_size=100))
def test_a_frame_is_unpacked_as_it_was_packed(header: Header, payload: bytes) -> None:
    got, rest = unpack(pack(header, payload))
    assert (got, bytes(rest)) == (header, payload)


@given(headers, st.binary(max_size=100), st.data())
def test_one_flipped_bit_is_found(header: Header, payload: bytes, data: st.DataObject) -> None:
    broken = bytearray(pack(header, payload))
    broken[data.draw(st.integers(0, len(broken) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(MalformedMessage):
        unpack(bytes(broken), demand=True)


@given(headers, st.binary(max_size=100))
def test_a_checksum_may_be_left_out_but_not_where_it_is_demanded(header: Header, payload: bytes) -> None:
    frame = pack(header, payload, checked=False)
    for got, rest in (unpack(frame), unpack(pack(header, payload), demand=True)):
        assert (got, bytes(rest)) == (header, payload)
    assert len(pack(header, payload)) == len(frame) + 4
    with pytest.raises(MalformedMessage, match=r"does not fit its checksum|shorter than its header"):
        unpack(frame, demand=True)


@given(headers)
def test_small_numbers_make_a_short_frame(header: Header) -> None:
    wide = max(header.sequence, header.acknowledged) >= 2**16
    assert len(pack(header, checked=False)) == (13 if wide else 9)


@given(routes, routes)
@example((2**31, 0, 1), (2**31 + 1, 0, 1))
def test_a_route_tells_runs_and_parties_apart(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    assert (route_of(*one) == route_of(*other)) == (one == other)


@given(st.binary(max_size=8))
def test_a_frame_without_a_header_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match="shorter than its header"):
        unpack(data)


@given(
    st.lists(st.binary(max_size=50) | st.sampled_from([2**15 - 1, 2**15, 70_000]).map(bytes), max_size=10),
    st.lists(st.integers(1, 60) | st.integers(1, 80_000)),
)
def test_a_stream_splits_into_its_frames_however_it_is_cut(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(prefix(len(frame)) + frame for frame in frames)
    splitter = Splitter(70_000)
    got: list[bytes] = []
    for cut in cuts:
        got += splitter.feed(stream[:cut])
        stream = stream[cut:]
    assert got + splitter.feed(stream) == frames


@given(st.binary(max_size=300), st.integers(0, 200))
@example(prefix(3) + b"ab", 2)
@example(prefix(2**15) + bytes(10), 2**16)
def test_frames_are_cut_alike_by_both_ways(data: bytes, limit: int) -> None:
    assert split(data, limit) == plain_split(data, limit)


def test_a_frame_that_comes_in_tiny_pieces_weighs_little_more_than_itself() -> None:
    """A peer may put two bytes into every TLS record, as many as a frame may have."""
    splitter, size = Splitter(2**20), 2**18
    assert splitter.feed(prefix(size)) == []
    for _ in range(size // 2 - 1):
        splitter.feed(b"ab")
    assert sum(map(sys.getsizeof, splitter._rest)) < 1.1 * size
    assert splitter.feed(b"ab") == [b"ab" * (size // 2)]


def test_a_length_over_the_limit_is_refused_before_its_frame_is_there() -> None:
    splitter = Splitter(1000)
    assert splitter.feed(prefix(1000)) == []
    with pytest.raises(OversizedMessage, match="1001 bytes is announced, the limit is 1000"):
        Splitter(1000).feed(prefix(1001))


@given(st.integers(0, 5 * RECORD))
def test_framing_is_a_prefix_and_an_overhead_for_every_record(size: int) -> None:
    length = len(prefix(size))
    assert length == (2 if size < 2**15 else 4)
    assert stream_framing(size) == (length, 22 * -(-(size + length) // RECORD))
