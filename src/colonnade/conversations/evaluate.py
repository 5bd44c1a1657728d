"""Measures the common model through the secure sum, apart from training.

At a mark (the end of an epoch) every party sends its share of the scores of all rows, its penalty and
its byte count; the evaluator, an active party, adds the labels and writes the history. Training goes on
meanwhile, and the traffic is counted apart. What the evaluator learns: the total score of every row,
which it learns in training as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from colonnade.losses import Loss
from colonnade.messages import Topic, tag_of
from colonnade.metrics import metrics_of
from colonnade.models.linear import rows_of
from colonnade.net.transport import Network
from colonnade.result import Moment
from colonnade.secure.protocol import SecureSum

Floats = NDArray[np.float64]

# bytes travel in the same fixed-point sum as the scores; as megabytes they stay in its range
_MEGA = 1e6


@dataclass
class Evaluation:
    net: Network
    sum: SecureSum
    root: str
    loss: Loss
    train: Floats | csr_array
    test: Floats | csr_array | None
    y_train: Floats | None
    y_test: Floats | None
    progress: Callable[[Moment], None] = lambda moment: None
    history: list[Moment] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    _number: int = 0
    _started: float = field(default_factory=time.perf_counter)

    async def measure(
        self, w: Floats, penalty: float, sent_bytes: int, *, epoch: int, rounds: int, final: bool
    ) -> float | None:
        """One evaluation; the loss at the evaluator, None elsewhere."""
        tag = tag_of(Topic.EVALUATE, self._number)
        self._number += 1
        when, real = self.net.clock.now(), time.perf_counter() - self._started
        with self.net.clock.uncharged():
            scores = [_scores(self.train, w)]
            if final and self.test is not None:
                scores.append(_scores(self.test, w))
            piece = np.concatenate([*(score.ravel() for score in scores), [penalty, sent_bytes / _MEGA]])
        total = await self.sum.sum(piece, root=self.root, tag=tag)
        if total is None:
            return None
        virtual = self.net.clock.virtual
        if virtual:
            when, real = self.net.clock.now(), time.perf_counter() - self._started
        with self.net.clock.uncharged():
            return self._record(total, scores, when, real if virtual else when, epoch, rounds, final=final)

    def _record(
        self,
        total: Floats,
        shapes: list[Floats],
        when: float,
        seconds: float,
        epoch: int,
        rounds: int,
        *,
        final: bool,
    ) -> float:
        assert self.y_train is not None  # noqa: S101  the evaluator is an active party
        size = shapes[0].size
        z = total[:size].reshape(shapes[0].shape)
        penalty, megabytes = total[-2:]
        loss = float(self.loss.value(z, self.y_train).mean() + penalty)
        moment = Moment(
            seconds=seconds,
            virtual_seconds=when if self.net.clock.virtual else None,
            epoch=epoch,
            rounds=rounds,
            bytes=round(megabytes * _MEGA),
            loss=loss,
        )
        self.history.append(moment)
        self.progress(moment)
        if final:
            self.metrics["train_loss"] = loss
            if self.y_test is not None and len(shapes) > 1:
                z_test = total[size:-2].reshape(shapes[1].shape)
                self.metrics.update(metrics_of(self.loss, z_test, self.y_test, penalty))
        return loss


def _scores(X: Floats | csr_array, w: Floats) -> Floats:
    return rows_of(X).scores(0, X.shape[0], w)
