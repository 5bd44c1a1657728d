"""Numbering, acknowledging, resending: whatever the line does, frames arrive once and in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from colonnade.net.ends import ACK_BYTES, ACK_EVERY
from colonnade.net.line import EARLY_BYTES, EARLY_LIMIT, Line

THERE, BACK = 0xA1B2C3D4, 0x01020304  # the routes of the two directions


def one_end(*, keeps: bool = True) -> Line:
    return Line(THERE, BACK, keeps=keeps)


def both_ends() -> tuple[Line, Line]:
    return Line(THERE, BACK), Line(BACK, THERE)


def test_frames_in_order_are_taken_as_they_come() -> None:
    line = one_end()
    assert [line.take(i, b"%d" % i) for i in (1, 2, 3)] == [[b"1"], [b"2"], [b"3"]]


def test_early_frames_wait_for_the_gap_to_close() -> None:
    line = one_end()
    assert line.take(2, b"2") == []
    assert line.take(4, b"4") == []
    assert line.gap_is_news()
    assert not line.gap_is_news()
    assert line.take(1, b"1") == [b"1", b"2"]
    assert line.gap_is_news()
    assert line.take(3, b"3") == [b"3", b"4"]
    assert not line.gap_is_news()


def test_repeats_are_told_from_news() -> None:
    line = one_end()
    line.take(1, b"1")
    line.take(3, b"3")
    assert line.take(1, b"1") is None
    assert line.take(3, b"3") is None


def test_what_is_acknowledged_is_forgotten() -> None:
    line = one_end()
    frames = [line.pack(b"%d" % i) for i in range(1, 6)]
    assert line.unacknowledged() == list(enumerate(frames, start=1))
    assert line.acknowledge(3)
    assert not line.acknowledge(2)
    assert not line.acknowledge(6)  # which was never sent
    assert line.unacknowledged() == [(4, frames[3]), (5, frames[4])]
    assert line.waiting == len(frames[3]) + len(frames[4])


def test_an_acknowledgement_is_owed_by_number_and_by_size() -> None:
    line = one_end()
    for i in range(1, ACK_EVERY):
        line.take(i, b"")
        assert not line.owes_ack()
    line.take(ACK_EVERY, b"")
    assert line.owes_ack()
    line.report()
    assert not line.owes_ack()
    line.take(ACK_EVERY + 1, bytes(ACK_BYTES))
    assert line.owes_ack()


def test_early_frames_are_bounded_by_their_bytes_too() -> None:
    line, large = one_end(), bytes(EARLY_BYTES // 4)
    for number in range(2, 12):
        line.take(number, large)
    assert len(line.early) == 4
    assert len(line.take(1, b"") or []) == 5
    assert line.early_bytes == 0


def test_a_peer_cannot_fill_the_memory_with_early_frames() -> None:
    line = one_end()
    for i in range(2, 2 * EARLY_LIMIT):
        line.take(i, b"x")
    assert len(line.early) == EARLY_LIMIT


@given(
    count=st.integers(1, 30),
    weather=st.lists(
        st.tuples(st.integers(0, 10**6), st.sampled_from(["take", "drop", "twice"])), max_size=300
    ),
)
def test_any_drop_repeat_and_reorder_gives_each_frame_once_in_order(
    count: int, weather: list[tuple[int, str]]
) -> None:
    """Two ends over the worst possible line: any frame in transit may be next, lost or doubled."""
    sender, receiver = both_ends()
    transit: list[tuple[int, bytes]] = []
    for number in range(1, count + 1):
        sender.count(b"%d" % number)
        transit.append((number, b"%d" % number))
    delivered: list[bytes] = []

    def arrive(number: int, frame: bytes) -> None:
        delivered.extend(receiver.take(number, frame) or [])

    for pick, what in weather:
        if not transit:
            sender.acknowledge(receiver.taken)
            transit.extend(sender.unacknowledged())
            continue
        number, frame = transit.pop(pick % len(transit))
        if what == "twice":
            transit.append((number, frame))
        if what != "drop":
            arrive(number, frame)
    # the line is restored: what is missing is sent again
    sender.acknowledge(receiver.taken)
    for number, frame in sender.unacknowledged():
        arrive(number, frame)
    assert delivered == [b"%d" % i for i in range(1, count + 1)]
    sender.acknowledge(receiver.taken)
    assert not sender.unacknowledged()
    assert not receiver.early
