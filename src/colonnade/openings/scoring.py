"""What one request for scores opens: totals to the asker, and which rows were asked for to everybody else.

A session has any number of requests, so nobody can say before it what all of them open. Every party allows
what a request needs when it makes it or takes it, and nothing else: one more total is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from colonnade.messages import Message, Score, Topic
from colonnade.openings.opening import DOUBLE, Channel, Kind, Opening, multiplied, sent, summed
from colonnade.result import About

WHEN = "when scores are asked for"


@dataclass(frozen=True)
class ScoringRequest:
    """Rows that `asker` asks the scores of, in a session of these parties; what opens is said by `me`."""

    me: str
    parties: tuple[str, ...]
    asker: str
    rows: int

    def others(self, party: str) -> tuple[str, ...]:
        """Return all parties but this one."""
        return tuple(each for each in self.parties if each != party)

    @property
    def named(self) -> Opening:
        """Which rows are asked for, as the asker tells everybody."""
        return Opening(
            kind="asked rows",
            about="membership",
            of=(self.asker,),
            to=self.others(self.asker),
            numbers=self.rows,
            rows=self.rows,
            when=WHEN,
            by=self.asker,
            channel=sent(Score, Topic.TRAIN),
        )

    def total(self, numbers: int, *, root: str = "", kind: Kind = "predictions") -> Opening:
        """Return totals that a sum opens, to the asker where it is not said to whom."""
        return self._opened(numbers, root or self.asker, kind, summed(Topic.PREDICT))

    def product(self, numbers: int) -> Opening:
        """Return totals of which all parties have a word, and the asker is told the others'."""
        return self._opened(numbers, self.asker, "predictions", multiplied(Topic.PREDICT))

    def _opened(self, numbers: int, to: str, kind: Kind, channel: Channel) -> Opening:
        return Opening(
            kind=kind,
            about="columns",
            of=self.others(to),
            to=(to,),
            numbers=numbers,
            rows=self.rows,
            when=WHEN,
            channel=channel,
        )

    def told(
        self,
        kind: Kind,
        numbers: int,
        to: str,
        message: type[Message],
        *,
        about: About = "columns",
        bits: float = DOUBLE,
        size: int = 0,
    ) -> Opening:
        """Return numbers that this party tells another; `size` is their bytes, where they are packed."""
        return Opening(
            kind=kind,
            about=about,
            of=self.parties if kind == "predictions" else (self.me,),
            to=(to,),
            numbers=numbers,
            bits=bits,
            carried=8 * size / numbers if size and numbers else 0.0,
            rows=self.rows,
            when=WHEN,
            by=self.me,
            channel=sent(message, Topic.PREDICT),
        )


def asked_by_an_owner(request: ScoringRequest, label_holders: tuple[str, ...]) -> list[Opening]:
    """Return what scores tell of labels, where no label holder asks.

    The asker chooses its columns of the rows, and reads off the scores what its weights are.
    """
    if request.asker in label_holders:
        return []
    return [
        Opening(
            kind="predictions",
            about="labels",
            of=label_holders,
            to=(request.asker,),
            numbers=request.rows,
            rows=request.rows,
            when=WHEN,
        )
    ]
