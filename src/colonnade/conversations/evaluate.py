"""Measures the common model through the secure sum, apart from training.

At a mark (the end of an epoch) every party sends its share of the scores of all rows, its penalty and
its byte count; the evaluator, a label holder, adds the labels and writes the history. Training goes on
meanwhile, and the traffic is counted apart. Scores are computed, summed and judged a stretch of rows at a
time (`pieces`), and only those of test rows are kept. What the evaluator learns: the total score of every
row, which it learns in training as well.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from colonnade.arrays import Floats, Numbers
from colonnade.conversations.convergence import Ending
from colonnade.conversations.pacing.conditions import Conditions
from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.schedule import Schedule
from colonnade.conversations.pieces import Stretch, collect_pieces, give_pieces, stretches
from colonnade.losses import Loss, MeanLoss, mean_loss
from colonnade.messages import Topic, tag_of
from colonnade.metrics import metrics_of
from colonnade.net.network import Clock, Network
from colonnade.result import Moment
from colonnade.secure.protocol import SecureSum
from colonnade.secure.ring import finely, joined
from colonnade.state import Declared

# bytes travel in the same fixed-point sum as the scores; as megabytes they stay in its range
MEGA = 1e6


@dataclass(frozen=True)
class Mark:
    """When the model is measured: after how many epochs and rounds, and whether it is the last time."""

    epoch: int
    rounds: int
    final: bool


@dataclass(frozen=True, eq=False)
class Scored:
    """One party's share of the scores of a table's rows, computed when it is asked for: `of(start, end)`."""

    rows: int
    of: Callable[[int, int], Floats]

    @staticmethod
    def known(scores: Floats) -> Scored:
        """Return scores that are computed already."""
        return Scored(len(scores), lambda start, end: scores[start:end])


@dataclass
class Scribe:
    """Computes losses and metrics from scores and labels, and keeps their history; only at the evaluator."""

    STATE = Declared(kept=("history",), parts=("ending",), remade=("started",))

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
        mean = mean_loss(self.loss, z[0], self.y_train)
        return self.note(mean, z[1] if len(z) > 1 else None, penalty, sent, when, mark)

    def note(
        self, mean: float, z_test: Numbers | None, penalty: float, sent: int, when: float, mark: Mark
    ) -> float:
        """Return the same where the mean loss of the training rows is known, and nobody keeps their
        scores."""
        loss = float(mean + penalty)
        above = self.ending.check(float(mean), penalty, final=mark.final)
        virtual, test = self.clock.virtual, {}
        if self.y_test is not None and z_test is not None:
            test = metrics_of(self.loss, z_test, self.y_test)
        moment = Moment(
            seconds=time.perf_counter() - self.started if virtual else when,
            virtual_seconds=when if virtual else None,
            epoch=mark.epoch,
            rounds=mark.rounds,
            bytes=sent,
            loss=loss,
            train_loss=float(mean),
            test=test,
        )
        if mark.final:
            self.metrics |= {"train_loss": float(mean), "objective": loss, **test}
            self.test_scores = z_test if test else None
            if above:
                self.metrics["untrained_loss"] = self.ending.start
        if mark.final and self.history and self.history[-1].rounds == mark.rounds:
            # a target met at a mark ended the run there: both are one moment, at the time it was reached
            known = self.history[-1]
            self.history[-1] = msgspec.structs.replace(known, loss=loss, train_loss=float(mean), test=test)
        else:
            self.history.append(moment)
            self.ending.stopped |= self.progress(moment) is True
        if mark.final:
            self.ending.close([(known.epoch, known.loss) for known in self.history])
        return loss


@dataclass
class Evaluation:
    """One party's part in measuring the model."""

    STATE = Declared(kept=("marked", "_number"), remade=("_conditions",))

    net: Network
    sum: SecureSum
    root: str
    sent_bytes: Callable[[], int]
    scribe: Scribe | None  # at the evaluator
    marked: int = 0  # rounds up to the last mark at which the model was measured
    _number: int = 0
    _conditions: Conditions = field(default_factory=Conditions)

    async def measure(
        self,
        scored: Sequence[Scored],
        penalty: float,
        mark: Mark,
        when: float | None = None,
        unit: float = 1.0,
    ) -> float | None:
        """Sum all parties' scores securely; returns the loss at the evaluator, None elsewhere.

        `scored` are this party's shares of the scores of the training rows and, at the last mark, of the test
        rows; training goes on meanwhile, so they must not change with the weights. `when` is the time of the
        moment that is measured, if that was before now. Scores are counted in `unit`, and the penalty in its
        square, while they are summed; where labels are far from zero for their spread the loss is next to
        nothing in that unit, so the penalty is summed finely.
        """
        clock = self.net.clock
        when = clock.now() if when is None else when
        return await clock.beside(self._measure(scored, penalty, mark, when, unit))

    async def _measure(
        self, scored: Sequence[Scored], penalty: float, mark: Mark, when: float, unit: float
    ) -> float | None:
        first = scored[0].of(0, 0)  # no row, but as many scores a row as all others
        cuts = stretches([table.rows for table in scored], int(np.prod(first.shape[1:])))
        tags = [self.next_tag() for _ in cuts]
        ends = np.append(finely(np.array([penalty / unit**2])), self.sent_bytes() / MEGA)

        def pieces() -> Iterator[Floats]:
            for number, piece in enumerate(cuts):
                shares = [scored[table].of(start, end).ravel() / unit for table, start, end in piece]
                yield np.concatenate([*shares, ends] if number + 1 == len(cuts) else shares)

        if self.scribe is None:
            await give_pieces(self.net, self.sum, pieces(), root=self.root, tags=tags)
            return None
        judge = _Judge(self.scribe, [table.rows for table in scored], first.shape[1:])
        totals = collect_pieces(self.net, self.sum, pieces(), tags=tags)
        last = ends
        for piece in cuts:
            last = await anext(totals)
            judge.take(piece, unit * last)
        # in virtual time the moment is when the last party's share is there; in real time, when we began
        clock = self.net.clock
        when = clock.now() if clock.virtual else when
        penalty, sent = unit**2 * float(joined(last[-3:-1])[0]), round(last[-1] * MEGA)
        return self.scribe.note(judge.loss.value, judge.z_test, penalty, sent, when, mark)

    def over(self, loss: float | None, epoch: float) -> bool:
        """Return whether the run is over at this loss; only the evaluator has one, and knows."""
        return loss is not None and self.scribe is not None and self.scribe.ending.over(loss, epoch)

    def mark(self, rounds: int) -> None:
        """Note that the model is measured up to here."""
        self.marked = rounds
        self._conditions.wake()

    async def measured(self, rounds: int) -> None:
        """Wait until the model is measured up to here."""
        await self._conditions.until(lambda: self.marked >= rounds)

    def next_tag(self) -> int:
        """Return a tag that no measurement has used yet; all parties count alike."""
        self._number += 1
        return tag_of(Topic.EVALUATE, self._number - 1)


