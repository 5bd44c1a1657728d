"""What a job may combine with its algorithm, and what follows where it leaves things open.

What does not go together is refused when the job is read, with the reason and the way out.
"""

from __future__ import annotations

import difflib
from typing import Literal, NamedTuple

from colonnade.errors import JobError
from colonnade.job import Direction, Job, Model, Models, ServerModel
from colonnade.job.presets import PRESETS, Bits, Preset
from colonnade.job.sections import USUAL_BATCH


def preset_of(job: Job) -> Preset:
    """The job's algorithm, if its other choices go together with it."""
    preset = PRESETS.get(job.algorithm)
    if preset is None:
        near = difflib.get_close_matches(job.algorithm, PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else "`colonnade algorithms` lists them"
        raise JobError(f"algorithm: there is no {job.algorithm!r}; {hint}")
    if preset.schedule == "sync" and job.train.ahead not in (None, 1):
        raise JobError(
            f"train.ahead: {preset.name} is synchronous, one batch at a time; "
            "drop ahead or use an asynchronous algorithm"
        )
    check_kernel(job, preset)
    check_linear(job, preset)
    (check_cascade if preset.conversation == "cascade" else refuse_cascade)(job, preset)
    check_privacy(job, preset)
    return preset


def check_cascade(job: Job, preset: Preset) -> None:
    """What a cascade preset cannot do with these models."""
    models = job.model
    black = {"function", "program"}
    named: dict[str, Model | ServerModel] = {
        "model": models,
        **{f"model.parties.{name}": m for name, m in models.parties.items()},
    }
    if preset.reply != "values":
        for name, model in {**named, "model.server": models.server}.items():
            if model.kind in black:
                raise JobError(
                    f"{name}: {preset.name} needs gradients, and a {model.kind} is a black box "
                    "that has none; use asyrevel-gau or asyrevel-uni"
                )
    kinds = {model.kind for model in (*named.values(), models.server)}
    if models.device == "cuda" and not kinds & {"mlp", "cnn", "torch"}:
        raise JobError(
            "model.device: no model of this job is a network, and nothing else computes on a GPU; drop it "
            "(a network given as an object has its own device)"
        )
    if job.cascade.server == "first" and models.server.kind in black:
        raise JobError(
            f"cascade.server = 'first' needs the gradient of F0, and a {models.server.kind} has none; "
            "use server = 'zeroth'"
        )
    _check_reply(job, preset)


def check_privacy(job: Job, preset: Preset) -> None:
    """Which mechanism protects labels in which conversation; everything else would only look private."""
    mechanism, name = job.privacy.mechanism, preset.name
    if mechanism == "none":
        if preset.private:
            raise JobError(f"privacy.mechanism: {name} is nothing without one; drop the key or use vafl")
        return
    if job.train.target is not None:
        raise JobError(
            "privacy: when a run stops at a target tells something of the labels; drop train.target"
        )
    if mechanism == "labels":
        _check_one_holder(job, preset)
    elif preset.conversation != "cascade":
        raise JobError(
            f"privacy: {name} has no private replies; use mechanism = 'labels', which every algorithm can "
            "train on, or asyrevel-gau, vafl-dp, ..."
        )
    elif mechanism == "gradient" and preset.reply != "gradient":
        raise JobError(
            f"privacy.mechanism = 'gradient': {name} replies with {preset.reply}; use 'labels', or vafl-dp"
        )
    elif mechanism == "scalar" and preset.reply != "values":
        what = "a gradient per row" if preset.reply == "gradient" else "deltas"
        raise JobError(
            f"privacy.mechanism = 'scalar': {name} sends {what}, not a few values a batch; use 'labels' here "
            "('gradient' for gradient replies), or asyrevel-gau"
        )
    elif mechanism == "scalar" and job.model.server.kind != "sum":
        raise JobError(
            "privacy: the server's own weights would carry labels into every reply; "
            "use model.server.kind = 'sum', or mechanism = 'labels'"
        )


def _check_one_holder(job: Job, preset: Preset) -> None:
    active = job.data.active
    holders = active if isinstance(active, int) else len(active)
    key = "data.active = 1"
    if preset.conversation == "pull":
        holders, key = job.train.labels_at or 0, "train.labels_at = 1"
    if holders != 1:
        raise JobError(
            "privacy.mechanism = 'labels': every holder of the label would draw noise of its own for the "
            f"same row, and together they tell more than epsilon; set {key}"
        )


def _check_reply(job: Job, preset: Preset) -> None:
    """Keys of [cascade] that say nothing to what the server of this algorithm replies, or would spoil it."""
    asked, name = job.cascade, preset.name
    if preset.reply == "values":
        for key in ("forward_bits", "backward_bits"):
            if getattr(asked, key) not in (None, 32):
                raise JobError(
                    f"cascade.{key}: {name} learns from differences of nearly equal numbers, which "
                    "rounding to few bits wipes out; drop it or use czofo"
                )
        if (asked.local_steps or 1) > 1:
            raise JobError(
                f"cascade.local_steps: a reply of {name} belongs to directions around one w, it says nothing "
                "after a step away from it; drop it or use czofo, c-vfl, ..."
            )
    _check_top(job, preset)
    if asked.per is not None and preset.reply != "deltas":
        raise JobError(f"cascade.per: {name} does not reply with deltas; drop it or use czofo")
    if asked.per == "batch" and preset.smoothing == "coordinate":
        raise JobError(
            f"cascade.per = 'batch': {name} would need an evaluation for every row and output; one for every "
            "output gives all of them per sample; use per = 'sample'"
        )
    if asked.smoothing is not None and preset.smoothing in (None, "coordinate"):
        raise JobError(f"cascade.smoothing: {name} has no random directions; drop it or use czofo")
    if asked.forward_range == "column" and bits_of(job, preset)[0] == 32:
        raise JobError(
            "cascade.forward_range: only outputs in few bits have a range; set forward_bits = 8, ..."
        )


def _check_top(job: Job, preset: Preset) -> None:
    """Top-k needs messages about the same thing, in which what was left out can be made good."""
    asked = job.cascade
    for way in ("forward", "backward"):
        if getattr(asked, f"{way}_top") is None:
            continue
        if preset.reply == "values" or (way == "backward" and preset.reply == "deltas"):
            raise JobError(
                f"cascade.{way}_top: what is left out of a row's outputs or their gradient is sent when "
                f"the row comes back, but {preset.name} asks for {preset.reply}; drop it or use split, vafl"
            )
        if getattr(asked, f"{way}_bits") is not None:
            raise JobError(
                f"cascade.{way}_top: the largest numbers travel whole, with their places; drop {way}_bits"
            )


def bits_of(job: Job, preset: Preset) -> tuple[Bits, Bits]:
    """Of a client's outputs, and of the server's replies."""
    asked = job.cascade
    forward = 32 if asked.forward_top else asked.forward_bits or preset.forward_bits
    return forward, asked.backward_bits or preset.backward_bits


def smoothing_kind(job: Job, preset: Preset) -> Literal["gaussian", "sphere", "rademacher"]:
    """Random directions, as the job or the preset has them."""
    kind = job.cascade.smoothing or preset.smoothing
    return kind if kind is not None and kind != "coordinate" else "gaussian"


def refuse_cascade(job: Job, preset: Preset) -> None:
    """Sections that say something only to the cascade conversation."""
    if job.model != Models():
        raise JobError(f"model: {preset.name} trains linear models only; use asyrevel-gau, tig, ...")
    if job.train.evaluate_every % 1 and preset.conversation != "backward":
        raise JobError(f"train.evaluate_every: {preset.name} is measured after whole epochs; give 1, 2, ...")


def check_linear(job: Job, preset: Preset) -> None:
    """Choices that say something only to linear scores, or only to some of their algorithms."""
    train, name = job.train, preset.name
    if not preset.linear:
        for key in ("estimator", "direction"):
            if (value := getattr(train, key)) is not None:
                raise JobError(
                    f"train.{key} = {value!r}: {name} is not an algorithm of linear scores, where one number "
                    f"per row stands for its gradient; drop {key} or use vfb2-svrg, ..."
                )
        if not train.reshuffle:
            raise JobError(
                f"train.reshuffle = False: {name} keeps no copy of its rows in the order of an epoch, so "
                "there is nothing to save; drop it"
            )
    if train.labels_at is not None:
        _check_labels_at(job, preset)
    if train.classes is not None and train.loss not in ("softmax", None):
        raise JobError(f"train.classes: {train.loss} has one score per row; use loss = 'softmax'")
    direction = train.direction or preset.direction
    if direction == "plain" and job.direction != Direction():
        raise JobError(f"direction: {name} steps along the gradient; set train.direction = 'lbfgs' as well")
    if direction == "lbfgs" and preset.conversation == "pull" and job.direction.pairs == "joint":
        raise JobError(
            "direction.pairs = 'joint': one H over all blocks needs all parties to step on the same batch, "
            f"and in {name} each pulls and steps for itself, at its own pace; use 'hvp' or 'batch' here, or "
            "train.direction = 'lbfgs' with vfb2-svrg, vfb2-saga, ..."
        )


def _check_labels_at(job: Job, preset: Preset) -> None:
    if preset.conversation != "pull":
        raise JobError(
            f"train.labels_at: in {preset.name} data.active says who holds the label, and all train; "
            "labels_at is for algorithms that pull (afsvrg-vp, asysqn-svrg, fd-svrg, ...)"
        )
    parties = len(job.data.party_names)
    if not 1 <= (job.train.labels_at or 0) <= parties:
        raise JobError(f"train.labels_at: {job.train.labels_at} of {parties} parties; give 1 to {parties}")


class Choices(NamedTuple):
    """What is left open by a preset or overridden by its job."""

    estimator: Literal["sgd", "svrg", "saga"]
    direction: Literal["plain", "lbfgs"]


def choices_of(job: Job) -> Choices:
    preset = preset_of(job)
    return Choices(job.train.estimator or preset.estimator, job.train.direction or preset.direction)


def check_kernel(job: Job, preset: Preset) -> None:
    """What kernel machines cannot do."""
    if preset.conversation in ("kernel", "gram") and job.train.regularizer != "l2":
        raise JobError(f"train.regularizer: {preset.name} has the norm of its kernel's space; use l2")


def pairs_of(job: Job) -> Literal["joint", "hvp", "batch", "paper"]:
    """Where the curvature comes from: the kind that pays in the conversation, unless the job says."""
    return job.direction.pairs or ("hvp" if preset_of(job).conversation == "pull" else "joint")


def batch_of(job: Job, rows: int) -> int:
    """The most rows of a batch.

    What a linear model needs is steps, so unless the job says otherwise a pass over few rows has as many
    batches as one over many: some 400, or 100 that are worth a quasi-Newton direction each.
    """
    if job.train.batch is not None:
        return job.train.batch
    if not preset_of(job).linear:
        return USUAL_BATCH
    wanted = 100 if choices_of(job).direction == "lbfgs" else 400
    return max(8, min(USUAL_BATCH, rows // wanted))


def batches_in_flight(job: Job, active: int) -> int:
    """How many batches may be under way at once.

    Unless the job says otherwise every dominator has one under way, as in the paper. Thetas of different
    dominators may overtake each other, so k batches in flight bound the delay by 2 (k - 1) updates.
    """
    if preset_of(job).schedule == "sync":
        return 1
    if preset_of(job).conversation == "cascade":
        return job.train.ahead or 1
    # a kernel's projections run ahead by themselves, so one round at a time unless the job says otherwise
    alone = preset_of(job).conversation == "kernel"
    ahead = job.train.ahead or (1 if alone else active)
    bound = 2 * (ahead - 1)
    if job.train.max_delay is not None and bound > job.train.max_delay:
        raise JobError(
            f"train: ahead = {ahead} batches in flight can be {bound} updates late, over max_delay = "
            f"{job.train.max_delay}; set ahead = {job.train.max_delay // 2 + 1} or max_delay = {bound}"
        )
    return ahead
