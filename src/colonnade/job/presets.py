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
EstimatorName = Literal["sgd", "svrg", "saga"]
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


# a pass of a linear model is cheap, and it takes more of them than other models do
# and where steps do not fade over them, they are no more than a limit
_LINEAR: Mapping[EstimatorName, Defaults] = {
    "sgd": {"train": {"epochs": 30}},
    "svrg": {"train": {"epochs": 60}},
    "saga": {"train": {"epochs": 60}},
}

_ESTIMATORS: tuple[tuple[EstimatorName, str], ...] = (
    ("sgd", "plain SGD"),
    ("svrg", "variance reduced by snapshots"),
    ("saga", "variance reduced by a memory of thetas"),
)
_BACKWARD: tuple[tuple[str, ScheduleName, str], ...] = (
    ("vfb2", "async", "asynchronous: theta goes back to every party, veiled by default;"),
    ("vfb", "sync", "synchronous twin, step for step as on pooled data;"),
)
# what the paper takes for curvature is noise: with it runs end worse than they begin
_SQN = 'quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": as published);'
_PULL: tuple[tuple[str, str, ScheduleName, DirectionName, str, str], ...] = (
    ("af", "-vp", "async", "plain", "AFVP", "asynchronous, label holders train their own blocks only;"),
    ("asysqn-", "", "async", "lbfgs", "AsySQN", f"asynchronous {_SQN}"),
    ("synsqn-", "", "sync", "lbfgs", "AsySQN", f"synchronous {_SQN}"),
)

_MANY: Defaults = {"cascade": {"directions": 100}}

_REVEL: tuple[tuple[str, ScheduleName, str], ...] = (
    ("asyrevel", "async", "asynchronous"),
    ("synrevel", "sync", "synchronous"),
)
_SMOOTHINGS: tuple[tuple[str, SmoothingName, str], ...] = (
    ("gau", "gaussian", "Gaussian"),
    ("uni", "sphere", "unit-sphere"),
)
_CZOFO: tuple[tuple[str, ScheduleName, SmoothingName, bool, Defaults, str], ...] = (
    ("czofo", "async", "gaussian", False, _MANY, "along random directions"),
    ("czofo-central", "async", "gaussian", True, _MANY, "to both sides of random directions"),
    ("czofo-coord", "async", "coordinate", True, {}, "along every output"),
    ("syn-czofo", "sync", "gaussian", False, _MANY, "as in czofo, whose twin it is; ours"),
)
_ZOO: tuple[tuple[str, ScheduleName, str], ...] = (
    ("zoo-vfl", "async", "asynchronous"),
    ("syn-zoo-vfl", "sync", "synchronous"),
)

DEFAULT_ALGORITHM = "lbfgs"
"""What a job gets that names no algorithm: it needs no setting, and never diverges."""

