"""Gates for checkpoints in a window: the first one, and what is done at each."""

from __future__ import annotations

from dataclasses import dataclass

from colonnade.conversations.evaluate import Evaluation, Marks
from colonnade.conversations.gates import Gates
from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.schedule import Schedule


@dataclass(frozen=True, eq=False)
class WindowGates:
    """Checkpoints of rounds that a window paces, measured at some marks."""

    gates: Gates
    window: Pacing
    schedule: Schedule
    evaluation: Evaluation
    marks: Marks

    def begin(self) -> None:
        """Put up the first gate, once everything is kept."""
        gate = self.gates.begin(self.schedule.per_epoch)
        if not self.gates.position:  # where a run goes on, it stands at a gate
            self._hold(0, gate)

    async def at(self, gate: int) -> None:
        """Store the state, if this gate is there for it; the model is measured up to here."""
        if self.gates.due(gate):
            await self.evaluation.measured(self.marks.before(gate))
            await self.gates.reached(gate, ending=self.window.ending)
        elif gate == self.gates.position:
            await self.gates.realign()
        self._hold(gate, self.gates.upcoming)

    def _hold(self, here: int, gate: int) -> None:
        if here < gate < self.schedule.rounds:
            self.window.hold(gate)
