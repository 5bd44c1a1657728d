"""What a hostile party makes of a message that it is about to send, by a seeded generator.

Every alteration says whether the protocol can tell (`plain`): a number of the wrong type, or too few of them,
is seen by anybody who looks; another number within its range is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec
import numpy as np

from colonnade.messages import TOPIC_SHIFT, AnyMessage, Message, Score, encode

KINDS: tuple[type[Message], ...] = get_args(AnyMessage)
LAST_INT = 2**63 - 1


@dataclass
class Altered:
    """What goes out instead of a message: these bytes, one message each."""

    what: str
    payloads: list[bytes]
    plain: bool = True  # whether the receiver can tell that something is wrong
    later: bool = False  # the original goes out after the next message to the same party
    silent: bool = False  # nothing more goes out, ever


@cache
def fields_of(kind: type[Message]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field: hints[field] for field in kind.__struct_fields__}


def altered(rng: np.random.Generator, message: Message) -> Altered:
    """One alteration of a message, drawn at random."""
    payload = encode(message)
    ways = [
        lambda: Altered("nothing", []),
        lambda: Altered("silence", [], silent=True),
        lambda: Altered("twice", [payload, payload]),
        lambda: Altered("later", [], plain=False, later=True),
        lambda: Altered("cut short", [payload[: int(rng.integers(len(payload)))]]),
        lambda: Altered("garbage", [rng.bytes(len(payload))]),
        lambda: Altered("longer", [payload + rng.bytes(8)]),
        lambda: another_kind(rng, message, payload),
        lambda: Altered("one more", [encode(anything(rng, message)), payload], plain=False),
        lambda: Altered("many more", [*(encode(anything(rng, message)) for _ in range(40)), payload], False),
    ]
    changes = [
        (field, change)
        for field in fields_of(type(message))
        for change in changes_of(getattr(message, field))
    ]
    if changes and rng.random() < 0.7:
        return changed(rng, message, changes)
    return ways[int(rng.integers(len(ways)))]()


def another_kind(rng: np.random.Generator, message: Message, payload: bytes) -> Altered:
    other = anything(rng, message)
    return Altered(f"a {type(other).__name__}", [encode(other)], plain=type(other) is not type(message))


def changed(rng: np.random.Generator, message: Message, changes: list[tuple[str, str]]) -> Altered:
    """The message with one field changed."""
    field, change = changes[int(rng.integers(len(changes)))]
    value, plain = change_to(rng, getattr(message, field), change)
    plain = plain and not isinstance(message, Score)  # any number of rows may be asked for, and none
    other = msgspec.structs.replace(message, **{field: value})
    return Altered(f"{field} {change}", [encode(other)], plain=plain)


def changes_of(value: object) -> tuple[str, ...]:
    match value:
        case np.ndarray():
            return ("type", "fewer", "more", "axis", "empty", "nan", "inf", "huge", "negative", "noise")
        case bool():
            return ("flipped",)
        case int():
            return ("-1", "0", "next", "2**31", "last", "topic")
        case float():
            return ("nan", "inf", "negative", "huge")
        case str():
            return ("empty", "long", "control")
        case bytes():
            return ("empty", "noise", "long", "fewer")
        case list() | tuple():
            return ("empty", "negative", "last", "more")
    return ("number",)


def change_to(rng: np.random.Generator, value: Any, change: str) -> tuple[Any, bool]:
    """The value after a change, and whether anybody can tell."""
    match value:
        case np.ndarray():
            return array_changed(rng, value, change)
        case bool():
            return not value, False
        case int():
            numbers = {"-1": -1, "0": 0, "next": min(value + 1, LAST_INT), "2**31": 2**31, "last": LAST_INT}
            return numbers.get(change, value ^ 1 << TOPIC_SHIFT), False
        case float():
            return {"nan": np.nan, "inf": np.inf, "negative": -1.0}.get(change, 1e300), change != "negative"
        case str():
            return {"empty": "", "long": "x" * 10_000}.get(change, "\x1b[31mroot logged in\n"), False
        case bytes():
            octets = {"empty": b"", "long": value + rng.bytes(10_000), "fewer": value[:-1]}
            return octets.get(change, rng.bytes(len(value))), False
        case list() | tuple():
            made = {"empty": [], "negative": [-1] * len(value), "last": [LAST_INT] * len(value)}
            return type(value)(made.get(change, [*value, 0])), False
    return 7, False


def array_changed(rng: np.random.Generator, value: Any, change: str) -> tuple[Any, bool]:
    whole = value.dtype.kind in "iu"
    match change:
        case "type":
            kinds = [k for k in ("f8", "f4", "u8", "i8", "i4", "u1") if np.dtype(k) != value.dtype]
            return value.astype(kinds[int(rng.integers(len(kinds)))]), True
        case "fewer":
            return value[:-1], bool(value.shape and len(value))
        case "more":
            return np.concatenate([value, value[:1]]), bool(value.shape and len(value))
        case "axis":
            return value[None], True
        case "empty":
            return value.ravel()[:0], value.ndim > 1 and value.size > 0
        case "nan" | "inf" | "huge" if not whole and value.size:
            made = value.copy()
            number = {"nan": np.nan, "inf": np.inf}.get(change, 1e200 if value.dtype == np.float64 else 3e38)
            made.ravel()[int(rng.integers(value.size))] = number
            return made, change != "huge" or value.dtype == np.float64
        case "negative":
            made = -np.abs(value.astype(np.float64)).astype(value.dtype) if not whole else value.copy()
            if whole and value.size:
                made.ravel()[int(rng.integers(value.size))] = -1 if value.dtype.kind == "i" else 2
            return made, False
    info = np.iinfo(value.dtype) if whole else None
    if info is not None:
        return rng.integers(info.min, info.max, value.shape, value.dtype, endpoint=True), False
    return rng.standard_normal(value.shape).astype(value.dtype) * 10.0 ** rng.integers(0, 9), False


def anything(rng: np.random.Generator, like: Message) -> Message:
    """A message of any kind whose fields are of the right types and otherwise anything."""
    kind = KINDS[int(rng.integers(len(KINDS)))]
    tag = getattr(like, "tag", 0)
    return kind(**{field: _value(rng, field, hint, tag) for field, hint in fields_of(kind).items()})


def _value(rng: np.random.Generator, field: str, hint: Any, tag: int) -> Any:
    text = str(hint)
    if field == "tag":
        return int(rng.choice([tag, tag + 1, max(tag - 1, 0), 0, LAST_INT, -1]))
    if "ndarray" in text.lower():  # NumPy 2.5 keeps the alias NDArray
        shape = tuple(rng.integers(0, 5, int(rng.integers(0, 3))).tolist())
        return np.asarray(rng.standard_normal(shape) * 9).astype(rng.choice(["f8", "f4", "u8", "i8", "u1"]))
    if "list" in text or "tuple" in text:
        made = rng.integers(0, 4, int(rng.integers(0, 4))).tolist()
        return tuple(made) if "tuple" in text else made
    numbers = [0, 1, 2, 7, 2**31, LAST_INT, -1]
    known = {
        "bool": bool(rng.integers(2)),
        "int": numbers[int(rng.integers(len(numbers)))],
        "float": float(rng.choice([0.0, -1.0, 1e300, np.nan])),
        "bytes": rng.bytes(int(rng.integers(0, 40))),
        "str": "party0",
    }
    return next((value for name, value in known.items() if name in text), None)
