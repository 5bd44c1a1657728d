"""The one table: an algorithm's name -> the choices it is made of.

An algorithm of a paper is a conversation plus orthogonal choices. What is not in the table does not
exist. What a job may combine with an algorithm is in `run.rules` and in the conversation's own record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Bits = Literal[1, 2, 4, 8, 32]
Defaults = Mapping[str, Mapping[str, int | str]]
EstimatorName = str  # of a row in `optim.estimators.ESTIMATORS`
ScheduleName = Literal["async", "sync"]
DirectionName = Literal["plain", "lbfgs"]
ReplyName = Literal["values", "deltas", "gradient", "embeddings"]
SmoothingName = Literal["gaussian", "sphere", "rademacher", "coordinate"]


@dataclass(frozen=True)
class Preset:
    """One algorithm: a conversation and the choices that plug into it.

    `estimator` and `direction` are choices of linear models, `reply` to `local_steps` those of a cascade,
    `capped` is one of kernel machines, `additive` one of trees.
    """

    name: str
    summary: str
    paper: str
    conversation: str  # a row of `run.registry`
    schedule: ScheduleName  # async: rounds or parties may run ahead of each other
    estimator: EstimatorName = "sgd"
    direction: DirectionName = "plain"
    reply: ReplyName | None = None
    smoothing: SmoothingName | None = None
    two_sided: bool = False
    forward_bits: Bits = 32
    backward_bits: Bits = 32
    forward_memory: bool = False
    local_steps: int = 1
    capped: bool = False  # random features are added up to a number; else in every round
    additive: bool = False  # every tree uses the columns of one party alone
    private: bool = False  # makes no sense without a privacy mechanism
    defaults: Defaults = field(default_factory=dict)  # what a job's sections take where the job is silent


# a pass of a linear model is cheap, and it takes more of them than other models do; where steps do not fade
# over them, they are no more than a limit
PASSES: Defaults = {"train": {"epochs": 30}}
MORE_PASSES: Defaults = {"train": {"epochs": 60}}

MANY_DIRECTIONS: Defaults = {"cascade": {"directions": 100}}

DEFAULT_ALGORITHM = "lbfgs"
"""What a job gets that names no algorithm: it needs no setting, and never diverges."""

_TABLE = (
    Preset(
        name=DEFAULT_ALGORITHM,
        summary="synchronous L-BFGS on all rows, each step as long as is best: for any data, few messages",
        paper="-",
        conversation="full",
        schedule="sync",
        defaults={"train": {"epochs": 300, "l2": "auto"}},
    ),
    Preset(
        name="vfb2-sgd",
        summary="asynchronous: theta goes back to every party, veiled by default; plain SGD",
        paper="VFB2",
        conversation="backward",
        schedule="async",
        estimator="sgd",
        defaults=PASSES,
    ),
    Preset(
        name="vfb2-svrg",
        summary=(
            "asynchronous: theta goes back to every party, veiled by default; variance reduced by snapshots"
        ),
        paper="VFB2",
        conversation="backward",
        schedule="async",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="vfb2-saga",
        summary=(
            "asynchronous: theta goes back to every party, veiled by default; "
            "variance reduced by a memory of thetas"
        ),
        paper="VFB2",
        conversation="backward",
        schedule="async",
        estimator="saga",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="vfb-sgd",
        summary="synchronous twin, step for step as on pooled data; plain SGD",
        paper="VFB2",
        conversation="backward",
        schedule="sync",
        estimator="sgd",
        defaults=PASSES,
    ),
    Preset(
        name="vfb-svrg",
        summary="synchronous twin, step for step as on pooled data; variance reduced by snapshots",
        paper="VFB2",
        conversation="backward",
        schedule="sync",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="vfb-saga",
        summary="synchronous twin, step for step as on pooled data; variance reduced by a memory of thetas",
        paper="VFB2",
        conversation="backward",
        schedule="sync",
        estimator="saga",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="afsgd-vp",
        summary="asynchronous, label holders train their own blocks only; plain SGD",
        paper="AFVP",
        conversation="pull",
        schedule="async",
        estimator="sgd",
        defaults=PASSES,
    ),
    Preset(
        name="afsvrg-vp",
        summary="asynchronous, label holders train their own blocks only; variance reduced by snapshots",
        paper="AFVP",
        conversation="pull",
        schedule="async",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="afsaga-vp",
        summary=(
            "asynchronous, label holders train their own blocks only; variance reduced by a memory of thetas"
        ),
        paper="AFVP",
        conversation="pull",
        schedule="async",
        estimator="saga",
        defaults=MORE_PASSES,
    ),
    # AsySQN's own pairs are noisy: they need a delta and a gamma that are picked for the data
    Preset(
        name="asysqn-sgd",
        summary=(
            'asynchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
            "as published); plain SGD"
        ),
        paper="AsySQN",
        conversation="pull",
        schedule="async",
        estimator="sgd",
        direction="lbfgs",
        defaults=PASSES,
    ),
    Preset(
        name="asysqn-svrg",
        summary=(
            'asynchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
            "as published); variance reduced by snapshots"
        ),
        paper="AsySQN",
        conversation="pull",
        schedule="async",
        estimator="svrg",
        direction="lbfgs",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="asysqn-saga",
        summary=(
            'asynchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
            "as published); variance reduced by a memory of thetas"
        ),
        paper="AsySQN",
        conversation="pull",
        schedule="async",
        estimator="saga",
        direction="lbfgs",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="synsqn-sgd",
        summary=(
            'synchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
            "as published); plain SGD"
        ),
        paper="AsySQN",
        conversation="pull",
        schedule="sync",
        estimator="sgd",
        direction="lbfgs",
        defaults=PASSES,
    ),
    Preset(
        name="synsqn-svrg",
        summary=(
            'synchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
            "as published); variance reduced by snapshots"
        ),
        paper="AsySQN",
        conversation="pull",
        schedule="sync",
        estimator="svrg",
        direction="lbfgs",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="synsqn-saga",
        summary=(
            'synchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
            "as published); variance reduced by a memory of thetas"
        ),
        paper="AsySQN",
        conversation="pull",
        schedule="sync",
        estimator="saga",
        direction="lbfgs",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="fd-svrg",
        summary="synchronous SVRG, labels everywhere: what AsySQN and FDSKL are compared with",
        paper="FD-SVRG",
        conversation="pull",
        schedule="sync",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    Preset(
        name="secureboost",
        summary="gradient-boosted trees over all parties' columns, level by level from histograms",
        paper="SecureBoost",
        conversation="boost",
        schedule="sync",
        defaults={"train": {"epochs": 100}, "trees": {"bits": 6}},
    ),
    Preset(
        name="boosted-sum",
        summary=(
            "ours: gradient-boosted trees, each over one party's columns alone: a score is a sum over parties"
        ),
        paper="SecureBoost",
        conversation="boost",
        schedule="sync",
        additive=True,
        defaults={"train": {"epochs": 100}, "trees": {"bits": 6}},
    ),
    Preset(
        name="asyrevel-gau",
        summary="asynchronous: black-box models learn from function values, Gaussian directions",
        paper="AsyREVEL",
        conversation="cascade",
        schedule="async",
        reply="values",
        smoothing="gaussian",
    ),
    Preset(
        name="asyrevel-uni",
        summary="asynchronous: black-box models learn from function values, unit-sphere directions",
        paper="AsyREVEL",
        conversation="cascade",
        schedule="async",
        reply="values",
        smoothing="sphere",
    ),
    Preset(
        name="synrevel-gau",
        summary="synchronous: black-box models learn from function values, Gaussian directions",
        paper="AsyREVEL",
        conversation="cascade",
        schedule="sync",
        reply="values",
        smoothing="gaussian",
    ),
    Preset(
        name="synrevel-uni",
        summary="synchronous: black-box models learn from function values, unit-sphere directions",
        paper="AsyREVEL",
        conversation="cascade",
        schedule="sync",
        reply="values",
        smoothing="sphere",
    ),
    Preset(
        name="tig",
        summary="asynchronous, the server sends the gradient of every output: what AsyREVEL is compared with",
        paper="AsyREVEL",
        conversation="cascade",
        schedule="async",
        reply="gradient",
    ),
    Preset(
        name="syntig",
        summary="the synchronous twin of tig: back-propagation split between client and server",
        paper="AsyREVEL",
        conversation="cascade",
        schedule="sync",
        reply="gradient",
    ),
    Preset(
        name="czofo",
        summary=(
            "asynchronous split networks: the server answers with loss differences in 8 bits, along "
            "random directions"
        ),
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="async",
        reply="deltas",
        smoothing="gaussian",
        forward_bits=8,
        backward_bits=8,
        defaults=MANY_DIRECTIONS,
    ),
    Preset(
        name="czofo-central",
        summary=(
            "asynchronous split networks: the server answers with loss differences in 8 bits, to both "
            "sides of random directions"
        ),
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="async",
        reply="deltas",
        smoothing="gaussian",
        two_sided=True,
        forward_bits=8,
        backward_bits=8,
        defaults=MANY_DIRECTIONS,
    ),
    Preset(
        name="czofo-coord",
        summary=(
            "asynchronous split networks: the server answers with loss differences in 8 bits, along "
            "every output"
        ),
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="async",
        reply="deltas",
        smoothing="coordinate",
        two_sided=True,
        forward_bits=8,
        backward_bits=8,
    ),
    Preset(
        name="syn-czofo",
        summary=(
            "synchronous split networks: the server answers with loss differences in 8 bits, as in "
            "czofo, whose twin it is; ours"
        ),
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="sync",
        reply="deltas",
        smoothing="gaussian",
        forward_bits=8,
        backward_bits=8,
        defaults=MANY_DIRECTIONS,
    ),
    Preset(
        name="czofo-ef",
        summary="ours: czofo with outputs in 2 bits, as changes against what the server has (error feedback)",
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="async",
        reply="deltas",
        smoothing="gaussian",
        forward_bits=2,
        backward_bits=4,
        forward_memory=True,
        defaults=MANY_DIRECTIONS,
    ),
    Preset(
        name="split",
        summary="split learning: synchronous, the server sends the gradient of every output",
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="sync",
        reply="gradient",
    ),
    Preset(
        name="vafl",
        summary="asynchronous split learning: the server sends the gradient of every output",
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="async",
        reply="gradient",
    ),
    Preset(
        name="vafl-dp",
        summary=(
            "asynchronous split learning on noisy gradients: "
            "epsilon for every label, accounted for and enforced"
        ),
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="async",
        reply="gradient",
        private=True,
        defaults={"privacy": {"mechanism": "gradient"}},
    ),
    Preset(
        name="c-vfl",
        summary=(
            "every party gets all labels, all outputs and the server's model in 8 bits, and makes 5 "
            "local steps"
        ),
        paper="C-VFL",
        conversation="exchange",
        schedule="sync",
        reply="embeddings",
        forward_bits=8,
        backward_bits=8,
        local_steps=5,
    ),
    Preset(
        name="zoo-vfl",
        summary="asynchronous: networks on both sides learn from function values",
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="async",
        reply="values",
        smoothing="gaussian",
    ),
    Preset(
        name="syn-zoo-vfl",
        summary="synchronous: networks on both sides learn from function values",
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="sync",
        reply="values",
        smoothing="gaussian",
    ),
    Preset(
        name="fdskl",
        summary=(
            "kernel machine by doubly stochastic gradients: "
            "new random features in every round, a constant step; "
            "active parties take turns, rounds overlap only with train.ahead"
        ),
        paper="FDSKL",
        conversation="kernel",
        schedule="async",
        defaults={"train": {"l2": "auto"}},
    ),
    Preset(
        name="fdskl-capped",
        summary=(
            "ours: as many random features as fit, then descent with momentum on their coefficients; "
            "turns as in fdskl"
        ),
        paper="FDSKL",
        conversation="kernel",
        schedule="async",
        capped=True,
        defaults={"train": {"epochs": 40, "l2": "auto"}},
    ),
    Preset(
        name="pp-svmv",
        summary="support vector machine on the whole kernel matrix, summed securely to one active party",
        paper="FDSKL",
        conversation="gram",
        schedule="sync",
        defaults={"train": {"l2": "auto"}},
    ),
)
PRESETS = {preset.name: preset for preset in _TABLE}
