"""What proposals that wait for operators will cost, found out by this party while they wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from colonnade.deploy.negotiate.approvals import Held
from colonnade.deploy.process.estimating import Estimate, estimated, requested
from colonnade.deploy.runs.runs import Runs
from colonnade.deploy.terms.contract import Contract
from colonnade.errors import ColonnadeError
from colonnade.messages import Sizes

MOST = 64  # proposers' sizes that are remembered


@dataclass
class ExpectedCosts:
    """The estimates of one daemon; proposers say what they bring, by peer and run."""

    runs: Runs
    sizes: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)

    def said(self, peer: str, message: Sizes) -> None:
        """Keep what the proposer of a run says that it brings: rows and columns."""
        self.sizes[peer, message.run] = message.rows, message.columns
        if len(self.sizes) > MOST:
            del self.sizes[next(iter(self.sizes))]

    def find_out(self, held: Held, keep: Callable[[int, Estimate | str], None]) -> None:
        """Begin to find out what a training that waits will cost, where this daemon has processes of its
        own."""
        if self.runs.apart and isinstance(held.work, Contract):
            self.runs.spawn(self._find_out(held, keep))

    async def _find_out(self, held: Held, keep: Callable[[int, Estimate | str], None]) -> None:
        settings, waiting = self.runs.settings, held.waiting
        said = self.sizes.get((waiting.proposer, waiting.run))
        trip = self.runs.peers.slowest(held.terms.parties)
        sizes = None if said is None or min(said) < 0 or not said[0] else (waiting.proposer, *said)
        request = requested(settings, held.terms, (waiting.rows, waiting.width), sizes, trip)
        try:
            keep(waiting.run, await estimated(request))
        except ColonnadeError as error:
            keep(waiting.run, str(error))
