"""A problem as a stranger brings it: training and test rows, columns that companies hold, a label.

`Frames` are tables with names, written as one CSV file a company; `Sparse` is one LIBSVM file that is split
over parties. Both write their files, and give the same rows to Python and to scikit-learn.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_svmlight_files
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

Kind = Literal["classes", "number", "counts"]
COMPANIES = ("bank", "shop", "telecom", "insurer")
HELD = 0.97  # of the training rows every company has its own part; only common ones can be learnt from


@dataclass(frozen=True, eq=False)
class Rows:
    """What Python and scikit-learn get: columns and labels of training and test rows."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


@dataclass(frozen=True, eq=False)
class Frames:
    """Two tables with the same columns, one of them the label; companies hold the columns in turn."""

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    label: str = "y"
    kind: Kind = "classes"
    companies: int = 3
    given: dict[str, list[str]] = field(default_factory=dict)  # who holds which columns, if not in turn

    @property
    def columns(self) -> dict[str, list[str]]:
        """Who holds which columns."""
        if self.given:
            return self.given
        names = [c for c in self.train.columns if c != self.label]
        parts = np.array_split(np.array(names, dtype=object), min(self.companies, len(names)))
        return {company: list(part) for company, part in zip(COMPANIES, parts, strict=False)}

    def _held(self) -> dict[str, np.ndarray[Any, Any]]:
        """The training rows that every company has, in its own order."""
        rng = np.random.default_rng(len(self.train))
        count = len(self.train)
        return {c: rng.permutation(np.flatnonzero(rng.random(count) < HELD)) for c in self.columns}

    def write(self, folder: Path) -> tuple[list[str], dict[str, Any]]:
        """Write the files; the words of `colonnade new` that name them, and [data] for the test files."""
        files, tests, held = [], {}, self._held()
        rng = np.random.default_rng(0)
        for company, columns in self.columns.items():
            wanted = [*columns, *([self.label] if company == COMPANIES[0] else [])]
            files.append(str(folder / f"{company}.csv"))
            tests[company] = str(folder / f"{company}_test.csv")
            _csv(self.train[wanted], held[company], "c", Path(files[-1]))
            _csv(self.test[wanted], rng.permutation(len(self.test)), "t", Path(tests[company]))
        return [*files, "--label", self.label, "--id", "customer"], {"test_files": tests}

    def rows(self) -> Rows:
        """The rows that can be learnt from, joined, and the test rows."""
        common = sorted(set.intersection(*(set(rows.tolist()) for rows in self._held().values())))
        names = [c for columns in self.columns.values() for c in columns]
        joined = self.train.iloc[common]
        return Rows(joined[names], joined[self.label], self.test[names], self.test[self.label])

    def preparation(self) -> Any:
        """What the pipeline does before its model."""
        texts = make_pipeline(
            SimpleImputer(strategy="constant", fill_value="missing"),
            OneHotEncoder(handle_unknown="ignore"),
        )
        return make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
            (texts, make_column_selector(dtype_exclude="number")),
        )


@dataclass(frozen=True, eq=False)
class Sparse:
    """Lines of LIBSVM files."""

    name: str
    train: Sequence[str]
    test: Sequence[str]
    companies: int = 4
    kind: Kind = "classes"

    def write(self, folder: Path) -> tuple[list[str], dict[str, Any]]:
        """Write the files; the words of `colonnade new` that name them, and [data] for the test file."""
        files = {part: folder / f"{self.name}.{part}.libsvm" for part in ("train", "test")}
        files["train"].write_text("".join(self.train), encoding="ascii")
        files["test"].write_text("".join(self.test), encoding="ascii")
        return [str(files["train"]), "--parties", str(self.companies)], {"test": str(files["test"])}

    def rows(self) -> Rows:
        """The same rows in memory."""
        parts = [io.BytesIO("".join(part).encode("ascii")) for part in (self.train, self.test)]
        X, y, X_test, y_test = load_svmlight_files(parts)
        return Rows(X.tocsr(), y, X_test.tocsr(), y_test)

    def preparation(self) -> Any:
        """What the pipeline does before its model: a sparse file keeps its zeros."""
        return StandardScaler(with_mean=False)


Problem = Frames | Sparse


def folds(name: str, frame: pd.DataFrame, count: int = 5, **more: Any) -> Iterator[Frames]:
    """A small table as several problems: every row is a test row once."""
    for train, test in KFold(count, shuffle=True, random_state=0).split(frame):
        yield Frames(name, frame.iloc[train], frame.iloc[test], **more)


def parted(name: str, frame: pd.DataFrame, **more: Any) -> Iterator[Frames]:
    """A table as one problem, with every fifth row, at random, to test on."""
    order = np.random.default_rng(0).permutation(len(frame))
    cut = len(frame) // 5
    yield Frames(name, frame.iloc[np.sort(order[cut:])], frame.iloc[np.sort(order[:cut])], **more)


def _csv(frame: pd.DataFrame, rows: np.ndarray[Any, Any], letter: str, path: Path) -> None:
    """Some rows of a table in a file, with an id."""
    part = frame.iloc[rows]
    part.insert(0, "customer", [f"{letter}{row:06}" for row in rows])
    part.to_csv(path, index=False)
