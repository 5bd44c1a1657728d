"""The notes of a result: what a run gives away, in words for the user."""

from __future__ import annotations

from typing import Any

import msgspec

from colonnade.conversations.conversation import Conversation
from colonnade.job import PrivacyTerms, SumName
from colonnade.job.plan import Plan
from colonnade.job.presets import PRESETS
from colonnade.openings.leaks import Leak
from colonnade.result import Privacy
from colonnade.run.registry import CONVERSATIONS
from colonnade.secure.neighbours import sentence
from colonnade.secure.sums import SUMS

WOE_NOTES = {
    False: "weight of evidence: the label holder has seen rows and bads of every bin, each party the WOE of "
    "its own bins; without woe.noise, as on one machine, many columns' WOE determine every label",
    True: "weight of evidence: labels were encrypted; each party has seen the bads of its own bins with "
    "noise, and the label holder nothing of them",
}
"""By whether counts are hidden from everybody."""


def with_woe(told: Privacy, *, hidden: bool) -> Privacy:
    """Return what is said of a run whose columns were weighed."""
    leaks = told.leaks if hidden else [*told.leaks, "evidence"]
    return msgspec.structs.replace(told, notes=[*told.notes, WOE_NOTES[hidden]], leaks=leaks)


def notes(plan: Plan[Any]) -> list[str]:
    """Return what the user should know about what a run gives away, a sentence each."""
    return [*_run_notes(plan), *_label_notes(plan), *_literal_notes(plan)]


def _literal_notes(plan: Plan[Any]) -> list[str]:
    """Return one line for what is as its paper prints it, if it opens labels."""
    if not PRESETS[plan.algorithm].literal or plan.blind is not None or len(plan.parties) == 1:
        return []
    return [f"{plan.algorithm} is as published, labels in clear: between companies a job must say so itself"]


def leaks(
    conversation: Conversation[Any],
    privacy: PrivacyTerms,
    secure_sum: SumName,
    parties: int,
    *,
    woe: bool = False,
    blind: bool = False,
    encrypted: bool = False,
    few_rows: bool = False,
    value: bool = False,
) -> tuple[Leak, ...]:
    """Return what a run gives away by construction, as parties' policies name it."""
    if parties == 1:
        return ()
    if blind and encrypted:  # nothing is summed, and nobody learns a score of a training row
        told: tuple[tuple[bool, Leak], ...] = (
            (few_rows, "few-rows"),
            (woe, "evidence"),
            (value, "values"),
        )
        return tuple(leak for given, leak in told if given)
    found: list[Leak] = ["scores", *conversation.leaks(privacy)]
    if blind:
        found = [leak for leak in found if leak != "labels"]
    if woe:
        found.append("evidence")
    if not SUMS[secure_sum].hides_pieces:
        found.append("shares")
    if value:
        found.append("values")
    if parties == 2:
        found.append("two-parties")
    return tuple(found)


def _run_notes(plan: Plan[Any]) -> list[str]:
    conversation, parties = CONVERSATIONS[plan.conversation], len(plan.parties)
    if parties == 1:
        return ["one party: nothing is sent to anybody"]
    found = []
    if "no-sum" not in conversation.traits:
        if told := SUMS[plan.secure_sum].gives_away(parties):
            found.append(f"{plan.secure_sum} sum: {told}")
        if parties == 2 and not (plan.blind and plan.blind.encrypted):
            found.append(
                "two parties: the total minus the own share is the other's share, no sum can hide it"
            )
        if plan.neighbours is not None:
            found.append(sentence(parties, plan.neighbours))
    return [*found, *conversation.notes(plan)]


def _label_notes(plan: Plan[Any]) -> list[str]:
    """Return a note that labels were randomised before training, where they were."""
    if plan.privacy.mechanism != "labels":
        return []
    return [
        "labels were randomised before training: no label that anybody works out tells more about the true "
        "one than epsilon allows; train_loss is that of randomised labels"
    ]
