"""A frame: one message with who, to whom, in which run, in which order, and a checksum.

On a real network TLS already keeps frames from being read or changed; the checksum finds corruption
where there is no TLS (the simulated world injects it). Where nothing can change a frame the checksum is
left out, since it would cost more than all the rest; a bit of the kind says whether it follows the header.
The other fields find a frame that is in the wrong place: another run's, another party's, a repeated or a
missing one.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from colonnade.errors import MalformedMessage

_FIELDS = struct.Struct("<IBBBII")
_KIND = 6  # where the kind is
_CHECKED = 0x80
CHECKSUM = 4
HEADER_SIZE = _FIELDS.size

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
    if not checked:
        return _FIELDS.pack(*header) + payload
    fields = _FIELDS.pack(*header._replace(kind=header.kind | _CHECKED))
    checksum = zlib.crc32(payload, zlib.crc32(fields))
    return b"".join((fields, checksum.to_bytes(CHECKSUM, "little"), payload))


def unpack(frame: bytes, *, demand: bool = False) -> tuple[Header, memoryview]:
    """The header and the payload. A checksum that is there must fit; `demand` that it is there."""
    checked = len(frame) > _KIND and frame[_KIND] & _CHECKED
    start = HEADER_SIZE + CHECKSUM if checked or demand else HEADER_SIZE
    if len(frame) < start:
        raise MalformedMessage(f"a frame of {len(frame)} bytes is shorter than its header ({start})")
    view = memoryview(frame)
    header = Header(*_FIELDS.unpack_from(view))
    if not (checked or demand):
        return header, view[start:]
    checksum = int.from_bytes(view[HEADER_SIZE:start], "little")
    if not checked or checksum != zlib.crc32(view[start:], zlib.crc32(view[:HEADER_SIZE])):
        raise MalformedMessage(f"a frame of {len(frame)} bytes does not fit its checksum")
    return header._replace(kind=header.kind ^ _CHECKED), view[start:]
