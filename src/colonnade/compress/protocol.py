"""Compressors: an array goes in, a smaller one goes out on the wire.

State goes in, state comes out: what a compressor could not send this time may wait in the state. The
receiver always knows the shape that is due (rows of the batch, outputs of the client), so no shape is sent,
and a message of any other size is refused. What each side learns: never more than from the array itself.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from colonnade.arrays import Numbers
from colonnade.errors import MalformedMessage
from colonnade.state import UNCHANGED

State = Numbers | None


class Compressor(Protocol):
    def init(self, shape: tuple[int, ...]) -> State:
        """Return the state before the first array of this shape."""
        ...

    def size(self, shape: tuple[int, ...]) -> int:
        """Return the bytes on the wire of an array of this shape."""
        ...

    def encode(self, state: State, x: Numbers) -> tuple[Numbers, State]:
        """Return what to send for the array x, and the state for the next one."""
        ...

    def decode(self, packed: Numbers, shape: tuple[int, ...]) -> Numbers:
        """Return the array of this shape that was packed; MalformedMessage if there is none."""
        ...


class Plain:
    """Numbers as they are, in single or double precision."""

    STATE = UNCHANGED

    def __init__(self, precision: Literal["float32", "float64"]) -> None:
        self._dtype = np.dtype(precision)

    def init(self, shape: tuple[int, ...]) -> State:
        return None

    def size(self, shape: tuple[int, ...]) -> int:
        return int(np.prod(shape)) * self._dtype.itemsize

    def encode(self, state: State, x: Numbers) -> tuple[Numbers, State]:
        return x.astype(self._dtype, copy=False), state

    def opened(self, raw: Numbers, shape: tuple[int, ...]) -> Numbers:
        """Return the array whose bytes these are, as it would have come in a message of its own."""
        return np.frombuffer(raw.tobytes(), self._dtype).reshape(shape)

    def decode(self, packed: Numbers, shape: tuple[int, ...]) -> Numbers:
        if packed.shape != shape or packed.dtype != self._dtype:
            raise MalformedMessage(
                f"an array of shape {packed.shape} and type {packed.dtype}; due are {shape} and {self._dtype}"
            )
        return packed


def bytes_due(packed: Numbers, size: int, what: str) -> None:
    """Raise MalformedMessage unless there are exactly this many bytes; `what` names them in the text."""
    if packed.dtype != np.uint8 or packed.shape != (size,):
        raise MalformedMessage(
            f"{what} as an array of shape {packed.shape} and type {packed.dtype}; due are {size} bytes"
        )
