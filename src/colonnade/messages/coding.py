"""Messages as bytes and back: the schema is checked while a message is decoded, arrays travel as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Numbers
from colonnade.errors import MalformedMessage
from colonnade.messages.base import Message
from colonnade.messages.blind import OfBlindRuns
from colonnade.messages.cascade import OfCascades
from colonnade.messages.common import OfRows
from colonnade.messages.daemons import OfDaemons
from colonnade.messages.encrypted import Sealed
from colonnade.messages.rounds import OfRounds
from colonnade.messages.trees import OfTrees

AnyMessage = OfRounds | OfCascades | OfRows | OfDaemons | OfTrees | OfBlindRuns | Sealed

# a dtype is one byte on the wire; what is not in this list cannot be sent
_DTYPES = tuple(np.dtype(code) for code in ("<f8", "<u8", "<f4", "<i8", "<u4", "<i4", "<u2", "u1"))
_CODES = {dtype: code for code, dtype in enumerate(_DTYPES)}
_BYTES = _CODES[np.dtype(np.uint8)]
TYPED = frozenset(_DTYPES) - {_DTYPES[_BYTES]}
"""What arrays may be of that always travel with their type and shape."""


def _pack(value: object) -> object:
    """Return an array in a form that msgpack has."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a {type(value).__name__} cannot be sent")
    code, data = _CODES[value.dtype], np.ascontiguousarray(value).data
    if code == _BYTES and value.ndim == 1:
        return data  # packed bytes need no type and no shape
    return code, value.shape, data


def _unpack(_: type, value: Any) -> Numbers:
    """Return the array that `_pack` made this of. The value may be anything: `decode` catches what fails."""
    if isinstance(value, bytes):
        return np.frombuffer(value, dtype=np.uint8)
    code, shape, data = value
    if code < 0:
        raise ValueError(f"no array has type code {code}")
    # bytes cannot be changed, so neither can an array that was received
    array = np.frombuffer(data, _DTYPES[code])
    if len(shape) == 1 and shape[0] == len(array):
        return array
    if min(shape, default=0) < 0:
        raise ValueError(f"no array has shape {shape}")
    return array.reshape(shape)


_encoder = msgspec.msgpack.Encoder(enc_hook=_pack)
_decoder: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage, dec_hook=_unpack)


encode: Callable[[Message], bytes] = _encoder.encode
"""The bytes of a message."""


def decode(data: bytes | memoryview) -> AnyMessage:
    """Return the message in `data`. Raises MalformedMessage if there is none, and nothing else."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, ValueError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise MalformedMessage(f"a message of {len(data)} bytes does not decode: {error}") from error
