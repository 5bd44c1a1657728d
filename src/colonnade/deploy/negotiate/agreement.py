"""The proposer's side of a proposal: everybody's answer, and until when it is waited for.

A peer answers by its policy when it has looked at its data, and says now and then that it still reads; or it
says that its operator is asked and how long that may take. When somebody has refused, nobody else is waited
for that has said so. Where an operator is asked and a peer goes away meanwhile, all are asked again once it
is back (`AskAgain`): people take longer than lines and daemons stand.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from colonnade.deploy.settings import LONGEST_APPROVAL_S
from colonnade.errors import PeerUnreachable, Refused
from colonnade.messages import Answer


class AskAgain(PeerUnreachable):
    """A peer went away while an operator is asked; `seconds` is for how long it is waited for."""

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


@dataclass
class Agreement:
    """The answers to one proposal.

    `seconds` is how long a party may take to look at its data, and `until` has the time of the event loop at
    which patience with each peer ends.
    """

    digest: str
    seconds: float
    until: dict[str, float]
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    again: AskAgain | None = None

    @staticmethod
    def of(peers: Iterable[str], digest: str, seconds: float) -> Agreement:
        """Return an agreement without answers yet, in which every peer has this many seconds."""
        until = asyncio.get_running_loop().time() + seconds
        return Agreement(digest, seconds, dict.fromkeys(peers, until))

    @property
    def open(self) -> list[str]:
        """The peers whose answer is still waited for."""
        now = asyncio.get_running_loop().time()
        return [peer for peer, until in self.until.items() if peer not in self.answers and until > now]

    @property
    def accepted(self) -> list[str]:
        """The peers that said yes."""
        return [peer for peer, answer in self.answers.items() if answer.refusal is None]

    @property
    def patience(self) -> float:
        """How many seconds operators may still take; 0 if none is asked."""
        waiting = [self.until[peer] for peer in self.open if peer in self.asked]
        return max(waiting) - asyncio.get_running_loop().time() if waiting else 0.0

    def hear(self, peer: str, answer: Answer) -> None:
        """Keep a peer's answer; the first one counts."""
        if peer in self.until:
            self.answers.setdefault(peer, answer)
            self.changed.set()

    def lose(self, peer: str, reason: str) -> None:
        """Take a peer that went away as one that refuses, even if it had accepted; or as one that is asked
        again, where an operator has time left."""
        if peer in self.until and self.patience:
            self.again = AskAgain(f"{peer} is away: {reason}", self.patience)
            self.changed.set()
        elif peer in self.until:
            self.answers[peer] = Answer(0, "", f"it is away now: {reason}")
            self.changed.set()

    def extend(self, peer: str, seconds: float) -> bool:
        """Wait longer for a peer that reads, or whose operator is asked; False if nobody waits any more."""
        if peer not in self.open or not math.isfinite(seconds):
            return False
        allowed = min(max(seconds, 0.0), LONGEST_APPROVAL_S)
        self.until[peer] = asyncio.get_running_loop().time() + allowed + self.seconds
        self.asked.add(peer)
        self.changed.set()
        return True

    async def reached(self) -> None:
        """Wait until everybody has accepted exactly these terms; Refused with every reason why not, AskAgain
        where somebody went away meanwhile."""
        while waited := self.open:
            if self.again is not None:
                raise self.again
            if len(self.accepted) < len(self.answers) and self.asked.issuperset(waited):
                break
            self.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(self.until[peer] for peer in waited)):
                    await self.changed.wait()
        if refusals := list(self._refusals()):
            raise Refused("; ".join(refusals))

    def _refusals(self) -> Iterable[str]:
        for peer in self.until:
            answer = self.answers.get(peer)
            if answer is None and peer not in self.open:
                yield f"{peer} did not answer in time"
            elif answer is not None and answer.refusal is not None:
                yield f"{peer} refused: {answer.refusal}"
            elif answer is not None and answer.digest != self.digest:
                yield f"{peer} read another job ({answer.digest[:12]} against {self.digest[:12]})"
