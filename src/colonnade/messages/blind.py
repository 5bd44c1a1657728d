"""What parties of a blind run say to each other; each of it is for one receiver alone."""

from __future__ import annotations

from typing import ClassVar

from colonnade.arrays import Numbers
from colonnade.messages.base import Message


class Veiled(Message, frozen=True, tag=80):
    """Columns of a stretch of rows minus words that the label holder does not know (`secure.product`)."""

    personal: ClassVar[bool] = True
    tag: int
    values: Numbers


class Veil(Message, frozen=True, tag=81):
    """What the label holder adds and its part of the weights, minus words that an owner does not know.

    `version` is how many changes that part of the weights has in it.
    """

    personal: ClassVar[bool] = True
    tag: int
    moved: Numbers
    weights: Numbers
    version: int = 0


class Dealt(Message, frozen=True, tag=82):
    """What a dealer makes of random words, plus words that the label holder does not know."""

    personal: ClassVar[bool] = True
    tag: int
    values: Numbers


class Unveil(Message, frozen=True, tag=83):
    """The label holder's part of an owner's weights, once training is over, and the unit it is counted in."""

    personal: ClassVar[bool] = True
    tag: int
    values: Numbers
    unit: float


OfBlindRuns = Veiled | Veil | Dealt | Unveil
