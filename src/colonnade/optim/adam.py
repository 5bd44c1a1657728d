"""Adam (Kingma and Ba 2015) on NumPy: number for number what torch does with its usual options.

What it remembers has torch's names, so that a run that began with torch goes on without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.arrays import Numbers

BETA_1, BETA_2, SMALL = 0.9, 0.999, 1e-8


@dataclass
class AdamState:
    """Steps taken, and running means of gradients and of their squares."""

    exp_avg: Numbers
    exp_avg_sq: Numbers
    step: int = 0


class Adam:
    """The optimiser; its state belongs to the owner of the parameters."""

    rate = 1e-3

    def init(self, w: Numbers) -> AdamState:
        return AdamState(np.zeros_like(w), np.zeros_like(w))

    def step(self, state: AdamState, w: Numbers, gradient: Numbers, rate: float) -> Numbers:
        g = np.asarray(gradient, dtype=w.dtype)
        state.step += 1
        state.exp_avg = state.exp_avg + w.dtype.type(1 - BETA_1) * (g - state.exp_avg)
        state.exp_avg_sq = w.dtype.type(BETA_2) * state.exp_avg_sq + w.dtype.type(1 - BETA_2) * g * g
        length = rate / (1 - BETA_1**state.step)
        spread = np.sqrt(state.exp_avg_sq) / w.dtype.type(math.sqrt(1 - BETA_2**state.step))
        moved: Numbers = w - w.dtype.type(length) * (state.exp_avg / (spread + w.dtype.type(SMALL)))
        return moved

    def plain(self, state: AdamState) -> dict[str, Any]:
        if not state.step:
            return {}
        return {
            "step": np.float32(state.step),
            "exp_avg": state.exp_avg.copy(),
            "exp_avg_sq": state.exp_avg_sq.copy(),
        }

    def restore(self, state: AdamState, plain: Any) -> None:
        if plain:
            state.step = int(plain["step"])
            state.exp_avg, state.exp_avg_sq = np.array(plain["exp_avg"]), np.array(plain["exp_avg_sq"])
