"""The result of a run, stored as result.json: a contract that other tools rely on."""

from __future__ import annotations

from math import log2
from pathlib import Path
from typing import Literal

import msgspec

from colonnade.disk import drafted
from colonnade.errors import DataError


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation during training, with what had been spent until then."""

    seconds: float
    virtual_seconds: float | None
    epoch: int
    rounds: int
    bytes: int
    loss: float  # of the training rows with its penalty: the objective
    train_loss: float | None = None  # of the training rows alone, which people compare; None before 0.3
    test: dict[str, float] = {}  # metrics of the test rows, where they were scored at that moment

    @property
    def shown(self) -> float:
        """The loss that people are shown: without its penalty, where it is known."""
        return self.loss if self.train_loss is None else self.train_loss


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Time, work and traffic of the whole run; `virtual_seconds` is the simulated world's own clock."""

    seconds: float
    virtual_seconds: float | None
    epochs: int
    rounds: int
    messages: int
    bytes_sent: int
    payload_bytes: int = 0  # of bytes_sent: the arrays
    sealed_bytes: int = 0  # of bytes_sent: TLS records; the rest is our own framing
    bytes_by_kind: dict[str, int]
    bytes_by_party: dict[str, int]
    bytes_by_pair: dict[str, dict[str, int]]
    evaluation_bytes: int
    updates_by_party: dict[str, int]
    launched_by_party: dict[str, int] = {}  # rounds that a label holder dominated, or pulled for itself
    refused: dict[str, int]


class Staleness(msgspec.Struct, frozen=True, kw_only=True):
    """How many updates old the weights behind a gradient were when it was applied.

    In a cascade: how many answers old the other clients' outputs were that an answer used. `bound` is the
    most that the run allowed, None if nothing was bounded. `tau_1` and `tau_2` are the largest of the two
    delays that VFB2's theorems bound: from the reading of weights to theta, and from theta to the update;
    None where they are not measured.
    """

    mean: float
    p95: int
    max: int
    bound: int | None = None
    tau_1: int | None = None
    tau_2: int | None = None


class Privacy(msgspec.Struct, frozen=True, kw_only=True):
    """How scores and labels were protected; `notes` say in words what the parties still learn."""

    secure_sum: str
    mechanism: str
    epsilon: float | None
    delta: float | None
    notes: list[str]
    leaks: list[str] = []  # the same as parties' policies name it


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a run and what was done to it before training, in numbers and in words.

    Only what the label holders may see: of the others' columns there are counts and their own sentences.
    """

    rows: dict[str, int] = {}  # train, test, and the rows that were left out, by reason
    columns: dict[str, int] = {}  # prepared columns of every party
    task: str = ""
    classes: list[str] = []
    positive: list[str] = []  # the labels that count as +1
    base_rate: float | None = None  # the part of the training rows whose label is positive
    done: dict[str, list[str]] = {}  # what every party did to its columns, a sentence each
    warnings: list[str] = []
    digests: dict[str, str] = {}  # by party, a hash of what its training rows were read from


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One yardstick of a run, on its test rows: what knowing this much reaches.

    `name` is "base rate" (the training labels alone), "alone" (the label holder's own columns), "together"
    (the run) or "pooled" (all columns in one place). Intervals are of 95%; `gains` are over "alone", with
    theirs.
    """

    name: str
    parties: list[str] = []  # whose columns
    model: str = ""  # where it is another than the run's
    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]] = {}
    gains: dict[str, tuple[float, float, float]] = {}


class Forgot(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows a run forgot: how many that trained, a hash of all their ids, and of which model.

    `start` is "optimum" where training went on from that model's weights, else "beginning".
    """

    rows: int
    ids: str
    of: str
    start: str


Estimate = tuple[float, float, float]
"""A number, and the ends of its 95% interval."""


class CoalitionValue(msgspec.Struct, frozen=True):
    """What a model of some parties' columns reaches on the test rows."""

    parties: list[str]
    metrics: dict[str, float]


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """What every party is worth, by metric: its Shapley value and a 95% interval.

    `coalitions` are known to the label holder alone; elsewhere values are rounded to their interval.
    """

    values: dict[str, dict[str, Estimate]]
    trainings: int
    exact: bool = True  # all coalitions were trained, and not those of some orders
    coalitions: list[CoalitionValue] = []


About = Literal["labels", "columns", "membership", "nothing"]
"""What numbers that somebody is told are about."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What one party hears about the labels, columns or ids of another: numbers and bits in all, and rows.

    By counting, at the most; `kinds` name what is told (`openings.account.WORDS`).
    """

    hearer: str
    about: About
    of: str
    kinds: tuple[str, ...]
    numbers: int
    bits: float
    rows: int
    epsilon: float | None = None  # what noise lets all of it tell of one label, where it has noise
    linear: int = 0  # how many of the numbers are linear statistics of labels that no epsilon bounds

    @property
    def per_row(self) -> float:
        """Bits a row."""
        return self.bits / self.rows if self.rows else 0.0

    @property
    def numbers_per_row(self) -> float:
        """Numbers a row."""
        return self.numbers / self.rows if self.rows else 0.0

    def label_bits(self, classes: int) -> float:
        """Return the bits a label, never more than a label has; `classes` is 0 where labels are numbers."""
        return min(self.per_row, log2(max(2, classes)) if classes else 64.0)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A run: what was trained by whom, how good it is beside pooled training, and what it cost."""

    algorithm: str
    dataset: str
    parties: list[str]
    active: list[str]
    world: str
    seed: int
    version: str
    step: dict[str, float]
    metrics: dict[str, float]
    pooled: dict[str, float]
    cost: Cost
    staleness: Staleness
    privacy: Privacy
    history: list[Moment]
    data: Described = Described()
    converged: bool | None = None  # whether the loss had stopped falling; None: nobody asked, or can tell
    chosen: dict[str, float] = {}  # settings that the data decided: sigma and l2 of a kernel machine
    compared: list[Compared] = []  # what the label holder knew without the others, and all that
    forgot: Forgot | None = None  # rows that an earlier model had seen, and this one has not
    worth: Worth | None = None  # what every party is worth, where the job asks for it
    opened: list[Heard] = []  # what every party hears of every other, by counting
    compiled: bool | None = None  # whether compiled code did what NumPy does otherwise; None: not noted

    def __repr__(self) -> str:
        """Return the run in a line; every number of it is in its fields."""
        shown = ", ".join(f"{key} {value:.4g}" for key, value in self.metrics.items() if key != "objective")
        told = ", ".join(self.privacy.leaks) or "nothing"
        return (
            f"<Result of {self.algorithm} on {self.dataset}: {len(self.parties)} parties; {shown}; "
            f"gives away {told}>"
        )

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all: nobody can read half of it."""
        with drafted(path) as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2))


def read_result(path: Path) -> Result:
    """Return the result that `Result.write` stored; DataError where there is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Result)
    except FileNotFoundError:
        folder = path.parent
        raise DataError(
            f"{folder}: there is no {path.name}; `colonnade run JOB.toml --out {folder}` writes one"
        ) from None
    except msgspec.MsgspecError as error:
        raise DataError(f"{path}: is not a result of this version of Colonnade: {error}") from error
