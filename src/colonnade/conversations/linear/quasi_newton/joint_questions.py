"""What parties with one H over all blocks ask together, riding with the scores of rounds (`lbfgs_joint`)."""

from __future__ import annotations

from dataclasses import dataclass

from colonnade.arrays import Floats
from colonnade.optim.lbfgs import Inverse


@dataclass(frozen=True, eq=False)
class StepQuestion:
    """Asks for the inner products that H v needs.

    `v` is a gradient times `zoom`; `inverse` is H and `steepest` the largest curvature as they were when the
    gradient was computed.
    """

    v: Floats
    zoom: float
    inverse: Inverse
    steepest: float
    piece: Floats

    @property
    def answer_size(self) -> int:
        return self.piece.size + 2  # and the step, and a word of caution


@dataclass(frozen=True, eq=False)
class CurvatureQuestion:
    """Asks for L'' X s of the sample; `s` is how far the weights moved since the last pair, times `zoom`.

    `penalty` is the regulariser's part of y, which needs no other party.
    """

    s: Floats
    zoom: float
    penalty: Floats
    scores: Floats  # [2, sample, ...]: X s and X w

    @property
    def piece(self) -> Floats:
        return self.scores.ravel()

    @property
    def answer_size(self) -> int:
        return int(self.scores[0].size)


@dataclass(frozen=True, eq=False)
class ProductsQuestion:
    """Asks for the inner products of a new pair with the stored vectors, as they were after `changes`."""

    s: Floats
    y: Floats
    zoom: float
    dots: Floats
    changes: int

    @property
    def piece(self) -> Floats:
        return self.dots.ravel()

    @property
    def answer_size(self) -> int:
        return self.dots.size


JointQuestion = StepQuestion | CurvatureQuestion | ProductsQuestion