_TABLE = (
    Preset(
        DEFAULT_ALGORITHM,
        "synchronous L-BFGS on all rows, each step as long as is best: for any data, few messages",
        "-",
        "full",
        "sync",
        defaults={"train": {"epochs": 300, "l2": "auto"}},
    ),
    *(
        Preset(
            f"{name}-{estimator}",
            f"{how} {what}",
            "VFB2",
            "backward",
            schedule,
            estimator,
            defaults=_LINEAR[estimator],
        )
        for name, schedule, how in _BACKWARD
        for estimator, what in _ESTIMATORS
    ),
    *(
        Preset(
            f"{name}{estimator}{suffix}",
            f"{how} {what}",
            paper,
            "pull",
            schedule,
            estimator,
            direction,
            defaults=_LINEAR[estimator],
        )
        for name, suffix, schedule, direction, paper, how in _PULL
        for estimator, what in _ESTIMATORS
    ),
    Preset(
        "fd-svrg",
        "synchronous SVRG, labels everywhere: what AsySQN and FDSKL are compared with",
        "FD-SVRG",
        "pull",
        "sync",
        "svrg",
        defaults=_LINEAR["svrg"],
    ),
    Preset(
        "secureboost",
        "gradient-boosted trees over all parties' columns, level by level from histograms",
        "SecureBoost",
        "boost",
        "sync",
        defaults={"train": {"epochs": 100}},
    ),
    Preset(
        "boosted-sum",
        "ours: gradient-boosted trees, each over one party's columns alone: a score is a sum over parties",
        "SecureBoost",
        "boost",
        "sync",
        additive=True,
        defaults={"train": {"epochs": 100}},
    ),
    *(
        Preset(
            f"{name}-{short}",
            f"{how}: black-box models learn from function values, {directions} directions",
            "AsyREVEL",
            "cascade",
            schedule,
            reply="values",
            smoothing=smoothing,
        )
        for name, schedule, how in _REVEL
        for short, smoothing, directions in _SMOOTHINGS
    ),
    Preset(
        "tig",
        "asynchronous, the server sends the gradient of every output: what AsyREVEL is compared with",
        "AsyREVEL",
        "cascade",
        "async",
        reply="gradient",
    ),
    Preset(
        "syntig",
        "the synchronous twin of tig: back-propagation split between client and server",
        "AsyREVEL",
        "cascade",
        "sync",
        reply="gradient",
    ),
    *(
        Preset(
            name,
            f"{'' if schedule == 'sync' else 'a'}synchronous split networks: the server answers with loss "
            f"differences in 8 bits, {how}",
            "VFL-CZOFO",
            "cascade",
            schedule,
            reply="deltas",
            smoothing=smoothing,
            two_sided=two_sided,
            forward_bits=8,
            backward_bits=8,
            defaults=defaults,
        )
        for name, schedule, smoothing, two_sided, defaults, how in _CZOFO
    ),
    Preset(
        "czofo-ef",
        "ours: czofo with outputs in 2 bits, as changes against what the server has (error feedback)",
        "VFL-CZOFO",
        "cascade",
        "async",
        reply="deltas",
        smoothing="gaussian",
        forward_bits=2,
        backward_bits=4,
        forward_memory=True,
        defaults=_MANY,
    ),
    Preset(
        "split",
        "split learning: synchronous, the server sends the gradient of every output",
        "VFL-CZOFO",
        "cascade",
        "sync",
        reply="gradient",
    ),
    Preset(
        "vafl",
        "asynchronous split learning: the server sends the gradient of every output",
        "VFL-CZOFO",
        "cascade",
        "async",
        reply="gradient",
    ),
    Preset(
        "vafl-dp",
        "asynchronous split learning on noisy gradients: epsilon for every label, accounted for and enforced",
        "VFL-CZOFO",
        "cascade",
        "async",
        reply="gradient",
        private=True,
        defaults={"privacy": {"mechanism": "gradient"}},
    ),
    Preset(
        "c-vfl",
        "every party gets all labels, all outputs and the server's model in 8 bits, and makes 5 local steps",
        "C-VFL",
        "exchange",
        "sync",
        reply="embeddings",
        forward_bits=8,
        backward_bits=8,
        local_steps=5,
    ),
    *(
        Preset(
            name,
            f"{how}: networks on both sides learn from function values",
            "VFL-CZOFO",
            "cascade",
            schedule,
            reply="values",
            smoothing="gaussian",
        )
        for name, schedule, how in _ZOO
    ),
    Preset(
        "fdskl",
        "kernel machine by doubly stochastic gradients: new random features in every round, a constant step; "
        "active parties take turns, rounds overlap only with train.ahead",
        "FDSKL",
        "kernel",
        "async",
        defaults={"train": {"l2": "auto"}},
    ),
    Preset(
        "fdskl-capped",
        "ours: as many random features as fit, then descent with momentum on their coefficients; turns as in "
        "fdskl",
        "FDSKL",
        "kernel",
        "async",
        capped=True,
        defaults={"train": {"epochs": 40, "l2": "auto"}},
    ),
    Preset(
        "pp-svmv",
        "support vector machine on the whole kernel matrix, summed securely to one active party",
        "FDSKL",
        "gram",
        "sync",
        defaults={"train": {"l2": "auto"}},
    ),
)
PRESETS = {preset.name: preset for preset in _TABLE}
