"""What a search for settings leaves behind: search.json, beside the result of the model that it chose."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

FILE = "search.json"
HIGHER = frozenset({"accuracy", "auc", "r2", "d2"})  # metrics of which more is better


Stop = Literal["", "user", "time", "epsilon"]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One setting and what rows that were held back say of it. `value` is the mean of `folds`.

    `left`: worse than most after some folds; `failed`: it cannot be trained, see `why`; `stopped`: the user
    stopped the search meanwhile.
    """

    number: int
    settings: dict[str, Any]  # key of the job -> value; none: the job as it is
    state: Literal["done", "left", "failed", "stopped"]
    value: float | None = None
    folds: list[float] = []
    seconds: float = 0.0
    trainings: int = 0  # that were begun
    why: str = ""


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """All settings that were tried, and what trying them has told the parties."""

    metric: str
    folds: int
    held_back: float | None
    rows: int  # for training, of which some are held back in every fold
    seed: int
    space: dict[str, Any]
    trials: list[Trial]
    stopped: Stop  # what ended the search before all settings were tried
    epsilon: float | None  # what all trainings may have told about a label, that of the final model included
    notes: list[str] = []

    @property
    def best(self) -> Trial | None:
        """The setting of the best mean, the first of those that are equal; None if none was measured."""
        sign = -1.0 if self.metric in HIGHER else 1.0
        done = [trial for trial in self.trials if trial.value is not None]
        return min(done, key=lambda trial: sign * (trial.value or 0.0), default=None)

    @property
    def trainings(self) -> int:
        """How many trainings were begun, that of the final model not among them."""
        return sum(trial.trainings for trial in self.trials)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        draft = path.with_suffix(".part")
        draft.write_bytes(self.json())
        draft.replace(path)

    def json(self) -> bytes:
        """Return the search as JSON, with what follows from its trials."""
        best = self.best
        plain = {
            **msgspec.to_builtins(self),
            "best": None if best is None else best.number,
            "trainings": self.trainings,
        }
        return msgspec.json.format(msgspec.json.encode(plain), indent=2)
