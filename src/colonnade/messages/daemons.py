"""What daemons say to each other beside their runs, and to ask for scores."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from colonnade.arrays import Numbers
from colonnade.messages.base import Message, Text

Short = Annotated[str, msgspec.Meta(max_length=64)]
"""A hash or a time: it is written into books that are kept for good."""


class Present(Message, frozen=True, tag=51):
    """The first message on a line between two daemons: the sender's version."""

    version: Text


class Propose(Message, frozen=True, tag=52):
    """Asks for a run, training or scoring, exactly as `terms` say."""

    queued: ClassVar[bool] = True
    run: int
    terms: bytes


class Answer(Message, frozen=True, tag=53):
    """Says whether the sender takes part; `digest` is that of the terms as it read them."""

    queued: ClassVar[bool] = True
    run: int
    digest: Text
    refusal: Text | None


class Begin(Message, frozen=True, tag=54):
    """Starts a run, since everybody has accepted these terms."""

    queued: ClassVar[bool] = True
    run: int
    digest: Text


class Cancel(Message, frozen=True, tag=55):
    """Says that the run does not take place, or ends now."""

    queued: ClassVar[bool] = True
    run: int
    reason: Text


class Progress(Message, frozen=True, tag=56):
    """Says how far a run has come at the party that measures it; the loss only where the job shows it."""

    queued: ClassVar[bool] = True
    run: int
    epoch: int
    loss: float | None


class Score(Message, frozen=True, tag=57):
    """Asks for the scores of these rows of the common order; no rows end the session."""

    queued: ClassVar[bool] = True
    tag: int
    rows: Numbers


class Pending(Message, frozen=True, tag=58):
    """Says that an operator is asked about a proposed run, who has this many seconds; none: data is still
    read.

    The party that is asked tells the proposer, and the proposer those who have accepted already.
    """

    queued: ClassVar[bool] = True
    run: int
    seconds: float


class AskShare(Message, frozen=True, tag=59):
    """Asks whether the receiver holds its share of a model; `number` comes back with the answer."""

    queued: ClassVar[bool] = True
    number: int
    model: Text


class HaveShare(Message, frozen=True, tag=60):
    """What the sender holds of a model: the digests of its job and of its common rows, or why it has none."""

    queued: ClassVar[bool] = True
    number: int
    digest: Text
    alignment: Text
    refusal: Text | None


class Echo(Message, frozen=True, tag=95):
    """Beside the runs: comes back at once, with `back`, so that a line's round trip is known.

    Version 0.2 does not know it, and is sent none.
    """

    queued: ClassVar[bool] = True
    number: int
    back: bool


class Sizes(Message, frozen=True, tag=96):
    """Beside the runs, before a proposal: how many rows, to two digits, and columns its proposer brings.

    Who is asked estimates by them what the run will cost. Version 0.2 does not know it, and is sent none.
    """

    queued: ClassVar[bool] = True
    run: int
    rows: int
    columns: int


class Said(Message, frozen=True, tag=97):
    """Beside the runs: what the sender proposes, accepts or refuses, and the head of its journal, signed.

    Version 0.2 does not know it, and is sent none.
    """

    queued: ClassVar[bool] = True
    run: int
    what: Literal["proposes", "accepts", "refuses"]
    digest: Short
    when: Short
    count: int
    head: Short
    signature: Annotated[bytes, msgspec.Meta(max_length=128)]


class CutOff(Message, frozen=True, tag=65):
    """Beside the runs: a run was cut off at the sender, in the session that is named.

    With session 0 the sender asks what became of the run: it was started again.
    """

    queued: ClassVar[bool] = True
    run: int
    session: int
    reason: Text


class Rejoin(Message, frozen=True, tag=66):
    """Beside the runs, from the proposer: go on with a run, in a new session with new keys."""

    queued: ClassVar[bool] = True
    run: int
    session: int
    digest: Text


class Rejoined(Message, frozen=True, tag=67):
    """The answer: the sender listens and has the common rows or not; or why it cannot go on now."""

    queued: ClassVar[bool] = True
    run: int
    session: int
    aligned: bool
    refusal: Text | None


class GoOn(Message, frozen=True, tag=68):
    """Beside the runs, from the proposer: all listen; common rows are those of before, or found again."""

    queued: ClassVar[bool] = True
    run: int
    session: int
    aligned: bool


class Settled(Message, frozen=True, tag=69):
    """Beside the runs: a run is over at the sender, which has kept its share, or has none and says why."""

    queued: ClassVar[bool] = True
    run: int
    kept: bool
    reason: Text


OfDaemons = (
    Present
    | Propose
    | Answer
    | Begin
    | Cancel
    | Progress
    | Score
    | Pending
    | AskShare
    | HaveShare
    | Echo
    | Sizes
    | Said
    | CutOff
    | Rejoin
    | Rejoined
    | GoOn
    | Settled
)