class _Judge:
    """What the evaluator makes of total scores: the loss of training rows, and the scores of test rows."""

    def __init__(self, scribe: Scribe, rows: Sequence[int], classes: tuple[int, ...]) -> None:
        self._y, self._classes = scribe.y_train, classes
        self.loss = MeanLoss(scribe.loss)
        self.z_test = np.empty((rows[1], *classes)) if len(rows) > 1 else None

    def take(self, piece: Sequence[Stretch], totals: Floats) -> None:
        """Take the totals of some stretches, one after another; what follows them is not of rows."""
        first = 0
        for stretch in piece:
            size = (stretch.end - stretch.start) * int(np.prod(self._classes))
            z = totals[first : first + size].reshape(-1, *self._classes)
            first += size
            if stretch.table == 0:
                self.loss.add(z, self._y[stretch.rows])
            elif self.z_test is not None:
                self.z_test[stretch.rows] = z


@dataclass(frozen=True)
class Marks:
    """When to measure: after every `every` rounds, of which an epoch has `per_epoch`, and at the end."""

    every: int
    per_epoch: int

    def before(self, rounds: int) -> int:
        """Return the last mark up to here."""
        return rounds - rounds % self.every

    @staticmethod
    def of(evaluate_every: float, schedule: Schedule) -> Marks:
        """Return marks every `evaluate_every` epochs, which may be a part of one; 0: at the end only."""
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
    mark, final = evaluation.marked, False
    while not final:
        mark = min(mark + marks.every, schedule.rounds)
        reached = await window.reaches(mark)
        final = not reached or mark == schedule.rounds
        loss = await measure(mark if reached else window.base, final)
        # at the last mark nothing is left to stop, but whether the loss has settled is still of interest
        if reached and evaluation.over(loss, mark / marks.per_epoch) and not final:
            await window.end_early(net)
        evaluation.mark(mark)
