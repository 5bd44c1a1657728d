"""What a cascade asks of a model: a vector of parameters and a forward call, nothing more.

`Model` is all that zeroth-order training needs of a party or of the server. It is evaluated at several
parameter vectors in one call, because that is how it is used: once as it is and once along every random
direction. A model with gradients is `Differentiable`; algorithms that need gradients refuse any other.
A server's model F0 may be quicker where only one client's embeddings change: then it is `Replacing` (they
are exchanged for others) or `Perturbing` (they are moved along directions).

Here are the models that need no library: linear, the sum of all embeddings, and any Python function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from colonnade.arrays import Matrix, Numbers
from colonnade.errors import DataError, JobError
from colonnade.losses import Loss
from colonnade.models.linear import rows_of


class Model(Protocol):
    @property
    def parameters(self) -> int:
        """How many parameters there are."""
        ...

    def initial(self, rng: np.random.Generator) -> Numbers:
        """Return the parameters to start from."""
        ...

    def forward(self, W: Numbers, X: Matrix) -> Numbers:
        """Return the outputs for every parameter vector (a row of W) and every row of X: [vectors, rows,
        outputs]."""
        ...


@runtime_checkable
class Differentiable(Model, Protocol):
    """A model with gradients: not a black box to its owner."""

    def gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        """Return the gradient with respect to w of sum(d_out * output)."""
        ...

    def input_gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        """Return the same with respect to X."""
        ...


@runtime_checkable
class Replacing(Protocol):
    """An F0 that need not start again when one client's embeddings are exchanged for others."""

    def forward_replaced(self, w: Numbers, C: Numbers, own: slice, outputs: Numbers) -> Numbers:
        """Return the outputs [vectors, rows, outputs] for C with its columns `own` replaced by each of
        `outputs`."""
        ...


@dataclass(frozen=True, eq=False)
class Perturbations:
    """Where the outputs of a client are moved to: row b of point p becomes h_b + steps[p, b] * bases[p, b].

    Where all rows share a base and differ only in the step, the first layer of a server's model sees P new
    vectors and not P B: a linear layer turns bases into changes [P, H] once, and the rest is one
    multiplication and addition for every hidden unit.
    """

    bases: Numbers  # [points, B, d], or [points, 1, d] where all rows share them
    steps: Numbers  # [points, B]

    def of(self, x: Numbers, changes: Numbers | None = None) -> Numbers:
        """Return x [B, width] moved to every point: [points, B, width].

        `changes` stand in for the bases where x is no longer in their space, as after a linear layer.
        """
        moved: Numbers = x + self.steps[..., None] * (self.bases if changes is None else changes)
        return moved


@runtime_checkable
class Perturbing(Protocol):
    """An F0 that need not start again when one client's embeddings are moved.

    Any other is evaluated at the moved outputs.
    """

    def losses_perturbed(
        self, w: Numbers, C: Numbers, own: slice, points: Perturbations, loss: Loss, y: Numbers
    ) -> Numbers:
        """Return the losses [points, rows] for C with its columns `own` moved."""
        ...


@dataclass(frozen=True)
class Linear:
    """X W, with `outputs` scores a row; w holds W row by row, then the bias if there is one."""

    columns: int
    outputs: int = 1
    bias: bool = False
    start: float = 0.0  # standard deviation of the first weights, times 1 / sqrt(columns)

    @property
    def parameters(self) -> int:
        return (self.columns + self.bias) * self.outputs

    def initial(self, rng: np.random.Generator) -> Numbers:
        w = np.zeros(self.parameters)
        if self.start:
            inner = self.columns * self.outputs
            w[:inner] = rng.standard_normal(inner) * self.start / np.sqrt(self.columns)
        return w

    def forward(self, W: Numbers, X: Matrix) -> Numbers:
        n, inner = X.shape[0], self.columns * self.outputs
        stacked = W[:, :inner].reshape(len(W), self.columns, self.outputs).swapaxes(0, 1)
        out = rows_of(X).scores(0, n, stacked.reshape(self.columns, -1))  # one product for all vectors
        out = out.reshape(n, len(W), self.outputs).swapaxes(0, 1)
        return out + W[:, None, inner:] if self.bias else out

    def forward_replaced(self, w: Numbers, C: Numbers, own: slice, outputs: Numbers) -> Numbers:
        W = w[: self.columns * self.outputs].reshape(self.columns, self.outputs)
        replaced: Numbers = self.forward(w[None], C) + (outputs - C[:, own]) @ W[own]
        return replaced

    def losses_perturbed(
        self, w: Numbers, C: Numbers, own: slice, points: Perturbations, loss: Loss, y: Numbers
    ) -> Numbers:
        W = w[: self.columns * self.outputs].reshape(self.columns, self.outputs)
        return losses_of(loss, points.of(self.forward(w[None], C)[0], points.bases @ W[own]), y)

    def gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        inner = rows_of(X).gradient(0, X.shape[0], d_out).ravel()
        return np.concatenate([inner, d_out.sum(axis=0)]) if self.bias else inner

    def input_gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        W = w[: self.columns * self.outputs].reshape(self.columns, self.outputs)
        gradient: Numbers = d_out @ W.T
        return gradient


