"""Numbers that ride with the scores: summed in the same secure sum, answered together with theta.

A quasi-Newton direction needs inner products over all blocks after every round. Asking for them apart
would make two exchanges of every round. Instead, what a party has to say once it has finished a round is
appended to its share of the next round that it has not sent yet, `ahead` rounds later; the round's
dominator answers it beside theta. All parties finish rounds in the same order, so all append alike.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats


@dataclass(frozen=True, eq=False)
class Errand:
    """This party's piece of a sum, what the dominator makes of the total, and what everybody does then."""

    piece: Floats
    answer: Callable[[Floats], Floats]
    length: int  # of the answer
    then: Callable[[Floats], None]


class Errands:
    def __init__(self, ahead: int) -> None:
        self.ahead = ahead
        self._riding: defaultdict[int, list[Errand]] = defaultdict(list)

    def add(self, finished: int, errand: Errand) -> None:
        """Something to be asked now that a round is finished."""
        self._riding[finished + self.ahead].append(errand)

    def load(self, number: int, share: Floats) -> Floats:
        """The share of a round's scores with everything that rides along."""
        return np.concatenate([share.ravel(), *(errand.piece for errand in self._riding[number])])

    def answers(self, number: int, totals: Floats) -> Floats:
        """At the dominator: what rode with this round, answered."""
        riding = self._riding[number]
        parts = _cut(totals, [errand.piece.size for errand in riding])
        return np.concatenate(
            [np.zeros(0), *(errand.answer(part) for errand, part in zip(riding, parts, strict=True))]
        )

    def settle(self, number: int, answers: Floats) -> None:
        """At every party: act on the answers, in the order in which the errands were added."""
        riding = self._riding.pop(number, [])
        parts = _cut(answers, [errand.length for errand in riding])
        for errand, part in zip(riding, parts, strict=True):
            errand.then(part)


def _cut(values: Floats, lengths: list[int]) -> list[Floats]:
    """Parts of these lengths, one after another."""
    ends = itertools.accumulate(lengths)
    return [values[end - length : end] for end, length in zip(ends, lengths, strict=True)]
