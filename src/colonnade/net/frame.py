"""A frame: one message with who, to whom, in which run, in which order, and a checksum.

On a real network TLS already keeps frames from being read or changed; the checksum finds corruption
where there is no TLS (the simulated world injects it) and the other fields find a frame that is in the
wrong place: another run's, another party's, a repeated or a missing one.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from colonnade.errors import MalformedMessage

_FIELDS = struct.Struct("<IBBHII")
_CHECKSUM = 4
HEADER_SIZE = _CHECKSUM + _FIELDS.size

DATA, ACK, RESEND = 0, 1, 2
"""Kinds of frames: a message; 'I have all up to here'; 'I miss what follows this one'."""


class Header(NamedTuple):
    run: int
    sender: int
    receiver: int
    kind: int
    sequence: int
    acknowledged: int


def pack(header: Header, payload: bytes = b"") -> bytes:
    fields = _FIELDS.pack(*header)
    checksum = zlib.crc32(payload, zlib.crc32(fields))
    return b"".join((checksum.to_bytes(_CHECKSUM, "little"), fields, payload))


def unpack(frame: bytes) -> tuple[Header, memoryview]:
    if len(frame) < HEADER_SIZE:
        raise MalformedMessage(f"a frame of {len(frame)} bytes is shorter than its header ({HEADER_SIZE})")
    view = memoryview(frame)
    if zlib.crc32(view[_CHECKSUM:]) != int.from_bytes(view[:_CHECKSUM], "little"):
        raise MalformedMessage(f"a frame of {len(frame)} bytes does not fit its checksum")
    return Header(*_FIELDS.unpack_from(view, _CHECKSUM)), view[HEADER_SIZE:]
