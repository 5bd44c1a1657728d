"""How batches go over a slow line: `batch` and `ahead` where a job leaves them open, by the round trip.

The proposer decides, by what its daemon has measured. The numbers stand in the terms that all parties agree
on, so that a run that was cut off goes on with them. A round of batches waits for a word and its answer.
Rounds that would wait longer than a pass computes are made fewer, by larger batches, and two are under way at
once; steps are as long as the larger batch allows (`optim.steps`).
"""

from __future__ import annotations

from msgspec import structs

from colonnade.deploy.terms.contract import Contract, check_terms
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import JobError

FAST_S = 2e-3  # a round trip that needs nothing
PASS_S = 0.25  # that a pass may wait for lines
AHEAD = 2
MOST_ROWS = 1024  # of a batch
LEAST_BATCHES = 20  # of a pass


def paced(contract: Contract, rows: int, round_trip_s: float) -> tuple[Terms, str]:
    """Return the terms for lines with this round trip, and a line about what was chosen; empty if nothing.

    `rows` are those that will be trained on, as far as the proposer knows.
    """
    terms = contract.terms
    if not paces_itself(contract) or round_trip_s < FAST_S:
        return terms, ""
    usual = contract.conversation.usual_batch(contract.composition.job, contract.composition.preset, rows)
    wanted = min(int(rows * round_trip_s / (AHEAD * PASS_S)), MOST_ROWS, rows // LEAST_BATCHES)
    chosen = {"batch": max(usual, wanted), "ahead": AHEAD}
    slower = structs.replace(terms, train=structs.replace(terms.train, **chosen))
    try:
        check_terms(slower, "job")
    except JobError:  # two batches under way do not go together with something that the job says
        return terms, ""
    text = f"lines of {round_trip_s * 1e3:.3g} ms there and back: batches of {chosen['batch']} rows"
    return slower, f"{text}, {AHEAD} under way (train.batch, train.ahead)"


def paces_itself(contract: Contract) -> bool:
    """Return whether the job leaves open how batches travel, and has any that a round waits for."""
    train, conversation = contract.terms.train, contract.conversation
    if train.batch is not None or train.ahead is not None or train.max_delay is not None:
        return False
    return "waits-a-round" in conversation.traits and contract.composition.preset.schedule == "async"
