"""The terms of a run between companies: what `colonnade train JOB.toml` proposes and everybody accepts.

A job between companies names parties and entries of their catalogues instead of files, says how ids are
compared and rows are split, and otherwise reads like any other job. Its digest is over the meaning, not
the spelling: two files with the same digest ask for the same thing, and one different digit is another job.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from colonnade.deploy.model_terms import ModelTerms, check_models, refuse_code
from colonnade.errors import JobError
from colonnade.job import (
    Data,
    Job,
    Section,
    Training,
    job_from,
    read_toml,
    readable,
    refuse_unknown,
    with_defaults,
)
from colonnade.job.presets import PRESETS
from colonnade.job.rules import batches_in_flight, preset_of
from colonnade.secure.hosts import unsafe_reason

SUPPORTED = ("backward", "pull", "kernel", "cascade")
MOST = 8
MOST_DIRECTIONS = 4096  # each is a copy of the outputs, or of the parameters, at somebody else's machine


class Member(Section, frozen=True):
    """What one party brings: an entry of its catalogue, all columns it offers or some of them."""

    data: str
    columns: tuple[str, ...] | None = None
    label: bool = False


class Key(Section, frozen=True):
    """How one column of the id is brought into one form before it is compared."""

    kind: Literal["text", "integer", "date"] = "text"
    trim: bool = True
    case: Literal["keep", "lower"] = "keep"
    formats: tuple[str, ...] = ("%Y-%m-%d",)


class Align(Section, frozen=True):
    """How ids are compared, and what happens when a party brings other ids than the time before."""

    keys: tuple[Key, ...] = (Key(),)
    changed: Literal["refuse", "accept"] = "refuse"
    minimum: int = 1


class Split(Section, frozen=True):
    """Which rows are for what: decided by a hash of the id, so a row never changes sides."""

    test: float = 0.2
    validation: float = 0.0


class Prepare(Section, frozen=True):
    """How every party prepares its own columns."""

    scale: Literal["none", "zscore", "minmax", "maxabs"] = "zscore"
    categorical: tuple[str, ...] = ()
    missing: Literal["error", "zero", "mean"] = "error"
    intercept: bool = True
    positive: tuple[str | int | float, ...] | None = None


class Use(Section, frozen=True):
    """What may be done with the model: scoring while a party is away, who sees the loss."""

    degraded: bool = False
    loss_seen_by: Literal["active", "all"] = "active"


class Terms(Training, frozen=True, kw_only=True):
    """A job between companies."""

    name: str
    parties: dict[str, Member]
    align: Align = Align()
    split: Split = Split()
    prepare: Prepare = Prepare()
    use: Use = Use()
    model: ModelTerms = ModelTerms()

    @property
    def active(self) -> tuple[str, ...]:
        """Who holds the label, in the order of their names."""
        return tuple(sorted(party for party, member in self.parties.items() if member.label))

    @property
    def server(self) -> str:
        """Who applies F0 where there is one: the first label holder."""
        return self.active[0]

    @property
    def scores(self) -> int:
        """Numbers that a score is made of: one, or one for every class."""
        return self.train.classes or 1

    def job(self) -> Job:
        """The same as a job of the training conversations."""
        prepare = self.prepare
        data = Data(
            files={party: member.data for party, member in sorted(self.parties.items())},
            active=list(self.active),
            scale=prepare.scale,
            categorical=list(prepare.categorical),
            missing=prepare.missing,
            intercept=prepare.intercept,
        )
        preset = PRESETS.get(self.algorithm)
        usual = "smooth_hinge" if preset is not None and preset.conversation == "kernel" else "logistic"
        alike = {name: getattr(self, name) for name in Training.__struct_fields__}
        train = msgspec.structs.replace(self.train, loss=self.train.loss or usual)
        return Job(**{**alike, "train": train}, world="network", data=data, model=self.model.for_job())


class Scoring(Section, frozen=True, kw_only=True):
    """Terms of a scoring session: which model, which rows, and who is present."""

    model: str
    asker: str
    parties: tuple[str, ...]
    data: str | None = None
    rules: str = ""
    service: bool = False
    nonce: str = ""


class Proposal(Section, frozen=True, kw_only=True):
    """What travels: exactly one of the two kinds of terms."""

    train: Terms | None = None
    score: Scoring | None = None


def read_terms(path: Path) -> Terms:
    """The terms in a TOML file."""
    plain = read_toml(path, "there is no such job file")
    refuse_code(plain, str(path))
    refuse_unknown(plain, Terms, str(path))
    try:
        terms = msgspec.convert(with_defaults(plain), Terms)
    except msgspec.ValidationError as error:
        raise JobError(f"{path}: {readable(str(error), Terms)}") from error
    check_terms(terms, str(path))
    return terms


def check_terms(terms: Terms, where: str) -> None:
    """Refuse what cannot work, whoever wrote it."""

    def refuse(text: str) -> None:
        raise JobError(f"{where}: {text}")

    if not terms.name or not all(c.isalnum() or c in "-_." for c in terms.name) or terms.name[0] == ".":
        refuse(f"name: {terms.name!r}; use letters, digits, '-', '_' and '.'")
    if not 2 <= len(terms.parties) <= MOST:
        refuse(f"parties: {len(terms.parties)} parties cannot train together, 2 to {MOST} can")
    if not terms.active:
        refuse("parties: nobody holds the label; say label = true for the party that does")
    if not terms.align.keys or terms.align.minimum < 1:
        refuse("align: give at least one key, and a minimum of at least 1")
    split = terms.split
    if not (0 < split.test < 1 and 0 <= split.validation < 1 and split.test + split.validation < 1):
        refuse("split: test and validation are parts of the rows, above 0 and together below 1")
    if terms.train.target is not None:
        refuse("train.target: the optimum is only known where data is pooled; drop it")
    if terms.train.loss == "softmax" and terms.train.classes is None:
        refuse("train.classes: say how many classes there are, every party needs to know")
    check_models(terms.model, terms.parties, refuse)
    job = job_from(msgspec.to_builtins(terms.job()), where)  # with all its own checks
    preset = preset_of(job)
    if preset.conversation not in SUPPORTED:
        refuse(
            f"algorithm: {preset.name} is a comparator that keeps the whole kernel matrix at one party, and "
            "no shares; use fdskl"
        )
    if preset.conversation == "pull" and len(terms.active) < len(terms.parties):
        lacking = sorted(set(terms.parties) - set(terms.active))
        refuse(
            f"algorithm: {preset.name} trains the blocks of label holders only; {', '.join(lacking)} would "
            "learn nothing. Use vfb2-svrg, or give label = true where the label is known"
        )
    if terms.use.degraded and (preset.conversation == "kernel" or terms.model.server.kind != "sum"):
        refuse("use.degraded: only scores that are a sum over parties have a mean part each; drop it")
    if terms.privacy.mechanism not in ("none", "labels") and terms.use.loss_seen_by == "all":
        refuse("use.loss_seen_by = 'all': the exact loss tells about labels what the noise hides; drop it")
    if terms.cascade.directions > MOST_DIRECTIONS:
        refuse(f"cascade.directions: {terms.cascade.directions}; at most {MOST_DIRECTIONS} between companies")
    batches_in_flight(job, len(terms.active))
    reason = unsafe_reason(len(terms.parties)) if terms.secure.sum == "tree" else None
    if reason and not terms.secure.accept_leak:
        refuse(f"secure.sum = 'tree': {reason}; use sum = 'masked', or set accept_leak = true")
