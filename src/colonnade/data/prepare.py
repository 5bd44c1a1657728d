"""Preparation: each party's own columns become numbers, with statistics from training rows only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from colonnade.data.table import Column, RawTable, Rows, Table

Scale = Literal["none", "zscore", "minmax", "maxabs"]
Missing = Literal["error", "zero", "mean"]
Task = Literal["binary", "multiclass", "regression"]


@dataclass(frozen=True)
class Preparation:
    columns: tuple[str, ...]
    scale: Scale | float
    missing: Missing
    categories: dict[str, tuple[str, ...]]
    constant: tuple[str, ...]
    intercept: bool

    @staticmethod
    def fit(
        raw: RawTable,
        *,
        scale: Scale | float = "none",
        categorical: Sequence[str] = (),
        missing: Missing = "error",
        intercept: bool = False,
    ) -> Preparation:
        """Learn the preparation from training rows. A number as `scale` divides every column by it."""
        raise NotImplementedError

    def transform(self, raw: RawTable, y: NDArray[np.float64] | None = None) -> Table:
        """The raw rows as numbers; `y` is the labels already encoded by `Labels`, None for a passive party."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Preparation:
        raise NotImplementedError


@dataclass(frozen=True)
class Labels:
    """How raw labels become numbers: binary -> +-1, multiclass -> 0..K-1, regression -> as they are."""

    task: Task
    classes: tuple[str, ...]
    positive: tuple[str, ...] = ()

    @staticmethod
    def fit(
        y: Column,
        task: Task,
        *,
        positive: Sequence[Any] | None = None,
        name: str = "labels",
        origin: Rows | None = None,
    ) -> Labels:
        raise NotImplementedError

    def transform(
        self, y: Column, *, name: str = "labels", origin: Rows | None = None
    ) -> NDArray[np.float64]:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Labels:
        raise NotImplementedError
