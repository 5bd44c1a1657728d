"""What a curious party has to work with, and what an attack may claim.

A case is everything one party has after a run in which it did what it should: the plan that all agreed on,
its own columns and its share of the model, and what it said, heard and summed. An attack looks at a case and
says what it takes the labels or the others' columns to be. It never sees the truth; `verdict` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from colonnade.arrays import Floats, Numbers
from colonnade.attacks.transcript import Transcript
from colonnade.data.table import Table
from colonnade.errors import JobError
from colonnade.job.plan import Plan
from colonnade.models.blackbox import Model
from colonnade.run.party import Share


def _not_again(columns: Floats, step: float) -> Case:
    """Refuse: this is a run that nobody can make again."""
    raise JobError("attacks: this run cannot be made again with other columns")


@dataclass(frozen=True, eq=False)
class Case:
    """One party after a run. `widths` says how many columns every party has, which is no secret here.

    `again` runs the job once more with a model of this party's own making, and returns what it then heard;
    `chosen` one pass of it with columns and a step that this party chooses, and returns what it then has.
    """

    plan: Plan[Any]
    party: str
    transcript: Transcript
    own: Table
    share: Share
    widths: Mapping[str, int]
    again: Callable[[Model], Transcript]
    chosen: Callable[[Floats, float], Case] = _not_again

    @property
    def rows(self) -> int:
        return self.own.rows

    @property
    def holds_label(self) -> bool:
        return self.party in self.plan.label_holders


@dataclass(frozen=True, eq=False)
class LabelGuess:
    """What an attack takes the labels to be, a number for every row, 0 where it knows nothing.

    Of two classes a score: the higher, the more it speaks for the positive one or, without `oriented`, for
    one of them. Of several classes the class, and -1 where it knows nothing. Of numbers anything that rises
    or falls with the label.
    """

    scores: Numbers
    oriented: bool = True


@dataclass(frozen=True, eq=False)
class ColumnGuess:
    """What an attack takes the others' columns to be, [rows, columns] for every party, of some rows.

    A single column stands for all columns of a party: it says something of them together.
    """

    rows: Numbers  # their places
    guess: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class UnnamedColumns:
    """Columns that an attack has found, [rows, columns], without knowing whose and which they are.

    The first `cuts` of them have two values, and the attacker claims that others hold exactly these.
    """

    columns: Floats
    cuts: int = 0


@dataclass(frozen=True, eq=False)
class BinGuess:
    """What an attack takes the bins of the others' columns to be, [rows, columns] for every party.

    It is -1 where the attack does not know.
    """

    bins: Mapping[str, Numbers]


Guess = LabelGuess | ColumnGuess | UnnamedColumns | BinGuess
