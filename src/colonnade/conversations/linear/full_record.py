"""The record of L-BFGS on all rows: what it understands, chooses and gives away."""

from __future__ import annotations

from colonnade.conversations.conversation import Conversation, Rehearsal
from colonnade.conversations.linear.converse_full import converse_full
from colonnade.conversations.linear.encrypted_openings import of_full_runs
from colonnade.conversations.linear.noisy.product_forms import FORMS
from colonnade.conversations.linear.parties.blind_refusals import blind_notes, check_size
from colonnade.conversations.linear.record import LinearShares, theta_notes
from colonnade.conversations.linear.settings import FullSettings
from colonnade.conversations.pooling import pooled_optimum
from colonnade.errors import JobError
from colonnade.job import Job
from colonnade.job.plan import Facts, Pace, Plan
from colonnade.job.presets import Preset
from colonnade.losses import LOSSES

MEMORY = 20  # pairs
WIDEST = 3000  # columns of a party of a blind run
DEARER = {False: 2.5, True: 5.0}  # times a pass, encrypted, at the most; by whether scores are hidden


def check(job: Job, preset: Preset) -> None:
    """Refuse what makes no sense where every step is taken from all rows, as long as is best."""
    train = job.train
    for key, given in (("batch", train.batch is not None), ("step", train.step != "auto")):
        if given:
            raise JobError(
                f"train.{key}: {preset.name} steps from all rows at once, as far as is best; drop {key}, or "
                "use vfb2-svrg, vfb2-saga, ..."
            )
    if train.regularizer != "l2" or train.l1:
        key = "regularizer" if train.regularizer != "l2" else "l1"
        raise JobError(f"train.{key}: {preset.name} is for l2 alone; use vfb2-svrg, vfb2-saga, ...")
    if job.secure.labels == "blind":
        check_blind(job)


def check_blind(job: Job) -> None:
    """Refuse what nobody could know of a run that opens nothing before its end, or that has no such form."""
    train, words = job.train, "secure.labels = 'blind': "
    if train.loss is not None and train.loss not in FORMS:
        known = ", ".join(FORMS)
        raise JobError(
            f"{words}theta of the {train.loss} loss cannot be shared by two parties; known: {known}; "
            "labels = 'clear' trains it, and tells labels"
        )
    if job.secure.scores == "hidden" and train.loss is not None and LOSSES[train.loss].shared_form is None:
        raise JobError(
            f"secure.scores = 'hidden': no form of the {train.loss} loss is known that dealers help with; "
            "set secure.scores = 'open'"
        )
    if train.target is not None:
        raise JobError(f"{words}nobody knows the loss before the end of the run; drop train.target")
    if job.privacy.mechanism != "none":
        raise JobError(f"{words}noise on labels is for clear runs; drop [privacy], or set secure.epsilon")


def choose(job: Job, preset: Preset, facts: Facts, pace: Pace) -> FullSettings:
    """Return the settings; refused where labels are blind and have several classes, or no epsilon."""
    if job.secure.labels == "blind":
        if facts.task == "multiclass":
            raise JobError(
                "secure.labels = 'blind': a label of several classes cannot be blind with lbfgs; "
                "train one class against the rest (data.positive = ['...']), or set secure.labels = 'clear'"
            )
        if facts.task == "regression" and job.secure.epsilon is not None:
            raise JobError("secure.epsilon: a number has no bound that epsilon could go by; set secure.noise")
        if facts.weighted and job.secure.scores == "hidden" and len(facts.columns) > 2:
            raise JobError(
                "secure.scores = 'hidden': nobody but the label holder knows weights of rows, so its mate "
                "cannot weigh its part of theta; drop the weights, or set secure.scores = 'open'"
            )
        if len(facts.columns) > 2:
            check_size(facts)
        check_width(facts)
    return FullSettings(memory=MEMORY)


def check_width(facts: Facts) -> None:
    """Refuse columns that are too many to make a first matrix of."""
    if max(facts.columns.values()) > WIDEST:
        raise JobError(
            "secure.labels = 'blind': lbfgs makes a matrix of a party's columns by its columns, of at most "
            f"{WIDEST:,}; use fewer columns, labels = 'clear' or, with three parties and more, algorithm = "
            "'vfb2-saga'"
        )


def notes(plan: Plan[FullSettings]) -> list[str]:
    """Return what a run gives away: theta, or in a blind run gradients with noise."""
    if plan.blind is None:
        return theta_notes(plan)
    terms = plan.blind.told
    if terms is None:
        return [
            "nobody is sent a label, a column, a score of a training row, a gradient or a weight: products "
            "are encrypted, and weights stay in two parts; rows are scored by both together"
        ]
    how = "nobody is sent a label, a column or a score of a training row: products are encrypted"
    if plan.blind.encrypted is None:
        how = blind_notes(plan)[0]
    found = [
        f"{how}; each party learns the gradient of its own columns in {terms.passes} passes"
        + (f" and {terms.proofs} times of the finished model, " if terms.proofs else ", ")
        + (
            f"with noise of {terms.noise:g} rows"
            if terms.epsilon is None
            else f"with noise for epsilon = {terms.epsilon:g}, delta = {terms.delta:g} of a label"
        )
    ]
    if plan.blind.encrypted is None:
        times = DEARER[plan.blind.hidden is not None]
        found.append(
            "products are made of words that others deal: encrypted, they would make a pass up to "
            f"{times:g} times as dear in processor time (with AVX-512), and secure.products = 'auto' takes "
            "dealers from 1.5 times on (docs/blind.md)"
        )
    if terms.tight:
        never = ""
        if plan.blind.encrypted is not None and LOSSES[plan.objective.loss].shared_form is not None:
            never = "; secure.reveal = 'never' tells nobody a weight, and its steps have no noise"
        found.append(
            "few rows for this number of columns: a party's own weights tell up to a tenth (AUC) more of "
            f"labels than its columns do{never}"
        )
    return found


def idle(job: Job, preset: Preset) -> dict[str, str]:
    """Return keys that an algorithm of all rows has no use for: every step of it has a loss."""
    if job.train.evaluate_every in (0, 1):
        return {}
    return {"train.evaluate_every": f"{preset.name} knows the loss at every step"}


FULL = Conversation(
    name="full",
    converse=converse_full,
    settings=FullSettings,
    choose=choose,
    pooled=pooled_optimum,
    share=LinearShares(),
    openings=of_full_runs,
    notes=notes,
    leaks=lambda privacy: ("labels",) if privacy.mechanism == "none" else (),
    check=check,
    idle=idle,
    understands=frozenset({"train.loss", "train.l1"}),
    usual_batch=lambda job, preset, rows: rows,
    intercept=lambda job: True,
    rehearsal=Rehearsal(rows=24_000, passes=None),
    traits=frozenset({"quick-alone", "few-rounds", "blind-labels", "encrypts", "starts-anywhere"}),
)
