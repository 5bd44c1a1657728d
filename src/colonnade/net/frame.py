"""A frame: one message with who, to whom, in which run, in which order, and a checksum.

On a real network TLS already keeps frames from being read or changed; the checksum finds corruption
where there is no TLS (the simulated world injects it). Where nothing can change a frame the checksum is
left out, which reads as zero, since it would cost more than all the rest. The other fields find a frame
that is in the wrong place: another run's, another party's, a repeated or a missing one.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from colonnade.errors import MalformedMessage

_FIELDS = struct.Struct("<IBBHII")
_CHECKSUM = 4
_UNCHECKED = bytes(_CHECKSUM)
_FULL = 2**32 - 1  # a checksum that happens to be zero
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


def pack(header: Header, payload: bytes = b"", *, checked: bool = True) -> bytes:
    fields = _FIELDS.pack(*header)
    if not checked:
        return b"".join((_UNCHECKED, fields, payload))
    checksum = zlib.crc32(payload, zlib.crc32(fields)) or _FULL
    return b"".join((checksum.to_bytes(_CHECKSUM, "little"), fields, payload))


def unpack(frame: bytes, *, demand: bool = False) -> tuple[Header, memoryview]:
    """The header and the payload. A checksum that is there must fit; `demand` that it is there."""
    if len(frame) < HEADER_SIZE:
        raise MalformedMessage(f"a frame of {len(frame)} bytes is shorter than its header ({HEADER_SIZE})")
    view = memoryview(frame)
    checksum = int.from_bytes(view[:_CHECKSUM], "little")
    if (checksum or demand) and checksum != (zlib.crc32(view[_CHECKSUM:]) or _FULL):
        raise MalformedMessage(f"a frame of {len(frame)} bytes does not fit its checksum")
    return Header(*_FIELDS.unpack_from(view, _CHECKSUM)), view[HEADER_SIZE:]
