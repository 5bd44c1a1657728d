"""The part of a plan that only the kernel conversation has: kernel, random features, what is kept."""

from __future__ import annotations

from typing import Literal

from colonnade.job import Section
from colonnade.job.sections import SamplingName


class KernelSettings(Section, frozen=True):
    """The choices of one kernel machine; it has `features` in all, and a round adds `block` of them.

    `step` and `momentum` are those of an update; momentum begins when there are no new features.
    """

    kind: Literal["gaussian", "laplace"]
    sigma: float | Literal["median"]
    fraction: float | Literal["auto"]
    features: int
    block: int
    step: Literal["falling", "constant"]
    momentum: float
    omega: Literal["private", "shared"]
    bits: Literal[16, 32]
    chosen_l2: bool  # lambda is chosen with the bandwidth; else it is the objective's
    cache: bool
    sampling: SamplingName = "passes"
