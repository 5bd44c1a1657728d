"""A session: all that a program needs to play this party's part in one run.

A run has four stretches, each with an endpoint of its own on the standing lines: align, train, close, and
weigh, which comes after align where the job asks for weight of evidence. The
endpoints are made before a party accepts, so that nothing is sent to somebody who does not listen yet. When
anything goes wrong all of them are told. About a fault in this party's data peers are told only that there is
one, because the text for the operator may quote the data.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from colonnade.arrays import Digests
from colonnade.deploy.books.opened import Opened
from colonnade.deploy.policy.membership import ComparisonRequest
from colonnade.deploy.rows.rows import PartyRows
from colonnade.deploy.settings import Settings
from colonnade.errors import (
    Aborted,
    ColonnadeError,
    DataError,
    Interrupted,
    ModelError,
    ShareError,
    WorkerError,
)
from colonnade.messages import Roster
from colonnade.net.endpoint import Endpoint
from colonnade.net.recorder import Recorder
from colonnade.net.stream.mux import Mux
from colonnade.run.party import Party

T = TypeVar("T")
STRETCHES, TRAIN = 4, 1


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something an operator may want to see while a run goes on."""

    what: str
    done: int = 0
    total: int = 0
    loss: float | None = None
    run: str = ""  # its number, once it has begun


Tell = Callable[[Event], None]


class Guard(Protocol):
    """Says which ids may be compared with this party's (`membership`)."""

    def commitment(self, ids: Digests) -> bytes:
        """Return what this party announces of its set of ids."""
        ...

    async def admit(self, asked: ComparisonRequest, own_ids: int, rosters: Mapping[str, Roster]) -> None:
        """Write down that ids are compared now; raise if that would tell too much."""
        ...

    def found(self, ids: Digests, common: Digests) -> None:
        """Write down which of the own ids were common, where a peer asks for scores."""
        ...

    async def book(self, lines: list[Opened]) -> None:
        """Write down what a run may tell peers; Refused if that is more than this party allows."""
        ...


class Playing(Protocol):
    """What a daemon knows of this party's part in one run, wherever its program runs."""

    @property
    def told(self) -> bool: ...

    @property
    def run(self) -> int: ...

    @property
    def number(self) -> int: ...

    @property
    def parties(self) -> tuple[str, ...]: ...

    @property
    def peers(self) -> tuple[str, ...]: ...

    async def play(self, program: Callable[[RunSession], Awaitable[T]]) -> T: ...

    async def shut(self) -> None: ...

    def stop(self, reason: str) -> None: ...

    def cut(self, reason: str) -> None: ...

    def go_on(self, *, aligned: bool) -> None: ...

    def sent_bytes(self) -> int: ...


@dataclass
class RunSession:
    """One party in one run, in this process: its rows, and its endpoints.

    `minimum` is how many common rows it demands, and `guard` says which ids may be compared at all.
    """

    run: int
    settings: Settings
    party: Party
    own_rows: PartyRows
    minimum: int
    guard: Guard
    tell: Tell = lambda event: None
    told: bool = False  # whether training has begun, which may tell about labels
    began: Callable[[], None] = lambda: None  # called when it does
    scored: Callable[[str, str, int], None] = lambda asker, model, rows: None  # hears of every request
    recorder: Recorder | None = None  # of when this party computes, sends and waits while it trains
    aligned: bool = False  # the common rows are those of an earlier session

    @property
    def me(self) -> str:
        """The name of this party."""
        return self.settings.name

    @property
    def number(self) -> int:
        """The number of the session."""
        return self.align.run

    @property
    def parties(self) -> tuple[str, ...]:
        """All parties of the run, this one included."""
        return self.align.parties

    @property
    def align(self) -> Endpoint:
        """The endpoint for finding common rows."""
        return self.party.nets[0]

    @property
    def train(self) -> Endpoint:
        """The endpoint for training, or for the requests of a scoring session."""
        return self.party.nets[TRAIN]

    @property
    def close(self) -> Endpoint:
        """The endpoint for what follows training: validation and mean parts."""
        return self.party.nets[2]

    @property
    def weigh(self) -> Endpoint:
        """The endpoint for weight of evidence, which is found between aligning and training."""
        return self.party.nets[3]

    async def play(self, program: Callable[[RunSession], Awaitable[T]]) -> T:
        """Run the program and return its result; every peer hears of the end, also of a failure."""
        async with self.party:
            return await program(self)

    @property
    def peers(self) -> tuple[str, ...]:
        """The other parties of the run."""
        return self.align.peers

    def begin_to_tell(self) -> None:
        """Note that from now on training may tell about labels."""
        self.told = True
        self.began()

    async def shut(self) -> None:
        """Listen no more, in a run that never began."""
        for net in self.party.nets:
            await net.close()

    def sent_bytes(self) -> int:
        """Return how many bytes this party has sent in the run, framing included."""
        return sum(net.meter.bytes() + net.meter.bytes(evaluation=True) for net in self.party.nets)

    def stop(self, reason: str) -> None:
        """End the run at this party, which ends it at all others too."""
        for net in self.party.nets:
            net.fail(Aborted(reason))

    def cut(self, reason: str) -> None:
        """End the session, which ends it at all others too; the run may go on in another."""
        for net in self.party.nets:
            net.fail(Interrupted(reason))

    def go_on(self, *, aligned: bool) -> None:
        """Begin with the common rows of an earlier session, where all parties have them."""
        self.aligned = aligned


@dataclass
class Pausing:
    """A party's part in a run that was cut off by the end of its daemon: it has no session yet."""

    run: int
    me: str
    parties: tuple[str, ...]
    number: int = 0
    told: bool = True  # perhaps it had begun to tell

    @property
    def peers(self) -> tuple[str, ...]:
        """The other parties of the run."""
        return tuple(party for party in self.parties if party != self.me)

    async def play(self, program: Callable[[RunSession], Awaitable[T]]) -> T:
        """Refuse: there is nothing to play yet."""
        raise Interrupted("the daemon was started again")

    async def shut(self) -> None:
        """Do nothing: nobody listens here."""

    def stop(self, reason: str) -> None:
        """Do nothing: nothing goes on here."""

    def cut(self, reason: str) -> None:
        """Do nothing: nothing goes on here."""

    def go_on(self, *, aligned: bool) -> None:
        """Do nothing: nothing goes on here."""

    def sent_bytes(self) -> int:
        """Return 0: nothing was sent."""
        return 0


def endpoints(
    mux: Mux, run: int, parties: tuple[str, ...], deadline: float, recorder: Recorder | None = None
) -> tuple[Endpoint, ...]:
    """Return new endpoints for a run, one for each stretch; PeerUnreachable when a party is away.

    A recorder hears of the stretch in which the party trains.
    """
    return tuple(
        mux.endpoint(run + k, parties, deadline=deadline, recorder=recorder if k == TRAIN else None)
        for k in range(STRETCHES)
    )


def for_peers(error: ColonnadeError) -> ColonnadeError:
    """Return the same error without what it may quote of this party's data."""
    if isinstance(error, DataError):
        return DataError("its data cannot be used as the job asks; its operator sees why")
    if isinstance(error, ModelError):
        return ModelError("its model cannot be used as the job asks; its operator sees why")
    if isinstance(error, WorkerError):
        return type(error)("its process for the run has ended; its operator sees why")
    if isinstance(error, ShareError):
        return ShareError("it cannot read or store its share of the model; its operator sees why")
    return error
