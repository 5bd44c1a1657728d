"""The terms of a run between companies: what `colonnade train JOB.toml` proposes and everybody accepts.

A job between companies names parties and entries of their catalogues instead of files, and otherwise reads
like any other job. The sections here are those that daemons exchange and sign; a file has the words of any
job file for them (`job.vocabulary`): data.scale for prepare.scale, data.test_fraction for split.test. The
digest is over the meaning, not the spelling: two files with the same digest ask for the same thing, and one
changed digit changes the digest.
"""

from __future__ import annotations

from typing import Literal

from msgspec import structs

from colonnade.deploy.terms.model_terms import ModelTerms, OwnModel
from colonnade.describe.joint import NOISE
from colonnade.job import Checkpoint, Data, Job, Key, MissingName, ScaleName, Section, Training


class Member(Section, frozen=True):
    """One party's data for the job: an entry of its catalogue, with all columns it offers or some of them."""

    data: str
    columns: tuple[str, ...] | None = None
    label: bool = False
    weight: bool = False  # whether rows count as the entry's weight column says; for label holders
    exposure: bool = False  # whether labels are counts over the time in the entry's exposure column


class Align(Section, frozen=True):
    """How ids are compared, and whether a party may come with other ids than the time before."""

    keys: tuple[Key, ...] = (Key(),)
    changed: Literal["refuse", "accept"] = "refuse"
    minimum: int = 1
    method: Literal["curve", "ot"] = "curve"


class Split(Section, frozen=True):
    """Which part of the rows is for test and validation; a hash of the id decides, so a row never changes."""

    test: float = 0.2
    validation: float = 0.0


class Prepare(Section, frozen=True):
    """How every party prepares its own columns."""

    scale: ScaleName = "auto"
    categorical: tuple[str, ...] = ()
    missing: MissingName = "auto"
    rare: int | Literal["auto"] = "auto"
    intercept: bool | None = None  # None: if the model is linear
    positive: tuple[str | int | float, ...] | None = None
    woe: bool = False  # every column as its weight of evidence, as [woe] says


class FileData(Data, frozen=True):
    """`[data]` of a job file: what one machine needs, and what is split, prepared and compared anywhere."""

    validation_fraction: float = 0.0


class Use(Section, frozen=True):
    """Whether rows may be scored while a party is away, and who sees the loss."""

    degraded: bool = False
    loss_seen_by: Literal["active", "all"] = "active"


class Describe(Section, frozen=True):
    """How loud the noise on statistics is that a party tells: in standard errors of a correlation."""

    noise: float = NOISE


class CheckpointTerms(Checkpoint, frozen=True):
    """How often parties store the state of a run, and how long one that went away is waited for."""

    wait_s: float = 300.0


class Terms(Training, frozen=True, kw_only=True):
    """A job between companies, as its file says it."""

    name: str
    parties: dict[str, Member]
    align: Align = Align()
    split: Split = Split()
    prepare: Prepare = Prepare()
    use: Use = Use()
    model: ModelTerms = ModelTerms()
    checkpoint: CheckpointTerms = CheckpointTerms()
    # what people have agreed on; nothing is computed of it
    purpose: str = ""  # what the model is for
    contract: str = ""  # under which it is made
    contact: str = ""  # whom the others' people may ask
    expires: str = ""  # the last day, in UTC, on which it is trained and scores are given
    runs_of_a_job: int | None = None  # how often this very job is to be run, and one approval counts
    describe: Describe = Describe()
    statistics_only: bool = False  # nothing is trained: how columns go together is told

    @property
    def active(self) -> tuple[str, ...]:
        """Who holds the label, in the order of their names."""
        return tuple(sorted(party for party, member in self.parties.items() if member.label))

    @property
    def server(self) -> str:
        """The party that applies the model on top (F0), where there is one: the first label holder."""
        return self.active[0]

    @property
    def weighted(self) -> bool:
        """Whether label holders weigh their rows."""
        return self.train.class_weight is not None or any(member.weight for member in self.parties.values())

    @property
    def scores(self) -> int:
        """How many numbers the score of a row has: one, or one for every class."""
        return self.train.classes or 1

    def model_of(self, party: str) -> OwnModel:
        """Return the model of this party, with the number of its outputs."""
        return structs.replace(self.model.of(party), outputs=self.width_of(party))

    def width_of(self, party: str) -> int:
        """Return how many numbers the model of this party gives for a row."""
        return self.model.of(party).outputs or self.scores

    def job(self) -> Job:
        """Return the same job as the training conversations know it."""
        prepare = self.prepare
        data = Data(
            files={party: member.data for party, member in sorted(self.parties.items())},
            active=list(self.active),
            scale=prepare.scale,
            categorical=list(prepare.categorical),
            missing=prepare.missing,
            rare=prepare.rare,
            intercept=prepare.intercept,
            woe=prepare.woe,
        )
        alike = {name: getattr(self, name) for name in Training.__struct_fields__}
        checkpoint = Checkpoint(every=self.checkpoint.every)
        return Job(**alike, world="network", data=data, model=self.model.for_job(), checkpoint=checkpoint)


class Scoring(Section, frozen=True, kw_only=True):
    """The terms of a scoring session: which model, which rows, who asks and who is present."""

    model: str
    asker: str
    parties: tuple[str, ...]
    data: str | None = None
    rules: str = ""
    service: bool = False
    nonce: str = ""


class Proposal(Section, frozen=True, kw_only=True):
    """What a daemon sends to its peers: the terms of a training run or of a scoring session."""

    train: Terms | None = None
    score: Scoring | None = None
