"""Nothing that rounds change is forgotten: every attribute that changes between two gates is declared.

Every conversation runs with a gate after each epoch. At a gate all that can be reached from the objects it
handed to `Gates.keep` is looked at, attribute by attribute, but for what is kept or declared as remade. None
of that may change from one gate to the next, and none may differ at the same gate of a run that went on.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
import pytest
from scipy.sparse import sparray
from tests.run.test_resume import EVERY_CONVERSATION, MORE, cut, order_of

from colonnade.conversations.blind.products import BlindProducts
from colonnade.conversations.cascade.client import ClientState
from colonnade.conversations.gates import Gates
from colonnade.conversations.kernel.kernel import KernelConversation
from colonnade.conversations.linear.block import Block
from colonnade.conversations.linear.parties.clear_full import ClearFullParty
from colonnade.conversations.linear.step_sizes import StepSizes
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.optim.replies import ValuesClient
from colonnade.run.launch import launch
from colonnade.run.world import Launch
from colonnade.state import UNCHANGED, Declared, declared, values_of
from colonnade.trees.own_columns import OwnColumns

PRIVATE: list[tuple[str, dict[str, Any]]] = [
    ("split", {"privacy": {"mechanism": "gradient", "epsilon": 8.0, "delta": 1e-5}}),
    ("synrevel-gau", {"privacy": {"mechanism": "scalar", "epsilon": 8.0, "delta": 1e-5, "clip": 1.0}}),
]
CASES = [
    pytest.param(name, {**sections, "world": "simulated"}, marks=marks)
    for cases, marks in ((EVERY_CONVERSATION, ()), ([*MORE, *PRIVATE], pytest.mark.slow))
    for name, sections in cases
]

OF_A_SESSION = ("colonnade.net.", "colonnade.secure.", "colonnade.engines.", "colonnade.conversations.gates")
"""Packages whose objects every session makes for itself: lines, clocks, keys and masks, workers."""
CODE = (FunctionType, MethodType, BuiltinFunctionType, partial, type)

Picture = dict[str, str]  # what is at a path
Pictures = dict[tuple[str, int], Picture]  # by party and gate


def records_in(value: Any) -> Iterator[int]:
    """Yield the ids of records that going on writes into (`plain.fill`), so that all who hold them see it."""
    if isinstance(value, list):
        for each in value:
            yield from records_in(each)
    elif is_dataclass(value) and not isinstance(value, type):
        yield id(value)
        for field in fields(value):
            yield from records_in(getattr(value, field.name))


def looked_at(roots: list[object], kept: set[tuple[int, str]], met: set[int]) -> Picture:
    """Return all that can be reached from some objects, but for what is kept, `met` already or made anew."""
    found: Picture = {}
    alive: list[object] = []  # or what `vars` made might have the id of what it made before

    def look(value: Any, path: str) -> None:
        match value:
            case np.ndarray():
                found[path] = f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
                return
            case np.random.Generator():
                found[path] = repr(value.bit_generator.state)
                return
            case None | bool() | int() | float() | str() | bytes() | np.generic():
                found[path] = repr(value)
                return
        if isinstance(value, CODE) or id(value) in met or type(value).__module__.startswith(OF_A_SESSION):
            return
        met.add(id(value))
        alive.append(value)
        match value:
            case Mapping():
                found[path] = f"{len(value)} of them"
                for key, each in value.items():
                    look(each, f"{path}[{key!r}]")
            case list() | tuple() | set() | frozenset() | deque():
                found[path] = f"{len(value)} of them"
                for place, each in enumerate(value):
                    look(each, f"{path}[{place}]")
            case sparray():
                look(value.toarray(), path)
            case asyncio.Event():
                found[path] = str(value.is_set())
            case _:
                for name, each in attributes(value):
                    if (id(value), name) not in kept:
                        look(each, f"{path}.{name}")

    for root in roots:
        look(root, type(root).__name__)
    return found


def attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that its class does not declare as remade."""
    kind = type(value)
    names = [*getattr(value, "__dict__", {}), *getattr(kind, "__struct_fields__", ())]
    names += [
        name for each in kind.__mro__ for name in getattr(each, "__slots__", ()) if hasattr(value, name)
    ]
    state = getattr(kind, "STATE", UNCHANGED)
    for name in names:
        if name not in state.remade and not isinstance(getattr(kind, name, None), cached_property):
            yield name, getattr(value, name)


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Callable[[Launch], Pictures]:
    """Run something; returns what every party looked like at every gate."""
    roots: dict[int, list[object]] = defaultdict(list)
    taken: Pictures = {}
    keep, reached = Gates.keep, Gates.reached

    def keeps(gates: Gates, thing: object, *names: str, **more: Any) -> None:
        roots[id(gates)].append(thing)
        keep(gates, thing, *names, **more)

    async def reaches(gates: Gates, position: int, *, ending: bool = False) -> None:
        kept = {(id(holder), name) for holder, name in gates._kept.values()}
        records = {
            each for holder, name in gates._kept.values() for each in records_in(getattr(holder, name))
        }
        taken[gates.net.me, position] = looked_at(roots[id(gates)], kept, records)
        await reached(gates, position, ending=ending)

    monkeypatch.setattr(Gates, "keep", keeps)
    monkeypatch.setattr(Gates, "reached", reaches)

    def run(order: Launch) -> Pictures:
        roots.clear()
        taken.clear()
        launch(order)
        return dict(taken)

    return run


