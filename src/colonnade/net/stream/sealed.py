"""Bytes between a TLS object in memory and a socket: what comes is decrypted at once, what goes is encrypted.

There are two ways to the same: `_line.c`, compiled when the package is installed, and `PlainSealed`, where no
compiler was there.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from colonnade.net.framing import RECORD

ROOM = 2**17


class PlainSealed:
    """Reads and writes a socket, which never waits, through a TLS object that has shaken hands.

    `arrived` is what the TLS object reads from, `leaving` what it writes to, `incomplete` what it raises
    where half a record has come.
    """

    def __init__(
        self,
        socket: int,
        tls: ssl.SSLObject,
        arrived: ssl.MemoryBIO,
        leaving: ssl.MemoryBIO,
        incomplete: type[Exception],
    ) -> None:
        self._socket, self._tls, self._incomplete = socket, tls, incomplete
        self._arrived, self._leaving = arrived, leaving
        self._room = memoryview(bytearray(ROOM))

    def read(self, take: Callable[[bytes], None]) -> bool:
        """Give all that has come to `take`, a record at a time; False if nothing will come any more."""
        try:
            size = os.readv(self._socket, (self._room,))
        except (BlockingIOError, InterruptedError):
            return True
        if not size:
            return False
        self._arrived.write(self._room[:size])
        try:
            while self._arrived.pending:
                record = self._tls.read(RECORD)
                if not record:
                    return False
                take(record)
        except self._incomplete:
            pass  # the rest of the record is on its way
        return True

    def write(self, data: bytes) -> bytes:
        """Encrypt and send; returns the encrypted bytes for which there was no room."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
        encrypted = self._leaving.read()
        try:
            return encrypted[os.write(self._socket, encrypted) :]
        except OSError:
            return encrypted  # no room, or an error, which the sender of the rest will meet again


if TYPE_CHECKING:
    Sealed = PlainSealed
else:
    try:
        from colonnade.net._line import Sealed
    except ImportError:
        Sealed = PlainSealed
