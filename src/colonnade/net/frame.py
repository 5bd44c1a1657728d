"""A frame: one message with its place, its number, and a checksum.

On a real network TLS already keeps frames from being read or changed; the checksum finds corruption
where there is no TLS (the simulated world injects it). Where nothing can change a frame the checksum is
left out, since it would cost more than all the rest; a bit of the kind says whether it follows the header.
The other fields find a frame that is where it does not belong: `place` another run's or another party's, the
numbers a repeated or a missing one.

    kind           1 byte; two of its bits say whether there is a checksum and whether numbers are wide
    place          4 bytes: a digest of run, sender and receiver, which both ends know (`place_of`)
    sequence       2 bytes, or 4 once one of the two numbers needs them
    acknowledged   2 bytes, or 4
    checksum       4 bytes, or none
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from colonnade.errors import MalformedMessage

_NARROW, _WIDE = struct.Struct("<BIHH"), struct.Struct("<BIII")
_PLACE = struct.Struct(">IBB")
_NARROW_LIMIT = 2**16
_CHECKED, _WIDENED = 0x80, 0x40
_MARKS = _CHECKED | _WIDENED
CHECKSUM = 4
HEADER_LIMIT = _WIDE.size + CHECKSUM
"""Bytes that a header has at most."""

DATA, ACK, RESEND = 0, 1, 2
"""Kinds of frames: a message; 'I have all up to here'; 'I miss what follows this one'."""


class Header(NamedTuple):
    kind: int
    place: int
    sequence: int
    acknowledged: int


def place_of(run: int, sender: int, receiver: int) -> int:
    """Where a frame belongs: a run, and the numbers of two of its parties.

    Two places that differ are the same number once in 2^32 times; never where the runs differ only in
    their lower half, as the CRC finds any change of 32 bits in a row.
    """
    return zlib.crc32(_PLACE.pack(run, sender, receiver))


def pack(header: Header, payload: bytes = b"", *, checked: bool = True) -> bytes:
    kind, place, sequence, acknowledged = header
    if checked:
        kind |= _CHECKED
    if sequence < _NARROW_LIMIT and acknowledged < _NARROW_LIMIT:
        fields = _NARROW.pack(kind, place, sequence, acknowledged)
    else:
        fields = _WIDE.pack(kind | _WIDENED, place, sequence, acknowledged)
    if not checked:
        return fields + payload
    checksum = zlib.crc32(payload, zlib.crc32(fields))
    return b"".join((fields, checksum.to_bytes(CHECKSUM, "little"), payload))


def unpack(frame: bytes, *, demand: bool = False) -> tuple[Header, memoryview]:
    """The header and the payload. A checksum that is there must fit; `demand` that it is there."""
    marks = frame[0] if frame else 0
    fields = _WIDE if marks & _WIDENED else _NARROW
    checked = demand or marks & _CHECKED
    end = fields.size
    start = end + CHECKSUM if checked else end
    if len(frame) < start:
        raise MalformedMessage(f"a frame of {len(frame)} bytes is shorter than its header ({start})")
    view = memoryview(frame)
    kind, place, sequence, acknowledged = fields.unpack_from(view)
    if checked:
        checksum = int.from_bytes(view[end:start], "little")
        if not marks & _CHECKED or checksum != zlib.crc32(view[start:], zlib.crc32(view[:end])):
            raise MalformedMessage(f"a frame of {len(frame)} bytes does not fit its checksum")
    return Header(kind & ~_MARKS, place, sequence, acknowledged), view[start:]
