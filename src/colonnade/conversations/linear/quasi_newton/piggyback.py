"""Numbers that ride with the scores: summed in the same secure sum, answered together with theta.

A quasi-Newton direction needs inner products over all blocks after every round. Asking for them apart
would make two exchanges of every round. Instead, what a party has to ask once it has finished a round is
appended to its share of the next round that it has not sent yet, `ahead` rounds later; the round's
dominator answers it beside theta. All parties finish rounds in the same order, so all append alike.

A question is plain data: what is under way can be stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from colonnade.arrays import Floats


class Question(Protocol):
    """Something to be summed over all parties and answered by a dominator."""

    @property
    def piece(self) -> Floats:
        """What this party adds to the sum."""
        ...

    @property
    def answer_size(self) -> int:
        """How many numbers the answer has."""
        ...


Q = TypeVar("Q", bound=Question)


@dataclass
class Riders(Generic[Q]):
    """The questions under way, by the round that they ride with."""

    ahead: int
    under_way: dict[int, list[Q]] = field(default_factory=dict)

    def add(self, finished: int, question: Q) -> None:
        """Ask a question once a round is finished; it rides `ahead` rounds later, the first not sent yet."""
        self.under_way.setdefault(finished + self.ahead, []).append(question)

    def load(self, number: int, share: Floats) -> Floats:
        """Return the share of a round's scores, followed by the pieces of all questions that ride along."""
        riding = self.under_way.get(number, ())
        return np.concatenate([share.ravel(), *(question.piece for question in riding)])

    def answers(self, number: int, totals: Floats, answer: Callable[[Q, Floats], Floats]) -> Floats:
        """Return all answers to the questions of a round, one after another; only its dominator calls
        this."""
        riding = self.under_way.get(number, [])
        parts = _cut(totals, [question.piece.size for question in riding])
        return np.concatenate(
            [np.zeros(0), *(answer(question, part) for question, part in zip(riding, parts, strict=True))]
        )

    def settle(self, number: int, answers: Floats, act: Callable[[Q, Floats], None]) -> None:
        """Act on the answers in the order in which the questions were added; every party calls this."""
        riding = self.under_way.pop(number, [])
        parts = _cut(answers, [question.answer_size for question in riding])
        for question, part in zip(riding, parts, strict=True):
            act(question, part)


def _cut(values: Floats, lengths: list[int]) -> list[Floats]:
    """Cut an array into parts of these lengths."""
    ends = itertools.accumulate(lengths)
    return [values[end - length : end] for end, length in zip(ends, lengths, strict=True)]
