"""Networks on torch, on the CPU or a GPU.

A module becomes a function of one flat parameter vector. The outputs at several vectors are computed in
one batched call (`torch.func.vmap`), which is what zeroth-order training spends its time on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from colonnade.arrays import Matrix, Numbers
from colonnade.job import Device
from colonnade.losses import Loss
from colonnade.models.backend import Precision, device_of, losses_of, tensor, torch
from colonnade.models.blackbox import Perturbations, dense
from colonnade.models.cuda_graph import CudaGraph

functional_call, vmap = torch.func.functional_call, torch.func.vmap


NARROW = 32  # outputs
# hidden numbers computed at one time: what stays in a cache, and what fits a GPU's memory with ease
STRETCH = {"cpu": 2**20, "cuda": 2**26}


class NeuralNetwork:
    """A torch module as a function of one parameter vector that belongs to the caller.

    The module's own tensors are views of one buffer, into which the vector of every call is copied: to hand
    a module its parameters by name takes longer than a small network takes to compute.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        shape: tuple[int, ...] = (),
        precision: Precision = "float32",
        device: Device = "cpu",
    ) -> None:
        self._type, self._device = np.dtype(precision), device_of(device)
        self._module = module.eval().to(getattr(torch, precision))
        self._shape = shape  # what one row looks like to the module, if not flat
        self._names = [name for name, _ in module.named_parameters()]
        self._shapes = [p.shape for p in module.parameters()]
        self._sizes = [p.numel() for p in module.parameters()]
        self._many = vmap(self._apply, in_dims=(0, None), randomness="different")
        self._flat = self._bind()

    @property
    def parameters(self) -> int:
        return sum(self._sizes)

    @property
    def layout(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of the tensors in the parameter vector, in its order."""
        return [(name, tuple(shape)) for name, shape in zip(self._names, self._shapes, strict=True)]

    def buffers(self) -> dict[str, Numbers]:
        """Return the arrays that the module stores beside its parameters; they are not trained here."""
        kept = self._module.state_dict()
        return {name: b.cpu().numpy() for name, b in self._module.named_buffers() if name in kept}

    def restore(self, buffers: dict[str, Numbers]) -> None:
        """Put back what `buffers` gave."""
        self._module.load_state_dict({n: torch.from_numpy(v) for n, v in buffers.items()}, strict=False)

    def initial(self, rng: np.random.Generator) -> Numbers:
        """Return the parameters that the module's layers start from, drawn on the CPU: all devices start
        alike."""
        self._module.to("cpu")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63)))
            for layer in self._module.modules():
                reset = getattr(layer, "reset_parameters", None)
                if callable(reset):
                    reset()
        self._flat = self._bind()
        return np.array(self._array(self._flat), dtype=self._type)

    def _bind(self) -> torch.Tensor:
        """Move all parameters into one buffer on the device, and make the module's tensors views of it."""
        parameters = list(self._module.to(self._device).parameters())
        flat = torch.cat([p.detach().reshape(-1) for p in parameters])
        for parameter, part in zip(parameters, torch.split(flat, self._sizes), strict=True):
            parameter.data = part.view(parameter.shape)
        return flat

    def forward(self, W: Numbers, X: Matrix) -> Numbers:
        with torch.no_grad():
            rows = self._rows(X)
            # one vector is the usual case, and a plain call is quicker than a batch of one
            out = self._many(self._tensor(W), rows) if len(W) > 1 else self._at(W[0])(rows)
        return self._array(out.reshape(len(W), X.shape[0], -1))

    def gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        out = self._at(w)(self._rows(X))
        parts = self._back(out, list(self._module.parameters()), d_out)
        return self._array(torch.cat([part.reshape(-1) for part in parts]))

    def input_gradient(self, w: Numbers, X: Matrix, d_out: Numbers) -> Numbers:
        rows = self._rows(X).clone().requires_grad_()
        (gradient,) = self._back(self._at(w)(rows), [rows], d_out)
        return self._array(gradient).reshape(X.shape)

    def _at(self, w: Numbers) -> torch.nn.Module:
        """Return the module with these parameters."""
        with torch.no_grad():
            self._flat.copy_(self._tensor(w))
        return self._module

    def _back(
        self, out: torch.Tensor, wrt: Sequence[torch.Tensor], d_out: Numbers
    ) -> tuple[torch.Tensor, ...]:
        """Return the gradients of sum(d_out * out) by each of `wrt`."""
        seed = self._tensor(d_out).reshape(out.shape)
        return torch.autograd.grad(out, wrt, seed, materialize_grads=True)

    def _apply(self, vector: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = functional_call(self._module, self._named(vector), (rows,))
        return out

    def _named(self, vector: torch.Tensor) -> dict[str, torch.Tensor]:
        parts = torch.split(vector, self._sizes)
        return {n: p.view(s) for n, p, s in zip(self._names, parts, self._shapes, strict=True)}

    def _rows(self, X: Matrix) -> torch.Tensor:
        rows = self._tensor(dense(X))
        return rows.reshape(-1, *self._shape) if self._shape else rows

    def _tensor(self, array: Numbers) -> torch.Tensor:
        return tensor(array, self._type, self._device)

    def _array(self, found: torch.Tensor) -> Numbers:
        return np.asarray(found.cpu().numpy())


class Layered(NeuralNetwork):
    """Layers one after the other, the first of them fully connected.

    As a server it need not start again when one client's embeddings are exchanged or moved: the first layer
    is computed once, and only that client's columns of it for every exchange.
    """

    def __init__(
        self, layers: torch.nn.Sequential, precision: Precision = "float32", device: Device = "cpu"
    ) -> None:
        super().__init__(layers, precision=precision, device=device)
        self._first = _connected(layers[0])
        self._rest = layers[1:]
        self._kept: torch.Tensor | None = None
        self._graphs: dict[tuple[object, ...], CudaGraph] = {}

    def forward_replaced(self, w: Numbers, C: Numbers, own: slice, outputs: Numbers) -> Numbers:
        P, B = outputs.shape[:2]
        with torch.no_grad():
            self._at(w)
            first, weight = self._first(self._rows(C)), self._first.weight[:, own]
            moved = self._tensor(np.subtract(outputs, C[:, own]).reshape(P * B, -1))
            hidden = (moved @ weight.T).view(P, B, -1).add_(first)
            return self._array(self._above(hidden))

    def losses_perturbed(
        self, w: Numbers, C: Numbers, own: slice, points: Perturbations, loss: Loss, y: Numbers
    ) -> Numbers:
        arrays = (w, C, points.bases, points.steps, y)
        with torch.no_grad():
            if self._device.type == "cpu":
                found = self._losses_perturbed(own, loss, *(self._tensor(array) for array in arrays))
                return self._array(found)
            shapes = [array.shape for array in arrays]
            key = (own.start, own.stop, loss.name, *shapes)
            if key not in self._graphs:
                compute = partial(self._losses_perturbed, own, loss)
                self._graphs[key] = CudaGraph(compute, shapes, getattr(torch, self._type.name))
            return self._graphs[key](*arrays)

    def _losses_perturbed(
        self,
        own: slice,
        loss: Loss,
        w: torch.Tensor,
        C: torch.Tensor,
        bases: torch.Tensor,
        steps: torch.Tensor,
        y: torch.Tensor,
    ) -> torch.Tensor:
        self._flat.copy_(w)
        first, changes = self._first(C), bases @ self._first.weight[:, own].T
        some, found = max(1, STRETCH[self._device.type] // first.numel()), []
        for step, change in zip(torch.split(steps[..., None], some), torch.split(changes, some), strict=True):
            hidden = torch.addcmul(first, step, change, out=self._room(len(step), *first.shape))
            found.append(losses_of(loss, self._above(hidden), y))
        return torch.cat(found)

    def _room(self, *shape: int) -> torch.Tensor | None:
        """Return a buffer that is kept between calls: to ask the system for it may cost more than to fill
        it."""
        if self._device.type != "cpu":  # torch keeps a GPU's memory by itself
            return None
        size = math.prod(shape)
        if self._kept is None or self._kept.numel() < size:
            self._kept = torch.empty(size, dtype=getattr(torch, self._type.name))
        return self._kept[:size].view(shape)

    def _above(self, hidden: torch.Tensor) -> torch.Tensor:
        """Apply the other layers to [points, rows, hidden], which may be overwritten."""
        P, B, H = hidden.shape
        out: torch.Tensor = self._rest(hidden.view(P * B, H))
        return out.view(P, B, -1)


def _connected(layer: torch.nn.Module) -> torch.nn.Linear:
    if not isinstance(layer, torch.nn.Linear):
        raise TypeError(f"the first layer must be fully connected, not {type(layer).__name__}")
    return layer


def network_of(
    module: torch.nn.Module,
    shape: tuple[int, ...] = (),
    precision: Precision = "float32",
    device: Device = "cpu",
) -> NeuralNetwork:
    """Return the model of a torch module; `Layered`, which is quicker, where its layers allow that."""
    if isinstance(module, torch.nn.Sequential) and not shape and isinstance(module[0], torch.nn.Linear):
        return Layered(module, precision, device)
    return NeuralNetwork(module, shape, precision, device)


def mlp(
    columns: int,
    hidden: Sequence[int],
    outputs: int,
    precision: Precision = "float32",
    device: Device = "cpu",
) -> Layered:
    """Return fully connected layers with ReLU between them; section 5.1 of AsyREVEL has one of 128."""
    widths = [columns, *hidden, outputs]
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(widths):
        kind = Narrow if after < NARROW else torch.nn.Linear
        layers += [kind(before, after), torch.nn.ReLU(inplace=True)]
    return Layered(torch.nn.Sequential(*layers[:-1]), precision, device)


def cnn(
    shape: tuple[int, int, int],
    channels: Sequence[int],
    outputs: int,
    precision: Precision = "float32",
    device: Device = "cpu",
) -> NeuralNetwork:
    """Return a network for images of [colours, height, width]: convolutions of 3 x 3 that halve them, and a
    layer on top."""
    layers: list[torch.nn.Module] = []
    for before, after in pairwise([shape[0], *channels]):
        layers += [
            torch.nn.Conv2d(before, after, 3, padding=1),
            torch.nn.ReLU(inplace=True),
            torch.nn.MaxPool2d(2),
        ]
    left = math.prod(size >> len(channels) for size in shape[1:]) * channels[-1]
    layers += [torch.nn.Flatten(), torch.nn.Linear(left, outputs)]
    return NeuralNetwork(torch.nn.Sequential(*layers), shape, precision, device)


class Narrow(torch.nn.Linear):
    """A fully connected layer of few outputs: the product is twice as quick the other way round."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias[:, None], self.weight, x.T).T
