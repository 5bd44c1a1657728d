"""Measures the common model through the secure sum, apart from training.

At a mark (the end of an epoch) every party sends its share of the scores of all rows, its penalty and
its byte count; the evaluator, a label holder, adds the labels and writes the history. Training goes on
meanwhile, and the traffic is counted apart. What the evaluator learns: the total score of every row,
which it learns in training as well.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from colonnade.arrays import Floats, Numbers
from colonnade.conversations.convergence import Ending
from colonnade.conversations.schedule import Schedule
from colonnade.conversations.window import Pacing, Window
from colonnade.losses import Loss, mean_loss
from colonnade.messages import Stop, Topic, tag_of
from colonnade.metrics import metrics_of
from colonnade.net.expect import out_of_turn
from colonnade.net.network import Clock, Network
from colonnade.result import Moment
from colonnade.secure.protocol import SecureSum

# bytes travel in the same fixed-point sum as the scores; as megabytes they stay in its range
MEGA = 1e6


@dataclass(frozen=True)
class Mark:
    """When the model is measured: after how many epochs and rounds, and whether it is the last time."""

    epoch: int
    rounds: int
    final: bool


@dataclass
class Scribe:
    """Computes losses and metrics from scores and labels, and keeps their history; only at the evaluator."""

    loss: Loss
    y_train: Floats
    y_test: Floats | None
    clock: Clock
    ending: Ending
    progress: Callable[[Moment], object] = lambda moment: None  # True: enough, the run may end
    history: list[Moment] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    test_scores: Numbers | None = None  # of the test rows, once the run is over
    started: float = field(default_factory=time.perf_counter)

    def record(self, z: Sequence[Numbers], penalty: float, sent: int, when: float, mark: Mark) -> float:
        """Add one moment to the history and return its loss; z are the scores of training and test rows."""
        loss = float(mean_loss(self.loss, z[0], self.y_train) + penalty)
        self.ending.check(loss, final=mark.final)
        virtual, test = self.clock.virtual, {}
        if self.y_test is not None and len(z) > 1:
            test = metrics_of(self.loss, z[1], self.y_test, penalty)
        moment = Moment(
            seconds=time.perf_counter() - self.started if virtual else when,
            virtual_seconds=when if virtual else None,
            epoch=mark.epoch,
            rounds=mark.rounds,
            bytes=sent,
            loss=loss,
            test=test,
        )
        if mark.final:
            self.metrics |= {"train_loss": loss, **test}
            self.test_scores = z[1] if test else None
        if mark.final and self.history and self.history[-1].rounds == mark.rounds:
            # a target met at a mark ended the run there: both are one moment, at the time it was reached
            known = self.history[-1]
            self.history[-1] = msgspec.structs.replace(known, loss=loss, test=test)
        else:
            self.history.append(moment)
            self.ending.stopped |= self.progress(moment) is True
        if mark.final:
            self.ending.close([(known.epoch, known.loss) for known in self.history])
        return loss


@dataclass
class Evaluation:
    """One party's part in measuring the model."""

    net: Network
    sum: SecureSum
    root: str
    sent_bytes: Callable[[], int]
    scribe: Scribe | None  # at the evaluator
    _number: int = 0

    async def measure(
        self,
        scores: Callable[[], Sequence[Floats]],
        penalty: float,
        mark: Mark,
        when: float | None = None,
        unit: float = 1.0,
    ) -> float | None:
        """Sum all parties' scores securely; returns the loss at the evaluator, None elsewhere.

        `scores` gives this party's share of the scores of the training rows and, at the last mark, of the
        test rows. `when` is the time of the moment that is measured, if that was before now. Scores are
        counted in `unit`, and the penalty in its square, while they are summed.
        """
        clock = self.net.clock
        when = clock.now() if when is None else when
        return await clock.beside(self._measure(scores, penalty, mark, when, unit))

    async def _measure(
        self, scores: Callable[[], Sequence[Floats]], penalty: float, mark: Mark, when: float, unit: float
    ) -> float | None:
        shares = scores() if unit == 1 else [share / unit for share in scores()]
        penalty /= unit**2
        piece = np.concatenate([*(share.ravel() for share in shares), [penalty, self.sent_bytes() / MEGA]])
        if self.scribe is None:
            await self.sum.give(piece, root=self.root, tag=self.next_tag())
            return None
        total = await self.sum.collect(piece, tag=self.next_tag())
        ends = np.cumsum([share.size for share in shares])
        parts = np.split(unit * total, ends)
        z = [part.reshape(share.shape) for part, share in zip(parts, shares, strict=False)]
        # in virtual time the moment is when the last party's share is there; in real time, when we began
        clock = self.net.clock
        when = clock.now() if clock.virtual else when
        return self.scribe.record(z, unit**2 * float(total[-2]), round(total[-1] * MEGA), when, mark)

    def over(self, loss: float | None, epoch: float) -> bool:
        """Whether the run is over at this loss; only the evaluator has one, and knows."""
        return loss is not None and self.scribe is not None and self.scribe.ending.over(loss, epoch)

    def next_tag(self) -> int:
        """A tag that no measurement has used yet; all parties count alike."""
        self._number += 1
        return tag_of(Topic.EVALUATE, self._number - 1)


@dataclass(frozen=True)
class Marks:
    """When to measure: after every `every` rounds, of which an epoch has `per_epoch`, and at the end."""

    every: int
    per_epoch: int

    @staticmethod
    def of(evaluate_every: float, schedule: Schedule) -> Marks:
        """Marks every `evaluate_every` epochs, which may be a part of one; 0: at the end only."""
        per_epoch = schedule.per_epoch
        return Marks(
            max(1, round(evaluate_every * per_epoch)) if evaluate_every else schedule.rounds, per_epoch
        )


async def measure_at_marks(
    net: Network,
    evaluation: Evaluation,
    marks: Marks,
    schedule: Schedule,
    window: Pacing,
    measure: Callable[[int, bool], Awaitable[float | None]],
) -> None:
    """Measure the model at every mark and at the end of the run.

    `measure` takes the rounds that are finished and whether it is the last time; at the evaluator it
    gives the loss, and a loss that has reached its target, or stopped falling, ends the run.
    """
    mark, final = 0, False
    while not final:
        mark = min(mark + marks.every, schedule.rounds)
        reached = await window.reaches(mark)
        final = not reached or mark == schedule.rounds
        loss = await measure(mark if reached else window.base, final)
        # at the last mark nothing is left to stop, but whether the loss has settled is still of interest
        if reached and evaluation.over(loss, mark / marks.per_epoch) and not final:
            await window.end_early(net)


async def heed_stop(net: Network, window: Window, evaluator: str) -> None:
    """Stop where the evaluator says; for everybody but the evaluator."""
    for sender, message in await net.drain(Stop, patient=True):
        # it stops behind what is under way at itself, and nobody here is further than the window allows
        if sender != evaluator or not window.base <= message.at <= window.stop:
            raise out_of_turn(
                sender, message, f"it stops the run at round {message.at}, {window.base} are done"
            )
        window.stop_at(message.at)
