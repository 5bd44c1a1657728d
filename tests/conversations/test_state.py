"""What rounds change is plain data: arrays, numbers, text, and containers of these, in every conversation.

A record that is plain can be looked at from outside, compared, and stored. Code, locks, tasks and closures
are apart from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.oracles.tables import random_tables, run

from colonnade.conversations.cascade.answer_order import AnswerOrder
from colonnade.conversations.cascade.client import Client
from colonnade.conversations.kernel.kernel import KernelConversation
from colonnade.conversations.linear.parties.clear import ClearParty
from colonnade.conversations.linear.quasi_newton.joint_questions import StepQuestion
from colonnade.conversations.linear.quasi_newton.lbfgs_joint import Joint
from colonnade.conversations.linear.quasi_newton.lbfgs_local import Curvature
from colonnade.conversations.linear.tune import Tuner
from colonnade.conversations.pacing.stints import Stints
from colonnade.optim.lbfgs import LimitedMemory


def not_plain(value: Any, where: str) -> list[str]:
    """Where a value holds something that could not be stored."""
    match value:
        case None | bool() | int() | float() | str() | bytes() | np.ndarray() | np.generic():
            return []
        case Mapping():
            return [bad for key, each in value.items() for bad in not_plain(each, f"{where}[{key}]")]
        case list() | tuple() | set() | frozenset() | deque():
            return [bad for k, each in enumerate(value) for bad in not_plain(each, f"{where}[{k}]")]
        case msgspec.Struct():
            return [b for f in value.__struct_fields__ for b in not_plain(getattr(value, f), f"{where}.{f}")]
        case LimitedMemory():
            return not_plain(vars(value), where)
        case _ if is_dataclass(value):
            return [b for f in fields(value) for b in not_plain(getattr(value, f.name), f"{where}.{f.name}")]
    return [f"{where}: {type(value).__name__}"]


CASES = [
    (
        "vfb2-sgd",
        {},
        ClearParty,
        ("tally", "block.estimator.memory", "block.w", "pace.state", "steps.delays"),
    ),
    ("vfb2-svrg", {}, ClearParty, ("tally", "block.estimator.memory", "steps.smoothness")),
    ("vfb2-svrg", {}, Tuner, ("v",)),
    ("vfb2-saga", {"train": {"direction": "lbfgs", "step": "auto"}}, Joint, ("state",)),
    ("vfb2-saga", {"train": {"direction": "lbfgs"}, "direction": {"pairs": "hvp"}}, Curvature, ("state",)),
    ("asysqn-svrg", {}, Stints, ("state",)),
    (
        "fdskl-capped",
        {"kernel": {"features": 32, "block": 8}},
        KernelConversation,
        ("state", "window.state", "delays"),
    ),
    ("tig", {}, Client, ("state",)),
    ("asyrevel-gau", {}, AnswerOrder, ("state",)),
]


@pytest.mark.parametrize(("algorithm", "sections", "kind", "records"), CASES)
def test_what_rounds_change_is_plain_data(
    monkeypatch: pytest.MonkeyPatch,
    algorithm: str,
    sections: dict[str, Any],
    kind: type[Any],
    records: tuple[str, ...],
) -> None:
    made: list[Any] = []
    first = "__post_init__" if hasattr(kind, "__post_init__") else "__init__"
    build = getattr(kind, first)

    def noted(self: Any, *arguments: Any, **options: Any) -> None:
        build(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(kind, first, noted)
    train = {"step": "auto", "epochs": 3, **sections.get("train", {})}
    run(random_tables(), algorithm, **{**sections, "train": train})
    assert made
    for each in made:
        for record in records:
            value = each
            for name in record.split("."):
                value = getattr(value, name)
            assert not_plain(value, record) == []


def test_a_closure_in_a_record_would_be_found() -> None:
    question = StepQuestion(np.zeros(2), 1.0, LimitedMemory(3, 0.1).inverse, 1.0, np.zeros(1))
    assert not_plain(question, "question") == []
    assert not_plain({"then": lambda answer: answer}, "question") == ["question[then]: function"]
