"""Proposing a run: ask everybody, wait for their answers, and begin once all have said yes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from colonnade.arrays import Digests
from colonnade.deploy.models import stored_shares
from colonnade.deploy.negotiate.agreement import Agreement
from colonnade.deploy.negotiate.proposals import ScoringWork
from colonnade.deploy.policy import policy
from colonnade.deploy.process.estimating import Estimate, estimated, requested
from colonnade.deploy.programs import scoring, training
from colonnade.deploy.rows.rows import PartyRows
from colonnade.deploy.runs.run import Run
from colonnade.deploy.runs.runs import Runs
from colonnade.deploy.session.prepared import read_rows, width_of
from colonnade.deploy.session.session import Event, RunSession, Tell
from colonnade.deploy.terms.contract import Contract, check_terms
from colonnade.deploy.terms.paced import paced
from colonnade.deploy.terms.terms import Proposal, Scoring, Terms
from colonnade.errors import JobError, PeerUnreachable, Refused
from colonnade.messages import Answer, Begin, Cancel, Pending, Propose, Sizes

T = TypeVar("T")
ANSWER_S = 120.0


def two_digits(count: int) -> int:
    """Return a number with two digits that count.

    >>> two_digits(24_311), two_digits(87)
    (24000, 87)
    """
    return round(count, 2 - len(str(count))) if count > 99 else count


@dataclass
class Proposing:
    """What this party proposes to its peers."""

    runs: Runs

    @property
    def me(self) -> str:
        """The name of this party."""
        return self.runs.settings.name

    async def train(
        self, terms: Terms, tell: Tell = lambda event: None, *, timeline: bool = False
    ) -> stored_shares.Manifest:
        """Propose a training run, take part in it, and return the manifest of this party's share.

        With `timeline` this party, and nobody else, writes down when it computes, sends and waits.
        Raises Refused with everybody's reasons if not all accept.
        """
        contract = check_terms(terms, "job")
        if self.me not in terms.parties:
            raise JobError(f"parties: {self.me} proposes this job and is not one of its parties")
        self.runs.peers.require(tuple(terms.parties))
        policy.check_training(self.runs.settings, self.me, contract)
        tell(Event("reading data"))
        own = await asyncio.to_thread(read_rows, self.runs.settings, contract)
        terms, said = self._paced(contract, own)
        if said:
            tell(Event(said))
            contract = check_terms(terms, "job")
        run = self.runs.begin(self.runs.free_number(), self.me, contract, own, timeline=timeline)
        for peer in run.session.peers:
            await self.runs.peers.add(peer, Sizes(run.id, two_digits(len(own.ids)), width_of(own, contract)))
        program = training.training(contract, lambda moment: self.runs.report(run, moment))
        return await self._propose(run, Proposal(train=terms), program, tell)

    def _paced(self, contract: Contract, own: PartyRows) -> tuple[Terms, str]:
        """Return the terms for lines as slow as they are, and what was chosen, in words."""
        trained = int(len(own.ids) * (1 - contract.terms.split.test - contract.terms.split.validation))
        return paced(contract, trained, self.runs.peers.slowest(contract.terms.parties))

    async def estimate(self, terms: Terms) -> Estimate:
        """Return what a training would cost, as far as this party knows; nobody else is asked."""
        contract, settings = check_terms(terms, "job"), self.runs.settings
        if self.me not in terms.parties:
            raise JobError(f"parties: {self.me} is not one of them")
        own = await asyncio.to_thread(read_rows, settings, contract)
        terms, _ = self._paced(contract, own)
        trip = self.runs.peers.slowest(terms.parties)
        return await estimated(
            requested(settings, terms, (len(own.ids), width_of(own, contract)), None, trip)
        )

    async def score(
        self,
        share: stored_shares.StoredShare,
        wanted: Digests | None,
        use: Callable[[scoring.Ready], Awaitable[T]],
        *,
        data: str | None = None,
        service: bool = False,
        tell: Tell = lambda event: None,
    ) -> T:
        """Open a scoring session with everybody who holds a share of the model; return what `use` returns.

        `wanted` are the ids to score, as digests, or None for all that are common.
        """
        trained = share.manifest.terms
        if self.me not in trained.active:
            raise JobError(f"{self.me} holds no label of {share.manifest.model}; ask at {trained.active[0]}")
        terms = Scoring(
            model=share.manifest.model,
            asker=self.me,
            parties=self.present(share.manifest),
            data=data,
            service=service,
            nonce=os.urandom(8).hex(),
        )
        own = await asyncio.to_thread(scoring.read_rows, self.runs.settings, share, terms, wanted)
        run = self.runs.begin(self.runs.free_number(), self.me, ScoringWork(terms, share), own)
        return await self._propose(run, Proposal(score=terms), scoring.asking(share, terms, use), tell)

    def present(self, manifest: stored_shares.Manifest) -> tuple[str, ...]:
        """Return the parties that score: all of them, or those that are connected if the job allows that."""
        parties = tuple(sorted(manifest.terms.parties))
        try:
            self.runs.peers.require(parties)
        except PeerUnreachable as away:
            there = tuple(p for p in parties if p == self.me or p in self.runs.peers.controls)
            if not manifest.terms.use.degraded or len(there) < 2:
                raise PeerUnreachable(f"{away}; {manifest.model} needs all its parties") from None
            self.runs.peers.require(there)
            return there
        return parties

    async def _propose(
        self, run: Run, proposal: Proposal, program: Callable[[RunSession], Awaitable[T]], tell: Tell
    ) -> T:
        """Ask everybody, and play this party's part once all have agreed."""
        run.asked_by = tell
        run.followed.listeners.append(tell)
        peers = run.session.peers
        run.agreement = Agreement.of(peers, run.terms.digest(), ANSWER_S)
        encoded = proposal.written()
        try:
            self.runs.reserve(run)
            run.followed.tell(Event("asking", 0, len(peers)))
            for peer in peers:
                await self.runs.peers.controls[peer].send(peer, Propose(run.id, encoded))
            await run.agreement.reached()
            await self.runs.remember(run)
        except BaseException as error:
            reason = str(error) or f"{self.me} withdrew it"
            for peer in peers:
                await self.runs.peers.send(peer, Cancel(run.id, reason[:2000]))
            await self.runs.forget(run, "refused" if isinstance(error, Refused) else "failed", reason)
            raise
        if run.lasts:
            run.followed.tell(Event(f"run {run.number} has begun", run=run.number))
        for peer in peers:
            await self.runs.peers.send(peer, Begin(run.id, run.terms.digest()))
        return await self.runs.play(run, program)

    async def answered(self, peer: str, message: Answer) -> None:
        """Keep a peer's answer to this party's own proposal."""
        run = self.runs.live.get(message.run)
        if run is not None and run.agreement is not None:
            run.agreement.hear(peer, message)
            await self._ask_for_patience(run, run.agreement)

    async def wait_longer(self, run: Run, agreement: Agreement, peer: str, seconds: float) -> None:
        """Give a peer that reads or whose operator is asked its time, and tell those who have accepted."""
        if agreement.extend(peer, seconds):
            minutes = max(1, round(seconds / 60))
            approval = f"waiting for {peer}'s approval, for {minutes} min at most"
            run.followed.tell(Event(approval if seconds > 0 else f"{peer} still reads its data"))
            await self._ask_for_patience(run, agreement)

    async def _ask_for_patience(self, run: Run, agreement: Agreement) -> None:
        """Tell those who have accepted that an operator of somebody else is still asked."""
        if seconds := agreement.patience:
            for peer in agreement.accepted:
                await self.runs.peers.send(peer, Pending(run.id, seconds))
