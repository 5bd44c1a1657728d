"""How parameters follow a gradient: SGD, Adam, or any other optimiser of torch by its name.

State in, state out: the owner of parameters owns the state of their optimiser, so momentum and second
moments never leave a party. The step, its decay included, comes with every call and is torch's `lr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from colonnade.arrays import Numbers
from colonnade.optim.adam import Adam


class Optimizer(Protocol):
    @property
    def rate(self) -> float | None:
        """The step to use where the job names none; None: it has to be found from the curvature."""
        ...

    def init(self, w: Numbers) -> Any:
        """Return the state before the first step."""
        ...

    def step(self, state: Any, w: Numbers, gradient: Numbers, rate: float) -> Numbers:
        """Return the new parameters, in a new array; the state is updated in place."""
        ...

    def plain(self, state: Any) -> Any:
        """Return what a state remembers, as arrays and numbers by name."""
        ...

    def restore(self, state: Any, plain: Any) -> None:
        """Let a state remember that."""
        ...


class Descent:
    """Plain SGD, w - rate * gradient, which needs no torch."""

    rate = None

    def init(self, w: Numbers) -> None:
        return None

    def step(self, state: Any, w: Numbers, gradient: Numbers, rate: float) -> Numbers:
        moved: Numbers = w - (rate * gradient).astype(w.dtype, copy=False)
        return moved

    def plain(self, state: Any) -> None:
        return None

    def restore(self, state: Any, plain: Any) -> None:
        """Do nothing: nothing is remembered."""


def optimizer_of(name: str, options: Mapping[str, Any]) -> Optimizer:
    """Return the optimiser of this name: `sgd` and `adam` need no torch, others of torch.optim do."""
    if name == "sgd" and not options:
        return Descent()
    if name.lower() == "adam" and not options:
        return Adam()
    from colonnade.optim.torch_optimizer import TorchOptimizer

    return TorchOptimizer(name, dict(options))
