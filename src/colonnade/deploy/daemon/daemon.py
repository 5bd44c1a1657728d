"""A party's long-running process: keeps lines with its peers, takes part in runs, proposes them.

A run begins with a proposal. Everybody checks it against its own policy and data and answers yes, or why
not; where its policy says so its operator is asked first, and the proposer is told that it waits. When all
have said yes to the same digest the proposer tells them to begin, and each plays its part. A refusal ends it
before anything about the data was exchanged, and both ends log the reason. A party that stops a run ends it
at all parties with that reason; one that goes away is waited for, where the job says so (`resuming`).

What it proposes is in `proposing`, what it is asked in `answering`, and the runs themselves in `runs`.
Beside the runs daemons tell each other versions, proposals, answers, how far training is, and which shares
they hold.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from colonnade import __version__
from colonnade.deploy.books import unfinished
from colonnade.deploy.books.counts import DaemonCounts
from colonnade.deploy.books.journal import Journal
from colonnade.deploy.books.ledger import Ledger
from colonnade.deploy.books.unfinished import Unfinished
from colonnade.deploy.daemon import aims
from colonnade.deploy.daemon.reload import reload
from colonnade.deploy.models.serving import Serving
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.negotiate.agreement import AskAgain
from colonnade.deploy.negotiate.approvals import Approvals
from colonnade.deploy.negotiate.peers import Handler, Peers
from colonnade.deploy.negotiate.shares_held import SharesHeld
from colonnade.deploy.people_settings import Person
from colonnade.deploy.runs.answering import Answering
from colonnade.deploy.runs.proposing import Proposing
from colonnade.deploy.runs.run import Run
from colonnade.deploy.runs.runs import Runs
from colonnade.deploy.server_tls import ServerTls
from colonnade.deploy.settings import Settings, address
from colonnade.errors import ColonnadeError, JobError
from colonnade.messages import (
    Answer,
    AskShare,
    Begin,
    Cancel,
    CutOff,
    GoOn,
    HaveShare,
    Message,
    Pending,
    Progress,
    Propose,
    Rejoin,
    Rejoined,
    Said,
    Settled,
    Sizes,
)
from colonnade.net.stream.mux import Mux
from colonnade.secure.keys import spoken
from colonnade.shares import seconds_until

log = logging.getLogger("colonnade.party")

CLOSE_S = 5.0  # how long runs have to end


def _no_page(who: Person) -> str:
    """Refuse to link to this daemon's page, which it does not have."""
    raise JobError("there is no page; set monitor and monitor_token_file in the settings, and start again")


