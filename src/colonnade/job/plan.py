"""A job with every question answered: what all parties of a run go by.

A job may leave open what follows from its algorithm and its data: the loss, the batch, how many batches
are under way, who holds the label. `run.resolve` answers these once, from the job and a few facts about
the data. Everything that runs reads the `Plan` and never the job, so no two parts can answer differently.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec

from colonnade.job.section import Section
from colonnade.job.sections import LossName, Net, PrivacyTerms, RegularizerName, RevealName, SumName, World
from colonnade.losses import Task as Task  # plans name it beside their own words

C = TypeVar("C", bound=Section)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan needs to know of the data: who has how many columns, how many rows, what kind of label."""

    columns: dict[str, int]
    label_holders: tuple[str, ...]
    rows: int
    task: Task
    classes: int = 0  # different labels, where they are classes
    weighted: bool = False  # whether label holders have weights of the rows


class Objective(Section, frozen=True):
    """What is minimised: the mean loss plus l2 times the regulariser and l1 times the sum of all |w|.

    Intercepts are not penalised, and the mean is that of weighted rows where label holders have weights.
    """

    loss: LossName
    regularizer: RegularizerName
    l2: float
    l1: float
    classes: int  # scores a row; 0: one score that is not in an array of its own

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row's score."""
        return (self.classes,) if self.classes else ()


class Pace(Section, frozen=True):
    """How long a run trains, in which batches and steps, and how much is under way at once."""

    schedule: Literal["async", "sync"]
    epochs: int
    batch: int
    step: float | Literal["auto"]
    ahead: int  # batches in flight
    evaluate_every: int | float
    tolerance: float = 0.0  # the relative fall of the loss an epoch that counts as none; 0: nobody asks
    fades: bool = False  # steps fall to nothing over all epochs

    @property
    def open(self) -> bool:
        """Whether the run ends by itself once the loss stops falling."""
        return bool(self.tolerance) and not self.fades


class Hidden(Section, frozen=True):
    """Who shares the scores with the label holder where nobody may learn them.

    `mate` holds the other part of scores and theta, `dealer` deals words for both, and `dealers` names for
    every block the third party that deals words for the mate's products.
    """

    mate: str
    dealer: str
    dealers: dict[str, str]


NOISY_DELTA = 1e-5


class Noisy(Section, frozen=True):
    """How parties train that are told gradients with noise.

    `noise` is in every gradient that a party is told, in rows; or as much as `epsilon` asks for.
    """

    passes: int
    noise: float
    epsilon: float | None = None
    delta: float = NOISY_DELTA
    weighted: bool = False  # whether rows have weights
    tight: bool = False  # few rows for the columns: own weights tell more of labels
    proofs: int = 0  # gradients of the finished model, which are told as well

    @property
    def releases(self) -> int:
        """How many gradients an owner is told."""
        return self.passes + self.proofs

    @property
    def said(self) -> str:
        """How much noise there is, as a report says it."""
        return (
            "in every gradient" if self.epsilon is not None else f"of {self.noise:g} rows in every gradient"
        )


class Encrypted(Noisy, frozen=True):
    """How two parties train so whose products are encrypted, with nobody beside them."""

    profile: Literal["lean", "strict"] = "lean"


class Blind(Section, frozen=True):
    """Who helps whom where nobody but the label holder may learn what labels follow from.

    `dealers` names for every owner of columns the third party that deals random words for its products.
    """

    dealers: dict[str, str]
    reveal: RevealName
    hidden: Hidden | None = None  # None: the label holder learns total scores
    encrypted: Encrypted | None = None  # two parties alone; nobody deals, and scores are hidden
    noisy: Noisy | None = None  # owners are told gradients with noise, and know their own weights
    proofs: int = 0  # random measurements before weights are told

    @property
    def told(self) -> Noisy | None:
        """How owners are told gradients with noise; None: nobody is told any."""
        return None if self.reveal == "never" else self.encrypted or self.noisy


class Plan(Section, Generic[C], frozen=True, kw_only=True):
    """Everything that all parties of a run agree on. `settings` are the conversation's own."""

    algorithm: str
    conversation: str
    world: World
    seed: int
    parties: tuple[str, ...]
    label_holders: tuple[str, ...]
    objective: Objective
    pace: Pace
    secure_sum: SumName
    neighbours: int | None = None  # how many parties share masks with each; None: all others
    network: Net
    privacy: PrivacyTerms
    settings: C
    checkpoints: int | Literal["auto"] | None = None  # epochs between two; None: there are none
    blind: Blind | None = None  # None: theta, and with it the labels, is sent in clear
    stands_for: int | None = None  # of a rehearsal, on made-up rows: the passes of the job
    value: bool = False  # whether every coalition of parties is trained, to say what each is worth

    @property
    def evaluator(self) -> str:
        """The label holder that measures the model and tunes the step; the server, where there is one."""
        return self.label_holders[0]

    @property
    def passes(self) -> int:
        """The passes of the whole job, by which is chosen what pays; a rehearsal makes fewer."""
        return self.stands_for or self.pace.epochs

    @property
    def speeds(self) -> dict[str, float]:
        """How fast every party computes; 1 is a usual machine."""
        speeds = self.network.speeds or [1.0] * len(self.parties)
        return dict(zip(self.parties, speeds, strict=True))
