"""The record of boosted trees: what they understand, choose, give away and are compared with."""

from __future__ import annotations

from colonnade.conversations.boost import boost, sealed
from colonnade.conversations.boost.openings import of_boost
from colonnade.conversations.boost.predict import TreeShares
from colonnade.conversations.boost.settings import BoostSettings
from colonnade.conversations.conversation import Conversation, Rehearsal, Space
from colonnade.conversations.pooling import AllColumns, Pooled
from colonnade.errors import JobError
from colonnade.job import Job, PrivacyTerms, Train, Trees
from colonnade.job.plan import Facts, Pace, Plan
from colonnade.job.presets import Preset
from colonnade.losses import LOSSES, USUAL
from colonnade.openings.leaks import Leak


def check(job: Job, preset: Preset) -> None:
    """Refuse what makes no sense for trees."""
    train, name = job.train, preset.name
    refusals = (
        ("train.batch", train.batch is not None, "a tree learns from all rows; drop it, see trees.subsample"),
        ("train.step", train.step != "auto", "drop it and give trees.learning_rate"),
        (
            "train.tolerance",
            bool(train.tolerance),
            "the loss of training rows falls with every tree; give trees.early_stopping_rounds",
        ),
        (
            "secure.scores",
            job.secure.scores == "hidden",
            "who holds the label makes the leaves and knows all training scores; drop it, or use vfb2-sgd",
        ),
        ("train.target", train.target is not None, "trees have no optimum to count from; drop it"),
        (
            "train.loss",
            train.loss is not None and not LOSSES[train.loss].always_curved,
            f"its second derivative is 0 on most rows, and trees divide by it; use {USUAL['binary']!r}",
        ),
        ("train.l2", train.l2 not in ("auto", Train().l2), "drop it and give trees.reg_lambda"),
        ("secure.reveal", job.secure.reveal != "owner", "an owner's splits are its own already; drop it"),
        ("train.regularizer", train.regularizer != "l2", "drop it and give trees.reg_lambda"),
        ("data.intercept", bool(job.data.intercept), "trees begin at the mean by themselves; drop it"),
    )
    for key, given, why in refusals:
        if given:
            raise JobError(f"{key}: {name} grows trees: {why}")


def choose(job: Job, preset: Preset, facts: Facts, pace: Pace) -> BoostSettings:
    """Return the settings of boosted trees: what the job says, and how large leaves are for its loss."""
    if job.secure.labels == "blind" and len(facts.columns) == 2:
        sealed.check(job.trees, facts.rows)
    loss = LOSSES[job.train.loss or USUAL[facts.task]]
    trees = job.trees.for_loss(counts_rows=loss.counts_rows)
    return BoostSettings(trees=trees, additive=preset.additive)


def pooled(plan: Plan[BoostSettings], columns: AllColumns) -> Pooled:
    """Grow the same trees on pooled columns (`boost.pooled`)."""
    from colonnade.conversations.boost.pooled import pooled as pooled_trees

    return pooled_trees(plan, columns)


def notes(plan: Plan[BoostSettings]) -> list[str]:
    """Return what a run gives away, in words."""
    found = [
        "gradients are sent to every owner of columns: their sign gives away the label of its row",
        "owners of columns learn which rows share a node of a tree",
        f"{plan.evaluator} learns histograms of every party's columns, bin by bin",
    ]
    if plan.blind is not None:
        found[0] = "gradients are hidden from all but their holder, unless an owner and its dealer collude"
        if sealed.seals(plan):
            found[0] = "gradients are encrypted: nobody but their holder can read them"
        else:
            found[2] += ", and how many rows each bin has"
    if plan.settings.trees.bits:
        found[2] += "; small bins are joined, small nodes left out, and no sum is exact"
    if plan.settings.additive:
        found[1] = "the owner of a tree learns its leaves' scores: the mean label of the rows in each"
    return found


def leaks(privacy: PrivacyTerms) -> tuple[Leak, ...]:
    """Return what a run gives away, as parties' policies name it."""
    return ("labels", "nodes") if privacy.mechanism == "none" else ("nodes",)


def space(job: Job, preset: Preset) -> Space:
    """Return how large trees are, how fast they learn, and what holds them back."""
    return {
        "trees.max_depth": [3, 4, 6, 8],
        "trees.learning_rate": {"low": 0.02, "high": 0.3, "log": True},
        "trees.min_child_weight": {"low": 1.0, "high": 100.0, "log": True},
        "trees.reg_lambda": {"low": 0.1, "high": 100.0, "log": True},
        "trees.colsample_bytree": [0.5, 0.8, 1.0],
    }


def idle(job: Job, preset: Preset) -> dict[str, str]:
    """Return keys that mean something to other trees, or to other models."""
    found = {}
    if job.trees.turns != Trees().turns and not preset.additive:
        found["trees.turns"] = f"{preset.name} grows a tree over all parties' columns, and none has a turn"
    if job.data.intercept is not None:
        found["data.intercept"] = "trees begin at the mean of the label, and a column of ones splits nothing"
    return found


BOOST = Conversation(
    name="boost",
    converse=boost.converse,
    settings=BoostSettings,
    choose=choose,
    pooled=pooled,
    share=TreeShares(),
    openings=of_boost,
    notes=notes,
    leaks=leaks,
    check=check,
    idle=idle,
    understands=frozenset({"train.loss", "trees.keys"}),
    usual_batch=lambda job, preset, rows: rows,
    space=space,
    rehearsal=Rehearsal(rows=24_000, passes=2),  # trees of few rows have fewer nodes
    traits=frozenset(
        {
            "quick-alone",
            "takes-gaps",
            "counts-classes",
            "server",
            "no-sum",
            "blind-labels",
            "blind-by-itself",
            "encrypts-sums",
        }
    ),
)
