"""What all parties report of a run, put together as its result: how good, at what cost, how late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colonnade import __version__
from colonnade.conversations.pooling import Pooled
from colonnade.data.split.described import with_parties
from colonnade.job.plan import Plan
from colonnade.job.presets import PRESETS
from colonnade.models import sparse
from colonnade.privacy.label_noise import delta_of
from colonnade.result import Cost, Described, Moment, Privacy, Result, Staleness
from colonnade.run.notes import leaks, notes
from colonnade.run.party import Share
from colonnade.run.registry import CONVERSATIONS
from colonnade.secure import words


@dataclass(frozen=True)
class DataFacts:
    """The name of a run's data, and what is known of it before the parties prepare their columns."""

    name: str
    known: Described = field(default_factory=Described)


def result_of(source: DataFacts, plan: Plan[Any], shares: dict[str, Share], pooled: Pooled | None) -> Result:
    """Return the result of a run, put together from all parties' shares."""
    evaluator = shares[plan.evaluator]
    train_loss, objective = (evaluator.metrics[key] for key in ("train_loss", "objective"))
    beside = {"suboptimality": objective - pooled.optimum} if pooled is not None else {}
    others = {k: v for k, v in evaluator.metrics.items() if k not in ("train_loss", "objective")}
    conversation = CONVERSATIONS[plan.conversation]
    encrypted = None if plan.blind is None else plan.blind.encrypted
    noisy = None if plan.blind is None else plan.blind.told
    return Result(
        algorithm=plan.algorithm,
        dataset=source.name,
        parties=list(plan.parties),
        active=list(plan.label_holders),
        world=plan.world,
        seed=plan.seed,
        version=__version__,
        compiled=words.COMPILED and sparse.COMPILED,
        step={party: share.step for party, share in shares.items()},
        metrics={"train_loss": train_loss, "objective": objective, **beside, **others},
        pooled=pooled.metrics if pooled is not None else {},
        cost=cost_of(shares, evaluator.history[-1]),
        staleness=staleness_of(shares),
        privacy=Privacy(
            secure_sum="none" if encrypted or "no-sum" in conversation.traits else plan.secure_sum,
            mechanism=plan.privacy.mechanism
            if noisy is None
            else f"as large as the part of {noisy.noise:g} rows, in every gradient that a party learns",
            epsilon=evaluator.epsilon,
            delta=_delta(plan) if evaluator.epsilon is not None else None,
            notes=[*notes(plan), *_badly(plan, evaluator.metrics)],
            leaks=list(
                leaks(
                    conversation,
                    plan.privacy,
                    plan.secure_sum,
                    len(plan.parties),
                    blind=plan.blind is not None,
                    encrypted=encrypted is not None,
                    few_rows=noisy is not None and noisy.tight,
                    value=plan.value,
                )
            ),
        ),
        history=evaluator.history,
        opened=[each for share in shares.values() for each in share.opened],
        converged=_converged(plan, evaluator.converged, objective, pooled),
        chosen=evaluator.chosen,
        worth=evaluator.worth,
        data=with_parties(source.known, {party: share.preparation for party, share in shares.items()}),
    )


def _badly(plan: Plan[Any], metrics: Mapping[str, float]) -> list[str]:
    """Return a line that marks a run to a paper's letter which ended above the loss without any training."""
    if "untrained_loss" not in metrics or not PRESETS[plan.algorithm].literal:
        return []
    ends, begins = metrics["train_loss"], metrics["untrained_loss"]
    return [
        f"with these settings {plan.algorithm} ends at a loss of {ends:.4g}, above the {begins:.4g} of no "
        "training at all"
    ]


def _delta(plan: Plan[Any]) -> float | None:
    """Return the delta that belongs to the run's epsilon."""
    if plan.blind is not None and plan.blind.told is not None:
        return plan.blind.told.delta
    return delta_of(plan.privacy, plan.objective.loss)


NEAR = 1e-3
"""The part of the optimum's loss that a run whose steps fade may end above it, to have converged."""


def _converged(plan: Plan[Any], seen: bool | None, objective: float, pooled: Pooled | None) -> bool | None:
    """Return whether a run converged: as its evaluator saw it or, where steps fade to nothing and a loss that
    no longer falls proves nothing, by how far it ended above the pooled optimum."""
    if seen is not None or pooled is None or not (plan.pace.fades and plan.pace.tolerance):
        return seen
    return objective - pooled.optimum <= NEAR * abs(pooled.optimum) or None


def cost_of(shares: dict[str, Share], last: Moment) -> Cost:
    """Return what these parties spent until the last moment of the run."""
    traffic = {party: share.traffic for party, share in shares.items()}
    kinds: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for each in traffic.values():
        kinds.update(each.bytes_by_kind)
        refused.update(each.refused)
    return Cost(
        seconds=last.seconds,
        virtual_seconds=last.virtual_seconds,
        epochs=last.epoch,
        rounds=last.rounds,
        messages=sum(each.messages for each in traffic.values()),
        bytes_sent=sum(each.bytes_sent for each in traffic.values()),
        payload_bytes=sum(sum(each.payload_by_kind.values()) for each in traffic.values()),
        sealed_bytes=sum(each.sealed_bytes for each in traffic.values()),
        bytes_by_kind=dict(sorted(kinds.items())),
        bytes_by_party={party: each.bytes_sent for party, each in traffic.items()},
        bytes_by_pair={party: each.bytes_by_peer for party, each in traffic.items()},
        evaluation_bytes=sum(each.evaluation_bytes for each in traffic.values()),
        updates_by_party={party: share.updates for party, share in shares.items()},
        launched_by_party={party: share.launched for party, share in shares.items() if share.launched},
        refused=dict(refused),
    )


def staleness_of(shares: dict[str, Share]) -> Staleness:
    """Return how late gradients were at these parties."""
    delays = sum((Counter(share.delays) for share in shares.values()), Counter[int]())
    if not delays:
        return Staleness(mean=0.0, p95=0, max=0)
    ages = np.array(sorted(delays))
    counts = np.array([delays[int(age)] for age in ages])
    at_most = np.cumsum(counts) / counts.sum()
    each = list(shares.values())
    return Staleness(
        mean=float((ages * counts).sum() / counts.sum()),
        p95=int(ages[np.searchsorted(at_most, 0.95)]),
        max=int(ages[-1]),
        bound=_largest(share.delay_bound for share in each),
        tau_1=_largest(share.tau_1 for share in each),
        tau_2=_largest(share.tau_2 for share in each),
    )


def _largest(values: Iterable[int | None]) -> int | None:
    """Return the largest of some numbers, if all are known."""
    known = list(values)
    return None if None in known else max((value for value in known if value is not None), default=None)
