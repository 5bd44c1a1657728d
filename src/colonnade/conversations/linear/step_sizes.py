"""The size of a party's next step: as the plan says, or as steepness, batch and delays allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.delays import Delays
from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.schedule import Schedule
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.optim.steps import Smoothness, automatic_step, own_newton_step, quasi_newton_step
from colonnade.state import Declared


@dataclass
class StepSizes:
    """Computes the size of a party's next step, first-order or quasi-Newton."""

    STATE = Declared(kept=("delays", "smoothness"), remade=("_settled", "_rate"))

    plan: Plan[LinearSettings]
    schedule: Schedule
    pace: Pacing
    delays: Delays
    progress: Callable[[], float]  # the part of the run's updates that is done
    smoothness: Smoothness | None = None  # how steep the objective is, once it is measured
    blocks: int = 1  # how many there are that are trained
    updates_per_round: int = 1  # how many parties' updates make up one step of the whole model
    _settled: tuple[object, ...] = ()  # what an automatic step follows from, of which little ever changes
    _rate: float = 0.0  # that step
    _fades: bool = field(init=False)

    def __post_init__(self) -> None:
        self._fades = self.plan.pace.step == "auto" and self.plan.settings.kind.fades

    def rate(self) -> float:
        """Return the first-order step for recent delays, before it fades."""
        if self.smoothness is None:
            return float(self.plan.pace.step)
        settled = self.smoothness, self.delays.expected, self.pace.ahead, self.updates_per_round
        if settled != self._settled:
            self._settled, self._rate = settled, self._automatic(self.smoothness)
        return self._rate

    def _automatic(self, smoothness: Smoothness) -> float:
        """Return the first-order step that this smoothness and recent delays allow."""
        remembers = self.plan.settings.kind.remembers
        numbers = LOSSES[self.plan.objective.loss].task == "regression"
        batch, rows = self.schedule.largest, self.schedule.rows
        return automatic_step(smoothness, batch, rows, self.delay(), remembers=remembers, numbers=numbers)

    def steepest(self) -> float:
        """Return the largest curvature of the objective; where none is measured, what a step by hand
        implies."""
        return 1 / self.rate() if self.smoothness is None else self.smoothness.mean

    def gamma(self) -> float:
        """Return the quasi-Newton step for recent delays, before it fades."""
        settings, batch = self.plan.settings, self.schedule.largest
        if settings.direction_step != "auto":
            return float(settings.direction_step)
        if settings.pairs != "joint":
            return own_newton_step(batch, self.delay(), blocks=self.blocks, ahead=self.pace.ahead)
        # the inner products that a step needs ride with the next round that is not under way yet
        return quasi_newton_step(batch, self.delay() + self.pace.ahead)

    def faded_rate(self) -> float:
        """Return the first-order step of the next update, faded."""
        return self.rate() * (1.0 - self.progress()) if self._fades else self.rate()

    def faded_gamma(self) -> float:
        """Return the quasi-Newton step of the next update, faded.

        What H adds fades as the cube. Along directions flatter than the steepest it lets in more noise than
        first-order steps do, which forget it too slowly: it must be gone before they are.
        """
        if self.plan.settings.direction_step != "auto":
            return self.gamma()
        alone = self.plan.settings.pairs == "paper"  # steps of H and no others, faded as others are
        return self.gamma() * self._fade() ** (1 if alone else 3)

    def _fade(self) -> float:
        """Return the part of an automatic step that is left: for plain SGD it falls to zero over the run.

        With a constant step plain SGD never gets below its own noise, and where the columns explain the
        labels badly that noise can be worse than no training at all. The other estimators keep their step.
        """
        return 1.0 - self.progress() if self.plan.settings.kind.fades else 1.0

    def delay(self) -> int:
        """Return the recent delay, counted in rounds in which every block is updated once.

        A theta is as old as the oldest share in it, and another party's share may be as old as the window
        allows, so the delay is never taken to be less than that.
        """
        seen = -(-self.delays.recent() // self.updates_per_round)
        return max(seen, self.pace.ahead - 1)
