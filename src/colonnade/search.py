"""What a search for settings leaves behind: search.json, beside the result of the model that it chose."""

from __future__ import annotations

from math import sqrt
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
    opens: dict[str, list[str]] = {}  # algorithm -> what a run of it opens, where several are compared
    left_out: dict[str, str] = {}  # algorithm -> why it was not tried
    stopped: Stop  # what ended the search before all settings were tried
    epsilon: float | None  # what all trainings may have told about a label, that of the final model included
    notes: list[str] = []

    @property
    def best(self) -> Trial | None:
        """The setting that is chosen: that of the best mean, unless the job as it is is as good up to chance.

        None if none was measured.
        """
        leader, untuned = self.leader, self.untuned
        if leader is None or untuned is None or leader is untuned or self.gain > self.noise:
            return leader
        return untuned

    @property
    def untuned(self) -> Trial | None:
        """The job as it is, if it was measured."""
        return next((each for each in self.trials if not each.settings and each.value is not None), None)

    @property
    def _gains(self) -> list[float]:
        """By how much the leader is better than the job as it is, fold by fold."""
        leader, untuned, sign = self.leader, self.untuned, 1.0 if self.metric in HIGHER else -1.0
        if leader is None or untuned is None:
            return []
        return [sign * (one - other) for one, other in zip(leader.folds, untuned.folds, strict=False)]

    @property
    def gain(self) -> float:
        """By how much the best mean is better than that of the job as it is."""
        return sum(self._gains) / max(1, len(self._gains))

    @property
    def noise(self) -> float:
        """The standard error of this gain over the folds; 0 where there is one fold."""
        gains, count = self._gains, len(self._gains)
        if count < 2:
            return 0.0
        spread: float = sum((each - self.gain) ** 2 for each in gains) / (count - 1)
        return sqrt(spread / count)

    def verdict(self) -> str:
        """Return what the search was good for, in a sentence."""
        best, untuned = self.best, self.untuned
        if best is None or untuned is None:
            return ""
        if best is untuned and self.leader is not untuned:
            return (
                f"no setting is better than the job as it is beyond chance (by {self.gain:.3g}, with a "
                f"standard error of {self.noise:.3g}), so it stays"
            )
        if best is untuned:
            return "no setting is better than the job as it is, so it stays"
        return (
            f"better than the job as it is by {self.gain:.3g} in {self.metric}, with a standard error of "
            f"{self.noise:.3g} over the folds; other rows may say otherwise"
        )

    @property
    def leader(self) -> Trial | None:
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
