"""How large a party's next step may be: what the plan says, or what steepness, batch and delays allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from colonnade.conversations.linear.block import Delays
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.schedule import Schedule
from colonnade.conversations.window import Window
from colonnade.job.plan import Plan
from colonnade.optim.steps import Smoothness, automatic_step, quasi_newton_step


@dataclass
class StepSizes:
    """A party's steps, first order and quasi-Newton."""

    plan: Plan[LinearSettings]
    schedule: Schedule
    window: Window
    delays: Delays
    progress: Callable[[], float]  # the part of the run's updates that is behind us
    smoothness: Smoothness | None = None  # how steep the objective is, once it is measured
    updates_per_round: int = 1  # how many parties' updates make up one step of the whole model

    def rate(self) -> float:
        """The first-order step for the delays seen lately."""
        if self.smoothness is None:
            return float(self.plan.pace.step)
        saga = self.plan.settings.estimator == "saga"
        batch, rows = self.schedule.largest, self.schedule.rows
        return automatic_step(self.smoothness, batch, rows, self.delay(), saga=saga)

    def gamma(self) -> float:
        """The quasi-Newton step for the delays seen lately."""
        settings, batch = self.plan.settings, self.schedule.largest
        if settings.direction_step != "auto":
            return float(settings.direction_step)
        if settings.pairs != "joint":
            return quasi_newton_step(batch, self.delay(), shared=False)
        # the inner products that a step needs ride with the next round that is not under way yet
        return quasi_newton_step(batch, self.delay() + self.window.ahead, shared=True)

    def faded_rate(self) -> float:
        """The first-order step of the next update."""
        return self.rate() * (self._fade() if self.plan.pace.step == "auto" else 1.0)

    def faded_gamma(self) -> float:
        """The quasi-Newton step of the next update."""
        return self.gamma() * (self._fade() if self.plan.settings.direction_step == "auto" else 1.0)

    def _fade(self) -> float:
        """The part of an automatic step that is left: for plain SGD it falls to nothing by the run's end.

        With a constant step plain SGD never gets below its own noise. Where the labels are far from what the
        columns explain that noise can be worse than no training at all. The other estimators need no such
        thing.
        """
        return 1.0 - self.progress() if self.plan.settings.estimator == "sgd" else 1.0

    def delay(self) -> int:
        """The delays seen lately, in rounds in which every block is updated once.

        A theta is as old as the oldest share in it, and another party's may be as old as the window lets it.
        """
        seen = -(-self.delays.recent() // self.updates_per_round)
        return max(seen, self.window.ahead - 1)
