"""The runs that wait or go on at one daemon, and their books: the budget, how far each is, how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from colonnade.deploy import shares, training
from colonnade.deploy.journal import Journal
from colonnade.deploy.ledger import Ledger, Spendable, Spending
from colonnade.deploy.membership import Membership
from colonnade.deploy.peers import Peers
from colonnade.deploy.pipe import Order
from colonnade.deploy.proposals import ScoringWork
from colonnade.deploy.rows import PartyRows
from colonnade.deploy.run import Run
from colonnade.deploy.session import Event, RunSession, Tell, endpoints, for_peers
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms import Contract, Proposal
from colonnade.deploy.workshop import WorkerSession
from colonnade.errors import ColonnadeError, JobError, ShareError, WorkerError
from colonnade.messages import Cancel, Progress
from colonnade.net.clock import RealClock
from colonnade.net.recorder import Recorder
from colonnade.net.stream.certificates import Credentials
from colonnade.result import Moment
from colonnade.run.party import Party

log = logging.getLogger("colonnade.party")

T = TypeVar("T")
SCORING_S = 60.0  # how long a silent peer is waited for in a scoring session


@dataclass
class Runs:
    """The runs of one daemon by their numbers: those that were proposed and those that go on."""

    settings: Settings
    credentials: Credentials
    peers: Peers
    journal: Journal
    ledger: Ledger
    apart: bool = False  # trainings get processes of their own
    live: dict[int, Run] = field(default_factory=dict)
    _background: set[asyncio.Future[None]] = field(default_factory=set)

    def begin(
        self,
        id_: int,
        proposer: str,
        work: Contract | ScoringWork,
        own: PartyRows,
        minimum: int | None = None,
        *,
        timeline: bool = False,
    ) -> Run:
        """Make a run and its endpoints: from now on this party listens to what its peers say in it.

        With `timeline`, or where the settings say so, it writes down when it computes, sends and waits.
        """
        demanded = self.settings.policy.min_rows if minimum is None else minimum
        timeline = timeline or self.settings.timeline
        if isinstance(work, Contract) and self.apart:
            return self._begin_apart(id_, proposer, work, demanded, timeline=timeline)
        deadline = work.terms.network.deadline_s if isinstance(work, Contract) else SCORING_S
        recorder = Recorder(RealClock(), receives=True) if timeline else None
        nets = endpoints(self.peers.mux, id_, tuple(sorted(work.terms.parties)), deadline, recorder)
        party = Party(self.credentials, nets, self.peers.version, for_peers)
        guard = Membership(self.settings, self.journal)
        session = RunSession(id_, self.settings, party, own, demanded, guard, recorder=recorder)
        run = self.live[id_] = Run(proposer, work, session)
        session.tell = run.followed.tell
        return run

    def _begin_apart(self, id_: int, proposer: str, work: Contract, minimum: int, *, timeline: bool) -> Run:
        """Make a training run whose program gets a process of its own, which reads the rows by itself."""
        terms = Proposal(train=work.terms).written()
        order = Order(self.settings, terms, id_, minimum, self.peers.version, timeline)
        guard = Membership(self.settings, self.journal)
        parties = tuple(sorted(work.terms.parties))
        session = WorkerSession(order, self.peers.mux, parties, guard)
        run = self.live[id_] = Run(proposer, work, session)
        session.tell, session.report = run.followed.tell, partial(self.report, run)
        return run

    def reserve(self, run: Run) -> None:
        """Reserve in the ledger what a run may tell about this party's labels, before anything begins."""
        if not isinstance(contract := run.work, Contract):
            return
        terms, member = contract.terms, contract.terms.parties[self.settings.name]
        label = self.settings.data[member.data].label if member.label else None
        if label is None:
            return
        asked = Spendable.of(contract)
        # once more, since another run may have been accepted while the data was read
        self.ledger.check(self.settings.policy, label, asked)
        self.ledger.reserve(
            Spending(run.number, terms.name, label, asked.epsilon, asked.delta, "reserved", shares.now())
        )

    async def play(self, run: Run, program: Callable[[RunSession], Awaitable[T]]) -> T:
        """Play this party's part, settle the budget, and write down how the run ended."""
        run.state = "running"
        longest = self.settings.limits.run_s
        run.overtime = asyncio.get_running_loop().call_later(
            longest, run.session.stop, f"limits.run_s = {longest:g} of {self.settings.name} is over"
        )
        state, reason = "failed", ""
        try:
            result = await run.session.play(program)
            state = "done"
            if isinstance(result, shares.Manifest):
                self.ledger.settle(result.run, result.epsilon)
        except WorkerError as error:
            reason = str(error)
            for peer in run.session.peers:  # the process could not tell them itself
                await self.peers.send(peer, Cancel(run.id, str(for_peers(error))))
            raise
        except ColonnadeError as error:
            reason = str(error)
            raise
        except BaseException as error:
            reason = type(error).__name__
            raise
        else:
            return result
        finally:
            await self.forget(run, state, reason)

    def report(self, run: Run, moment: Moment) -> None:
        """Show a measured loss here, and to the others as far as the job allows; label holders call this."""
        if (terms := run.trains) is None:
            return
        run.followed.tell(training.as_event(moment, terms.train.epochs))
        for peer in run.session.peers:
            seen = terms.use.loss_seen_by == "all" or peer in terms.active
            said = Progress(run.id, moment.epoch, moment.loss if seen else None)
            self.spawn(self.peers.send(peer, said))

    async def progressed(self, peer: str, message: Progress) -> None:
        """Show how far training is, as a label holder tells it: once for every epoch, and in their order."""
        run = self.live.get(message.run)
        if run is None or (terms := run.trains) is None or peer not in terms.active:
            return
        said = Event("training", message.epoch, terms.train.epochs, message.loss)
        if run.followed.is_news(said):
            run.followed.tell(said)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def stop(self, number: str, reason: str) -> Run:
        """End the run with this number at all its parties; JobError if there is none."""
        for run in self.live.values():
            if run.number == number:
                run.session.stop(reason)
                return run
        known = ", ".join(run.number for run in self.live.values())
        raise JobError(f"no run {number} goes on; there is {known or 'none'}")

    def stop_for(self, listener: Tell, reason: str) -> None:
        """End the runs of a command that is gone; `listener` is the function that showed it events."""
        for run in list(self.live.values()):
            if run.asked_by is listener:
                run.session.stop(reason)

    async def forget(self, run: Run, state: str, reason: str) -> None:
        """Drop a run that is over and write down how it ended; one that told nothing costs no budget."""
        if self.live.pop(run.id, None) is None:
            return
        self.journal.sent_bytes += run.session.sent_bytes()
        if run.expires is not None:
            run.expires.cancel()
        if run.overtime is not None:
            run.overtime.cancel()
        if not run.session.told and state != "done":
            self._release(run)
        if run.state == "proposed":
            await run.session.shut()
        self.journal.end(run.over(state, reason))
        text = f"run {run.number} of {run.proposer}: {state}{f': {reason}' if reason else ''}"
        (log.info if state == "done" else log.warning)("%s", text)
        self.journal.note(text)

    def _release(self, run: Run) -> None:
        """Give back what was reserved for a run that told nothing; where the disk fails it stays reserved."""
        try:
            self.ledger.release(run.number)
        except ShareError:
            log.exception("the reservation of run %s stays in the ledger", run.number)

    def sent_bytes(self) -> int:
        """The bytes sent in all runs so far, framing included."""
        return self.journal.sent_bytes + sum(run.session.sent_bytes() for run in self.live.values())
