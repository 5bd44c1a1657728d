"""Every key that a job accepts changes the run, or is named as one without effect.

A key is given one other value than its default, in a job of every algorithm's kind, and the run is compared
with the one without it: weights, losses, bytes and virtual time. What is refused needs no more; what changes
nothing must be among the keys that `--check` and a run name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.oracles.tables import random_job, random_tables

from colonnade.errors import ColonnadeError
from colonnade.job.sections import Cascade, Direction, Kernel, Net, Secure, Train, Trees
from colonnade.run.federate import Tables, run_tables
from colonnade.run.resolve import compose

OTHER: dict[str, dict[str, Any]] = {
    "train": {
        "epochs": 3, "batch": 9, "step": 0.02, "l2": 0.3, "l1": 0.01, "class_weight": "balanced",
        "loss": "squared", "regularizer": "nonconvex", "ahead": 4, "max_delay": [0, 12, 200], "stale": [0, 3],
        "reshuffle": False, "tolerance": 0.9, "evaluate_every": 2, "estimator": ["saga", "sgd"],
        "direction": ["lbfgs", "plain"],
        "labels_at": 1, "sampling": "replacement", "start": "all-rows",
    },
    "direction": {"pairs": "batch", "memory": 1, "every": 3, "delta": 20.0, "step": 0.3},
    "secure": {"sum": "plain", "labels": ["clear", "blind"], "products": ["encrypted", "dealer"],
        "noise": 5.0, "epsilon": 2.0, "reveal": "never", "scores": "hidden", "proofs": 2},
    "network": {
        "latency_ms": 3.0, "bandwidth_mbps": 0.5, "broadcast": "tree", "speeds": [1.0, 0.3, 1.0],
        "ns_per_value": 900.0, "us_per_call": 900.0, "us_per_message": 30.0, "ns_per_byte": 9.0,
        "charge_forward": False, "join": False, "work_ms": 1.0, "processors": [2, 3],
    },
    "kernel": {
        "kind": "laplace", "sigma": 2.0, "fraction": 0.7, "features": 33, "block": 3,
        "step": ["falling", "constant"],
        "momentum": 0.5, "omega": "shared", "bits": 32,
    },
    "trees": {
        "learning_rate": 0.3, "max_depth": 2, "max_leaves": 3, "min_child_weight": 9.0, "gamma": [2.0, 50.0],
        "reg_lambda": 9.0, "subsample": 0.5, "colsample_bytree": 0.5, "max_bin": 8, "turns": "round",
        "bits": [4, 0], "bin_rows": 3, "node_rows": 20, "noise": 3.0,
    },
    "cascade": {
        "directions": 2, "smoothing": "rademacher", "mu": 0.1, "two_sided": True, "per": ["sample", "batch"],
        "shared_bases": False,
        "server": "first", "server_step": 0.03, "assumed_delay": 9, "decay": "none", "precision": "float64",
        "forward_bits": 4, "backward_bits": 4, "forward_range": "column", "forward_rounding": "nearest",
        "forward_memory": True, "forward_top": 0.5, "backward_top": 0.5, "local_steps": 2,
        "optimizer": "adam", "optimizer_options": {"momentum": 0.5},
    },
}  # fmt: skip
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "train": Train, "direction": Direction, "secure": Secure, "network": Net, "kernel": Kernel,
    "trees": Trees, "cascade": Cascade,
}  # fmt: skip
ELSEWHERE = {
    "train.target": "ends a run at a gap, which these runs may not reach",
    "train.classes": "says what the label says already",
    "secure.neighbours": "says which pairs share masks, which cancel",
    "secure.accept_leak": "lets a run happen that is refused without",
    "secure.helper": "is a party that must be named",
    "network.faults": "has tests of its own: a fault must not change the model",
    "network.deadline_s": "is how long a real party waits",
    "network.transport": "is gone",
    "kernel.cache": "spares work and changes nothing",
    "trees.early_stopping_rounds": "ends a run early, which these runs may not reach",
    "trees.categories": "is for columns of categories, and these are numbers",
    "secure.few_rows": "lets a run between companies happen that is refused without",
    "trees.validation_fraction": "needs early stopping",
    "trees.monotone_constraints": "names columns",
}
"""Keys that no single run of this size can show, and why."""

COMMON: dict[str, Any] = {
    "train": {"epochs": 8},
    "network": {"latency_ms": 0.5, "speeds": [1.0, 0.4, 0.7]},
}
"""Runs that are long enough, and parties that are unlike enough, for all keys to show."""

CLEAR: dict[str, Any] = {"secure": {"labels": "clear"}}
NETWORKS: dict[str, Any] = {"model": {"outputs": 2, "server": {"kind": "linear"}}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "lbfgs": ("lbfgs", {}),
    "blind": ("vfb2-svrg", {"secure": {"labels": "blind"}}),
    "clear": ("vfb2-svrg", CLEAR),
    "joint": ("vfb2-svrg", {**CLEAR, "train": {"direction": "lbfgs"}}),
    "in step": ("vfb-saga", CLEAR),
    "own H": ("asysqn-svrg", {"train": {"step": "auto"}}),
    "paper's H": (
        "asysqn-svrg",
        {"direction": {"pairs": "paper", "delta": 9.0, "step": 2.0}, "train": {"step": "auto"}},
    ),
    "pulled": ("fd-svrg", {}),
    "trees": ("secureboost", {}),
    "sum of trees": ("boosted-sum", {}),
    "values": ("asyrevel-gau", NETWORKS),
    "gradients": ("vafl", NETWORKS),
    "deltas": ("czofo", NETWORKS),
    "coordinates": ("czofo-coord", NETWORKS),
    "embeddings": ("c-vfl", NETWORKS),
    "kernel": ("fdskl", {"kernel": {"block": 4}}),
    "capped kernel": ("fdskl-capped", {"kernel": {"features": 16, "block": 8}}),
}  # fmt: skip
HOLDS_ANYHOW = {"kernel": {"train.max_delay"}, "capped kernel": {"train.max_delay"}}
"""Bounds that a case keeps whatever they are: one round is in flight."""

QUICK = ("blind", "clear", "paper's H", "gradients", "lbfgs")


@cache
def tables() -> Tables:
    return random_tables(parties=3, active=2, rows=64, columns=6)


def merged(*sections: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in sections:
        for name, keys in each.items():
            found[name] = {**found.get(name, {}), **keys}
    return found


def seen(algorithm: str, sections: dict[str, Any]) -> bytes:
    """Everything of a run that a user can see, as bytes."""
    done = run_tables(random_job(tables(), algorithm, **sections), tables())
    kept: list[Any] = [[moment.loss for moment in done.result.history], done.result.cost.bytes_sent]
    kept.append(done.result.cost.virtual_seconds)
    for party, share in sorted(done.shares.items()):
        arrays = {key: np.asarray(value).tobytes() for key, value in sorted(share.weights.items())}
        kept.append([party, arrays, sorted((k, repr(v)) for k, v in share.tensors.items()), share.updates])
    return msgspec.msgpack.encode(kept)


def without_effect(algorithm: str, base: dict[str, Any]) -> Iterator[str]:
    """The keys that a job accepts, that change nothing with any other value, and that nobody names."""
    before = seen(algorithm, base)
    for section, keys in OTHER.items():
        for key, values in keys.items():
            others = values if isinstance(values, list) and key != "speeds" else [values]
            if all(idle(algorithm, base, section, key, value, before) for value in others):
                yield f"{section}.{key}"


def idle(algorithm: str, base: dict[str, Any], section: str, key: str, value: Any, before: bytes) -> bool:
    """Whether a value of a key is taken, changes nothing, and is not named."""
    sections = merged(base, {section: {key: value}})
    try:
        if {section, f"{section}.{key}"} & set(compose(random_job(tables(), algorithm, **sections)).unused()):
            return False
        return seen(algorithm, sections) == before
    except ColonnadeError:
        return False


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
def test_every_key_changes_the_run_or_is_named(case: str) -> None:
    algorithm, own = CASES[case]
    found = set(without_effect(algorithm, merged(COMMON, own)))
    assert found == HOLDS_ANYHOW.get(case, set())


def test_every_key_is_tried_or_has_a_reason_not_to_be() -> None:
    known = {f"{name}.{key}" for name, kind in SECTIONS.items() for key in kind.__struct_fields__}
    tried = {f"{section}.{key}" for section, keys in OTHER.items() for key in keys}
    assert known == tried | set(ELSEWHERE)
    assert not tried & set(ELSEWHERE)
