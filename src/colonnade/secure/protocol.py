"""What every secure sum can do, what one says of itself, and the rule that a tag is used once.

One party of a sum is its root: it collects and gets the total. All others give, and get nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, TypeVar

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.errors import ProtocolError, TagReused
from colonnade.messages import TOPIC_SHIFT
from colonnade.net.network import Network

if TYPE_CHECKING:
    from typing_extensions import TypeIs

N = TypeVar("N", Floats, Words)


_WORD = np.dtype(np.uint64)  # made once: to compare with a type makes another one every time


def is_words(piece: Floats | Words) -> TypeIs[Words]:
    """Return whether a piece is words, which are added modulo 2^64, and not numbers."""
    return piece.dtype == _WORD


def no_sum(givers: Iterable[str], tag: int) -> ProtocolError:
    """Return the error for a total that cannot be the sum of the pieces that were due: masks hide whose piece
    it was."""
    names = ", ".join(sorted(givers))
    return ProtocolError(
        f"what {names} gave for sum {tag} adds up to no total: one of them gave no piece of it"
    )


class SecureSum(Protocol):
    """Adds one array per party: the root calls `collect`, all others `give`, with the same tag and shape.

    Numbers are added up to a rounding error; words are added modulo 2^64, exactly.
    """

    async def give(self, piece: Floats | Words, *, root: str, tag: int) -> None:
        """Add this party's piece to the sum of another party; returns as soon as it is on its way."""
        ...

    async def collect(self, piece: N, *, tag: int) -> N:
        """Return the total of this party's piece and those that all others give."""
        ...

    async def settle(self) -> None:
        """Wait until no sum needs this party any more: only then may it leave."""
        ...

    async def drop(self, tag: int) -> None:
        """Give up a sum to which this party gave its piece and that will not take place."""
        ...

    async def close(self) -> None:
        """Give up all that is still under way."""
        ...


class SumKind(ABC):
    """A `SecureSum` that a job may name. What others need to know of it, it says itself.

    Every class has answers of its own: what a sum hides does not follow from what it is built upon.
    """

    name: ClassVar[str]
    """What `secure.sum` calls it."""
    hides_pieces: ClassVar[bool]
    """Whether a piece stays hidden from any parties that collude, as far as the total
    allows. Blind labels need that, and policies call the opposite 'shares'."""
    masks_pairs: ClassVar[bool] = False
    """Whether it needs a secret for every pair of parties, or for neighbours only (`secure.neighbours`)."""
    metered: ClassVar[bool] = False
    """Whether every piece goes to the root as one `Piece`, which the network holds to what the run declares;
    of other sums this is counted before a party gives."""
    baseline: ClassVar[bool] = False
    """Whether it is there to measure what protection costs: then a job that names it need not say that it
    accepts what it gives away."""

    def __init_subclass__(cls) -> None:
        answers = ("name", "hides_pieces", "gives_away")
        unsaid = [answer for answer in answers if answer not in vars(cls)]
        if unsaid:
            raise TypeError(f"{cls.__name__}: a sum says for itself what it gives away; add {unsaid[0]}")

    @staticmethod
    @abstractmethod
    def gives_away(parties: int) -> str | None:
        """Return what somebody learns beyond totals in a run of this many parties; None if nobody does."""

    @classmethod
    @abstractmethod
    def among(cls, net: Network, secrets: Mapping[str, bytes]) -> Self:
        """Make the sum of the parties of a network, with the secret that each peer shares with this one."""

    @abstractmethod
    async def give(self, piece: Floats | Words, *, root: str, tag: int) -> None: ...

    @abstractmethod
    async def collect(self, piece: N, *, tag: int) -> N: ...

    async def settle(self) -> None:  # noqa: B027  most sums need no party once it has given
        """Return at once: no sum of others needs this party."""

    async def drop(self, tag: int) -> None:  # noqa: B027
        """Do nothing: a piece that nobody adds up stays where it is."""

    async def close(self) -> None:  # noqa: B027
        """Do nothing: nothing is under way between two sums."""


class UsedTags:
    """Remembers which tags were used, in memory that does not grow with an orderly run.

    >>> used = UsedTags()
    >>> used.use(0); used.use(2); used.use(1)
    >>> used.use(2)
    Traceback (most recent call last):
    ...
    colonnade.errors.TagReused: tag 2 was used before; a second sum under it would cancel its mask
    """

    def __init__(self) -> None:
        self._below: dict[int, int] = {}
        self._beyond: set[int] = set()

    def use(self, tag: int) -> None:
        """Mark a tag as used; TagReused if it was."""
        topic = tag >> TOPIC_SHIFT
        below = self._below.get(topic, topic << TOPIC_SHIFT)
        if tag < below or tag in self._beyond:
            raise TagReused(f"tag {tag} was used before; a second sum under it would cancel its mask")
        if tag != below:
            self._beyond.add(tag)
            return
        below += 1
        while below in self._beyond:
            self._beyond.remove(below)
            below += 1
        self._below[topic] = below
