"""What parties do together at a pause, when all have finished the same rounds.

They measure how steep the objective is, take SVRG's snapshot, and take in pairs of a quasi-Newton direction.
"""

from __future__ import annotations

from dataclasses import dataclass

from colonnade.arrays import Floats
from colonnade.conversations.checkpoint import WindowGates
from colonnade.conversations.linear.parties.clear import ClearParty
from colonnade.conversations.linear.snapshot import announced, pulled
from colonnade.conversations.linear.timetable import Timetable
from colonnade.conversations.linear.tune import Tuner
from colonnade.messages import Topic, tag_of
from colonnade.state import Declared


@dataclass
class Pauses:
    """One party's part in the pauses of a timetable."""

    STATE = Declared(parts=("tuner",))

    party: ClearParty
    timetable: Timetable
    tuner: Tuner | None

    async def at_gates(self, checkpoints: WindowGates) -> None:
        """Make every pause of the timetable when its gate is reached."""
        async for gate in self.party.pace.gates():
            await checkpoints.at(gate)
            await self.make(gate)

    async def make(self, gate: int, pullers: tuple[str, ...] = ()) -> None:
        """Do what is due before a round; with `pullers`, every one of them pulls its snapshot for itself."""
        party, timetable = self.party, self.timetable
        if gate in {epoch * timetable.per_epoch for epoch in timetable.tunings}:
            await self.tune(gate)
        if gate in {epoch * timetable.per_epoch for epoch in timetable.snapshots}:
            await (self.pulled_snapshot(pullers) if pullers else self.snapshot())
        if party.curvature is not None and timetable.pairs and (gate in timetable.pairs or pullers):
            party.curvature.first_order_step = party.steps.rate()
            party.tally.exchanged[gate] += await party.curvature.pair(gate, party.steps.gamma())

    # -- how steep the objective is -----------------------------------------------------------------

    async def tune(self, gate: int = 0) -> None:
        """Measure how steep the objective is at the present weights; the round `gate` waits for it."""
        party, joint = self.party, self.party.joint
        exchanged = party.tally.exchanged
        if self.tuner is not None:
            before = self.tuner.exchanges
            party.steps.smoothness = await self.tuner.measure(party.block.w, first=not gate)
            exchanged[gate] += self.tuner.exchanges - before
            await party.costs.of_sample(2 * (self.tuner.exchanges - before))
        if joint is not None:
            before = joint.state.exchanges
            await joint.pin()
            if party.context.plan.pace.step == "auto":
                party.steps.smoothness = joint.state.smoothness
            exchanged[gate] += joint.state.exchanges - before
            await party.costs.of_sample(2 * (joint.state.exchanges - before))

    # -- SVRG's snapshot ----------------------------------------------------------------------------

    async def snapshot(self) -> None:
        """Take SVRG's snapshot: theta of every row at the present weights, a part at every dominator."""
        party = self.party
        roots, base = party.schedule.dominators, party.pace.base
        theta = await announced(party.context, party.block, roots, self._snapshot_tags, base)
        await party.costs.of_all_rows()
        await self._remember(theta)

    async def pulled_snapshot(self, pullers: tuple[str, ...]) -> None:
        """Take SVRG's snapshot where nothing is sent back: every label holder pulls all scores for itself."""
        theta = await pulled(self.party.context, self.party.block, pullers, self._snapshot_tags)
        if theta is not None:
            await self._remember(theta)

    async def _remember(self, theta: Floats) -> None:
        """Hand SVRG its snapshot: theta of every row, and the mean gradient of the own block."""
        block, n = self.party.block, self.party.schedule.rows
        await self.party.costs.of_all_rows()
        block.estimator.snapshot(theta, block.all_rows.gradient(0, n, theta) / n)

    def _snapshot_tags(self, count: int) -> list[int]:
        tally = self.party.tally
        tally.snapshots += count
        return [tag_of(Topic.SNAPSHOT, tally.snapshots - count + j) for j in range(count)]
