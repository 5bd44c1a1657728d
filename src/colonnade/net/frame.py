"""A frame: one message, where it belongs, its number, and a checksum.

On a real network TLS already keeps frames from being read or changed; the checksum finds corruption
where there is no TLS (the simulated world injects it). Where nothing can change a frame the checksum is
left out, since it would cost more than all the rest; a bit of the kind says whether it follows the header.
The other fields find a frame that is where it does not belong: the route one of another run or of other
parties, the numbers a repeated or a missing one.

    kind           1 byte; two of its bits say whether there is a checksum and whether numbers are wide
    route          4 bytes: a digest of run, sender and receiver, which both ends know (`route_of`)
    sequence       2 bytes, or 4 once one of the two numbers needs them
    acknowledged   2 bytes, or 4
    checksum       4 bytes, or none
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from colonnade.errors import MalformedMessage, RefusedMessage, UnknownParty, WrongRun

_NARROW, _WIDE = struct.Struct("<BIHH"), struct.Struct("<BIII")
_ROUTE = struct.Struct(">IBB")
_NARROW_LIMIT = 2**16
CHECKED, _WIDENED = 0x80, 0x40
_MARKS = CHECKED | _WIDENED
CHECKSUM = 4
HEADER_LIMIT = _WIDE.size + CHECKSUM
"""The most bytes that a header can have."""

DATA, ACK, RESEND = 0, 1, 2
"""Kinds of frames: a message; 'I have all up to here'; 'I miss what follows this one'."""


class Header(NamedTuple):
    kind: int
    route: int
    sequence: int
    acknowledged: int


def pack(header: Header | tuple[int, int, int, int], payload: bytes = b"", *, checked: bool = True) -> bytes:
    """Return the bytes of a frame, with a checksum if `checked`."""
    kind, route, sequence, acknowledged = header
    if checked:
        kind |= CHECKED
    if sequence < _NARROW_LIMIT and acknowledged < _NARROW_LIMIT:
        fields = _NARROW.pack(kind, route, sequence, acknowledged)
    else:
        fields = _WIDE.pack(kind | _WIDENED, route, sequence, acknowledged)
    if not checked:
        return fields + payload
    checksum = zlib.crc32(payload, zlib.crc32(fields))
    return b"".join((fields, checksum.to_bytes(CHECKSUM, "little"), payload))


def header_size(sequence: int, acknowledged: int) -> int:
    """Return the bytes of a header that has these numbers and no checksum."""
    narrow = sequence < _NARROW_LIMIT and acknowledged < _NARROW_LIMIT
    return _NARROW.size if narrow else _WIDE.size


def unpack(frame: bytes, *, demand: bool = False) -> tuple[Header, memoryview]:
    """Return the header and the payload of a frame. A checksum must fit; with `demand` it must also be
    there."""
    marks = frame[0] if frame else 0
    fields = _WIDE if marks & _WIDENED else _NARROW
    checked = demand or marks & CHECKED
    end = fields.size
    start = end + CHECKSUM if checked else end
    if len(frame) < start:
        raise MalformedMessage(f"a frame of {len(frame)} bytes is shorter than its header ({start})")
    view = memoryview(frame)
    kind, route, sequence, acknowledged = fields.unpack_from(view)
    if checked:
        checksum = int.from_bytes(view[end:start], "little")
        if not marks & CHECKED or checksum != zlib.crc32(view[start:], zlib.crc32(view[:end])):
            raise MalformedMessage(f"a frame of {len(frame)} bytes does not fit its checksum")
    return Header(kind & ~_MARKS, route, sequence, acknowledged), view[start:]


def route_of(run: int, sender: int, receiver: int) -> int:
    """Return the number that says where a frame belongs: in which run, and between which of its parties.

    Two routes that differ have the same number once in 2^32 times; never where the runs differ only in
    their lower half, as the CRC finds any change of 32 bits in a row.
    """
    return zlib.crc32(_ROUTE.pack(run, sender, receiver))


class Routes:
    """The routes of one party in one run: `to` each peer, and `of` what comes from each peer.

    Both ends of a line know them, so a frame with another route belongs to another run or to other parties.
    """

    def __init__(self, me: str, parties: Sequence[str], run: int) -> None:
        numbers = {party: number for number, party in enumerate(sorted(parties))}
        own = numbers[me]
        self.to = {peer: route_of(run, own, number) for peer, number in numbers.items() if peer != me}
        self.of = {peer: route_of(run, number, own) for peer, number in numbers.items() if peer != me}
        self.run, self._parties = run, range(len(numbers))

    def refusal(self, sender: str, route: int) -> RefusedMessage:
        """Return the error that says why a frame with this route is not taken from this sender."""
        if any(route == route_of(self.run, *pair) for pair in product(self._parties, repeat=2)):
            return UnknownParty(f"a frame from {sender} names another sender or receiver")
        return WrongRun(f"{sender} sent a frame of another run than {self.run:08x}")
