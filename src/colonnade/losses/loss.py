"""What every loss can do, and what it answers to questions about itself.

Nobody outside this package asks a loss for its name: all that differs from loss to loss is a property here.
`UsualLoss` has the answers that most losses give. A loss that forgets one of the others is no `Loss`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.errors import JobError

Task = Literal["binary", "multiclass", "regression"]
"""What labels are: two classes (-1 and +1), several (0, 1, ...), or numbers."""

Link = Literal["identity", "log", "logit", "softmax"]
"""What of the expected label a score is: itself, its logarithm, its log odds, or those of every class."""

SharedForm = Literal["sines", "division"]
"""How theta is computed of scores that two parties share: by a sum of sines (logistic), or as z - y."""


class Loss(Protocol):
    """Arrays have a row per row of the data; with several classes z has a score for each in its last axis."""

    @property
    def name(self) -> str:
        """What a job calls it."""
        ...

    @property
    def task(self) -> Task:
        """What kind of label it is for."""
        ...

    @property
    def link(self) -> Link | None:
        """What a score says of the label that is expected; None: no more than which class is likelier."""
        ...

    @property
    def has_probabilities(self) -> bool:
        """Whether the probabilities of classes follow from scores."""
        ...

    @property
    def label_range(self) -> str | None:
        """Which numbers may be labels, as in "> 0"; None: any number, or classes."""
        ...

    @property
    def counts(self) -> bool:
        """Whether labels are counts, which may have been counted over different times (exposure)."""
        ...

    @property
    def any_unit(self) -> bool:
        """Whether labels in another unit have the same model in that unit: L(cz, cy) = c^2 L(z, y)."""
        ...

    @property
    def theta_tells(self) -> str:
        """What theta of a row gives away about it, in words that follow "theta is sent to every party:"."""
        ...

    @property
    def shared_form(self) -> SharedForm | None:
        """How theta is computed where nobody may learn scores; None: it cannot be."""
        ...

    @property
    def smoothness(self) -> float:
        """A bound on the second derivative for any z and y; infinite where there is none."""
        ...

    @property
    def always_curved(self) -> bool:
        """Whether the second derivative by each score is above zero everywhere: trees divide by it."""
        ...

    @property
    def counts_rows(self) -> bool:
        """Whether the second derivative of any row is 1, so that a sum of them is a number of rows."""
        ...

    @property
    def curved_by_theta(self) -> bool:
        """Whether theta alone, without the label, says the second derivative."""
        ...

    def value(self, z: Floats, y: Floats) -> Floats:
        """Return the loss of every row."""
        ...

    def in_torch(self, torch: Any, z: Any, y: Any) -> Any:
        """Return `value` of tensors; networks hand in the module `torch`, which only they import."""
        ...

    def dz(self, z: Floats, y: Floats) -> Floats:
        """Return theta, the derivative of the loss by z."""
        ...

    def soft_dz(self, z: Floats, y: Floats) -> Floats:
        """Return dL/dz for labels that are any numbers, as labels with noise are, not only true classes.

        It is linear in y and equals `dz` at the true labels. A label of several classes is a row of numbers
        here, one-hot where it is a class.
        """
        ...

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        """Return the second derivative times u, row by row; `y` may be left out if `curved_by_theta`."""
        ...

    def second(self, theta: Floats, y: Floats) -> Floats:
        """Return the second derivative by each score alone, in the shape of theta."""
        ...

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        """Return a bound on the second derivative of every row.

        Where there is none for any z, it holds between the present z and the z that fits the row best.
        """
        ...

    def predict(self, z: Floats) -> Floats:
        """Return the likeliest label of every row, in the values of y; of numbers, the expected one."""
        ...

    def start(self, y: Floats) -> float:
        """Return the intercept to begin with: what fits all rows best, where it is far from zero."""
        ...

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        """Return whether each label is one that this loss is for."""
        ...


class UsualLoss(ABC):
    """What most losses answer: any label, one score a row that begins at zero, curved by theta everywhere.

    A subclass says the rest: `name`, `task`, `link`, `smoothness`, `theta_tells`, `value`, `dz`, `bend`,
    `curvature` and `predict`.
    """

    name: str
    task: Task
    link: Link | None
    smoothness: float
    theta_tells: str
    label_range: str | None = None
    counts: bool = False
    any_unit: bool = False
    shared_form: SharedForm | None = None
    always_curved: bool = True
    counts_rows: bool = False
    curved_by_theta: bool = True

    @property
    def has_probabilities(self) -> bool:
        return self.link in ("logit", "softmax")

    def in_torch(self, torch: Any, z: Any, y: Any) -> Any:
        raise JobError(f"train.loss = {self.name!r}: networks cannot train it, as it has no `in_torch`")

    def soft_dz(self, z: Floats, y: Floats) -> Floats:
        if self.task == "multiclass":
            raise JobError(f"train.loss = {self.name!r}: has no derivative for labels with noise")
        if self.task == "regression":
            return self.dz(z, y)
        return (1 + y) / 2 * self.dz(z, np.ones_like(y)) + (1 - y) / 2 * self.dz(z, -np.ones_like(y))

    def second(self, theta: Floats, y: Floats) -> Floats:
        return self.bend(theta, np.ones_like(theta), y)

    def start(self, y: Floats) -> float:
        return 0.0

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        return np.ones(len(y), dtype=bool)

    @abstractmethod
    def value(self, z: Floats, y: Floats) -> Floats: ...

    @abstractmethod
    def dz(self, z: Floats, y: Floats) -> Floats: ...

    @abstractmethod
    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats: ...

    @abstractmethod
    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats: ...

    @abstractmethod
    def predict(self, z: Floats) -> Floats: ...
