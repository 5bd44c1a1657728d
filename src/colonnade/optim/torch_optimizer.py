"""The optimisers of torch for one flat parameter vector that belongs to the caller."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.arrays import Numbers
from colonnade.errors import JobError
from colonnade.models.backend import torch

# one evaluates the loss several times within a step, the others are for other kinds of parameters
UNFIT = {"lbfgs", "sparseadam", "muon"}


@dataclass(frozen=True)
class TorchOptimizer:
    """An optimiser by its name in torch.optim, in any case; `options` are its own arguments."""

    name: str
    options: dict[str, Any]

    def __post_init__(self) -> None:
        if "lr" in self.options:
            raise JobError("cascade.optimizer_options: the step is train.step and server_step, not lr")
        self.init(np.zeros(1))  # so that options torch refuses are refused before the run begins

    @property
    def rate(self) -> float:
        """Torch's default: how long these optimisers may step does not follow from the curvature."""
        return float(inspect.signature(_optimisers()[self.name.lower()]).parameters["lr"].default)

    def init(self, w: Numbers) -> Any:
        kinds = _optimisers()
        if self.name.lower() not in kinds:
            raise JobError(f"cascade.optimizer: torch has no {self.name!r}; choose from {', '.join(kinds)}")
        try:
            return kinds[self.name.lower()]([torch.nn.Parameter(torch.from_numpy(w.copy()))], **self.options)
        except (TypeError, ValueError, RuntimeError) as error:
            raise JobError(f"cascade.optimizer_options: {self.name} says: {error}") from error

    def step(self, state: Any, w: Numbers, gradient: Numbers, rate: float) -> Numbers:
        group = state.param_groups[0]
        (parameter,) = group["params"]
        parameter.data = torch.from_numpy(w.copy())
        parameter.grad = torch.from_numpy(np.array(gradient, dtype=w.dtype))
        group["lr"] = rate
        state.step()
        return np.asarray(parameter.detach().numpy())

    def plain(self, state: Any) -> Any:
        (remembered,) = state.state_dict()["state"].values() or ({},)
        return {
            name: value.detach().cpu().numpy().copy() if torch.is_tensor(value) else value
            for name, value in remembered.items()
        }

    def restore(self, state: Any, plain: Any) -> None:
        remembered = {
            name: torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
            for name, value in plain.items()
        }
        state.load_state_dict({**state.state_dict(), "state": {0: remembered} if remembered else {}})


def _optimisers() -> dict[str, Any]:
    """Return the optimisers of torch.optim that can be used here, by their names in lower case."""
    found = {
        name.lower(): kind
        for name, kind in vars(torch.optim).items()
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)
    }
    return {name: found[name] for name in sorted(found.keys() - UNFIT - {"optimizer"})}
