"""Scores of a machine that only grows: an owner keeps f of every row, and no features.

A round brings M features. All rows are projected on these and on no others, in stretches of rows; when the
round has set their coefficients, f of every row decays as all coefficients do, and gains the new features'
part. That is Algorithm 2 with its sum kept between visits: f(x) is the same sum over all features so far, but
every projection is made, sent and used once. What is held is f of all rows and the phases of the rounds under
way, so nothing but time limits how many features there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context
from colonnade.conversations.kernel.features import MULTIPLICATIONS, STRETCH, FeatureScores
from colonnade.conversations.kernel.phases import KINDS, Phases, features_of, phases, project
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import FeatureLayout
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.models.random_features import SeededFeatures
from colonnade.state import Declared

IN_CACHE = 2**16  # features that are computed at a time


class RunningScores(FeatureScores[SeededFeatures]):
    """f of every row, which follows the coefficients round by round."""

    STATE = Declared(kept=("f",), remade=("_phases",))

    def __init__(
        self,
        context: Context[KernelSettings],
        layout: FeatureLayout,
        window: OneOrder,
        features: list[SeededFeatures],
        outputs: tuple[int, ...],
    ) -> None:
        super().__init__(context, layout, window, features)
        self._rows = context.train.rows
        self.f: Floats = np.zeros((self._rows, *outputs))  # stays so at a party that owns no features
        self._phases: dict[int, Phases] = {}  # of all rows, on the features of the own rounds under way

    def takers(self, number: int) -> Sequence[int]:
        return [number % len(self.layout.owners)]

    async def project(self, number: int, owner: int) -> Phases:
        X, bits, block = self.context.train.X, self.context.plan.settings.bits, self.layout.block
        features = self.features[owner].drawn(number // len(self.layout.owners))
        await self.charge(self._rows, block)
        size = max(1, STRETCH // block)
        starts = range(0, self._rows, size)
        total = np.empty((self._rows if owner == self.owner else 0, block), dtype=KINDS[bits])
        for stretch, start in enumerate(starts):
            some = X[start : start + size]
            shape = (int(some.shape[0]), block)
            words = await self.summed(project(features, some, bits), owner, number * len(starts) + stretch)
            if owner == self.owner:
                total[start : start + size] = phases(words, shape, bits)
        return total

    def take(self, number: int, projections: Phases) -> None:
        self._phases[number] = projections

    async def of(self, number: int, alpha: Floats) -> Floats:
        f: Floats = self.f[self.layout.rows(number)]
        return f

    def of_all(self, alpha: Floats) -> Floats | None:
        return self.f

    async def new(self, number: int) -> Floats:
        await self.context.charge(self._rows * self.layout.block / MULTIPLICATIONS)
        return features_of(self._phases[number][self.layout.rows(number)])

    async def known(self, number: int) -> Floats:
        raise RuntimeError(f"round {number} steps on features that are not kept")

    def follow(self, number: int, decay: float, alpha: Floats | None) -> None:
        self.f *= decay
        if alpha is None:
            return
        projections, size = self._phases[number], max(1, IN_CACHE // self.layout.block)
        for start in range(0, self._rows, size):
            self.f[start : start + size] += features_of(projections[start : start + size]) @ alpha

    def forget(self, number: int) -> None:
        super().forget(number)
        self._phases.pop(number, None)
