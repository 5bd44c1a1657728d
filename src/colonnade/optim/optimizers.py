"""How parameters follow a gradient: SGD, or any optimiser of torch by its name.

State in, state out: whoever owns parameters owns the state of their optimiser, so momentum and second
moments never leave a party. The step, its decay included, comes with every call and is torch's `lr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from colonnade.arrays import Numbers


class Optimizer(Protocol):
    @property
    def rate(self) -> float | None:
        """The step where a job leaves it to us; None: it must be found from the curvature."""
        ...

    def init(self, w: Numbers) -> Any:
        """The state before the first step."""
        ...

    def step(self, state: Any, w: Numbers, gradient: Numbers, rate: float) -> Numbers:
        """New parameters, in an array of their own; the state is brought up to date."""
        ...


class Descent:
    """w - rate * gradient: all that SGD is, and no torch."""

    rate = None

    def init(self, w: Numbers) -> None:
        return None

    def step(self, state: Any, w: Numbers, gradient: Numbers, rate: float) -> Numbers:
        moved: Numbers = w - (rate * gradient).astype(w.dtype, copy=False)
        return moved


def optimizer_of(name: str, options: Mapping[str, Any]) -> Optimizer:
    """`sgd`, or what torch.optim has under this name, however it is spelt."""
    if name == "sgd" and not options:
        return Descent()
    from colonnade.optim.torch_optimizer import TorchOptimizer

    return TorchOptimizer(name, dict(options))
