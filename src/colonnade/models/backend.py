"""Torch, imported here and nowhere else (`pip install 'colonnade[torch]'`): devices, arrays, losses.

Parties speak NumPy. What is here carries arrays to the device on which a network computes, and evaluates a
loss where the scores are, so that only one number a row comes back.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np

from colonnade.arrays import Numbers
from colonnade.errors import JobError
from colonnade.job import Device
from colonnade.losses import Loss

try:
    import torch as torch  # other files import it from here
except ImportError as error:
    raise JobError(
        "such networks, and optimisers other than plain sgd and adam, need torch, which is not installed; "
        "pip install 'colonnade[torch]'"
    ) from error

Precision = Literal["float32", "float64"]

if "OMP_NUM_THREADS" not in os.environ:
    # products this small are faster on one core, and several parties may share this machine
    torch.set_num_threads(1)


def device_of(name: Device) -> torch.device:
    """Return the device of this name; `auto` is the GPU of this machine, if torch sees one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise JobError(
            "model.device = 'cuda': torch sees no CUDA device on this machine; use 'cpu', or 'auto' to take "
            "one where there is one"
        )
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def tensor(array: Numbers, precision: np.dtype[np.floating[Any]], device: torch.device) -> torch.Tensor:
    """Return the array on a device; on the CPU without a copy where that is possible, so do not write to
    it."""
    # an array that was received cannot be written to, and torch warns about those
    return torch.from_numpy(np.require(array, precision, ["C", "W"])).to(device)


def losses_of(loss: Loss, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return `loss.value` of scores [..., rows, outputs] for the labels of the rows: [..., rows]."""
    found: torch.Tensor = loss.in_torch(torch, z if loss.task == "multiclass" else z[..., 0], y)
    return found
