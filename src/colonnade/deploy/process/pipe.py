"""What a daemon and the process of one of its runs say to each other, over a socket that only the two have.

The process computes; the daemon keeps the lines with the peers, the journal and the budget. So the frames of
the run pass through the daemon as they are, and all that is written into its books is asked of it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from colonnade import errors
from colonnade.deploy.books.opened import Opened
from colonnade.deploy.policy.membership import ComparisonRequest
from colonnade.deploy.session.session import Event
from colonnade.deploy.settings import Settings
from colonnade.errors import ColonnadeError, WorkerError
from colonnade.messages import Roster
from colonnade.result import Moment

LENGTH = 4
LONGEST = 2**27  # a frame and a little


class Order(msgspec.Struct, tag="order", frozen=True):
    """To the process, first of all: which run, on which terms, as which party."""

    settings: Settings
    terms: bytes  # as a proposal has them
    run: int
    number: int  # of the session: of its frames
    minimum: int
    version: str
    timeline: bool
    aligned: bool = False  # the common rows are those of an earlier session


class Frame(msgspec.Struct, tag="frame", frozen=True):
    """A frame of one stretch of the run: from this peer, or to it."""

    stretch: int
    peer: str
    data: bytes


class Lost(msgspec.Struct, tag="lost", frozen=True):
    """To the process: a peer is gone for good."""

    peer: str
    reason: str


class Restored(msgspec.Struct, tag="restored", frozen=True):
    """To the process: the line with a peer stands again."""

    peer: str


class StopRun(msgspec.Struct, tag="stop", frozen=True):
    """To the process: end the run at all its parties; one that is `cut` off may go on in another session."""

    reason: str
    cut: bool = False


class Compare(msgspec.Struct, tag="compare", frozen=True):
    """To the daemon: may these ids be compared? It writes down that they are."""

    asked: ComparisonRequest
    own_ids: int
    rosters: dict[str, Roster]


class Book(msgspec.Struct, tag="book", frozen=True):
    """To the daemon: may the run tell peers this? It writes down that it does."""

    lines: list[Opened]


class Fault(msgspec.Struct, tag="fault", frozen=True):
    """An error with its class: to the daemon, the end of the run; to the process, a comparison refused."""

    error: str
    text: str

    @staticmethod
    def of(error: BaseException) -> Fault:
        """Return the fault that stands for an error."""
        return Fault(type(error).__name__, str(error) or type(error).__name__)

    @property
    def foreign(self) -> bool:
        """Whether the error is none of this package's."""
        return self._kind is None

    def raised(self) -> ColonnadeError:
        """Return the error again; a foreign one is a WorkerError."""
        kind = self._kind
        return WorkerError(f"{self.error}: {self.text}") if kind is None else kind(self.text)

    @property
    def _kind(self) -> type[ColonnadeError] | None:
        kind = getattr(errors, self.error, None)
        return kind if isinstance(kind, type) and issubclass(kind, ColonnadeError) else None


class MayCompare(msgspec.Struct, tag="compared", frozen=True):
    """To the process: they may be compared."""


class Seen(msgspec.Struct, tag="seen", frozen=True):
    """To the daemon: something an operator may want to see."""

    event: Event


class ModelMeasured(msgspec.Struct, tag="measured", frozen=True):
    """To the daemon: the model was measured."""

    moment: Moment


class LabelsTold(msgspec.Struct, tag="told", frozen=True):
    """To the daemon: from now on training may tell about labels."""


class Done(msgspec.Struct, tag="done", frozen=True):
    """To the daemon: the share is stored, and this is its manifest."""

    manifest: bytes


ToWorker = Order | Frame | Lost | Restored | StopRun | MayCompare | Fault
ToDaemon = Frame | Compare | Book | Seen | ModelMeasured | LabelsTold | Done | Fault

T = TypeVar("T")


class Pipe(Generic[T]):
    """One end of the socket: reads messages of the one side and writes those of the other."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, decoder: msgspec.msgpack.Decoder[T]
    ) -> None:
        self._reader, self._writer, self._decoder = reader, writer, decoder

    def write(self, message: msgspec.Struct) -> int:
        """Send a message; returns how many bytes wait to be taken."""
        data = msgspec.msgpack.encode(message)
        self._writer.write(len(data).to_bytes(LENGTH, "little") + data)
        return self.waiting()

    def waiting(self) -> int:
        """Return how many bytes the other side has not taken yet."""
        return self._writer.transport.get_write_buffer_size()

    async def drain(self) -> None:
        """Wait until the other side has taken most of what was written."""
        await self._writer.drain()

    async def read(self) -> T | None:
        """Return the next message; None if the other side is gone."""
        try:
            size = int.from_bytes(await self._reader.readexactly(LENGTH), "little")
            if size > LONGEST:
                raise WorkerError(f"a message of {size} bytes within a party")
            return self._decoder.decode(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def bid_farewell(self, message: msgspec.Struct) -> None:
        """Send the last message and wait until the other side, which may be writing still, has hung up.

        Closed with something unread, the socket would break under the other side's next write, and what it
        had not read yet would be lost: the last message above all.
        """
        self.write(message)
        while await self._reader.read(2**16):
            pass
        await self.close()

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