def differences(one: Picture, other: Picture) -> set[str]:
    return {path for path in {*one, *other} if one.get(path) != other.get(path)}


def changed(pictures: Pictures) -> set[str]:
    """Return what changed between two gates though nobody said that it would."""
    found: set[str] = set()
    for party in {party for party, _ in pictures}:
        gates = sorted(gate for name, gate in pictures if name == party)
        assert len(gates) >= 2, "a run with two gates at least"
        for gate, after in pairwise(gates):
            found |= differences(pictures[party, gate], pictures[party, after])
    return found


def lost(whole: Pictures, resumed: Pictures) -> set[str]:
    """Return what is not the same at the gates of a run that went on."""
    assert resumed
    return {path for at, picture in resumed.items() for path in differences(picture, whole[at])}


@pytest.mark.parametrize(("algorithm", "sections"), CASES)
def test_what_changes_between_two_gates_is_declared(
    tmp_path: Path, pictures: Callable[[Launch], Pictures], algorithm: str, sections: dict[str, Any]
) -> None:
    whole = pictures(order_of(algorithm, tmp_path / "whole", **sections))
    assert changed(whole) == set()
    begun = order_of(algorithm, tmp_path / "cut", **sections)
    cut(begun, 3)
    resumed = pictures(Launch(begun.plan, begun.data, out=begun.out, resume=True))
    if "privacy" not in sections:  # noise is another in another run
        assert lost(whole, resumed) == set()


FORGOTTEN: list[tuple[int, type[Any], str]] = [
    (0, OneOrder, "state"),
    (1, Block, "w"),
    (1, StepSizes, "delays"),
    (3, ClearFullParty, "theta"),
    (4, BlindProducts, "part"),
    (5, KernelConversation, "delays"),
    (6, ValuesClient, "rng"),
    (6, ClientState, "under_way"),
    (9, OwnColumns, "splits"),
]


@pytest.mark.parametrize(("case", "kind", "name"), FORGOTTEN)
def test_a_forgotten_attribute_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pictures: Callable[[Launch], Pictures],
    case: int,
    kind: type[Any],
    name: str,
) -> None:
    state: Declared = kind.STATE
    without = replace(
        state,
        kept=tuple(each for each in state.kept if each != name),
        parts=tuple(each for each in state.parts if each != name),
    )
    assert without != state
    monkeypatch.setattr(kind, "STATE", without)
    algorithm, sections = EVERY_CONVERSATION[case]
    whole = pictures(order_of(algorithm, tmp_path, **{**sections, "world": "simulated"}))
    assert any(name in path for path in changed(whole))


class Inner:
    STATE = Declared(kept=("count",), parts=("rng", "none"))

    def __init__(self) -> None:
        self.count, self.rng, self.none = 0, np.random.default_rng(0), None


class Outer:
    STATE = Declared(kept=("name",), parts=("inner",), remade=("cache",))

    def __init__(self, inner: object) -> None:
        self.name, self.inner, self.cache = "", inner, [0]


def test_values_are_named_by_their_way_from_the_object() -> None:
    inner = Inner()
    outer = Outer(inner)
    assert list(values_of(outer)) == [
        ("name", outer, "name"),
        ("inner.count", inner, "count"),
        ("inner.rng", inner, "rng"),
    ]
    assert [path for path, _, _ in values_of(outer, "inner")] == ["inner.count", "inner.rng"]


def test_what_is_not_declared_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="object does not say what rounds change"):
        list(values_of(Outer(object())))
    with pytest.raises(ValueError, match="Outer does not declare cache"):
        list(values_of(Outer(Inner()), "cache"))
    assert declared(Inner()).parts == ("rng", "none")
