"""Several algorithms on the rows of one job: which of them it takes, with what each would open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from msgspec.structs import replace

from colonnade.errors import JobError, suggest
from colonnade.job import Job
from colonnade.job.advice import FAMILIES
from colonnade.job.files import with_algorithm
from colonnade.openings.leaks import Leak
from colonnade.run.blind import encrypted_between, hides_counts, labels_of
from colonnade.run.notes import leaks
from colonnade.run.resolve import Composition, compose, looked_up


def names_of(text: str | None) -> tuple[str, ...]:
    """Return the names in a list with commas; one algorithm of each kind of model where there is none."""
    return FAMILIES if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def each_of(
    job: Job, names: Sequence[str], accepted: Sequence[str] | None = None
) -> Iterator[tuple[str, Job | str]]:
    """Yield every algorithm with the job that trains it, or with why it is left out.

    A job whose labels are to be hidden takes those alone that can hide them; with `accepted` those that open
    no more than this.
    """
    for leak in accepted or ():
        if leak not in get_args(Leak):
            raise JobError(f"accept: a run opens no {leak!r}; {suggest(leak, get_args(Leak))}")
    for name in names:
        looked_up(replace(job, algorithm=name))  # refused where there is no such algorithm
        try:
            changed = with_algorithm(job, name)
            opened = opens(compose(changed))
        except JobError as error:
            yield name, str(error)
            continue
        more = [leak for leak in opened if accepted is not None and leak not in accepted]
        yield name, f"it would open {', '.join(more)}" if more else changed


def opens(composition: Composition) -> tuple[str, ...]:
    """Return what a run of a job would give away by construction."""
    job, conversation = composition.job, composition.conversation
    parties = len(job.data.party_names)
    return leaks(
        conversation,
        job.privacy,
        job.secure.sum,
        parties,
        woe=job.data.woe and not hides_counts(job, conversation, parties),
        blind=labels_of(job, conversation, parties) == "blind",
        encrypted=encrypted_between(job.secure.products, conversation, parties),
        value=job.value,
    )
