"""Networks on torch: the only place that imports it (`pip install 'colonnade[torch]'`).

A module becomes a function of one flat parameter vector. The outputs at several vectors are computed in
one batched call (`torch.func.vmap`), which is what zeroth-order training spends its time on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from colonnade.data.table import Matrix
from colonnade.errors import JobError
from colonnade.models.blackbox import dense

try:
    import torch
    from torch.func import functional_call, vmap
except ImportError as error:
    raise JobError(
        "this model is a network and needs torch, which is not installed; pip install 'colonnade[torch]'"
    ) from error

Floats = NDArray[Any]
Precision = Literal["float32", "float64"]

if "OMP_NUM_THREADS" not in os.environ:
    # products this small are faster on one core, and several parties may share this machine
    torch.set_num_threads(1)


class Network:
    """A torch module whose parameters are one vector, float32 unless told, that belongs to the caller."""

    def __init__(
        self, module: torch.nn.Module, shape: tuple[int, ...] = (), precision: Precision = "float32"
    ) -> None:
        self._type = np.dtype(precision)
        self._module = module.eval().to(getattr(torch, precision))
        self._shape = shape  # what one row looks like to the module, if not flat
        self._names = [name for name, _ in module.named_parameters()]
        self._shapes = [p.shape for p in module.parameters()]
        self._sizes = [p.numel() for p in module.parameters()]
        self._many = vmap(self._apply, in_dims=(0, None), randomness="different")

    @property
    def parameters(self) -> int:
        return sum(self._sizes)

    def initial(self, rng: np.random.Generator) -> Floats:
        """What the module's own layers choose, from our seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63)))
            for layer in self._module.modules():
                reset = getattr(layer, "reset_parameters", None)
                if callable(reset):
                    reset()
        flat = torch.cat([p.detach().reshape(-1) for p in self._module.parameters()])
        return flat.numpy().astype(self._type)

    def forward(self, W: Floats, X: Matrix) -> Floats:
        with torch.no_grad():
            vectors = torch.from_numpy(np.ascontiguousarray(W, dtype=self._type))
            out = self._many(vectors, self._rows(X))
        return np.asarray(out.reshape(len(W), X.shape[0], -1).numpy())

    def gradient(self, w: Floats, X: Matrix, d_out: Floats) -> Floats:
        vector = torch.from_numpy(np.array(w, dtype=self._type)).requires_grad_()
        return self._pull(vector, self._rows(X), d_out, vector)

    def input_gradient(self, w: Floats, X: Matrix, d_out: Floats) -> Floats:
        rows = self._rows(X).clone().requires_grad_()
        gradient = self._pull(torch.from_numpy(np.array(w, dtype=self._type)), rows, d_out, rows)
        return gradient.reshape(X.shape)

    def _pull(self, vector: Any, rows: Any, d_out: Floats, wrt: Any) -> Floats:
        out = self._apply(vector, rows)
        seed = torch.from_numpy(np.array(d_out, dtype=self._type)).reshape(out.shape)
        (gradient,) = torch.autograd.grad(out, wrt, seed)
        return np.asarray(gradient.numpy())

    def _apply(self, vector: Any, rows: Any) -> Any:
        return functional_call(self._module, self._named(vector), (rows,))

    def _named(self, vector: Any) -> dict[str, Any]:
        parts = vector.split(self._sizes)
        return {n: p.view(s) for n, p, s in zip(self._names, parts, self._shapes, strict=True)}

    def _rows(self, X: Matrix) -> Any:
        rows = torch.from_numpy(np.ascontiguousarray(dense(X), dtype=self._type))
        return rows.reshape(-1, *self._shape) if self._shape else rows


class Layered(Network):
    """Layers one after the other, the first of them fully connected.

    As a server it need not start again when one client's embeddings are exchanged: the first layer is
    computed once, and only that client's columns of it for every exchange.
    """

    def __init__(self, layers: torch.nn.Sequential, precision: Precision = "float32") -> None:
        super().__init__(layers, precision=precision)
        self._rest = layers[1:]  # its layers keep their names

    def forward_replaced(self, w: Floats, C: Floats, own: slice, outputs: Floats) -> Floats:
        P, B = outputs.shape[:2]
        with torch.no_grad():
            vector = torch.from_numpy(np.ascontiguousarray(w, dtype=self._type))
            named = self._named(vector)
            weight, bias = named.pop("0.weight"), named.pop("0.bias")
            first = torch.nn.functional.linear(self._rows(C), weight, bias)
            moved = self._rows(np.subtract(outputs, C[:, own]).reshape(P * B, -1))
            hidden = (moved @ weight[:, own].T).view(P, B, -1).add_(first)
            out = functional_call(self._rest, named, (hidden.view(P * B, -1),), strict=True)
        return np.asarray(out.view(P, B, -1).numpy())


def mlp(columns: int, hidden: Sequence[int], outputs: int, precision: Precision = "float32") -> Layered:
    """Fully connected layers with ReLU between them; section 5.1 of AsyREVEL has one of 128."""
    widths = [columns, *hidden, outputs]
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(widths):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return Layered(torch.nn.Sequential(*layers[:-1]), precision)
