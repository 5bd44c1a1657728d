"""Networks as users bring them: what a job names by `path`."""

from __future__ import annotations

import torch


class Residual(torch.nn.Module):
    """A client's module that is no sequence of layers."""

    def __init__(self, columns: int, outputs: int) -> None:
        super().__init__()
        self.inner, self.last = torch.nn.Linear(columns, columns), torch.nn.Linear(columns, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(x + torch.tanh(self.inner(x)))
        return found


def top(columns: int, outputs: int) -> torch.nn.Module:
    """A server's module whose first layer is fully connected."""
    return torch.nn.Sequential(
        torch.nn.Linear(columns, 12), torch.nn.LayerNorm(12), torch.nn.ELU(), torch.nn.Linear(12, outputs)
    )
