"""One run as a daemon sees it: who proposed what, this party's part in it, and who listens."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from colonnade.deploy.proposals import ScoringWork
from colonnade.deploy.session import Event, RunSession, Tell
from colonnade.deploy.terms import Contract, Proposal, Scoring, Terms
from colonnade.errors import Refused
from colonnade.messages import Answer

log = logging.getLogger("colonnade.party")


@dataclass
class Run:
    id: int
    proposer: str
    proposal: Proposal
    work: Contract | ScoringWork
    session: RunSession
    state: str = "proposed"
    answers: dict[str, asyncio.Future[Answer]] = field(default_factory=dict)
    task: asyncio.Task[Any] | None = None
    listeners: list[Tell] = field(default_factory=list)
    asked_by: Tell | None = None  # at the proposer: whose command this run is
    expires: asyncio.TimerHandle | None = None

    @property
    def terms(self) -> Terms | Scoring:
        """What was proposed."""
        return self.work.terms

    def tell(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)

    def log(self, event: Event) -> None:
        # a long alignment is worth a line now and then, not one a chunk
        if event.what != "aligning" or event.done * 10 // event.total > (event.done - 1) * 10 // event.total:
            log.info("run %08x: %s", self.id, words(event))

    async def agreement(self, seconds: float) -> None:
        """Until everybody has accepted exactly these terms; Refused with every reason why not."""
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


def words(event: Event) -> str:
    text = event.what
    if event.total:
        text += f" {event.done}/{event.total}"
    return text if event.loss is None else f"{text}, loss {event.loss:.6f}"
