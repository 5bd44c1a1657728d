"""A party that is told theta in clear: what its share of a round, its reply and its step are.

Everything here is local. Who sends theta to whom is the algorithm's business, when a round may begin the
pace's; what is done together at a pause is in `pauses`, and measuring the model in `measurement`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from colonnade.arrays import Floats
from colonnade.conversations.context import Context
from colonnade.conversations.linear.block import Block, Thetas
from colonnade.conversations.linear.costs import Costs
from colonnade.conversations.linear.quasi_newton.lbfgs_joint import Joint
from colonnade.conversations.linear.quasi_newton.lbfgs_local import Curvature
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.step_sizes import StepSizes
from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.schedule import Round, Schedule
from colonnade.errors import ProtocolError
from colonnade.net.expect import Array, floats
from colonnade.state import Declared


@dataclass
class PartyCounts:
    """Counts of what a party has done so far."""

    updates: int = 0
    launched: int = 0  # own rounds, at a label holder
    snapshots: int = 0  # tags of snapshots that are used
    exchanged: Counter[int] = field(default_factory=Counter)  # secure sums of the pause before a round
    behind: bool = False  # whether others finish rounds faster than this party takes them in


@dataclass
class ClearParty:
    """A party's block, when its rounds are due, and how large its steps are.

    Of `curvature` (every block its own H) and `joint` (one H over all blocks) at most one is there.
    """

    STATE = Declared(kept=("tally", "given"), parts=("block", "pace", "steps", "curvature", "joint"))

    context: Context[LinearSettings]
    schedule: Schedule
    pace: Pacing
    block: Block
    steps: StepSizes
    curvature: Curvature | None
    joint: Joint | None
    tally: PartyCounts = field(default_factory=PartyCounts)
    given: dict[int, Floats] = field(default_factory=dict)  # shares of rounds that are under way

    def __post_init__(self) -> None:
        self.costs = Costs(self.context, self.block)

    def beyond(self) -> int:
        """Return how many rounds beyond the window this party may score at the most."""
        return self.pace.beyond(behind=self.tally.behind)

    # -- shares -------------------------------------------------------------------------------------

    async def shares(self, batches: Sequence[Round]) -> list[tuple[Round, Floats]]:
        """Return some rounds with the block's shares of their scores, computed at once.

        The update count of the weights is noted, so that the delay is known when theta comes. Where a run may
        go on a share is kept while its round is under way, as it must not change.
        """
        if not batches:
            return []
        if self.costs.of_scores:
            await self.costs.of(batches)
        shares = self.block.joined_scores(batches)
        numbers = [batch.number for batch in batches]
        self.steps.delays.read_at.update(dict.fromkeys(numbers, self.pace.finished))
        self.pace.read(numbers)
        if self.joint is not None:
            shares = [self.joint.load(batch, share) for batch, share in zip(batches, shares, strict=True)]
        if self.context.checkpoints is not None:
            self.given.update(zip(numbers, shares, strict=True))
        return list(zip(batches, shares, strict=True))

    async def next_share(self, batch: Round) -> Floats | None:
        """Return the share of the own round after this one, if that may begin now."""
        number = batch.number + len(self.schedule.dominators)
        if not self.pace.open_to(number):
            return None
        ((_, share),) = await self.shares([self.schedule.round(number)])
        return share

    async def shares_under_way(self) -> list[tuple[Round, Floats]]:
        """Return where a run goes on the shares that others were given, as they were; for new masks."""
        found: list[tuple[Round, Floats]] = []
        for number in self.pace.under_way():
            if self.schedule.dominator(number) == self.context.me:
                continue
            batch = self.schedule.round(number)
            if number in self.given:
                found.append((batch, self.given[number]))
            else:
                found += await self.shares([batch])
        return found

    async def share(self, batch: Round) -> Floats:
        """Return this block's share of the scores of a batch, at the present weights."""
        if self.costs.of_scores:
            await self.costs.of([batch])
        return self.block.scores(batch)

    # -- replies ------------------------------------------------------------------------------------

    def reply(self, batch: Round, z: Floats) -> Floats:
        """Return what a dominator sends back: theta, and the answers to what rode with the scores."""
        self.tally.launched += 1
        holder, rows = self.context.label_holder, self.block.places(batch)
        if self.joint is None:
            theta = holder.theta(z, rows, batch.number)
            theta.setflags(write=False)  # then all who are in one process may read the same numbers
            return theta
        return self.joint.reply(batch, z, lambda z: holder.theta(z, rows, batch.number))

    def reply_shape(self, rows: int) -> Array:
        """Return what a reply about this many rows must be."""
        if self.joint is not None:  # the questions that ride along add to it: `check_reply` knows how many
            return floats(None)
        return floats(rows, *self.block.w.shape[1:])

    def check_reply(self, batch: Round, theta: Floats) -> None:
        """Refuse a reply of another size than is due, once all rounds before it are finished."""
        if self.joint is not None and theta.size != (due := self.joint.reply_size(batch)):
            dominator = self.schedule.dominator(batch.number)
            raise ProtocolError(f"{dominator} sent {theta.size} numbers with theta; {due} were due")

    # -- steps --------------------------------------------------------------------------------------

    async def step(self, thetas: Thetas) -> None:
        """Make one step from these thetas, and mark their rounds as finished."""
        await self.apply(thetas)
        await self.pace.catch_up(self.context.net)
        self.tally.behind = len(thetas) > 1
        if self._finished([batch.number for batch, _ in thetas]):
            # a party that never has to wait for another must still let the model be measured at these weights
            await asyncio.sleep(0)

    async def apply(self, thetas: Thetas) -> None:
        """Make one step of the own block from some thetas."""
        if self.costs.any:
            direction = self.joint or self.curvature
            touched = 0 if direction is None else sum(direction.values(batch) for batch, _ in thetas)
            await self.costs.of([batch for batch, _ in thetas], touched)
        if self.joint is not None:
            for batch, reply in thetas:  # one H needs the same v at every party, so rounds are not joined
                self.joint.take(batch, reply)
        elif self.curvature is None:
            self.block.step(thetas, self.steps.faded_rate())
        else:
            self.curvature.step(thetas, self.steps)

    def _finished(self, numbers: Sequence[int]) -> bool:
        """Count the updates and their delays, and move the window; whether another epoch begins."""
        delays, pace = self.steps.delays, self.pace
        finished, base = pace.finished, pace.base
        for number in numbers:
            if self.given:
                self.given.pop(number, None)
        delays.apply(numbers, finished)
        self.tally.updates += len(numbers)
        pace.finish(numbers)
        per_epoch = self.schedule.per_epoch
        if pace.base // per_epoch == base // per_epoch:
            return False
        delays.turn()
        self.block.keep(self.schedule.epochs_of(pace.ends_in_flight()))
        return True
