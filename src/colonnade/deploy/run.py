"""One run as a daemon sees it: who proposed what, this party's part in it, and who follows it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from colonnade.deploy.proposals import ScoringWork
from colonnade.deploy.session import Event, RunSession, Tell
from colonnade.deploy.terms import Contract, Scoring, Terms
from colonnade.errors import Refused
from colonnade.messages import Answer

log = logging.getLogger("colonnade.party")


@dataclass
class Run:
    """A run that was proposed or goes on at this daemon.

    `answers` has a future per peer at the proposer, `expires` is the timer of a party that accepted and waits
    for the proposer to begin, and `task` is what this daemon does for the run on its own.
    """

    proposer: str
    work: Contract | ScoringWork
    session: RunSession
    state: str = "proposed"
    answers: dict[str, asyncio.Future[Answer]] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    listeners: list[Tell] = field(default_factory=list)
    asked_by: Tell | None = None  # at the proposer: whose command this run is
    expires: asyncio.TimerHandle | None = None

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

    def tell(self, event: Event) -> None:
        """Show an event to everybody who follows the run here."""
        for listener in self.listeners:
            listener(event)

    def log(self, event: Event) -> None:
        """Write an event to the log; a long alignment gets a line now and then, not one per chunk."""
        if event.what != "aligning" or event.done * 10 // event.total > (event.done - 1) * 10 // event.total:
            log.info("run %s: %s", self.number, event_line(event))

    async def agreement(self, seconds: float) -> None:
        """Wait until everybody has accepted exactly these terms; Refused with every reason why not."""
        _, pending = await asyncio.wait(self.answers.values(), timeout=seconds)
        refusals = []
        for peer, future in self.answers.items():
            if future in pending:
                refusals.append(f"{peer} did not answer within {seconds:g} s")
            elif (answer := future.result()).refusal is not None:
                refusals.append(f"{peer} refused: {answer.refusal}")
            elif answer.digest != self.terms.digest():
                theirs, ours = answer.digest[:12], self.terms.digest()[:12]
                refusals.append(f"{peer} read another job ({theirs} against {ours})")
        if refusals:
            raise Refused("; ".join(refusals))


def event_line(event: Event) -> str:
    """An event as one line of text, e.g. `training 3/10, loss 0.412345`."""
    text = event.what
    if event.total:
        text += f" {event.done}/{event.total}"
    return text if event.loss is None else f"{text}, loss {event.loss:.6f}"
