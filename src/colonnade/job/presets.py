"""The one table: an algorithm's name -> the choices it is made of.

An algorithm of a paper is a conversation plus orthogonal choices. What is not in the table does not
exist. What a job may combine with an algorithm is in `run.rules` and in the conversation's own record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

Bits = Literal[1, 2, 4, 8, 32]
Defaults = Mapping[str, Mapping[str, Any]]
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
    literal: bool = False  # the paper's pseudo-code, line by line; a job of companies says `labels` itself
    networks: bool = False  # where a job says nothing of models and steps, they are `NETWORKS`
    defaults: Defaults = field(default_factory=dict)  # what a job's sections take where the job is silent


# a pass of a linear model is cheap, and it takes more of them than other models do; where steps do not fade
# over them, they are no more than a limit
PASSES: Defaults = {"train": {"epochs": 30}}
MORE_PASSES: Defaults = {"train": {"epochs": 60}}

TREES: Defaults = {
    "train": {"epochs": 100},
    "trees": {"min_child_weight": "auto", "bits": 6, "categories": "sets"},
}

NETWORKS: Defaults = {
    "train": {"epochs": 60},
    "model": {
        "kind": "mlp",
        "hidden": [64],
        "outputs": 16,
        "server": {"kind": "mlp", "hidden": [64]},
    },
    "cascade": {"optimizer": "adam"},
}
"""Small networks at clients and server, chosen on rows that were held back of made-up and bundled tables."""

MANY_DIRECTIONS: Defaults = {"cascade": {"directions": 100}}

DEFAULT_ALGORITHM = "lbfgs"
"""What a job gets that names no algorithm: it needs no setting, and never diverges."""

# what the algorithms of one family have in common
_vfb2 = partial(Preset, paper="VFB2", conversation="backward", schedule="async")
_vfb = partial(Preset, paper="VFB2", conversation="backward", schedule="sync")
_afvp = partial(Preset, paper="AFVP", conversation="pull", schedule="async")
_asysqn = partial(Preset, paper="AsySQN", conversation="pull", schedule="async", direction="lbfgs")
_synsqn = partial(Preset, paper="AsySQN", conversation="pull", schedule="sync", direction="lbfgs")
_trees = partial(Preset, paper="SecureBoost", conversation="boost", schedule="sync", defaults=TREES)
_asyrevel = partial(Preset, paper="AsyREVEL", conversation="cascade", schedule="async", reply="values")
_synrevel = partial(Preset, paper="AsyREVEL", conversation="cascade", schedule="sync", reply="values")
_networks = partial(Preset, paper="VFL-CZOFO", conversation="cascade", networks=True)
_czofo = partial(_networks, reply="deltas", forward_bits=8, backward_bits=8)
_split = partial(_networks, reply="gradient")
_kernel = partial(Preset, paper="FDSKL", conversation="kernel", schedule="async")

# what makes an algorithm the one that its paper prints; `labels` is nobody's default
_DRAWN = {"sampling": "replacement"}
_PUBLISHED_VFB2: Defaults = {
    "train": {"epochs": 30, **_DRAWN, "batch": 1, "step": 0.1, "tolerance": 0.0},
    "network": {"join": False},
}
_PUBLISHED_SQN: Defaults = {
    "train": {"epochs": 30, **_DRAWN, "tolerance": 0.0},
    "direction": {"pairs": "paper", "delta": 1.0, "step": 2.0, "memory": 10},
}
_PUBLISHED_REVEL: Defaults = {
    "train": {**_DRAWN, "batch": 1, "step": 1e-3, "regularizer": "nonconvex", "tolerance": 0.0},
    "cascade": {"directions": 1, "mu": 1e-3, "decay": "none"},
}


# estimators that remember look at all rows before their first step
_ALL_ROWS = {"start": "all-rows"}
_PUBLISHED_VFB2_MEMORY: Defaults = {
    **_PUBLISHED_VFB2,
    "train": {**_PUBLISHED_VFB2["train"], **_ALL_ROWS},
}
_PUBLISHED_SQN_MEMORY: Defaults = {**_PUBLISHED_SQN, "train": {**_PUBLISHED_SQN["train"], **_ALL_ROWS}}

# each its paper's pseudo-code, line by line
_LITERAL = (
    _vfb2(
        "vfb2-sgd-paper",
        "as published, line by line: plain SGD, rows drawn with replacement, a constant step",
        literal=True,
        defaults=_PUBLISHED_VFB2,
    ),
    _vfb2(
        "vfb2-svrg-paper",
        "as published, line by line: snapshots, rows drawn with replacement, a constant step",
        estimator="svrg",
        literal=True,
        defaults=_PUBLISHED_VFB2_MEMORY,
    ),
    _vfb2(
        "vfb2-saga-paper",
        "as published, line by line: a memory of thetas, rows drawn with replacement, a constant step",
        estimator="saga",
        literal=True,
        defaults=_PUBLISHED_VFB2_MEMORY,
    ),
    _asysqn(
        "asysqn-sgd-paper",
        "as published, line by line: steps along H v from differences of gradients; plain SGD",
        literal=True,
        defaults=_PUBLISHED_SQN,
    ),
    _asysqn(
        "asysqn-svrg-paper",
        "as published, line by line: steps along H v from differences of gradients; snapshots",
        estimator="svrg",
        literal=True,
        defaults=_PUBLISHED_SQN_MEMORY,
    ),
    _asysqn(
        "asysqn-saga-paper",
        "as published, line by line: steps along H v from differences of gradients; a memory of thetas",
        estimator="saga",
        literal=True,
        defaults=_PUBLISHED_SQN_MEMORY,
    ),
    _asyrevel(
        "asyrevel-gau-paper",
        "as published, line by line: a row a question, one direction, Gaussian, a constant step",
        smoothing="gaussian",
        literal=True,
        defaults=_PUBLISHED_REVEL,
    ),
    _asyrevel(
        "asyrevel-uni-paper",
        "as published, line by line: a row a question, one direction, on the unit sphere, a constant step",
        smoothing="sphere",
        literal=True,
        defaults=_PUBLISHED_REVEL,
    ),
    _kernel(
        "fdskl-paper",
        "as published, line by line: one row and one feature a step, directions from one seed that all know",
        literal=True,
        defaults={
            "train": {**_DRAWN, "epochs": 1, "batch": 1, "step": 0.1, "l2": "auto", "tolerance": 0.0},
            "kernel": {"block": 1, "omega": "shared", "bits": 32},
        },
    ),
    _czofo(
        "czofo-paper",
        "as published, line by line: independent rows, a constant step, 8 bits both ways",
        schedule="async",
        smoothing="gaussian",
        literal=True,
        defaults={
            "train": {**_DRAWN, "epochs": 100, "batch": 64, "step": 0.01, "tolerance": 0.0},
            "cascade": {
                "directions": 100, "mu": 1e-3, "shared_bases": False, "decay": "none",
                "optimizer": "sgd", "server_step": 0.01,
            },
        },
    ),
)  # fmt: skip

_TABLE = (
    Preset(
        DEFAULT_ALGORITHM,
        "synchronous L-BFGS on all rows, each step as long as is best: for any data, few messages",
        paper="-",
        conversation="full",
        schedule="sync",
        defaults={"train": {"epochs": 300, "l2": "auto"}},
    ),
    _vfb2(
        "vfb2-sgd",
        "asynchronous: theta goes back to every party, veiled by default; plain SGD",
        defaults=PASSES,
    ),
    _vfb2(
        "vfb2-svrg",
        "asynchronous: theta goes back to every party, veiled by default; variance reduced by snapshots",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    _vfb2(
        "vfb2-saga",
        "asynchronous: theta goes back to every party, veiled by default; "
        "variance reduced by a memory of thetas",
        estimator="saga",
        defaults=MORE_PASSES,
    ),
    _vfb("vfb-sgd", "synchronous twin, step for step as on pooled data; plain SGD", defaults=PASSES),
    _vfb(
        "vfb-svrg",
        "synchronous twin, step for step as on pooled data; variance reduced by snapshots",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    _vfb(
        "vfb-saga",
        "synchronous twin, step for step as on pooled data; variance reduced by a memory of thetas",
        estimator="saga",
        defaults=MORE_PASSES,
    ),
    _afvp("afsgd-vp", "asynchronous, label holders train their own blocks only; plain SGD", defaults=PASSES),
    _afvp(
        "afsvrg-vp",
        "asynchronous, label holders train their own blocks only; variance reduced by snapshots",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    _afvp(
        "afsaga-vp",
        "asynchronous, label holders train their own blocks only; variance reduced by a memory of thetas",
        estimator="saga",
        defaults=MORE_PASSES,
    ),
    # the paper's curvature wants delta and gamma picked for the data; these find their own
    _asysqn(
        "asysqn-sgd",
        'asynchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
        "as published); plain SGD",
        defaults=PASSES,
    ),
    _asysqn(
        "asysqn-svrg",
        'asynchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
        "as published); variance reduced by snapshots",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    _asysqn(
        "asysqn-saga",
        'asynchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
        "as published); variance reduced by a memory of thetas",
        estimator="saga",
        defaults=MORE_PASSES,
    ),
    _synsqn(
        "synsqn-sgd",
        'synchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
        "as published); plain SGD",
        defaults=PASSES,
    ),
    _synsqn(
        "synsqn-svrg",
        'synchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
        "as published); variance reduced by snapshots",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    _synsqn(
        "synsqn-saga",
        'synchronous quasi-Newton, labels everywhere, curvature and steps ours (pairs = "paper": '
        "as published); variance reduced by a memory of thetas",
        estimator="saga",
        defaults=MORE_PASSES,
    ),
    Preset(
        "fd-svrg",
        "synchronous SVRG, labels everywhere: what AsySQN and FDSKL are compared with",
        paper="FD-SVRG",
        conversation="pull",
        schedule="sync",
        estimator="svrg",
        defaults=MORE_PASSES,
    ),
    _trees("secureboost", "gradient-boosted trees over all parties' columns, level by level from histograms"),
    _trees(
        "boosted-sum",
        "ours: gradient-boosted trees, each over one party's columns alone: a score is a sum over parties",
        additive=True,
    ),
    _asyrevel(
        "asyrevel-gau",
        "asynchronous: black-box models learn from function values, Gaussian directions",
        smoothing="gaussian",
    ),
    _asyrevel(
        "asyrevel-uni",
        "asynchronous: black-box models learn from function values, unit-sphere directions",
        smoothing="sphere",
    ),
    _synrevel(
        "synrevel-gau",
        "synchronous: black-box models learn from function values, Gaussian directions",
        smoothing="gaussian",
    ),
    _synrevel(
        "synrevel-uni",
        "synchronous: black-box models learn from function values, unit-sphere directions",
        smoothing="sphere",
    ),
    Preset(
        "tig",
        "asynchronous, the server sends the gradient of every output: what AsyREVEL is compared with",
        paper="AsyREVEL",
        conversation="cascade",
        schedule="async",
        reply="gradient",
    ),
    Preset(
        "syntig",
        "the synchronous twin of tig: back-propagation split between client and server",
        paper="AsyREVEL",
        conversation="cascade",
        schedule="sync",
        reply="gradient",
    ),
    _czofo(
        "czofo",
        "asynchronous split networks: the server answers with loss differences in 8 bits, "
        "along random directions",
        schedule="async",
        smoothing="gaussian",
        defaults=MANY_DIRECTIONS,
    ),
    _czofo(
        "czofo-central",
        "asynchronous split networks: the server answers with loss differences in 8 bits, "
        "to both sides of random directions",
        schedule="async",
        smoothing="gaussian",
        two_sided=True,
        defaults=MANY_DIRECTIONS,
    ),
    _czofo(
        "czofo-coord",
        "asynchronous split networks: the server answers with loss differences in 8 bits, along every output",
        schedule="async",
        smoothing="coordinate",
        two_sided=True,
    ),
    _czofo(
        "syn-czofo",
        "synchronous split networks: the server answers with loss differences in 8 bits, as in czofo, "
        "whose twin it is; ours",
        schedule="sync",
        smoothing="gaussian",
        defaults=MANY_DIRECTIONS,
    ),
    _czofo(
        "czofo-ef",
        "ours: czofo with outputs in 2 bits, as changes against what the server has (error feedback)",
        schedule="async",
        smoothing="gaussian",
        forward_bits=2,
        backward_bits=4,
        forward_memory=True,
        defaults=MANY_DIRECTIONS,
    ),
    _split(
        "split", "split learning: synchronous, the server sends the gradient of every output", schedule="sync"
    ),
    _split(
        "vafl", "asynchronous split learning: the server sends the gradient of every output", schedule="async"
    ),
    _split(
        "vafl-dp",
        "asynchronous split learning on noisy gradients: epsilon for every label, accounted for and enforced",
        schedule="async",
        private=True,
        defaults={"privacy": {"mechanism": "gradient"}},
    ),
    Preset(
        "c-vfl",
        "every party gets all labels, all outputs and the server's model in 8 bits, and makes 5 local steps",
        paper="C-VFL",
        conversation="exchange",
        schedule="sync",
        networks=True,
        reply="embeddings",
        forward_bits=8,
        backward_bits=8,
        local_steps=5,
    ),
    Preset(
        "zoo-vfl",
        "asynchronous: networks on both sides learn from function values",
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="async",
        reply="values",
        smoothing="gaussian",
    ),
    Preset(
        "syn-zoo-vfl",
        "synchronous: networks on both sides learn from function values",
        paper="VFL-CZOFO",
        conversation="cascade",
        schedule="sync",
        reply="values",
        smoothing="gaussian",
    ),
    _kernel(
        "fdskl",
        "kernel machine by doubly stochastic gradients: "
        "new random features in every round, a constant step; "
        "active parties take turns, rounds overlap only with train.ahead",
        defaults={"train": {"l2": "auto"}},
    ),
    _kernel(
        "fdskl-capped",
        "ours: as many random features as fit, then descent with momentum on their coefficients; "
        "turns as in fdskl",
        capped=True,
        defaults={"train": {"epochs": 40, "l2": "auto"}},
    ),
    Preset(
        "pp-svmv",
        "support vector machine on the whole kernel matrix, summed securely to one active party",
        paper="FDSKL",
        conversation="gram",
        schedule="sync",
        defaults={"train": {"l2": "auto"}},
    ),
)
PRESETS = {preset.name: preset for preset in (*_TABLE, *_LITERAL)}


def defaults_of(preset: Preset, given: Mapping[str, Any]) -> Defaults:
    """Return what a job's sections take where the job, whose tables these are, is silent.

    >>> defaults_of(PRESETS["vafl"], {})["cascade"]
    {'optimizer': 'adam'}
    >>> defaults_of(PRESETS["vafl"], {"model": {"kind": "linear"}})
    {}
    """
    model, cascade, train = (given.get(section) or {} for section in ("model", "cascade", "train"))
    tables = all(isinstance(table, dict) for table in (model, cascade, train))  # else refused soon enough
    said = not tables or model.keys() - {"device"} or "optimizer" in cascade
    if not preset.networks or said or train.get("step", "auto") != "auto":
        return preset.defaults
    sections = dict.fromkeys([*NETWORKS, *preset.defaults])
    return {name: {**NETWORKS.get(name, {}), **preset.defaults.get(name, {})} for name in sections}
