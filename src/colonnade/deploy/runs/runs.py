"""The runs that wait or go on at one daemon, and their books: the budget, how far each is, how it ended."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from colonnade.deploy.books import unfinished
from colonnade.deploy.books.journal import Ended, Journal
from colonnade.deploy.books.ledger import Ledger, Spendable, Spending
from colonnade.deploy.books.sheets import write_run_sheet
from colonnade.deploy.books.spent import STRETCHES, Spent
from colonnade.deploy.books.unfinished import Unfinished
from colonnade.deploy.models import stored_shares
from colonnade.deploy.negotiate.peers import Peers
from colonnade.deploy.negotiate.proposals import ScoringWork
from colonnade.deploy.policy import policy
from colonnade.deploy.policy.membership import Membership
from colonnade.deploy.process.logs import in_log
from colonnade.deploy.process.pipe import Order
from colonnade.deploy.process.worker_process import WorkerSession
from colonnade.deploy.programs import training
from colonnade.deploy.rows.rows import PartyRows
from colonnade.deploy.runs.resuming import Resuming
from colonnade.deploy.runs.run import Run
from colonnade.deploy.runs.signing import SignedStatements
from colonnade.deploy.session.booking import most_losses
from colonnade.deploy.session.prepared import read_rows
from colonnade.deploy.session.session import Event, Pausing, RunSession, Tell, endpoints, for_peers
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract, check_terms
from colonnade.deploy.terms.terms import Proposal
from colonnade.errors import Aborted, ColonnadeError, JobError, ShareError, WorkerError
from colonnade.messages import Cancel, Progress
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import CUT_OFF
from colonnade.net.recorder import Recorder
from colonnade.net.stream.certificates import Credentials
from colonnade.result import Moment
from colonnade.run.party import Party
from colonnade.shares import Draft

log = logging.getLogger("colonnade.party")

T = TypeVar("T")
BOOKS_S = 5.0  # between two times that the cost of a run is written to disk
SCORING_S = 60.0  # how long a silent peer is waited for in a scoring session


class Seat(NamedTuple):
    """This party's place in one session of a run; the first has the number of the run."""

    run: int
    number: int
    minimum: int
    timeline: bool


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
    # are called with a run and its state when it begins here, and when it is over
    watchers: list[Callable[[Run, str], None]] = field(default_factory=list)
    _background: set[asyncio.Future[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.resuming = Resuming(self)
        self.signed = SignedStatements(self)

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
        seat = Seat(id_, id_, demanded, timeline or self.settings.timeline)
        if isinstance(work, Contract) and self.apart:
            run = Run(proposer, work, self._apart(seat, work))
        else:
            run = Run(proposer, work, self._here(seat, work, own))
        if isinstance(work, Contract) and work.goes_on:
            run.record = Unfinished(
                run=id_,
                proposer=proposer,
                terms=work.terms,
                minimum=demanded,
                timeline=seat.timeline,
                began=time.time(),
            )
        self.live[id_] = run
        self._show(run)
        return run

    def _apart(self, seat: Seat, work: Contract) -> WorkerSession:
        """Return this party's part in one session, in a process of its own, which reads the rows by
        itself."""
        guard, parties = Membership(self.settings, self.journal), tuple(sorted(work.terms.parties))
        terms, version = Proposal(train=work.terms).written(), self.peers.version
        order = Order(self.settings, terms, seat.run, seat.number, seat.minimum, version, seat.timeline)
        return WorkerSession(order, self.peers.mux, parties, guard)

    def _here(self, seat: Seat, work: Contract | ScoringWork, own: PartyRows) -> RunSession:
        """Return this party's part in one session, in this process."""
        guard, parties = Membership(self.settings, self.journal), tuple(sorted(work.terms.parties))
        deadline = work.terms.network.deadline_s if isinstance(work, Contract) else SCORING_S
        recorder = Recorder(RealClock(), receives=True) if seat.timeline else None
        nets = endpoints(self.peers.mux, seat.number, parties, deadline, recorder)
        party = Party(self.credentials, nets, self.peers.version, for_peers)
        session = RunSession(seat.run, self.settings, party, own, seat.minimum, guard, recorder=recorder)
        session.scored = self.journal.score
        return session

    def _show(self, run: Run) -> None:
        """Let what a session tells be seen by those that follow its run."""
        if isinstance(run.session, WorkerSession):
            run.session.report = partial(self.report, run)
        if isinstance(run.session, (WorkerSession, RunSession)):
            run.session.tell = run.followed.tell

    async def renew(self, run: Run, number: int) -> None:
        """Make a new session for a run that was cut off, and listen to what its peers say in it.

        PeerUnreachable when a party is away.
        """
        if run.record is None or not isinstance(run.work, Contract):
            raise JobError(f"run {run.number} does not go on")
        sent, seat = self._settle_session(run), Seat(run.id, number, run.record.minimum, run.record.timeline)
        if self.apart:
            run.session = self._apart(seat, run.work)
        else:
            own = await asyncio.to_thread(read_rows, self.settings, run.work)
            run.session = self._here(seat, run.work, own)
        self.journal.sent_bytes += sent
        self._show(run)

    def _settle_session(self, run: Run) -> int:
        """Add what a session has cost to what those before it did; returns the bytes that it sent."""
        sent, run.spent = run.session.sent_bytes(), run.spent.plus(self._spent(run, over=True))
        return sent

    def _spent(self, run: Run, *, over: bool = False) -> Spent:
        """Return what the present session of a run has cost so far."""
        spent = Spent()
        if run.session.number == 0:  # it was cut off by the end of the daemon, and has none
            return spent
        for stretch, what in enumerate(STRETCHES):
            carried = self.peers.mux.carried(run.session.number + stretch, forget=over)
            spent.add(what, carried.sent, carried.received)
        spent.sessions = 1 if spent.sent else 0
        return spent

    async def _keep_books(self, run: Run) -> None:
        """Have on disk what a run costs, every few seconds, so that the end of this daemon loses little."""
        while True:
            await asyncio.sleep(BOOKS_S)
            unfinished.keep_spent(self.settings, run.id, run.spent.plus(self._spent(run)))

    async def remember(self, run: Run) -> None:
        """Have a run that is about to begin on disk, if it is to go on after it was cut off."""
        if run.record is not None:
            # the time for approvals is not part of it
            run.record = msgspec.structs.replace(run.record, began=time.time())
            await asyncio.to_thread(run.record.write, self.settings)

    def free_number(self) -> int:
        """Return a random number for a new run or session.

        Its low bits are free for the stretches of the run; number 0 is the daemons' own talk.
        """
        return int.from_bytes(os.urandom(4), "big") & 0xFFFFFFF0 | 0x10

    def is_free(self, number: int) -> bool:
        """Return whether no run and no session here has this number."""
        taken = {number for run in self.live.values() for number in (run.id, run.session.number)}
        return 0 < number < 2**32 and number % 16 == 0 and number not in taken

    def reserve(self, run: Run) -> None:
        """Reserve in the ledger what a run may tell about this party's labels, before anything begins."""
        if not isinstance(contract := run.work, Contract):
            return
        terms, member = contract.terms, contract.terms.parties[self.settings.name]
        label = self.settings.data[member.data].label if member.label else None
        if label is None:
            return
        asked = Spendable.of(contract, self.settings.limits)
        # once more, since another run may have been accepted while the data was read
        self.ledger.check(self.settings.policy, label, asked)
        self.ledger.reserve(
            Spending(
                run.number, terms.name, label, asked.epsilon, asked.delta, "reserved", stored_shares.now()
            )
        )

    async def play(self, run: Run, program: Callable[[RunSession], Awaitable[T]]) -> T:
        """Play this party's part, settle the budget, and write down how the run ended."""
        with in_log(run.number):
            return await self._play(run, program)

    async def _play(self, run: Run, program: Callable[[RunSession], Awaitable[T]]) -> T:
        run.state = "running"
        for watch in self.watchers:
            watch(run, run.state)
        longest = self.settings.limits.run_s
        run.began = run.record.began if run.record is not None else time.time()
        spent = time.time() - run.began
        books = asyncio.ensure_future(self._keep_books(run)) if run.lasts else None
        run.overtime = asyncio.get_running_loop().call_later(
            max(0.0, longest - spent),
            self.end,
            run,
            f"limits.run_s = {longest:g} of {self.settings.name} is over",
        )
        state, reason, code = "failed", "", 1
        try:
            result = await self._play_on(run, program)
            state, code = "done", 0
            if isinstance(result, stored_shares.Manifest):
                self.ledger.settle(result.run, result.epsilon)
                run.model = result.model
        except ColonnadeError as error:
            reason, code = str(error), error.exit_code
            # a process that was lost could not tell them itself, and those who wait hear nothing else
            untold = run.lasts and (run.state == "waiting" or not isinstance(error, Aborted))
            words = str(for_peers(error))[:2000]
            self.resuming.failed(run, words)
            if (untold or isinstance(error, WorkerError)) and not self.resuming.closing:
                for peer in run.session.peers:
                    await self.peers.send(peer, Cancel(run.id, words))
            raise
        except BaseException as error:
            reason = type(error).__name__
            raise
        else:
            return result
        finally:
            if books is not None:
                books.cancel()
            await self.forget(run, state, reason, code)

    async def _play_on(self, run: Run, program: Callable[[RunSession], Awaitable[T]]) -> T:
        """Play session after session until one is not cut off."""
        while True:
            try:
                # in a task of its own: in early Pythons 3.11 a task group that fails can leave its task half
                # cancelled, and what that task awaits next with a timeout would end as if it was stopped
                return await asyncio.create_task(run.session.play(program))
            except CUT_OFF as error:
                found = await self.resuming.again(run, error)
                if found is not None:
                    return cast(T, found)

    def restore(self, record: Unfinished) -> Run:
        """Return a run that was not over when this daemon ended; Refused if the policy is against it now."""
        contract = check_terms(record.terms, "job")
        policy.check_training(self.settings, record.proposer, contract)
        session = Pausing(record.run, self.settings.name, tuple(sorted(record.terms.parties)))
        run = Run(record.proposer, contract, session, told=True, record=record)
        run.spent = unfinished.kept_spent(self.settings, record.run)
        self.live[record.run] = run
        return run

    def report(self, run: Run, moment: Moment) -> None:
        """Show a measured loss here, and to the others as far as the job allows; label holders call this."""
        if (terms := run.trains) is None:
            return
        run.followed.tell(training.as_event(moment, terms.train.epochs))
        # a session that goes on measures the same again
        if over := len(set(run.followed.losses)) > most_losses(terms):
            log.warning("run %s is measured more often than declared: peers are shown no loss", run.number)
        for peer in run.session.peers:
            seen = terms.use.loss_seen_by == "all" or peer in terms.active
            said = Progress(run.id, moment.epoch, moment.shown if seen and not over else None)
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
                self.end(run, reason)
                return run
        known = ", ".join(run.number for run in self.live.values())
        raise JobError(f"no run {number} goes on; there is {known or 'none'}")

    def stop_for(self, listener: Tell, reason: str) -> None:
        """End the runs of a command that is gone; `listener` is the function that showed it events."""
        for run in list(self.live.values()):
            if run.asked_by is listener:
                self.end(run, reason)

    def end(self, run: Run, reason: str) -> None:
        """End a run at all its parties, whether it goes on or waits."""
        run.session.stop(reason)
        if run.lasts:  # also where it was cut off a moment ago
            self.resuming.heard(run.id).ended = reason
            self.resuming.heard(run.id).changed.set()

    async def put_off(self, run: Run) -> None:
        """Drop a run that has not begun and is proposed again later; nobody is told, and it costs nothing."""
        if self.live.pop(run.id, None) is not None:
            self.resuming.forget(run.id)
            self._release(run)
            await run.session.shut()

    async def forget(self, run: Run, state: str, reason: str, code: int = 0) -> None:
        """Drop a run that is over and write down how it ended; one that told nothing costs no budget."""
        if self.live.pop(run.id, None) is None:
            return
        self.journal.sent_bytes += self._settle_session(run)
        if run.expires is not None:
            run.expires.cancel()
        if run.overtime is not None:
            run.overtime.cancel()
        self.resuming.forget(run.id)
        if self.resuming.closing and run.lasts and run.state in ("running", "waiting") and state != "done":
            unfinished.keep_spent(self.settings, run.id, run.spent)
            log.info("run %s goes on when this daemon is started again", run.number)
            return
        if not (run.told or run.session.told) and state != "done":
            self._release(run)
        if run.lasts:
            unfinished.remove(self.settings, run.id)
            if state != "done":
                Draft(self.settings.state / "models" / f"{run.about}-{run.number}").drop()
        if run.state == "proposed":
            await run.session.shut()
        self._write_end(run, run.over(state, reason, code))
        for watch in self.watchers:
            watch(run, state)
        text = f"run {run.number} of {run.proposer}: {state}{f': {reason}' if reason else ''}"
        (log.info if state == "done" else log.warning)("%s", text)
        self.journal.note(text)

    def _write_end(self, run: Run, ended: Ended) -> None:
        """Write down how a run ended and what it cost, in the journal and in the books of its model, and what
        left in it."""
        if ended.kind == "score":
            self.journal.write_scored()
        if ended.model:
            ended = self._with_share(ended)
        self.journal.end(ended)
        if (terms := run.trains) is not None:
            try:
                write_run_sheet(self.settings, terms, ended, self.journal.decisions)
            except (OSError, ColonnadeError):
                log.exception("run %s has no sheet of what left in it", ended.run)
        if ended.model:
            try:
                training.note_total(self.settings.state, ended)
            except ShareError:
                log.exception("the books of %s lack what the whole run cost", ended.model)

    def _with_share(self, ended: Ended) -> Ended:
        """Return the same with the hash of what was stored."""
        try:
            stored = stored_shares.find(self.settings.state / "models", ended.model)
        except ShareError:  # the disk fails; the run is over all the same
            return ended
        return msgspec.structs.replace(ended, share=stored.weights)

    def _release(self, run: Run) -> None:
        """Give back what was reserved for a run that told nothing; where the disk fails it stays reserved."""
        try:
            self.ledger.release(run.number)
        except ShareError:
            log.exception("the reservation of run %s stays in the ledger", run.number)

    def sent_bytes(self) -> int:
        """Return the bytes sent in all runs so far, framing included."""
        return self.journal.sent_bytes + sum(run.session.sent_bytes() for run in self.live.values())
