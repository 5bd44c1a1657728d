"""One run as a daemon sees it: who proposed what, this party's part in it, and who follows it."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field

from colonnade.deploy.books.journal import SCORES_OF, Ended
from colonnade.deploy.books.spent import Spent
from colonnade.deploy.books.unfinished import Unfinished
from colonnade.deploy.models.stored_shares import now
from colonnade.deploy.negotiate.agreement import Agreement
from colonnade.deploy.negotiate.proposals import ScoringWork
from colonnade.deploy.runs.proposed import Proposed
from colonnade.deploy.session.session import Event, Playing, Tell
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Scoring, Terms

log = logging.getLogger("colonnade.party")

TRAINING = "training"
"""What an event is about that says how far a training is, in epochs."""


@dataclass
class Followed:
    """What was seen of a run so far, and who is told of the rest."""

    listeners: list[Tell] = field(default_factory=list)
    latest: Event | None = None
    losses: list[tuple[int, float]] = field(default_factory=list)
    epochs: int = 0  # the latest that was measured, at label holders

    def is_news(self, event: Event) -> bool:
        """Return whether an event of training is within the run and later than all before it, or adds its
        loss."""
        latest = self.latest
        if latest is None or latest.what != event.what:
            return 0 <= event.done <= event.total
        adds = event.done == latest.done and latest.loss is None and event.loss is not None
        return adds or latest.done < event.done <= event.total

    def tell(self, event: Event) -> None:
        """Keep an event, and show it to everybody who follows the run here."""
        self.latest = event
        if event.what == TRAINING:
            self.epochs = max(self.epochs, event.done)
        if event.loss is not None:
            self.losses.append((event.done, event.loss))
        for listener in self.listeners:
            listener(event)


@dataclass
class Run:
    """A run that was proposed or goes on at this daemon.

    `agreement` has the answers of the peers at the proposer, `expires` is the timer of a party that accepted
    and waits for the proposer to begin, and `task` is what this daemon does for the run on its own.
    """

    proposer: str
    work: Contract | ScoringWork
    session: Playing
    state: str = "proposed"
    agreement: Agreement | None = None
    proposed: Proposed | None = (
        None  # at the proposer of a training: what is on disk while operators are asked
    )
    task: asyncio.Task[None] | None = None
    followed: Followed = field(default_factory=Followed)
    asked_by: Tell | None = None  # at the proposer: whose command this run is
    expires: asyncio.TimerHandle | None = None
    overtime: asyncio.TimerHandle | None = None  # ends a run that takes longer than this party allows
    logged: tuple[str, int] = ("", 0)  # the latest line of the log: what, and how many tenths of it
    told: bool = False  # whether an earlier session may have told about labels
    record: Unfinished | None = None  # what is on disk of it, where it goes on after it was cut off
    spent: Spent = field(default_factory=Spent)  # in the sessions that are over
    began: float | None = None  # time of the clock on the wall at which its first session began
    model: str = ""  # what it has stored, once it has

    @property
    def id(self) -> int:
        """The number of the run, the same at all its parties."""
        return self.session.run

    @property
    def number(self) -> str:
        """The number of the run as logs, shares and the ledger write it."""
        return f"{self.id:08x}"

    @property
    def terms(self) -> Terms | Scoring:
        """What was proposed."""
        return self.work.terms

    @property
    def trains(self) -> Terms | None:
        """The terms of a training run, None if this is a scoring session."""
        return self.work.terms if isinstance(self.work, Contract) else None

    def log(self, event: Event) -> None:
        """Write an event to the log; of many steps every tenth part gets a line, not every step."""
        step = event.what, event.done * 10 // max(event.total, 1)
        if step != self.logged:
            self.logged = step
            log.info("run %s: %s", self.number, event_line(event), extra={"run": self.number})

    @property
    def lasts(self) -> bool:
        """Whether the run goes on once it was cut off."""
        return self.record is not None

    @property
    def wait_s(self) -> float:
        """How long a party that went away is waited for."""
        return self.record.terms.checkpoint.wait_s if self.record is not None else 0.0

    @property
    def shown(self) -> str:
        """How far the run is, as an operator is shown it."""
        waits = self.state == "waiting" and self.followed.latest is not None
        return self.followed.latest.what if waits and self.followed.latest else self.state

    @property
    def about(self) -> str:
        """What the run is about, in words: the job that it trains, or the model that it scores with."""
        if (terms := self.trains) is not None:
            return terms.name
        return f"{SCORES_OF}{self.work.share.manifest.model}" if isinstance(self.work, ScoringWork) else ""

    def over(self, state: str, reason: str, code: int = 0) -> Ended:
        """Return what is kept of the run, now that it has ended in this way."""
        self.state = state
        return Ended(
            run=self.number,
            about=self.about,
            proposer=self.proposer,
            state=state,
            reason=reason,
            when=now(),
            kind="score" if self.trains is None else "train",
            digest=self.terms.digest(),
            model=self.model,
            code=code,
            seconds=0.0 if self.began is None else round(time.time() - self.began, 3),
            sessions=self.spent.sessions,
            epochs=self.followed.epochs,
            sent=self.spent.sent,
            received=self.spent.received,
            losses=self.followed.losses,
        )


def event_line(event: Event) -> str:
    """Return an event as one line of text, e.g. `training 3/10, loss 0.412345`."""
    text = event.what
    if event.total:
        text += f" {event.done}/{event.total}"
    return text if event.loss is None else f"{text}, loss {event.loss:.6f}"
