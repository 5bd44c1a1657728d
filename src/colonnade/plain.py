"""What a program remembers, as bytes and back: numbers, text, arrays, and records made of these. No code.

Values say what they are, so that a reader needs no schema: every container is a list whose first item names
its kind. Records (dataclasses, msgspec structs and named tuples) are those of this package alone, and are
read by setting their fields; nothing else that is read is ever called. A random generator is the state of
its stream.
"""

from __future__ import annotations

import importlib
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import numpy as np
from scipy.sparse import csr_array

from colonnade.errors import CheckpointError

_LARGEST = 2**63
_PACKAGE = "colonnade."
# records in checkpoints of 0.2, and where they lie now: modules, and classes that have another name
_MOVED = {
    f"colonnade.{old}": f"colonnade.{new}"
    for old, new in {
        "conversations.blind.desk": "conversations.linear.parties.blind_label_holder",
        "conversations.blind.slots": "conversations.blind.fixed_point",
        "conversations.blind.verbs": "conversations.blind.products",
        "conversations.cascade.latest": "conversations.cascade.output_table",
        "conversations.cascade.private": "conversations.cascade.private_replies",
        "conversations.cascade.steps": "conversations.cascade.first_step",
        "conversations.cascade.walk": "conversations.cascade.row_order",
        "conversations.cascade.waves": "conversations.cascade.answer_order",
        "conversations.legs:LegsState": "conversations.pacing.stages:StagesState",
        "conversations.linear.block:Delays": "conversations.pacing.delays:Delays",
        "conversations.linear.caution": "conversations.linear.quasi_newton.caution",
        "conversations.linear.full": "conversations.linear.quasi_newton.directions",
        "conversations.linear.joint_questions": "conversations.linear.quasi_newton.joint_questions",
        "conversations.linear.lbfgs_joint": "conversations.linear.quasi_newton.lbfgs_joint",
        "conversations.linear.lbfgs_local": "conversations.linear.quasi_newton.lbfgs_local",
        "conversations.linear.piggyback": "conversations.linear.quasi_newton.piggyback",
        "conversations.linear.pull:PullState": "conversations.pacing.stints:StintsState",
        "conversations.linear.trainer:Tally": "conversations.linear.parties.clear:PartyCounts",
        "conversations.progress:Progress": "conversations.pacing.round_counts:RoundCounts",
        "conversations.reach:ReachState": "conversations.pacing.shares_ahead:SharesAheadState",
        "conversations.schedule": "conversations.pacing.schedule",
        "conversations.tickets:TicketsState": "conversations.pacing.own_pace:OwnPaceState",
        "conversations.window:WindowState": "conversations.pacing.one_order:OneOrderState",
        "privacy.labels": "privacy.label_noise",
    }.items()
}
_CONTAINERS: dict[str, type] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
}


def pack(value: object) -> bytes:
    """Return the bytes of a value."""
    return msgspec.msgpack.encode(_down(value))


def unpack(content: bytes) -> Any:
    """Return the value that some bytes are; CheckpointError if they are none."""
    try:
        return _up(msgspec.msgpack.decode(content))
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError, ImportError) as error:
        raise CheckpointError(f"a record that cannot be read: {error}") from error


def fill(old: Any, new: Any) -> Any:
    """Return the new value, written into the old record where both are records of one kind.

    Others may hold the record; an array or a container is replaced, as nothing tells who shares it.
    """
    if isinstance(old, np.random.Generator) and isinstance(new, np.random.Generator):
        old.bit_generator.state = new.bit_generator.state
        return old
    if type(old) is not type(new):
        return new
    if isinstance(old, list) and len(old) == len(new):
        old[:] = [fill(one, other) for one, other in zip(old, new, strict=True)]
        return old
    params: Any = getattr(type(old), "__dataclass_params__", None)
    if params is not None and not params.frozen:
        for name in _names(type(old)):
            setattr(old, name, fill(getattr(old, name), getattr(new, name)))
        return old
    return new


def _names(kind: type) -> tuple[str, ...]:
    """Return the fields of a record's kind."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    names: tuple[str, ...] = getattr(kind, "__struct_fields__", getattr(kind, "_fields", ()))
    return names


def _down(value: object) -> Any:
    """Return a value in what msgpack has."""
    match value:
        case np.ndarray():
            # as it lies in memory: sums of the same numbers in another order would round otherwise
            axes = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
            laid = np.ascontiguousarray(value.transpose(axes))
            return ["array", value.dtype.str, list(laid.shape), axes, laid.tobytes()]
        case csr_array():
            parts = (_down(value.data), _down(value.indices), _down(value.indptr))
            return ["csr", *parts, list(value.shape)]
        case np.generic():
            return ["number", value.dtype.str, value.tobytes()]
        case slice():
            return ["slice", value.start, value.stop, value.step]
        case None | bool() | float() | str() | bytes():
            return value
        case int():
            return int(value) if -_LARGEST <= value < _LARGEST else ["integer", str(value)]
        case np.random.Generator():
            return ["generator", _down(value.bit_generator.state)]
        case Counter():
            return ["counter", *([_down(key), count] for key, count in value.items())]
        case dict():
            return ["dict", *([_down(key), _down(each)] for key, each in value.items())]
    kind = type(value)
    if kind.__module__.startswith(_PACKAGE) and (names := _names(kind)):
        return [
            "record",
            f"{kind.__module__}:{kind.__qualname__}",
            *(_down(getattr(value, n)) for n in names),
        ]
    if kind in _CONTAINERS.values() and isinstance(value, Iterable):
        return [kind.__name__, *map(_down, value)]
    raise TypeError(f"{kind.__name__} is no plain value")


def _up(value: Any) -> Any:
    """Return the value again."""
    if not isinstance(value, list):
        return value
    kind, *rest = value
    match kind:
        case "array":
            dtype, shape, axes, content = rest
            laid = np.frombuffer(content, dtype=np.dtype(dtype)).reshape(shape).copy()
            return laid.transpose(np.argsort(axes)) if axes else laid
        case "csr":
            data, indices, indptr = map(_up, rest[:3])
            return csr_array((data, indices, indptr), shape=tuple(rest[3]))
        case "slice":
            return slice(*rest)
        case "number":
            return np.frombuffer(rest[1], dtype=np.dtype(rest[0]))[0]
        case "integer":
            return int(rest[0])
        case "generator":
            generator = np.random.default_rng(0)
            generator.bit_generator.state = _up(rest[0])
            return generator
        case "counter":
            return Counter({_up(key): count for key, count in rest})
        case "dict":
            return {_up(key): _up(each) for key, each in rest}
        case "record":
            return _record(rest[0], [_up(each) for each in rest[1:]])
    return _CONTAINERS[kind](map(_up, rest))


def _record(named: str, values: list[Any]) -> Any:
    """Return a record of this package with these values of its fields."""
    module, _, name = _MOVED.get(named, named).partition(":")
    if not module.startswith(_PACKAGE):
        raise ValueError(f"{named} is no record of this package")
    kind: Any = importlib.import_module(_MOVED.get(module, module))
    for part in name.split("."):
        kind = getattr(kind, part)
    if not isinstance(kind, type) or not (names := _names(kind)) or len(names) != len(values):
        raise ValueError(f"{named} is no record with {len(values)} fields")
    if issubclass(kind, tuple):
        return kind(*values)
    if issubclass(kind, msgspec.Struct):
        return kind(**dict(zip(names, values, strict=True)))
    made = object.__new__(kind)
    for field, each in zip(names, values, strict=True):
        object.__setattr__(made, field, each)  # of frozen ones, too: this is their making
    return made
