"""Proposals that wait for this party's operator, where its policy says `approval = "ask"`.

A proposal that passes the policy and fits the data is held. The operator approves or refuses it, or its time
runs out, which refuses it. Rows are not kept meanwhile: when it is approved everything is looked at again,
since budget, files and settings of peers may have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from colonnade.deploy.models.stored_shares import now
from colonnade.deploy.process.estimating import Estimate
from colonnade.deploy.rows.rows import PartyRows
from colonnade.deploy.session.prepared import width_of
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Proposal, Terms
from colonnade.errors import JobError, Refused

MOST_HELD = 4  # by one peer


@dataclass(frozen=True, eq=False)
class Held:
    """A proposal that waits: who proposed what when, which rows it is about, until when."""

    run: int
    proposer: str
    contract: Contract
    rows: int
    columns: tuple[str, ...]
    width: int  # of these columns once they are prepared
    since: str
    until: str

    @staticmethod
    def of(run: int, proposer: str, contract: Contract, own: PartyRows, seconds: float) -> Held:
        """Return a proposal that asks for these rows, which the operator has this many seconds for."""
        columns, width = own.table.columns, width_of(own, contract)
        return Held(run, proposer, contract, len(own.ids), columns, width, now(), now(seconds))

    @property
    def number(self) -> str:
        """The number of the run as logs, shares and the ledger write it."""
        return f"{self.run:08x}"

    @property
    def terms(self) -> Terms:
        """What is proposed."""
        return self.contract.terms

    @property
    def proposal(self) -> Proposal:
        """The proposal, as it is looked at again when it is approved."""
        return Proposal(train=self.terms)


@dataclass
class Approvals:
    """The proposals that wait at one daemon."""

    held: dict[int, Held] = field(default_factory=dict)
    timers: dict[int, asyncio.TimerHandle] = field(default_factory=dict)
    # what each will cost, or why nobody can tell; none as long as it is rehearsed
    estimates: dict[int, Estimate | str] = field(default_factory=dict)

    def check_room(self, peer: str) -> None:
        """Raise Refused if too many of this peer's proposals wait already."""
        if sum(each.proposer == peer for each in self.held.values()) >= MOST_HELD:
            raise Refused(f"{MOST_HELD} proposals of {peer} wait for this party's operator already")

    def hold(self, held: Held, seconds: float, expired: Callable[[Held], None]) -> None:
        """Keep a proposal until it is taken; `expired` is called with it if nobody does in time."""
        self.check_room(held.proposer)
        loop = asyncio.get_running_loop()
        self.held[held.run] = held
        self.timers[held.run] = loop.call_later(seconds, lambda: self._expire(held, expired))

    def find(self, number: str) -> Held:
        """Return the proposal with this number; JobError if it does not wait."""
        for held in self.held.values():
            if held.number == number.lower():
                return held
        waiting = ", ".join(each.number for each in self.held.values()) or "none"
        raise JobError(
            f"no proposal {number} waits here (it may be decided or withdrawn); waiting: {waiting}"
        )

    def take(self, number: str, digest: str | None = None) -> Held:
        """Take a proposal out, to decide about it; JobError if its digest is not the one that was seen."""
        held = self.find(number)
        if digest is not None and digest != held.terms.digest():
            raise JobError(f"proposal {number} is not the one that was shown; look at it again")
        self.drop(held.run)
        return held

    def drop(self, run: int) -> Held | None:
        """Forget a proposal; returns it if it waited."""
        if (timer := self.timers.pop(run, None)) is not None:
            timer.cancel()
        self.estimates.pop(run, None)
        return self.held.pop(run, None)

    def drop_all(self, peer: str) -> list[Held]:
        """Forget all proposals of a peer and return them."""
        dropped = [held for held in self.held.values() if held.proposer == peer]
        for held in dropped:
            self.drop(held.run)
        return dropped

    def _expire(self, held: Held, expired: Callable[[Held], None]) -> None:
        if self.drop(held.run) is not None:
            expired(held)
