"""The evaluator's part in L-BFGS on all rows (`full`): it knows all scores, how far to go, when to end."""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context
from colonnade.conversations.evaluate import MEGA, Mark, Scribe
from colonnade.conversations.linear.quasi_newton.directions import FullState
from colonnade.conversations.linear.settings import FullSettings
from colonnade.losses import scaled_labels
from colonnade.optim.line_search import search
from colonnade.secure.ring import joined
from colonnade.state import Declared

NUMBERS = 7  # behind the scores of a direction: three penalties, summed finely, and the bytes sent
PATIENCE = 2  # steps have no noise
ROUNDING = 1e-14  # of the loss: a smaller fall is none


class LineSearcher:
    """The evaluator's part: it knows the scores of all rows, how far to go, and when to end."""

    STATE = Declared(kept=("z", "still"))

    def __init__(self, context: Context[FullSettings], state: FullState, scribe: Scribe) -> None:
        self.context, self.state, self.scribe = context, state, scribe
        holder = self.context.label_holder
        self.loss, self.y = holder.loss, holder.y
        self.unit = 1.0
        if self.context.loss.any_unit:  # labels of any size: the objective is the same in any unit
            self.unit = float(np.sqrt(np.mean(holder.labels**2))) or 1.0
            self.y = scaled_labels(holder.y, 1 / self.unit)
        self.z = np.zeros((len(self.y), *self.context.plan.objective.shape))
        self.still = 0  # steps in a row that lowered the loss by nothing but rounding
        scribe.ending.settling.patience = PATIENCE

    def begin(self, knowing: float) -> Floats:
        """Return the unit, whether all begin with matrices of their own, and the first theta, at weights of
        zero.

        `knowing` parties know how to. One of version 0.2 does not: it gives 0, and ignores the answer.
        """
        own = float(knowing == len(self.context.plan.parties))
        return np.concatenate([[self.unit, own], self._theta(self.z).ravel()])

    def go(self, total: Floats) -> Floats:
        """Return how far to go along a direction of which all parties told the scores; and theta there, to go
        on."""
        u, (ww, wd, dd) = total[:-NUMBERS].reshape(self.z.shape), joined(total[-NUMBERS:-1]).tolist()

        def along(t: float) -> tuple[float, float]:
            z = self.z + t * u
            value = float(self.loss.value(z, self.y).mean()) + 0.5 * (ww + 2 * t * wd + t * t * dd)
            return value, float(np.vdot(self._theta(z), u)) / len(z) + wd + t * dd

        with np.errstate(over="ignore", invalid="ignore"):  # what is too far may be infinite
            t, before, after = search(along, self.state.natural)
        if self.state.flat:  # scores are rounded away; what is left of a penalty's slope would lead anywhere
            t = 0.0
        self.z += t * u
        penalty = 0.5 * (ww + 2 * t * wd + t * t * dd)
        self.still = self.still + 1 if before - after <= ROUNDING * before else 0
        # where the weights to begin with are no better than none, the run begins at none
        asked = self.context.start is not None and not self.state.steps
        done = (t == 0.0 and not asked) or self.still >= PATIENCE
        over = self._note(self.unit**2 * penalty, float(total[-1])) or done
        ending = self.scribe.ending
        if done and self.context.plan.pace.open:
            ending.converged = True  # to the last digit
        theta = np.zeros(0) if over else self._theta(self.z).ravel()
        word = -1.0 if ending.converged is None else float(ending.converged)
        return np.concatenate([[t, word], theta])

    def _note(self, penalty: float, sent: float) -> bool:
        """Write down the loss after this step, which costs no message; returns whether the run is over."""
        clock, steps = self.context.net.clock, self.state.steps + 1
        with clock.uncharged():
            mark = Mark(steps, self.state.sums, final=False)
            z = self.unit * self.z
            loss = self.scribe.record([z], penalty, round(sent * MEGA), clock.now(), mark)
        return self.scribe.ending.over(loss, steps) or steps >= self.context.plan.pace.epochs

    def _theta(self, z: Floats) -> Floats:
        return self.loss.dz(z, self.y)
