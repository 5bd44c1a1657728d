"""A computation on a GPU as a CUDA graph, recorded once and replayed: one copy up, one launch, one copy down.

A server's answer is some thirty small kernels, and to start one from Python takes longer than to run it. A
CUDA graph starts all of them at once. It reads its inputs from where they were when it was recorded, so they
are copied there first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from colonnade.arrays import Numbers
from colonnade.models.backend import torch

Flat = TypeVar("Flat", Numbers, torch.Tensor)
Found = TypeVar("Found")

WARM_UP = 3  # before recording, so that libraries have chosen their kernels and taken their memory


class CudaGraph:
    """Evaluates `compute` on the GPU, for NumPy arrays that always have the same shapes and one type."""

    def __init__(
        self, compute: Callable[..., torch.Tensor], shapes: Sequence[tuple[int, ...]], dtype: torch.dtype
    ) -> None:
        sizes = [int(np.prod(shape)) for shape in shapes]
        host = torch.zeros(sum(sizes), dtype=dtype, pin_memory=True)
        self._up, self._there = host, host.to("cuda")
        self._inputs = _parts(host.numpy(), sizes, shapes)
        given = _parts(self._there, sizes, shapes)
        self._graph, self._found = recorded(lambda: compute(*given))
        self._down = torch.empty_like(self._found, device="cpu", pin_memory=True)

    def __call__(self, *arrays: Numbers) -> Numbers:
        for place, array in zip(self._inputs, arrays, strict=True):
            place[...] = array
        self._there.copy_(self._up, non_blocking=True)
        self._graph.replay()
        self._down.copy_(self._found, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return np.array(self._down.numpy())


def recorded(compute: Callable[[], Found]) -> tuple[torch.cuda.CUDAGraph, Found]:
    """Return the graph of a computation, and where it leaves what it found; computes it a few times
    beforehand."""
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM_UP):
            compute()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = compute()
    return graph, found


def _parts(flat: Flat, sizes: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> list[Flat]:
    """Return a flat array cut into parts of these sizes, as views of these shapes."""
    ends = np.cumsum(sizes).tolist()
    return [
        flat[end - size : end].reshape(shape) for size, end, shape in zip(sizes, ends, shapes, strict=True)
    ]
