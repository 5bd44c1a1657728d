"""Measures the common model through the secure sum, apart from training.

At a mark (the end of an epoch) every party sends its share of the scores of all rows, its penalty and
its byte count; the evaluator, an active party, adds the labels and writes the history. Training goes on
meanwhile, and the traffic is counted apart. What the evaluator learns: the total score of every row,
which it learns in training as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from colonnade.arrays import Floats
from colonnade.losses import Loss
from colonnade.messages import Topic, tag_of
from colonnade.metrics import metrics_of
from colonnade.net.network import Network
from colonnade.result import Moment
from colonnade.secure.protocol import SecureSum

# bytes travel in the same fixed-point sum as the scores; as megabytes they stay in its range
_MEGA = 1e6


@dataclass(frozen=True)
class Mark:
    """When something was measured: after how many epochs and rounds, and whether it is the last time."""

    epoch: int
    rounds: int
    final: bool


@dataclass
class Evaluation:
    net: Network
    sum: SecureSum
    root: str
    loss: Loss
    y_train: Floats | None
    y_test: Floats | None
    sent_bytes: Callable[[], int]
    progress: Callable[[Moment], None] = lambda moment: None
    history: list[Moment] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    _number: int = 0
    _started: float = field(default_factory=time.perf_counter)

    async def measure(
        self, scores: Callable[[], Sequence[Floats]], penalty: float, mark: Mark, when: float | None = None
    ) -> float | None:
        """Add up what all parties score; the loss at the evaluator, None elsewhere.

        `scores` gives this party's share of the scores of the training rows and, at the last mark, of the
        test rows. `when` is the moment that is measured, if it took something to get there.
        """
        clock = self.net.clock
        return await clock.beside(self._measure(scores, penalty, mark, clock.now() if when is None else when))

    async def _measure(
        self, scores: Callable[[], Sequence[Floats]], penalty: float, mark: Mark, when: float
    ) -> float | None:
        shares = scores()
        piece = np.concatenate([*(share.ravel() for share in shares), [penalty, self.sent_bytes() / _MEGA]])
        total = await self.sum.sum(piece, root=self.root, tag=self.next_tag())
        if total is None:
            return None
        ends = np.cumsum([share.size for share in shares])
        z = [part.reshape(share.shape) for part, share in zip(np.split(total, ends), shares, strict=False)]
        # in virtual time the last party's share is what makes the moment; in real time it is our own
        clock = self.net.clock
        when = clock.now() if clock.virtual else when
        return self.record(z, float(total[-2]), round(total[-1] * _MEGA), when, mark)

    def next_tag(self) -> int:
        self._number += 1
        return tag_of(Topic.EVALUATE, self._number - 1)

    def record(self, z: Sequence[Floats], penalty: float, sent: int, when: float, mark: Mark) -> float:
        """Write down one moment, at the evaluator; z are the scores of training and test rows."""
        assert self.y_train is not None  # noqa: S101  the evaluator is an active party
        loss = float(self.loss.value(z[0], self.y_train).mean() + penalty)
        virtual, test = self.net.clock.virtual, {}
        if self.y_test is not None and len(z) > 1:
            test = metrics_of(self.loss, z[1], self.y_test, penalty)
        moment = Moment(
            seconds=time.perf_counter() - self._started if virtual else when,
            virtual_seconds=when if virtual else None,
            epoch=mark.epoch,
            rounds=mark.rounds,
            bytes=sent,
            loss=loss,
            test=test,
        )
        if mark.final:
            self.metrics |= {"train_loss": loss, **test}
        if mark.final and self.history and self.history[-1].rounds == mark.rounds:
            # the target was met at a mark, and there training ended: one moment, at the time it was reached
            known = self.history[-1]
            self.history[-1] = msgspec.structs.replace(known, loss=loss, test=test)
        else:
            self.history.append(moment)
            self.progress(moment)
        return loss
