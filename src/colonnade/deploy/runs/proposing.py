"""Proposing a run: ask everybody, wait for their answers, and begin once all have said yes."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from colonnade.arrays import Digests
from colonnade.deploy.books.journal import Decision
from colonnade.deploy.models import stored_shares
from colonnade.deploy.negotiate.agreement import Agreement, AskAgain
from colonnade.deploy.negotiate.proposals import ScoringWork
from colonnade.deploy.policy import policy
from colonnade.deploy.process.estimating import Estimate, estimated, requested
from colonnade.deploy.programs import describing, scoring
from colonnade.deploy.rows.rows import PartyRows
from colonnade.deploy.runs.proposed import Proposed, ProposedFiles
from colonnade.deploy.runs.run import Run
from colonnade.deploy.runs.runs import Runs
from colonnade.deploy.session.prepared import read_rows, width_of
from colonnade.deploy.session.session import Event, RunSession, Tell
from colonnade.deploy.settings import LONGEST_APPROVAL_S
from colonnade.deploy.terms.contract import Contract, check_terms
from colonnade.deploy.terms.paced import paced
from colonnade.deploy.terms.terms import Proposal, Scoring, Terms
from colonnade.errors import Aborted, ColonnadeError, JobError, PeerUnreachable, Refused
from colonnade.messages import Answer, Begin, Cancel, Pending, Propose, Sizes
from colonnade.shares import seconds_until

log = logging.getLogger("colonnade.party")

T = TypeVar("T")
ANSWER_S = 120.0


def two_digits(count: int) -> int:
    """Return a number with two digits that count.

    >>> two_digits(24_311), two_digits(87)
    (24000, 87)
    """
    return round(count, 2 - len(str(count))) if count > 99 else count


class PutOff(NamedTuple):
    """A proposal that waits for a party to come back, and the task that waits."""

    proposed: Proposed
    task: asyncio.Task[Any]


@dataclass
class Proposing:
    """What this party proposes to its peers."""

    runs: Runs
    # what waits for a party to come back, so that its operator is asked again; by the number of the run
    put_off: dict[int, PutOff] = field(default_factory=dict)
    _restored: dict[str, asyncio.Task[stored_shares.Manifest]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files = ProposedFiles(self.runs.settings.state)

    @property
    def me(self) -> str:
        """The name of this party."""
        return self.runs.settings.name

    async def train(
        self,
        terms: Terms,
        tell: Tell = lambda event: None,
        *,
        number: int | None = None,
        timeline: bool = False,
        who: str = "",
    ) -> stored_shares.Manifest:
        """Propose a training run, take part in it, and return the manifest of this party's share.

        The run has this `number`. With `timeline` this party, and nobody else, writes down when it computes,
        sends and waits; `who` asks for it. Raises Refused with everybody's reasons if not all accept.
        """
        if self.me not in terms.parties:
            raise JobError(f"parties: {self.me} proposes this job and is not one of its parties")
        self.runs.peers.require(tuple(terms.parties))
        number, until = number or self.runs.free_number(), stored_shares.now(LONGEST_APPROVAL_S)
        proposed = Proposed(run=number, terms=terms, timeline=timeline, until=until)
        return await self._train(proposed, tell, who)

    async def _train(self, proposed: Proposed, tell: Tell, who: str = "") -> stored_shares.Manifest:
        """Propose a training until all have answered: where an operator is asked, also once all parties are
        back."""
        terms = proposed.terms
        while True:
            contract = check_terms(terms, "job")
            policy.check_training(self.runs.settings, self.me, contract)
            times = self.runs.journal.decided.times(self.me, terms.name, terms.digest())
            policy.check_times(self.runs.settings.policy, terms, times)
            tell(Event("reading data"))
            own = await asyncio.to_thread(read_rows, self.runs.settings, contract)
            terms, said = self._paced(contract, own)
            if said:
                tell(Event(said))
                proposed = msgspec.structs.replace(proposed, terms=terms)
                contract = check_terms(terms, "job")
            run = self.runs.begin(proposed.run, self.me, contract, own, timeline=proposed.timeline)
            if who:
                self.runs.journal.decide(_proposed_by(who, run, terms))
                who = ""
            sizes = Sizes(run.id, two_digits(len(own.ids)), width_of(own, contract))
            for peer in run.session.peers:
                await self.runs.peers.add(peer, sizes)
            program = describing.program_of(contract, partial(self.runs.report, run))
            try:
                return await self._propose(run, Proposal(train=terms), program, tell, proposed)
            except AskAgain as away:
                tell(Event(f"{away}; it is asked again when it is back", run=run.number))
                await self._back(proposed, away.seconds)

    async def _back(self, proposed: Proposed, seconds: float) -> None:
        """Wait until all parties are connected; raises the reason why not, and then it waits no more."""
        if self.runs.resuming.closing or (task := asyncio.current_task()) is None:
            raise Aborted(f"{self.me} was stopped by its operator")
        self.put_off[proposed.run] = PutOff(proposed, task)
        try:
            await self.runs.peers.gathered(tuple(proposed.terms.parties), max(1.0, seconds))
        except BaseException as error:
            if not self.runs.resuming.closing:
                self.files.remove(proposed.run)
                await self._cancel(proposed.run, set(proposed.terms.parties) - {self.me}, error)
            raise
        finally:
            del self.put_off[proposed.run]

    async def _cancel(self, run: int, peers: Iterable[str], error: BaseException) -> None:
        """Tell peers that a proposal is withdrawn, and why."""
        reason = str(error) or f"{self.me} withdrew it"
        for peer in peers:
            await self.runs.peers.send(peer, Cancel(run, reason[:2000]))

    def restored(self) -> dict[str, asyncio.Task[stored_shares.Manifest]]:
        """Propose again what was waiting for operators when this daemon ended; returns what is under way."""
        for proposed in self.files.read():
            self._restored[f"{proposed.run:08x}"] = work = asyncio.ensure_future(self._again(proposed))
            work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return self._restored

    async def _again(self, proposed: Proposed) -> stored_shares.Manifest:
        """Propose a training again, once all its parties are there."""
        try:
            await self._back(proposed, seconds_until(proposed.until))
            return await self._train(proposed, lambda event: None)
        except ColonnadeError as error:
            log.warning("run %08x is not proposed any more: %s", proposed.run, error)
            self.runs.journal.note(f"run {proposed.run:08x} is not proposed any more: {error}")
            raise

    def withdraw(self, number: str) -> Proposed | None:
        """Give up what waits for a party to come back; returns it, or None if nothing does under this
        number."""
        for run, waits in self.put_off.items():
            if f"{run:08x}" == number:
                waits.task.cancel()
                return waits.proposed
        return None

    async def close(self) -> None:
        """Stop proposing: what waits for operators is on disk."""
        for work in self._restored.values():
            work.cancel()
        await asyncio.gather(*self._restored.values(), return_exceptions=True)

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
        policy.check_in_force(self.runs.settings.policy, trained)
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
        self,
        run: Run,
        proposal: Proposal,
        program: Callable[[RunSession], Awaitable[T]],
        tell: Tell,
        proposed: Proposed | None = None,
    ) -> T:
        """Ask everybody, and play this party's part once all have agreed."""
        run.asked_by, run.proposed = tell, proposed
        run.followed.listeners.append(tell)
        peers = run.session.peers
        run.agreement = Agreement.of(peers, run.terms.digest(), ANSWER_S)
        encoded = proposal.written()
        try:
            self.runs.reserve(run)
            run.followed.tell(Event("asking", 0, len(peers), run=run.number))
            for peer in peers:
                await self.runs.signed.say(peer, run.id, "proposes", run.terms.digest())
                await self.runs.peers.controls[peer].send(peer, Propose(run.id, encoded))
            await run.agreement.reached()
            await self.runs.remember(run)
        except BaseException as error:
            await self._not_agreed(run, error)
            raise
        if proposed is not None:
            self.files.remove(run.id)
        if run.lasts:
            run.followed.tell(Event(f"run {run.number} has begun", run=run.number))
        for peer in peers:
            await self.runs.peers.send(peer, Begin(run.id, run.terms.digest()))
        return await self.runs.play(run, program)

    async def _not_agreed(self, run: Run, error: BaseException) -> None:
        """Withdraw a proposal that was not agreed on, or put it off where operators have time left."""
        waits = run.proposed is not None and run.agreement is not None and run.agreement.patience > 0
        if waits and (isinstance(error, AskAgain) or self.runs.resuming.closing):
            await self.runs.put_off(run)
            return
        self.files.remove(run.id)
        await self._cancel(run.id, run.session.peers, error)
        reason = str(error) or f"{self.me} withdrew it"
        code = error.exit_code if isinstance(error, ColonnadeError) else 1
        await self.runs.forget(run, "refused" if isinstance(error, Refused) else "failed", reason, code)

    async def answered(self, peer: str, message: Answer) -> None:
        """Keep a peer's answer to this party's own proposal."""
        run = self.runs.live.get(message.run)
        if run is not None and run.agreement is not None:
            if message.refusal is None:
                try:
                    await self.runs.signed.require(peer, message.run, "accepts", message.digest)
                except Refused as error:
                    message = Answer(message.run, "", str(error))
            run.agreement.hear(peer, message)
            await self._ask_for_patience(run, run.agreement)

    async def wait_longer(self, run: Run, agreement: Agreement, peer: str, seconds: float) -> None:
        """Give a peer that reads or whose operator is asked its time, and tell those who have accepted."""
        if agreement.extend(peer, seconds):
            minutes = max(1, round(seconds / 60))
            approval = f"waiting for {peer}'s approval, for {minutes} min at most"
            run.followed.tell(Event(approval if seconds > 0 else f"{peer} still reads its data"))
            if seconds > 0 and run.proposed is not None:
                until = stored_shares.now(agreement.patience)
                self.files.write(msgspec.structs.replace(run.proposed, until=until))
            await self._ask_for_patience(run, agreement)

    async def _ask_for_patience(self, run: Run, agreement: Agreement) -> None:
        """Tell those who have accepted that an operator of somebody else is still asked."""
        if seconds := agreement.patience:
            for peer in agreement.accepted:
                await self.runs.peers.send(peer, Pending(run.id, seconds))


def _proposed_by(who: str, run: Run, terms: Terms) -> Decision:
    """Return the decision of somebody here to propose a job."""
    return Decision(
        when=stored_shares.now(),
        what="proposed",
        who=who,
        about=terms.name,
        run=run.number,
        proposer=run.proposer,
        digest=terms.digest(),
    )
