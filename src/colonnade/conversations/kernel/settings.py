"""What a plan says to kernel machines alone: the kernel, its random features, and what is kept of them."""

from __future__ import annotations

from typing import Literal

from colonnade.job import Section


class KernelSettings(Section, frozen=True):
    """The choices of one kernel algorithm: `features` in all, of which a step adds `block`."""

    kind: Literal["gaussian", "laplace"]
    sigma: float | Literal["median"]
    fraction: float | Literal["auto"]
    features: int
    block: int
    step: Literal["falling", "constant"]
    momentum: float
    omega: Literal["private", "shared"]
    cache: bool