@dataclass(frozen=True)
class Sum:
    """F0 without parameters: the embeddings of all parties are added up, output by output.

    The sum is in a `unit`, and an `offset` is added to it.
    """

    columns: int
    outputs: int = 1
    parameters: int = 0
    unit: float = 1.0
    offset: float = 0.0

    def initial(self, rng: np.random.Generator) -> Numbers:
        return np.zeros(0)

    def forward(self, W: Numbers, X: Matrix) -> Numbers:
        total = self._measured(self._total(X))
        return np.broadcast_to(total, (len(W), *total.shape))

    def _total(self, X: Matrix) -> Numbers:
        total: Numbers = np.asarray(X).reshape(X.shape[0], -1, self.outputs).sum(axis=1)
        return total

    def _measured(self, total: Numbers) -> Numbers:
        return total if self.unit == 1.0 and not self.offset else self.unit * total + self.offset

    def forward_replaced(self, w: Numbers, C: Numbers, own: slice, outputs: Numbers) -> Numbers:
        return self._measured(self._total(C) + (outputs - C[:, own]))

    def losses_perturbed(
        self, w: Numbers, C: Numbers, own: slice, points: Perturbations, loss: Loss, y: Numbers
    ) -> Numbers:
        return losses_of(loss, self._measured(points.of(self._total(C))), y)

    def gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        return np.zeros(0)

    def input_gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        return self.unit * np.tile(d_out, (1, self.columns // self.outputs))


@dataclass(frozen=True)
class Function:
    """Any Python function (parameters, rows) -> outputs, one or several a row."""

    call: Callable[[Numbers, Numbers], ArrayLike]
    parameters: int
    name: str = "function"
    start: Callable[[np.random.Generator], Numbers] | None = None

    def initial(self, rng: np.random.Generator) -> Numbers:
        return np.zeros(self.parameters) if self.start is None else self.start(rng)

    def forward(self, W: Numbers, X: Matrix) -> Numbers:
        rows = dense(X)
        return np.stack([shaped(self.call(w, rows), len(rows), self.name) for w in W])


def differentiable(model: Model) -> Differentiable:
    """Return the same model, as one that has gradients; JobError if it has none."""
    if not isinstance(model, Differentiable):
        raise JobError("this algorithm needs gradients, and the model has none")
    return model


def free_parameters(model: Model, columns: Sequence[int]) -> tuple[int, ...]:
    """Return the places among a model's parameters of these columns' weights; a model that is not linear has
    none.

    >>> free_parameters(Linear(3, outputs=2), [2])
    (4, 5)
    """
    if not isinstance(model, Linear):
        return ()
    return tuple(column * model.outputs + output for column in columns for output in range(model.outputs))


def losses_of(loss: Loss, z: Numbers, y: Numbers) -> Numbers:
    """Return the losses [..., rows] of scores [..., rows, outputs]."""
    return loss.value(z if loss.task == "multiclass" else z[..., 0], y)


def dense(X: Matrix) -> Numbers:
    """Return rows as a plain array: most black boxes know nothing of sparse matrices."""
    return X if isinstance(X, np.ndarray) else np.asarray(X.toarray())


def shaped(outputs: ArrayLike, rows: int, name: str) -> Numbers:
    """Return the outputs of a model as an array [rows, outputs]; DataError if they cannot be that."""
    found = np.asarray(outputs, dtype=np.float64)
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or len(found) != rows:
        raise DataError(
            f"model {name}: gave an array of shape {found.shape} for {rows} rows; give a row of outputs each"
        )
    if not np.isfinite(found).all():
        raise DataError(f"model {name}: an output is NaN or infinite")
    return found
