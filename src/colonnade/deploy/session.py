"""A seat in a run: what the daemon hands to the program of one run, and how a run ends.

A run has three stretches, each with an endpoint of its own on the standing lines: align, train, close. They
are made before a party accepts, so that nothing is sent to somebody who does not listen yet. When anything
goes wrong all three are told. What peers are told about a fault in this party's data is only that there is
one: the text for the operator may quote the data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from colonnade import __version__
from colonnade.deploy.rows import Brought
from colonnade.deploy.settings import Settings
from colonnade.errors import Aborted, ColonnadeError, DataError, ModelError, ShareError
from colonnade.net.endpoint import Endpoint
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.mux import Mux
from colonnade.run.party import first_cause
from colonnade.secure.keys import agree
from colonnade.secure.masked import MaskedSum
from colonnade.secure.plain import PlainSum
from colonnade.secure.protocol import SecureSum
from colonnade.secure.tree import TreeSum

T = TypeVar("T")
STRETCHES = 3


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something an operator may want to see while a run goes on."""

    what: str
    done: int = 0
    total: int = 0
    loss: float | None = None


Tell = Callable[[Event], None]


@dataclass
class Seat:
    run: int
    settings: Settings
    credentials: Credentials
    parties: tuple[str, ...]
    brought: Brought
    align: Endpoint
    train: Endpoint
    close: Endpoint
    minimum: int = 1  # common rows that this party demands
    tell: Tell = lambda event: None
    version: str = __version__
    sums: list[SecureSum] = field(default_factory=list)

    @property
    def me(self) -> str:
        return self.settings.name

    async def play(self, program: Callable[[Seat], Awaitable[T]]) -> T:
        """Run the program; whatever happens, every peer hears of the end, and nothing stays behind."""
        try:
            return await program(self)
        except BaseException as error:
            cause = first_cause(error)
            known = cause if isinstance(cause, ColonnadeError) else Aborted(f"{self.me} stopped")
            words = for_peers(known)
            # all at once: each waits a moment for its last words to be taken
            await asyncio.gather(*(net.abort(words) for net in self.nets()), return_exceptions=True)
            if cause is error:
                raise  # a cancelled task stays cancelled
            raise cause from error
        finally:
            for secure in self.sums:
                with suppress(ColonnadeError):
                    await secure.close()
            for net in self.nets():
                await net.close()

    def nets(self) -> tuple[Endpoint, ...]:
        return self.align, self.train, self.close

    def sent_bytes(self) -> int:
        return sum(net.meter.bytes() + net.meter.bytes(evaluation=True) for net in self.nets())

    def stop(self, reason: str) -> None:
        """End the run here and, by that, everywhere."""
        for net in self.nets():
            net.fail(Aborted(reason))

    async def secrets(self, net: Endpoint, digest: str) -> dict[str, bytes]:
        return await agree(net, self.credentials, version=self.version, job=digest)

    def secure_sum(self, net: Endpoint, secrets: dict[str, bytes], kind: str) -> SecureSum:
        kinds: dict[str, Callable[[], SecureSum]] = {
            "masked": lambda: MaskedSum(net, secrets),
            "tree": lambda: TreeSum(net),
            "plain": lambda: PlainSum(net),
        }
        self.sums.append(made := kinds[kind]())
        return made


def endpoints(
    mux: Mux, run: int, parties: tuple[str, ...], deadline: float
) -> tuple[Endpoint, Endpoint, Endpoint]:
    """The endpoints of a run; PeerUnreachable when a party is away."""
    align, train, close = (mux.endpoint(run + k, parties, deadline=deadline) for k in range(STRETCHES))
    return align, train, close


def for_peers(error: ColonnadeError) -> ColonnadeError:
    """The same without what it may quote of this party's data."""
    if isinstance(error, DataError):
        return DataError("its data cannot be used as the job asks; its operator sees why")
    if isinstance(error, ModelError):
        return ModelError("its model cannot be used as the job asks; its operator sees why")
    if isinstance(error, ShareError):
        return ShareError("it has no usable share of this model; its operator sees why")
    return error