@dataclass
class Daemon:
    """One party's process between companies: its lines with the peers, and the runs that wait or go on."""

    settings: Settings
    version: str = spoken(__version__)  # what peers are told
    apart: bool = False  # trainings get processes of their own, so that this one always answers
    reread: Callable[[], Settings] | None = None  # reads the file of the settings again

    def __post_init__(self) -> None:
        settings, handlers = self.settings, dict[type[Message], Handler]()
        credentials = settings.credentials()
        peers = {peer: address(text, f"peers.{peer}") for peer, text in settings.peers.items()}
        listen = address(settings.listen, "listen")
        waiting = int(settings.limits.waiting_mb * 2**20)
        self.mux = Mux(self.me, listen, peers, credentials, settings.reconnect_s, waiting)
        self.mux.renewed = settings.credentials_now
        self.peers = Peers(self.mux, self.version, handlers, self._left, self._came)
        self.reloading = asyncio.Lock()
        self.journal = Journal(settings.state / "journal.jsonl")
        self.serving = Serving(settings.state)
        self.no_scores: str | None = (
            None  # why the service answers nothing now; "": it does; None: there is none
        )
        self.counts = DaemonCounts()
        self.shares_held = SharesHeld(settings, self.peers.send)
        self.detached: dict[str, asyncio.Future[Manifest]] = {}  # trainings that no command waits for, by run
        self.server_tls: list[ServerTls] = []  # of its HTTP servers
        self.invite: Callable[[Person], str] = _no_page
        self.books = Runs(settings, credentials, self.peers, self.journal, Ledger(settings.state), self.apart)
        self.books.watchers.append(self._count)
        self.proposing = Proposing(self.books)
        self.train, self.score = self.proposing.train, self.proposing.score  # what it does for its own people
        self.answering = Answering(self.books)
        resuming = self.books.resuming
        handlers |= {
            CutOff: resuming.cut_off,
            Rejoin: resuming.rejoin,
            Rejoined: resuming.rejoined,
            GoOn: resuming.go_on,
            Settled: resuming.settled,
            Sizes: self.answering.sized,
            Said: self.books.signed.hear,
            Propose: self.answering.proposed,
            Begin: self.answering.begun,
            Cancel: self.answering.cancelled,
            Answer: self.proposing.answered,
            Pending: self._pending,
            Progress: self.books.progressed,
            AskShare: self.shares_held.asked,
            HaveShare: self.shares_held.answered,
        }

    @property
    def me(self) -> str:
        """The name of this party."""
        return self.settings.name

    @property
    def runs(self) -> dict[int, Run]:
        """The runs that were proposed or go on, by their numbers."""
        return self.books.live

    @property
    def approvals(self) -> Approvals:
        """The proposals that wait for this party's operator."""
        return self.answering.approvals

    async def open(self) -> None:
        """Listen, and begin to connect with every peer."""
        self.settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.journal.changed(self.settings.digest(), ["since the daemon last ran"])
        await self.peers.open()
        log.info("%s listens on %s", self.me, self.settings.listen)
        self.answering.restore()
        self.detached |= self.proposing.restored()
        for record in unfinished.read_all(self.settings):
            self._go_on(record)
        aims.take_up(self)

    def _go_on(self, record: Unfinished) -> None:
        """Go on with a run that was not over when this daemon ended, if the policy still allows it."""
        try:
            run = self.books.restore(record)
        except ColonnadeError as error:
            log.warning("run %08x of %s does not go on: %s", record.run, record.proposer, error)
            self.journal.note(f"run {record.run:08x} does not go on: {error}")
            unfinished.remove(self.settings, record.run)
            return
        run.followed.listeners.append(run.log)
        run.task = asyncio.ensure_future(self.answering.play_alone(run))

    async def reload(self) -> str:
        """Read the settings and certificates again; returns what changed.

        Raises why they cannot be used, and then nothing has changed.
        """
        if self.reread is None:
            raise JobError(f"the daemon of {self.me} does not know the file of its settings")
        return await reload(self, await asyncio.to_thread(self.reread))

    async def close(self) -> None:
        """End every run at all its parties, or the session of one that is to go on later, and hang up."""
        self.books.resuming.closing = True
        self.answering.approvals.close()
        await self.proposing.close()
        for run in list(self.runs.values()):
            if run.agreement is not None and run.proposed is not None and run.agreement.patience:
                run.agreement.again = AskAgain(f"{self.me} was stopped by its operator", 0.0)
                run.agreement.changed.set()
            elif run.lasts and run.state == "running":
                run.session.cut(f"{self.me} was stopped by its operator")
            else:
                self.books.end(run, f"{self.me} was stopped by its operator")
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                while self.runs:  # noqa: ASYNC110  a run has no event of its own for its end
                    await asyncio.sleep(0.02)
        await self.peers.close()

    async def _pending(self, peer: str, message: Pending) -> None:
        """Wait longer: a peer's operator is asked, or the proposer says that somebody else's is."""
        run = self.runs.get(message.run)
        if run is not None and run.agreement is not None:
            await self.proposing.wait_longer(run, run.agreement, peer, message.seconds)
        elif run is not None and run.proposer == peer:
            self.answering.wait_longer(run, message.seconds)
        else:  # it still proposes what waits here
            self.approvals.asked_again(peer, message.run)

    def _count(self, run: Run, state: str) -> None:
        """Take down when a run last ended well."""
        if state == "done":
            self.counts.last_done["score" if run.trains is None else "train"] = time.time()

    def _came(self, peer: str) -> None:
        """Go on with what waits for operators, here and at a peer that is connected again."""
        self.answering.came(peer)
        for run in self.runs.values():
            if run.agreement is not None and run.agreement.patience:
                self.books.spawn(self.peers.send(peer, Pending(run.id, run.agreement.patience)))
        for number, waits in self.proposing.put_off.items():
            left = max(1.0, seconds_until(waits.proposed.until))
            self.books.spawn(self.peers.send(peer, Pending(number, left)))

    def _left(self, peer: str, reason: str) -> None:
        """Take a peer that went away as one that refuses what it was asked, and withdraws what it asked."""
        for run in self.runs.values():
            if run.agreement is not None:
                run.agreement.lose(peer, reason)
        self.answering.left(peer, reason)
