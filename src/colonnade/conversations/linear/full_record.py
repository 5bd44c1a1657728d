"""The record of L-BFGS on all rows: what it understands, chooses and gives away."""

from __future__ import annotations

from colonnade.conversations.conversation import Conversation
from colonnade.conversations.linear.converse_full import converse_full
from colonnade.conversations.linear.record import LinearShares, theta_notes
from colonnade.conversations.linear.settings import FullSettings
from colonnade.conversations.pooling import pooled_optimum
from colonnade.errors import JobError
from colonnade.job import Job
from colonnade.job.presets import Preset

MEMORY = 20  # pairs


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


FULL = Conversation(
    name="full",
    converse=converse_full,
    settings=FullSettings,
    choose=lambda job, preset, facts, pace: FullSettings(memory=MEMORY),
    pooled=pooled_optimum,
    share=LinearShares(),
    notes=theta_notes,
    leaks=lambda privacy: ("labels",) if privacy.mechanism == "none" else (),
    check=check,
    understands=frozenset({"train.loss", "train.l1"}),
    usual_batch=lambda job, preset, rows: rows,
    intercept=lambda job: True,
    traits=frozenset({"quick-alone", "few-rounds"}),
)
