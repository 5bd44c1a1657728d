"""A network split between parties, trained as the one network it is: one torch module, one optimiser."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from colonnade.arrays import Numbers


def flat(module: torch.nn.Module) -> Numbers:
    """A module's parameters as one vector."""
    return np.concatenate([p.detach().numpy().ravel() for p in module.parameters()])


def load(module: torch.nn.Module, w: Numbers) -> None:
    """Set a module's parameters from one vector."""
    torch.nn.utils.vector_to_parameters(torch.from_numpy(w.copy()), module.parameters())


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
