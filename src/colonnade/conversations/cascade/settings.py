"""The part of a plan that only cascades have: what is asked and replied, how arrays travel, which models."""

from __future__ import annotations

from typing import Literal

from colonnade.job import ModelSpecs, Section
from colonnade.job.presets import Bits, ReplyName, SmoothingName
from colonnade.job.sections import SamplingName

Precision = Literal["float32", "float64"]


class Questions(Section, frozen=True):
    """What a client asks and the server replies.

    `values`: function values at points moved by `mu` along `directions` random directions of the parameters;
    `deltas`: differences of the loss where outputs are moved, one a direction or, `per` sample, one a row;
    `gradient`: the derivative of the loss by every output.
    """

    reply: ReplyName
    smoothing: SmoothingName
    directions: int
    mu: float
    two_sided: bool
    per: Literal["batch", "sample"]
    shared_bases: bool = True


class Packing(Section, frozen=True):
    """How arrays are packed: `forward` from clients to the server, `backward` for its replies.

    A `top` of 0 sends all numbers; otherwise only the largest travel. With a memory, changes of them travel.
    """

    precision: Precision
    forward_bits: Bits
    backward_bits: Bits
    forward_range: Literal["message", "column"]
    forward_rounding: Literal["chance", "nearest"]
    forward_memory: bool
    forward_top: float
    backward_top: float


class CascadeSettings(Section, frozen=True):
    """The choices of one cascade."""

    questions: Questions
    packing: Packing
    model: ModelSpecs
    server: Literal["zeroth", "first"]  # how F0 learns
    server_step: float | Literal["auto"]
    assumed_delay: int | Literal["bound"] | None
    decay: Literal["linear", "none"]
    local_steps: int
    optimizer: str
    optimizer_options: dict[str, bool | int | float | list[float]]
    silence: int  # answers during which a client may be unheard
    delay_bound: int  # answers that an output in the server's table may be old at the most
    sampling: SamplingName = "passes"

    @property
    def precision(self) -> Precision:
        return self.packing.precision

    @property
    def reply(self) -> ReplyName:
        return self.questions.reply
