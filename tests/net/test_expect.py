"""What a message must be is said wherever one is received."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

import colonnade
from colonnade.arrays import Numbers
from colonnade.errors import MalformedMessage, ProtocolError
from colonnade.messages import Announce, AnyMessage, Message
from colonnade.net.expect import Expected, Number, expect, floats, octets, said_by, whole, words

KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in get_args(AnyMessage)}


def received(tree: ast.AST) -> Iterator[tuple[str, set[str | None], int]]:
    """Every kind that is asked for by name, what is said of its fields, and the line."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="recv" | "gather"), args=[ast.Name(kind), *_]):
                yield kind, {keyword.arg for keyword in node.keywords}, node.lineno


def test_no_array_is_received_without_a_word_on_what_it_must_be() -> None:
    seen, missing = 0, []
    for file in Path(colonnade.__file__).parent.rglob("*.py"):
        text = file.read_text()
        if ".recv(" not in text and ".gather(" not in text:
            continue
        for kind, said, line in received(ast.parse(text)):
            if kind in KINDS:
                hints = get_type_hints(KINDS[kind])
                arrays = {field for field in KINDS[kind].__struct_fields__ if hints[field] == Numbers}
                seen += 1
                if None not in said and arrays - said:  # None: a mapping has them all
                    missing.append(f"{file.name}:{line} {kind} {sorted(arrays - said)}")
    assert seen > 40
    assert missing == []


@pytest.mark.parametrize(
    ("due", "good", "bad"),
    [
        (floats(2), np.zeros(2), np.zeros(3)),
        (floats(2), np.zeros(2), np.zeros((2, 1))),
        (floats(2), np.zeros(2), np.zeros(2, dtype=np.float32)),
        (floats(2), np.zeros(2), np.array([0, np.nan])),
        (floats(2), np.zeros(2), np.array([0, -np.inf])),
        (floats(None, low=0), np.ones(9), np.array([0.0, -1e-9])),
        (words(3), np.zeros(3, dtype=np.uint64), np.zeros(3, dtype=np.int64)),
        (whole(None, high=7), np.arange(8), np.arange(9)),
        (whole(1), np.array([3]), np.array([-1])),
        (octets(4), np.zeros(4, dtype=np.uint8), np.zeros(4, dtype=bool)),
        (Number(0, 5), 5, 6),
        (Number(0, 5), 0.5, float("nan")),
        (Number(0, 5, optional=True), None, "5"),
        (Number(0, 5), 1, None),
    ],
)
def test_a_field_is_what_it_must_be(due: Expected, good: object, bad: object) -> None:
    assert due.wrong(good) == ""
    assert due.wrong(bad) != ""


def test_the_error_names_the_sender() -> None:
    with pytest.raises(ProtocolError, match=r"^bee sent Announce 4 with values of"):
        expect("bee", Announce(4, np.zeros(1)), {"values": floats(2)})
    with pytest.raises(ProtocolError, match=r"^bee sent what cannot be: too short"), said_by("bee"):
        raise MalformedMessage("too short")
