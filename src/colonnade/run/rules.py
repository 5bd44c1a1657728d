"""Which choices of a job go together with its algorithm: the rules that hold for every conversation.

What does not go together is refused before anything is read, with the reason and the way out; a key that
nothing reads is named in a warning. What only
one conversation can know is in its own record (`check`); keys that mean something to some conversations
only are here, with what to say elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isinf
from typing import Any

import msgspec

from colonnade.conversations.conversation import Conversation
from colonnade.errors import JobError
from colonnade.job import (
    Cascade,
    Direction,
    Job,
    Kernel,
    ModelSpecs,
    Net,
    PrivacyTerms,
    Section,
    Secure,
    Trees,
)
from colonnade.job.presets import Preset
from colonnade.losses import LOSSES, USUAL
from colonnade.posix import need_posix
from colonnade.run import blind
from colonnade.secure.sums import SUMS


def check(job: Job, preset: Preset, conversation: Conversation[Any]) -> None:
    """Refuse a job whose choices do not go together."""
    for fault in faults(job, preset, conversation):
        raise fault


def faults(job: Job, preset: Preset, conversation: Conversation[Any]) -> Iterator[JobError]:
    """Yield everything in a job that does not go together."""
    train, name = job.train, preset.name
    try:
        masks_pairs = SUMS[job.secure.sum].masks_pairs
    except JobError as unknown:
        yield unknown
        return
    if preset.schedule == "sync" and train.ahead not in (None, 1):
        yield JobError(
            f"train.ahead: {name} is synchronous, one batch at a time; "
            "drop ahead or use an asynchronous algorithm"
        )
    loss = None if train.loss is None else LOSSES[train.loss]
    if train.classes is not None and loss is not None and loss.task != "multiclass":
        yield JobError(
            f"train.classes: {loss.name} has one score per row; use loss = {USUAL['multiclass']!r}"
        )
    if job.data.exposure is not None and not LOSSES.of_counts(train.loss):
        known = LOSSES.named(lambda loss: loss.counts)
        yield JobError(f"data.exposure: counts have an exposure; set train.loss = {known}, or drop it")
    for key, (given, words) in ONLY_SOME.items():
        if key not in conversation.understands and given(job):
            yield JobError(words(job, name))
    if (train.direction or preset.direction) == "plain" and job.direction != Direction():
        yield JobError(f"direction: {name} steps along the gradient; set train.direction = 'lbfgs' as well")
    if train.target is not None and not job.compare:
        yield JobError(
            "compare = false: train.target is counted from the pooled optimum, which then nobody computes; "
            "drop one of the two"
        )
    if train.tolerance and not train.evaluate_every:
        yield JobError(
            "train.tolerance: with evaluate_every = 0 nobody sees whether the loss falls; drop one of them"
        )
    if job.secure.neighbours is not None and not masks_pairs:
        masking = SUMS.named(lambda kind: kind.masks_pairs)
        yield JobError(
            f"secure.neighbours: a {job.secure.sum} sum has no masks between pairs; use sum = {masking}, or "
            "drop neighbours"
        )
    if job.value and (job.privacy.mechanism != "none" or job.secure.epsilon is not None):
        yield JobError(
            "value: every coalition of parties is trained, and each training would spend its whole epsilon; "
            "drop value, or the noise ([privacy], secure.epsilon)"
        )
    yield from blind.faults(job, conversation)
    for own in (
        _check_system,
        conversation.check,
        lambda job, preset: _check_privacy(job, preset, conversation),
    ):
        try:
            own(job, preset)
        except JobError as fault:
            yield fault


def _check_system(job: Job, _: Preset) -> None:
    """Refuse a world whose parties are processes where the system has none of the kind."""
    if job.world in ("network", "mpi"):
        need_posix(f"world = {job.world!r}")


def unused(job: Job, preset: Preset, conversation: Conversation[Any]) -> dict[str, str]:
    """Return keys that the job gives and nothing reads, and why; a run goes on without them."""
    found = dict(conversation.idle(job, preset))
    pairs: tuple[tuple[str, Section, Section], ...] = (
        ("cascade.keys", job.cascade, Cascade()),
        ("kernel.keys", job.kernel, Kernel()),
        ("trees.keys", job.trees, Trees()),
    )
    for keys, given, usual in pairs:
        if keys not in conversation.understands:
            section = keys.removesuffix(".keys")
            for key in _changed(given, usual):
                found[f"{section}.{key}"] = f"{job.algorithm} has nothing to do with [{section}]"
    for key in _changed(job.network, Net()):
        if job.world not in WORLDS_OF.get(key, (job.world,)):
            found[f"network.{key}"] = f"world = '{job.world}' has no simulated links, machines or faults"
            if key == "work_ms":
                found[f"network.{key}"] = f"world = '{job.world}' has no processes of their own"
    if job.network.transport is not msgspec.UNSET:
        found["network.transport"] = "processes speak over TLS, and the key is gone"
    for key, why in LINEAR_MACHINES.items():
        if f"network.{key}" not in conversation.understands and key in _changed(job.network, Net()):
            found.setdefault(f"network.{key}", f"{job.algorithm} {why}")
    if job.train.tolerance and conversation.fades(job, preset):
        found["train.tolerance"] = "steps fade over all epochs, so the run makes them all"
    if job.train.max_delay is not None and preset.schedule == "sync":
        found["train.max_delay"] = f"{job.algorithm} is synchronous: nothing is late"
    labels = blind.labels_of(job, conversation, len(job.data.party_names))
    if job.secure.products != Secure().products and labels != "blind":
        found["secure.products"] = "labels are clear, and no product hides any"
    sums = {"sum", "neighbours", "accept_leak"} & set(_changed(job.secure, Secure()))
    if "no-sum" in conversation.traits and sums:
        found["secure"] = f"{job.algorithm} sums nothing: the server sees all outputs in clear"
    if labels != "blind" or "encrypts" not in conversation.traits:
        for key in {"noise", "epsilon", "few_rows"} & set(_changed(job.secure, Secure())):
            found[f"secure.{key}"] = (
                f"no owner is told a gradient with noise: that is lbfgs with labels = 'blind', not {labels} "
                f"{job.algorithm}; noise on labels is [privacy]"
            )
    if job.secure.proofs and not (labels == "blind" and blind.proves(job, conversation)):
        found["secure.proofs"] = (
            "it is for blind vfb2 whose label holder hears scores, and for lbfgs whose scores are hidden"
        )
    if job.privacy.mechanism == "none":
        for key in _changed(job.privacy, PrivacyTerms()):
            found[f"privacy.{key}"] = "without privacy.mechanism nothing is noisy, and nothing is bounded"
    if job.data.keys is not None and job.data.id is None:
        found["data.keys"] = "data.id names no column that they would bring into one form"
    if "train.stale" not in conversation.understands and job.train.stale:
        found["train.stale"] = f"{job.algorithm} has no rounds that are scored ahead"
    return found


WORLDS_OF = {
    **dict.fromkeys(
        (
            "latency_ms",
            "bandwidth_mbps",
            "ns_per_value",
            "us_per_call",
            "us_per_message",
            "ns_per_byte",
            "faults",
            "processors",
        ),
        ("simulated",),
    ),
    **dict.fromkeys(("speeds", "charge_forward"), ("simulated", "network", "mpi")),
    "work_ms": ("network", "mpi"),
}
"""The worlds in which a key of [network] means something, where it does not in all of them."""


LINEAR_MACHINES = {
    "broadcast": "sends no result to everybody round by round",
    "charge_forward": "has no forwards that could be left uncharged",
    "join": "makes every update of one theta",
}
"""Keys of [network] that mean something to some linear models only, and why not to others."""


def _changed(given: Section, usual: Section) -> list[str]:
    """Return the keys of a section that are not at their default."""
    names = [field.name for field in msgspec.structs.fields(usual)]
    return [name for name in names if getattr(given, name) != getattr(usual, name)]


def _check_privacy(job: Job, preset: Preset, conversation: Conversation[Any]) -> None:
    """Refuse a privacy mechanism that would not protect what it promises."""
    if job.privacy.mechanism == "none":
        if preset.private:
            raise JobError(
                f"privacy.mechanism: {preset.name} is nothing without one; drop the key or use vafl"
            )
        return
    if job.train.loss is not None and LOSSES[job.train.loss].label_range is not None:
        raise JobError(
            f"privacy.mechanism: labels with noise can be negative, and loss = {job.train.loss!r} has no "
            f"such labels; use loss = {USUAL['regression']!r}"
        )
    if job.train.target is not None:
        raise JobError(
            "privacy: when a run stops at a target tells something of the labels; drop train.target"
        )
    if job.train.tolerance:
        raise JobError(
            "privacy: when the loss stops falling tells something of the labels; drop train.tolerance"
        )
    if job.privacy.mechanism == "labels":
        everywhere = "labels-everywhere" in conversation.traits
        active = job.data.active
        holders = active if isinstance(active, int) else len(active)
        holders, key = (
            (job.train.labels_at or 0, "train.labels_at = 1") if everywhere else (holders, "data.active = 1")
        )
        if holders != 1:
            raise JobError(
                "privacy.mechanism = 'labels': every holder of the label would draw noise of its own for the "
                f"same row, and together they tell more than epsilon; set {key}"
            )


def _linear_only(key: str) -> Callable[[Job, str], str]:
    """Return the refusal of a key of [train] that only linear models understand."""

    def words(job: Job, name: str) -> str:
        return (
            f"train.{key} = {getattr(job.train, key)!r}: {name} is not an algorithm of linear scores, where "
            f"one number per row stands for its gradient; drop {key} or use vfb2-svrg, ..."
        )

    return words


Given = Callable[[Job], bool]
Words = Callable[[Job, str], str]

ONLY_SOME: dict[str, tuple[Given, Words]] = {
    "train.estimator": (lambda job: job.train.estimator is not None, _linear_only("estimator")),
    "train.direction": (lambda job: job.train.direction is not None, _linear_only("direction")),
    "train.l1": (
        lambda job: job.train.l1 != 0,
        lambda job, name: (
            f"train.l1 = {job.train.l1}: sparse weights are for linear models; {name} trains another kind, "
            "use vfb2-svrg, ..."
        ),
    ),
    "train.loss": (
        lambda job: job.train.loss is not None and isinf(LOSSES[job.train.loss].smoothness),
        lambda job, name: (
            f"train.loss = {job.train.loss!r}: nothing bounds how curved it is, and the steps of {name} need "
            "such a bound; use vfb2-svrg, ..."
        ),
    ),
    "train.reshuffle": (
        lambda job: not job.train.reshuffle,
        lambda job, name: (
            f"train.reshuffle = False: {name} keeps no copy of its rows in the order of an epoch, so "
            "there is nothing to save; drop it"
        ),
    ),
    "train.sampling": (
        lambda job: job.train.sampling != "passes",
        lambda job, name: (
            f"train.sampling = {job.train.sampling!r}: {name} passes over all rows; drop it or use "
            "vfb2-sgd, ..."
        ),
    ),
    "train.start": (
        lambda job: job.train.start != "steps",
        lambda job, name: (
            f"train.start = {job.train.start!r}: {name} remembers no thetas; drop it or use vfb2-saga, ..."
        ),
    ),
    "network.processors": (
        lambda job: job.network.processors > 1,
        lambda job, name: (
            f"network.processors = {job.network.processors}: a party of {name} does one thing after another; "
            "drop it or use vfb2-sgd, ..."
        ),
    ),
    "train.labels_at": (
        lambda job: job.train.labels_at is not None,
        lambda job, name: (
            f"train.labels_at: in {name} data.active says who holds the label, and all train; "
            "labels_at is for algorithms that pull (afsvrg-vp, asysqn-svrg, fd-svrg, ...)"
        ),
    ),
    "train.evaluate_every": (
        lambda job: bool(job.train.evaluate_every % 1),
        lambda job, name: f"train.evaluate_every: {name} is measured after whole epochs; give 1, 2, ...",
    ),
    "model": (
        lambda job: job.model != ModelSpecs(),
        lambda job, name: f"model: {name} trains linear models only; use asyrevel-gau, tig, ...",
    ),
    "privacy.replies": (
        lambda job: job.privacy.mechanism in ("scalar", "gradient"),
        lambda job, name: (
            f"privacy: {name} has no private replies; use mechanism = 'labels', which every algorithm can "
            "train on, or asyrevel-gau, vafl-dp, ..."
        ),
    ),
}
"""Keys that only some conversations understand: whether a job gives one, and how others refuse it."""
