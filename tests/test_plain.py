"""What a program remembers becomes bytes, and the same again; nothing else is taken."""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.conversations.cascade.answer_order import Turns
from colonnade.conversations.pacing.delays import Delays
from colonnade.conversations.pacing.own_pace import OwnPaceState
from colonnade.conversations.pacing.round_counts import RoundCounts
from colonnade.conversations.pacing.schedule import Round
from colonnade.conversations.pacing.shares_ahead import SharesAheadState
from colonnade.conversations.pacing.stages import StagesState
from colonnade.errors import CheckpointError
from colonnade.optim.lbfgs import LimitedMemory
from colonnade.plain import _MOVED, fill, pack, unpack

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.integers() | st.text(), inner)
        | st.lists(inner).map(deque)
        | st.frozensets(st.integers())
    ),
    max_leaves=20,
)


@settings(max_examples=40, deadline=None)
@given(PLAIN)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    found = unpack(pack(value))
    assert found == value
    assert type(found) is type(value)


def reach() -> SharesAheadState:
    return SharesAheadState([1], [2], [0], [1])


def test_arrays_records_and_counters_come_back() -> None:
    progress = RoundCounts([1], [2], [4], [9], [{3}])
    state = OwnPaceState(StagesState([4, 9]), progress, [[1]], reach(), read={5: [1, 2]})
    value: dict[str, Any] = {
        "window": state,
        "delays": Delays(3, Counter({1: 2})),
        "round": Round(1, 2, 3, 4),
        "arrays": [np.arange(6, dtype=np.uint8).reshape(2, 3).T, np.float32(0.1), np.zeros((0, 3))],
    }
    found = unpack(pack(value))
    assert (found["window"], found["delays"], found["round"]) == (state, value["delays"], value["round"])
    for one, other in zip(found["arrays"], value["arrays"], strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_a_generator_goes_on_where_it_was() -> None:
    rng = np.random.default_rng(5)
    rng.random(7)
    kept, held = unpack(pack(rng)), np.random.default_rng(0)
    assert fill(held, kept) is held  # whoever else has it goes on with it
    assert held.random() == rng.random()


def test_a_record_that_others_hold_is_filled_and_an_array_is_replaced() -> None:
    progress, further = RoundCounts.of(2, stop=5), RoundCounts.of(2, stop=5)
    further.finish(0, index=1)
    state = OwnPaceState(StagesState([5]), progress, [[0]], reach())
    kept = unpack(pack(OwnPaceState(StagesState([3, 5]), further, [[1]], reach())))
    assert fill(state, kept) is state
    assert (state.counts is progress, progress.base, state.stages.limits) == (True, [0, 1], [3, 5])
    memory = LimitedMemory(3, 0.1)
    memory.pinned = 1
    assert unpack(pack(memory)).pinned == 1


@dataclass
class Stranger:
    value: int


@pytest.mark.parametrize(
    "content",
    [
        b"\xc1",
        msgspec.msgpack.encode(["record", "tests.test_plain:Stranger", 1]),
        msgspec.msgpack.encode(["record", "subprocess:Popen", "ls"]),
        msgspec.msgpack.encode(["record", "colonnade.disk:replace_file", "a", "b"]),
        msgspec.msgpack.encode(["record", "colonnade.conversations.pacing.one_order:WindowState", 1]),
        msgspec.msgpack.encode(["array", "<f8", [3], [0], b"too short"]),
        msgspec.msgpack.encode(["nothing", 1]),
        msgspec.msgpack.encode([]),
    ],
)
def test_what_is_no_plain_value_is_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        unpack(content)


def test_what_is_not_plain_cannot_be_stored() -> None:
    for value in (Stranger(1), lambda: 1, object()):
        with pytest.raises(TypeError, match="no plain value"):
            pack(value)


def test_a_record_of_0_2_is_read_though_its_module_has_another_name_now() -> None:
    content = pack(Turns({"a": 1}, {"a": 2}, 3, []))
    assert b"cascade.answer_order:Turns" in content
    stored = msgspec.msgpack.decode(content)
    stored[1] = "colonnade.conversations.cascade" + ".waves:Turns"
    assert unpack(msgspec.msgpack.encode(stored)) == Turns({"a": 1}, {"a": 2}, 3, [])


def test_what_lay_elsewhere_in_0_2_lies_where_it_is_looked_for() -> None:
    for old, new in _MOVED.items():
        module, _, name = new.partition(":")
        assert hasattr(importlib.import_module(module), name or "__name__")
        if not name:
            assert importlib.util.find_spec(old) is None
