"""A network split between parties, trained in one place: as the one network it is, or by local steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tests.oracles.tables import random_tables

from colonnade.arrays import Numbers
from colonnade.models.network import NeuralNetwork, mlp
from colonnade.run.federate import Tables


def flat(module: torch.nn.Module) -> Numbers:
    """A module's parameters as one vector."""
    return np.concatenate([p.detach().numpy().ravel() for p in module.parameters()])


def load(module: torch.nn.Module, w: Numbers) -> None:
    """Set a module's parameters from one vector."""
    torch.nn.utils.vector_to_parameters(torch.from_numpy(w.copy()), module.parameters())


def bottom() -> torch.nn.Sequential:
    """A party's network of 4 columns and 3 outputs."""
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))


def top() -> torch.nn.Sequential:
    """The network on top of three of them."""
    return torch.nn.Sequential(torch.nn.Linear(9, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))


def networks() -> Tables:
    """Three parties with networks of their own in double precision, and one on top."""
    setting = random_tables(parties=3, active=1, rows=160)
    models = {party: NeuralNetwork(bottom(), precision="float64") for party in setting.train}
    return replace(setting, models=models, head=mlp(9, (8,), 1, "float64"))


def whole(setting: Tables) -> tuple[list[Any], Any]:
    """The same networks at the same first parameters, as torch modules."""
    bottoms, head = [bottom().double() for _ in setting.train], top().double()
    for index, module in enumerate(bottoms):
        first = NeuralNetwork(bottom(), precision="float64").initial(np.random.default_rng([0, index, 3]))
        load(module, first)
    load(head, mlp(9, (8,), 1, "float64").initial(np.random.default_rng([0, 0, 4])))
    return bottoms, head


def train(
    bottoms: list[torch.nn.Module],
    top: torch.nn.Module,
    blocks: list[Numbers],
    y: Numbers,
    rounds: list[NDArray[np.int64]],
    *,
    steps: tuple[float, float],
    l2: float,
    optimiser: Any = torch.optim.SGD,
    options: dict[str, Any] | None = None,
) -> None:
    """Train all modules in place on the mean logistic loss + l2 ||w||^2 / 2 of the bottom models."""
    lower = [p for bottom in bottoms for p in bottom.parameters()]
    stepping = optimiser(
        [{"params": lower, "lr": steps[0], "weight_decay": l2}, {"params": top.parameters(), "lr": steps[1]}],
        **(options or {}),
    )
    inputs, labels = [torch.from_numpy(X) for X in blocks], torch.from_numpy(y)
    for rows in rounds:
        h = torch.cat([bottom(X[rows]) for bottom, X in zip(bottoms, inputs, strict=True)], dim=1)
        loss = torch.nn.functional.softplus(-labels[rows] * top(h)[:, 0]).mean()
        stepping.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        stepping.step()


def local_steps(
    bottoms: list[torch.nn.Module],
    top: torch.nn.Module,
    blocks: list[Numbers],
    y: Numbers,
    rounds: list[NDArray[np.int64]],
    *,
    steps: tuple[float, float],
    local: int,
    weight: Numbers | None = None,
) -> None:
    """Algorithm 1 of C-VFL without compression, in place: everybody's steps of a round see only its start."""
    inputs, labels = [torch.from_numpy(X) for X in blocks], torch.from_numpy(y)
    weights = torch.ones(len(y)).double() if weight is None else torch.from_numpy(weight)
    for rows in rounds:
        stale = [bottom(X[rows]).detach() for bottom, X in zip(bottoms, inputs, strict=True)]
        was = flat(top)

        def loss(h: list[torch.Tensor], rows: Any = rows) -> torch.Tensor:
            z = top(torch.cat(h, dim=1))[:, 0]
            return (weights[rows] * torch.nn.functional.softplus(-labels[rows] * z)).mean()

        for m, bottom in enumerate(bottoms):
            for _ in range(local):
                h = [bottom(inputs[m][rows]) if j == m else old for j, old in enumerate(stale)]
                _descend(bottom, loss(h), steps[0])
        assert (flat(top) == was).all()
        for _ in range(local):
            _descend(top, loss(stale), steps[1])


def _descend(module: torch.nn.Module, loss: torch.Tensor, step: float) -> None:
    parameters = list(module.parameters())
    with torch.no_grad():
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.sub_(step * gradient)
