"""A message as another party of this process gets it: nobody can change what another has, and bytes count.

In general that is what is decoded from its encoding. A message of nothing but arrays and whole numbers,
which is what a round sends, has its arrays copied instead, and its size is computed: that is the same to the
last byte, without writing or reading one. How follows from the fields of its kind, whichever these are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import structs

from colonnade.arrays import Numbers
from colonnade.messages import Message, decode, encode
from colonnade.messages.coding import TYPED

_FEW = 16  # a list of fewer has one byte before its elements
_TYPED = 3  # bytes of a list, a type code and a list of lengths
_BYTE, _SHORT = 2**8, 2**16
_BYTES = (1,) * 8 + (2,) + (3,) * 8 + (5,) * 16 + (9,) * 32  # of a whole number, by how many bits it has

Handed = tuple[Message, int]


def handed(message: Message) -> Handed:
    """Return the message for its receiver, and how many bytes its encoding has."""
    return _WAYS[type(message)](message)


class _Ways(dict[type[Message], Callable[[Message], Handed]]):
    """How messages are handed over, by their kind: made when the first of a kind is."""

    def __missing__(self, kind: type[Message]) -> Callable[[Message], Handed]:
        way = self[kind] = _way(kind)
        return way


_WAYS = _Ways()


def _encoded(message: Message) -> Handed:
    payload = encode(message)
    return decode(payload), len(payload)


# of a field, by its type: when it is simple enough, what the receiver gets, and how many bytes that has
_FIELDS: dict[object, tuple[str, str, str]] = {
    Numbers: ("{0}.dtype in typed and {0}.ndim < few", "copied({0})", "shaped({0}.shape, {0}.nbytes)"),
    int: ("", "{0}", "(bytes_of[{0}.bit_length()] if {0} >= 0 else number({0}))"),
    tuple[int, ...]: ("len({0}) < few", "{0}", "1 + sum([number(each) for each in {0}])"),
}


def _way(kind: type[Message]) -> Callable[[Message], Handed]:
    """Return how a kind of message is handed over.

    The function is written out, as dataclasses write theirs: a loop over fields, or a call for each of them,
    would take longer than the copies do.
    """
    fields = structs.fields(kind)
    tag = kind.__struct_config__.tag
    if len(fields) + 1 >= _FEW or not isinstance(tag, int) or any(f.type not in _FIELDS for f in fields):
        return _encoded
    simple, parts, sizes = (
        [_FIELDS[field.type][which].format(f"field_{at}") for at, field in enumerate(fields)]
        for which in range(3)
    )
    code = "\n    ".join(
        [
            "def way(message):",
            *(f"field_{at} = message.{field.name}" for at, field in enumerate(fields)),
            f"if {' and '.join(filter(None, simple)) or 'True'}:",
            f"    return kind({', '.join(parts)}), {' + '.join([str(1 + _number(tag)), *sizes])}",
            "return encoded(message)",
        ]
    )
    space: dict[str, Any] = {"kind": kind, "encoded": _encoded, "few": _FEW}
    space |= {"typed": TYPED, "bytes_of": _BYTES, "copied": _copied, "shaped": _shaped, "number": _number}
    exec(code, space)  # noqa: S102  of names of fields alone
    way: Callable[[Message], Handed] = space["way"]
    return way


def _copied(values: Numbers) -> Numbers:
    """Return the same numbers, which nobody can change: a copy, unless nobody can as it is."""
    if not values.flags.writeable and (values.base is None or not _writeable(values.base)):
        return values
    copy = np.frombuffer(values.tobytes(), values.dtype)  # of bytes, as what is decoded
    return copy if values.ndim == 1 else copy.reshape(values.shape)


def _writeable(base: object) -> bool:
    return base.flags.writeable if isinstance(base, np.ndarray) else not isinstance(base, bytes)


def _number(value: int) -> int:
    """Return the bytes of a whole number."""
    if value >= 0:
        return _BYTES[value.bit_length()]
    return 1 if value >= -32 else max(2, _BYTES[(2 * ~value).bit_length()])  # one bit is for the sign


@lru_cache(maxsize=256)  # a run has arrays of few shapes
def _shaped(shape: tuple[int, ...], bytes_: int) -> int:
    """Return the bytes of an array: its type and shape, how many bytes follow, and these."""
    length = 2 if bytes_ < _BYTE else 3 if bytes_ < _SHORT else 5
    return _TYPED + sum([_number(size) for size in shape]) + length + bytes_
