"""What parties of one run say to each other: joining, secure sums, thetas, and how a run ends."""

from __future__ import annotations

from typing import ClassVar

from colonnade.arrays import Numbers
from colonnade.messages.base import Message, Text


class Hello(Message, frozen=True, tag=0):
    """The first message to every peer: the sender's version, its job, and its key for this run, signed."""

    version: str
    job: str
    public_key: bytes
    signature: bytes


class Coin(Message, frozen=True, tag=90):
    """A commitment to a random number, from which together with all others a graph of masks will follow."""

    commitment: bytes


class CoinShown(Message, frozen=True, tag=91):
    """The random number, and a digest of all commitments that the sender has seen."""

    value: bytes
    seen: bytes


class Piece(Message, frozen=True, tag=1):
    """One party's part of a sum, sent to the party that adds it up."""

    tag: int
    values: Numbers


class Branch(Message, frozen=True, tag=2):
    """A partial sum in one of the two trees of the papers' secure sum, sent to the next node."""

    tag: int
    tree: int
    node: int
    values: Numbers


class Backward(Message, frozen=True, tag=3):
    """theta = dL/dz of the rows that belong to `tag`, sent by their dominator to every party.

    `seen` are how many rounds of every dominator the sender had finished, where each has its own pace.
    """

    queued: ClassVar[bool] = True
    relayed: ClassVar[bool] = True
    tag: int
    theta: Numbers
    seen: tuple[int, ...] = ()


class Announce(Message, frozen=True, tag=4):
    """A few public numbers that every party must use alike, e.g. the step that tuning found."""

    tag: int
    values: Numbers


class Stop(Message, frozen=True, tag=5):
    """Ends training early, since the target is reached: rounds from `at` on are not computed."""

    queued: ClassVar[bool] = True
    at: int


class Enough(Message, frozen=True, tag=31):
    """Says how many rounds of every dominator there are until a pause, the `tag`-th, or until the end."""

    queued: ClassVar[bool] = True
    tag: int
    counts: tuple[int, ...]
    last: bool


class Ask(Message, frozen=True, tag=30):
    """Asks every party for its share of the scores of the sender's batch `tag`."""

    queued: ClassVar[bool] = True
    tag: int


class Decay(Message, frozen=True, tag=10):
    """Ends a round of the kernel conversation: earlier coefficients decay, later rounds may begin."""

    queued: ClassVar[bool] = True
    relayed: ClassVar[bool] = True
    tag: int


class Abort(Message, frozen=True, tag=6):
    """Ends the run, since the sender cannot go on: the name of its error class, and the text."""

    error: Text
    reason: Text


class Bye(Message, frozen=True, tag=7):
    """Says that the sender has finished: that its line goes silent now is not a fault."""


class Alive(Message, frozen=True, tag=9):
    """Says that the sender computes: who waits for something else of it goes on waiting."""


class Relay(Message, frozen=True, tag=8):
    """A message of `origin` on its way down a tree; the receiver passes it on to those `below`.

    Parties are given by their places among all parties of the run.
    """

    origin: int
    below: bytes
    payload: bytes


OfRounds = (
    Hello
    | Coin
    | CoinShown
    | Piece
    | Branch
    | Backward
    | Announce
    | Stop
    | Enough
    | Ask
    | Decay
    | Abort
    | Bye
    | Alive
    | Relay
)
