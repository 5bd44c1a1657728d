"""What a run gives away whatever its settings promise, in words for the user: the notes of a result."""

from __future__ import annotations

from colonnade.job import Job
from colonnade.job.rules import preset_of
from colonnade.secure.hosts import unsafe_reason

# what dL/dz says of its row, by the loss
THETA = {
    "logistic": "it gives away the label and the total score of its row",
    "softmax": "its one negative entry is the class of its row, and the scores follow from it up to a shift",
    "smooth_hinge": "its sign gives away the label of its row, unless that is right by a margin already",
    "squared": "it is how far the total score of its row is from the label",
}


def disclosures(job: Job, parties: int) -> list[str]:
    """What the user should know before trusting a run."""
    return [*_conversation_notes(job, parties), *_label_notes(job)]


def _conversation_notes(job: Job, parties: int) -> list[str]:
    conversation = preset_of(job).conversation
    if parties == 1:
        return ["one party: nothing is sent to anybody"]
    if conversation == "cascade":
        return _cascade_notes(job)
    notes = []
    if job.secure.sum == "plain":
        notes.append("plain sum: the dominators see every party's partial scores in clear")
    if parties == 2:
        notes.append("two parties: the total minus the own share is the other's share, no sum can hide it")
    if job.secure.sum == "tree" and (reason := unsafe_reason(parties)):
        notes.append(f"tree sum: {reason}")
    match conversation:
        case "backward":
            notes.append(f"theta is sent to every party: {THETA[job.train.loss or 'logistic']}")
        case "pull":
            notes.append("every party that holds the label learns the total score of every row")
        case "kernel":
            notes += _kernel_notes(job)
        case "gram":
            notes.append("one active party learns how alike every two rows are")
    return notes


def _kernel_notes(job: Job) -> list[str]:
    notes = ["the active parties learn how alike two rows are, from projections on their random features"]
    if job.kernel.omega == "shared":
        notes.append(
            "omega = 'shared': everybody can draw all directions, so an active party with as many features "
            "as the others have columns can solve for their columns"
        )
    return notes


def _cascade_notes(job: Job) -> list[str]:
    """What a cascade gives away, whatever its paper says."""
    notes = ["the server sees every party's outputs for every row in clear"]
    if job.privacy.mechanism == "none":
        notes.append("a client can work out the label of every row from the replies to its own questions")
        if preset_of(job).reply == "deltas":
            notes.append(
                "deltas are not differentially private: the client knows the directions, and given them a "
                "reply is a deterministic function of the labels"
            )
    elif job.privacy.mechanism != "labels":
        notes.append(
            "labels are differentially private against every client: epsilon is that of the label used most, "
            "for all replies together and a client that knows everything else"
        )
    return notes


def _label_notes(job: Job) -> list[str]:
    """What holds where labels are made private before training."""
    if job.privacy.mechanism != "labels":
        return []
    return [
        "labels were randomised before training: no label that anybody works out tells more about the true "
        "one than epsilon allows; train_loss is that of randomised labels"
    ]
