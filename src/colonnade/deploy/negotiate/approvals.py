"""Proposals that wait for this party's operators, where its policy says `approval = "ask"`.

A proposal that passes the policy and fits the data is held, also on disk: it outlives this daemon and its
proposer's. Operators approve or refuse it, or its time runs out, which refuses it. Rows are not kept
meanwhile: when it is approved everything is looked at again, since budget, files and settings of peers may
have changed.

    RUNS/waiting/NUMBER.json    what waits here, who has approved so far, until when
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from colonnade.deploy.negotiate.proposals import Accepted, ScoringWork
from colonnade.deploy.process.estimating import Estimate
from colonnade.deploy.session.prepared import width_of
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Proposal, Terms
from colonnade.disk import replace_file
from colonnade.errors import JobError, Refused
from colonnade.shares import now, seconds_until

log = logging.getLogger("colonnade.party")

MOST_HELD = 4  # by one peer
ASK_AGAIN_S = 120.0  # that a peer which is back has to say that it still proposes what waits


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What is on disk of a proposal that waits."""

    run: int
    proposer: str
    proposal: Proposal
    rows: int
    columns: tuple[str, ...]
    width: int  # of these columns once they are prepared for a training
    since: str
    until: str
    needs: int = 1
    people: tuple[str, ...] = ()


@dataclass(eq=False)
class Held:
    """A proposal that waits: what it asks for, and who has approved it so far."""

    waiting: Waiting
    work: Contract | ScoringWork
    asked_again: bool = True  # by its proposer, since that was last away

    @staticmethod
    def of(run: int, proposer: str, proposal: Proposal, found: Accepted, seconds: float, needs: int) -> Held:
        """Return a proposal that asks for these rows, which operators have this many seconds for."""
        own = found.own_rows
        columns = tuple(own.table.columns)
        since, until = now(), now(seconds)
        waiting = Waiting(
            run=run,
            proposer=proposer,
            proposal=proposal,
            rows=len(own.ids),
            columns=columns,
            width=width_of(own, found.work) if isinstance(found.work, Contract) else len(columns),
            since=since,
            until=until,
            needs=needs,
        )
        return Held(waiting, found.work)

    @property
    def number(self) -> str:
        """The number of the run as logs, shares and the ledger write it."""
        return f"{self.waiting.run:08x}"

    @property
    def contract(self) -> Contract:
        """The contract of the training, or of the model that scores are asked of."""
        if isinstance(self.work, Contract):
            return self.work
        return Contract.of(self.work.share.manifest.terms)

    @property
    def terms(self) -> Terms:
        """The terms of the training, or of the model that scores are asked of."""
        return self.contract.terms

    @property
    def about(self) -> str:
        """What is proposed, in words: a job, or scores of a model."""
        return self.terms.name if isinstance(self.work, Contract) else scores_of(self.work)

    @property
    def digest(self) -> str:
        """The digest of what is approved, the same when the same is proposed again."""
        return digest_of(self.waiting.proposal)

    def left(self) -> float:
        """Return how many seconds are left."""
        return seconds_until(self.waiting.until)


def scores_of(work: ScoringWork) -> str:
    """Return what a scoring session is about, in words."""
    return f"scores of {work.terms.model}" + (f" on {work.terms.data}" if work.terms.data else "")


def digest_of(proposal: Proposal) -> str:
    """Return the digest of a job, or of a request for scores without what differs from session to session."""
    if proposal.train is not None:
        return proposal.train.digest()
    if proposal.score is None:
        raise Refused("the proposal is empty")
    return msgspec.structs.replace(proposal.score, nonce="", service=False).digest()


@dataclass
class Approvals:
    """The proposals that wait at one daemon."""

    folder: Path
    held: dict[int, Held] = field(default_factory=dict)
    timers: dict[int, asyncio.TimerHandle] = field(default_factory=dict)
    # what each will cost, or why nobody can tell; none as long as it is rehearsed
    estimates: dict[int, Estimate | str] = field(default_factory=dict)
    back: dict[str, asyncio.TimerHandle] = field(default_factory=dict)  # by peer that has to ask again

    def check_room(self, peer: str) -> None:
        """Raise Refused if too many of this peer's proposals wait already."""
        if sum(each.waiting.proposer == peer for each in self.held.values()) >= MOST_HELD:
            raise Refused(f"{MOST_HELD} proposals of {peer} wait for this party's operator already")

    def read(self) -> list[Waiting]:
        """Return what waited when this daemon ended; what cannot be read is left out and logged."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=Waiting))
            except (OSError, msgspec.MsgspecError) as error:
                log.warning("%s: this proposal waits no more: %s", path, error)
        return found

    def hold(self, held: Held, expired: Callable[[Held], None]) -> None:
        """Keep a proposal until it is taken; `expired` is called with it if nobody does in time."""
        self.held[held.waiting.run] = held
        self.write(held)
        loop = asyncio.get_running_loop()
        self.timers[held.waiting.run] = loop.call_later(held.left(), self._expire, held, expired)

    def write(self, held: Held) -> None:
        """Have a proposal on disk, with who has approved it so far."""
        replace_file(self.folder / f"{held.number}.json", msgspec.json.encode(held.waiting))

    def expect(self, run: int, cost: Estimate | str) -> None:
        """Keep what a proposal will cost, or why nobody can tell, if it still waits."""
        if run in self.held:
            self.estimates[run] = cost

    def find(self, number: str, digest: str | None = None) -> Held:
        """Return the proposal with this number; JobError if it does not wait, or is not the one that was
        seen."""
        for held in self.held.values():
            if held.number == number.lower():
                if digest is not None and digest != held.digest:
                    raise JobError(f"proposal {number} is not the one that was shown; look at it again")
                return held
        waiting = ", ".join(each.number for each in self.held.values()) or "none"
        raise JobError(
            f"no proposal {number} waits here (it may be decided or withdrawn); waiting: {waiting}"
        )

    def drop(self, run: int) -> Held | None:
        """Forget a proposal; returns it if it waited."""
        if (timer := self.timers.pop(run, None)) is not None:
            timer.cancel()
        self.estimates.pop(run, None)
        held = self.held.pop(run, None)
        if held is not None:
            (self.folder / f"{held.number}.json").unlink(missing_ok=True)
        return held

    def came(self, peer: str, dropped: Callable[[Held], None]) -> None:
        """Drop what a peer that is back does not say again in time that it proposes."""
        waits = [held for held in self.held.values() if held.waiting.proposer == peer]
        for held in waits:
            held.asked_again = False
        if waits and peer not in self.back:
            loop = asyncio.get_running_loop()
            self.back[peer] = loop.call_later(ASK_AGAIN_S, self._drop_unasked, peer, dropped)

    def asked_again(self, peer: str, run: int) -> None:
        """Note that a peer still proposes what waits."""
        if (held := self.held.get(run)) is not None and held.waiting.proposer == peer:
            held.asked_again = True

    def _drop_unasked(self, peer: str, dropped: Callable[[Held], None]) -> None:
        del self.back[peer]
        for held in list(self.held.values()):
            if held.waiting.proposer == peer and not held.asked_again:
                self.drop(held.waiting.run)
                dropped(held)

    def close(self) -> None:
        """Stop the clocks: this daemon ends, and what waits is on disk."""
        for timer in (*self.timers.values(), *self.back.values()):
            timer.cancel()

    def _expire(self, held: Held, expired: Callable[[Held], None]) -> None:
        if self.drop(held.waiting.run) is not None:
            expired(held)
