"""Measures the model of a blind run: the label holder learns all total scores, and nobody is told a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.conversations.blind.all_rows import all_scores
from colonnade.conversations.evaluate import MEGA, Mark
from colonnade.state import Declared

if TYPE_CHECKING:
    from colonnade.conversations.linear.parties.blind import BlindParty


class BlindMeasurement:
    """One party's part in measurements, and what the label holder saw in the last one."""

    STATE = Declared(kept=("at", "scores"))

    def __init__(self, training: BlindParty) -> None:
        self.training = training
        self.at = -1  # rounds
        self.scores: Floats = np.zeros(0)  # of all training rows, at the label holder

    async def measure(self, *, final: bool) -> float | None:
        """Measure the model; the loss at the label holder, None elsewhere."""
        clock = self.training.context.net.clock
        return await clock.beside(self._measure(clock.now(), final))

    async def _measure(self, when: float, final: bool) -> float | None:
        training, context, products = self.training, self.training.context, self.training.products
        vectors = training.whole
        totals = [await all_scores(products, "train", vectors, context.measuring)]
        if final and context.test is not None:
            totals.append(await all_scores(products, "test", vectors, context.measuring))
        self.at = training.done
        piece = np.array([training.evaluation.sent_bytes() / MEGA])
        tag, secure = products.next_tag(measuring=True), context.measuring.sum
        if training.label_holder is None:
            await secure.give(piece, root=context.evaluator, tag=tag)
            return None
        sent = await secure.collect(piece, tag=tag)
        return self._record(totals, round(float(sent[0]) * MEGA), when, final)

    def _record(self, totals: list[Words | None], sent: int, when: float, final: bool) -> float | None:
        """Write down what was measured; at the label holder."""
        training, clock = self.training, self.training.context.net.clock
        label_holder, scribe, timetable = (
            training.label_holder,
            training.evaluation.scribe,
            training.timetable,
        )
        words = [total for total in totals if total is not None]
        if label_holder is None or scribe is None or not words:
            return None
        others = label_holder.all_others(words[0])
        label_holder.fits(others)
        self.scores = others + label_holder.own_scores()
        z = [self.scores]
        if len(words) > 1:
            z.append(label_holder.others_new(words[1]) + label_holder.own_test_scores())
        mark = Mark(timetable.passes(training.done), timetable.rounds(training.done), final)
        when = clock.now() if clock.virtual else when
        return scribe.record(z, label_holder.penalty(others), sent, when, mark)
