"""The numbers of a line's two ends: what is compiled does what Python does, whatever comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.net.ends import PlainEnds
from colonnade.net.frame import ACK, DATA, RESEND, Header, pack, unpack
from colonnade.net.line import CheckedLine

compiled = pytest.importorskip("colonnade.net._line", reason="no compiler was there: Python is all there is")

THERE, BACK = 0xA1B2C3D4, 0x01020304

payloads = st.binary(max_size=40) | st.sampled_from([2**16 - 9, 2**16, 2**16 + 1]).map(bytes)
numbers = st.integers(0, 12) | st.sampled_from([2**16 - 1, 2**16, 2**32 - 1])
frames = st.builds(
    lambda kind, route, sequence, acknowledged, payload, checked: pack(
        Header(kind, route, sequence, acknowledged), payload, checked=checked
    ),
    st.sampled_from([DATA, DATA, DATA, ACK, RESEND, 7]),
    st.sampled_from([BACK, BACK, BACK, THERE]),
    numbers,
    numbers,
    payloads,
    st.booleans(),
)
steps = st.lists(
    st.tuples(st.just("pack"), payloads)
    | st.tuples(st.just("count"), payloads)
    | st.tuples(st.just("open"), frames | st.binary(max_size=20))
    | st.tuples(st.just("next"), payloads)
    | st.tuples(st.just("acknowledge"), numbers)
    | st.tuples(st.just("pass_by"), st.integers(0, 100))
    | st.tuples(st.just("gap"), st.booleans())
    | st.tuples(st.just("forget"), st.none()),
    max_size=40,
)


def made(line: PlainEnds, step: str, value: object) -> object:
    """Do one thing at a line's end; what comes of it."""
    match step, value:
        case "next", bytes():  # the frame that is due, which acknowledges all
            value = pack((DATA, BACK, line.taken + 1, line.sent), value, checked=False)
            opened = line.open(value)
            return None if opened is None else bytes(opened)
        case "open", bytes():
            opened = line.open(value)
            return None if opened is None else bytes(opened)
        case "gap", bool():
            line.gap = value
            return None
        case "forget", _:
            line.forget()
            return None
        case _:
            return getattr(line, step)(value)


def stand(line: PlainEnds) -> tuple[object, ...]:
    numbers = line.sent, line.taken, line.acknowledged, line.reported, line.unreported_bytes, line.kept_bytes
    return (*numbers, line.to, line.of, line.gap, line.owes_ack(), line.unacknowledged())


@given(keeps=st.booleans(), steps=steps)
def test_both_ways_are_one(keeps: bool, steps: list[tuple[str, object]]) -> None:
    plain, quick = PlainEnds(THERE, BACK, keeps), compiled.Ends(THERE, BACK, keeps)
    for step, value in steps:
        assert made(plain, step, value) == made(quick, step, value)
        assert stand(plain) == stand(quick)


@given(start=st.sampled_from([0, 2**16 - 2, 2**16, 2**32 - 3]), taken=numbers, payload=payloads)
def test_a_frame_is_what_frame_py_says(start: int, taken: int, payload: bytes) -> None:
    for kind in (PlainEnds, compiled.Ends):
        line = kind(THERE, BACK, True)
        line.sent, line.taken = start, taken
        frame = line.pack(payload)
        assert frame == pack((DATA, THERE, start + 1, taken), payload, checked=False)
        header, found = unpack(frame)
        assert (header, bytes(found)) == (Header(DATA, THERE, start + 1, taken), payload)
        assert line.pass_by(len(payload)) == len(
            pack((DATA, THERE, start + 2, taken), payload, checked=False)
        )


def test_a_line_ends_where_its_numbers_do() -> None:
    for kind in (PlainEnds, compiled.Ends):
        line = kind(THERE, BACK, False)
        line.sent = 2**32 - 1
        with pytest.raises(OverflowError, match="2\\^32 frames"):
            line.count(b"one more")


def test_what_is_no_frame_is_not_taken() -> None:
    line = compiled.Ends(THERE, BACK, True)
    for wrong in ("text", None, 3, bytearray(20)):
        with pytest.raises(TypeError):
            line.open(wrong)
        with pytest.raises(TypeError):
            line.pack(wrong)
        with pytest.raises(TypeError):
            line.count(wrong)
    with pytest.raises(TypeError):
        line.acknowledge("3")
    assert stand(line) == stand(PlainEnds(THERE, BACK, True))


def test_a_frame_with_a_checksum_is_never_taken_unseen() -> None:
    there, back = CheckedLine(THERE, BACK), CheckedLine(BACK, THERE)
    frame = there.pack(b"one")
    back.open(frame)
    assert back.taken == 0
    assert bytes(unpack(frame, demand=True)[1]) == b"one"
    assert there.unacknowledged() == [(1, frame)]
