"""The scikit-learn-style front: fit on parties' columns, predict from parties' columns.

All parties are in this process (world local or simulated), as for experiments; companies run
`colonnade run` or a daemon each. `fit` starts the very conversation that the job file would, so what the
parties learn of each other is what docs/threat-model.md says; `result_` is the same as result.json.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from msgspec import structs
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from colonnade.arrays import Arrays, Floats
from colonnade.baselines.pooled import pool
from colonnade.conversations.kernel.predict import KernelShare
from colonnade.conversations.predict import Holding
from colonnade.data.prepare import INTERCEPT
from colonnade.data.split import Parties
from colonnade.data.table import Table
from colonnade.errors import DataError, JobError
from colonnade.job import Job, job_from
from colonnade.job.plan import Task
from colonnade.losses import LOSSES
from colonnade.result import Result
from colonnade.run.federate import Tables, run_tables
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import compose

WORLDS = ("local", "simulated")


class _Vertical(BaseEstimator, ABC):  # type: ignore[misc]
    """What both estimators share: training on columns that several parties hold, and scoring such rows.

    The parameters are those of the job file: `ahead` bounds the batches in flight, `threads` are workers
    per party, `step` is a number or "auto". With `intercept` the first active party holds one more column
    of ones, whose weight is penalised like any other.
    """

    _tasks: tuple[str, ...]
    result_: Result
    coef_: dict[str, Floats]  # a party's own weights, in the order of its columns; none in a kernel machine
    intercept_: float | Floats  # one for every class, where there is a score for each

    def __init__(
        self,
        algorithm: str = "vfb2-sgd",
        *,
        epochs: int | None = None,
        batch: int | None = None,
        step: float | str = "auto",
        l2: float = 1e-4,
        loss: str | None = None,
        regularizer: str = "l2",
        ahead: int | None = None,
        threads: int = 1,
        secure_sum: str = "masked",
        world: str = "local",
        seed: int = 0,
        intercept: bool = False,
    ) -> None:
        self.algorithm = algorithm
        self.epochs = epochs
        self.batch = batch
        self.step = step
        self.l2 = l2
        self.loss = loss
        self.regularizer = regularizer
        self.ahead = ahead
        self.threads = threads
        self.secure_sum = secure_sum
        self.world = world
        self.seed = seed
        self.intercept = intercept

    def fit(self, parties: Parties, y: ArrayLike | None = None) -> Self:
        """Train on what `split_columns` gave; `y` replaces the labels that the active parties hold."""
        labels = self._encode(_truth(parties, y))
        job = self._job(parties)
        tables = {
            name: replace(table, y=labels if name in parties.active else None)
            for name, table in _tables(parties).items()
        }
        holder = parties.active[0]
        if self.intercept and compose(job).has("no-intercept"):
            raise JobError(f"{type(self).__name__}: a kernel machine has no intercept; drop intercept = True")
        if self.intercept:
            tables[holder] = _with_ones(tables[holder])
        done = run_tables(job, Tables("parties", tables, None, parties.active))
        self.result_ = done.result
        self.columns_ = {name: parties.tables[name].columns for name in parties.tables}
        self._plan = done.plan
        self._kind = CONVERSATIONS[done.plan.conversation].share
        self._shares: dict[str, Arrays] = {name: share.weights for name, share in done.shares.items()}
        self.coef_ = {name: np.asarray(held["w"]) for name, held in self._shares.items() if "w" in held}
        self.intercept_ = 0.0
        if self.intercept:
            self.coef_[holder], last = self.coef_[holder][:-1], self.coef_[holder][-1]
            self.intercept_ = last if last.ndim else float(last)
        return self

    @property
    def kernel_(self) -> dict[str, KernelShare]:
        """A kernel machine's features and coefficients, by party."""
        check_is_fitted(self, "coef_")
        if self.coef_:
            raise AttributeError("kernel_: this is no kernel machine; its weights are coef_")
        return {name: KernelShare.from_arrays(held) for name, held in self._shares.items()}

    def decision_function(self, parties: Parties) -> Floats:
        """The score of every row, and of every class where there are several: all parties' shares, summed."""
        check_is_fitted(self, "coef_")
        weights = {name: {"w": w} for name, w in self.coef_.items()}  # without the intercept's
        holdings = {
            name: Holding(self._plan, name, {**self._shares[name], **weights.get(name, {})}, table.X)
            for name, table in self._same_columns(parties).items()
        }
        return self._kind.together(holdings) + self.intercept_

    def report(self, path: str | Path) -> Path:
        """Write how training went: a figure (.png, .svg) or a page that needs nothing else (.html)."""
        check_is_fitted(self, "result_")
        from colonnade.report.page import write_report

        return write_report(self.result_, Path(path))

    def _job(self, parties: Parties) -> Job:
        """These parameters as a job; what is wrong with them is refused as in a job file."""
        where = type(self).__name__
        if self.world not in WORLDS:
            raise JobError(
                f"{where}: world = {self.world!r} is not for one process; use 'local' or 'simulated' here, "
                "and `colonnade run` for parties that are processes of their own"
            )
        keys = ("epochs", "batch", "step", "l2", "regularizer", "ahead", "threads")
        train = {key: _plain(getattr(self, key)) for key in keys if getattr(self, key) is not None}
        if isinstance(train.get("step"), int) and not isinstance(train["step"], bool):
            train["step"] = float(train["step"])
        data = {"train": "parties", "parties": len(parties.tables), "active": list(parties.active)}
        job = job_from(
            {
                "algorithm": self.algorithm,
                "world": self.world,
                "seed": _plain(self.seed),
                "data": data,
                "train": {**train, "loss": self.loss},
                "secure": {"sum": self.secure_sum},
            },
            where=where,
        )
        task, classes = self._task()
        loss = compose(job).loss(task, with_probabilities=True)
        if LOSSES[loss].task not in self._tasks:
            raise JobError(f"{where}: loss = {loss!r} is not for {' or '.join(self._tasks)} labels")
        classes = classes if loss == "softmax" else None
        return structs.replace(job, train=structs.replace(job.train, loss=loss, classes=classes))

    @abstractmethod
    def _task(self) -> tuple[Task, int | None]:
        """What the labels mean, and how many classes there are."""

    @abstractmethod
    def _encode(self, y: NDArray[Any]) -> Floats:
        """The labels as the loss wants them."""

    def _same_columns(self, parties: Parties) -> dict[str, Table]:
        """The parties' tables; refused unless they have the columns of the training tables."""
        tables = _tables(parties)
        if set(tables) != set(self.columns_):
            raise DataError(
                f"fitted with the parties {', '.join(self.columns_)}, not {', '.join(tables)}; "
                "split with split_columns(X, like=...)"
            )
        for name, columns in self.columns_.items():
            if tables[name].columns != columns:
                raise DataError(
                    f"{name} holds {_difference(tables[name].columns, columns)}; "
                    "split with split_columns(X, like=...)"
                )
        return tables


class VerticalClassifier(ClassifierMixin, _Vertical):  # type: ignore[misc]
    """Predicts one of two or more classes from columns that several parties hold.

    Without a loss of your own two classes are told apart by the logistic loss and more by softmax, which
    has a score for every class: then `decision_function` is (rows, classes) and so is every party's
    `coef_` (columns, classes).

    >>> from colonnade import VerticalClassifier, split_columns
    >>> X, y = [[0.0, 1.0], [2.0, 0.5], [0.5, 2.0], [3.0, 0.0]], ["no", "yes", "no", "yes"]
    >>> parties = split_columns(X, y, parties=2, active=1)
    >>> clf = VerticalClassifier(epochs=50, batch=4).fit(parties)
    >>> clf.predict(parties).tolist(), clf.score(parties)
    (['no', 'yes', 'no', 'yes'], 1.0)
    """

    _tasks = ("binary", "multiclass")
    classes_: NDArray[Any]

    def predict(self, parties: Parties) -> NDArray[Any]:
        """The class of every row, in the values that y had."""
        z = self.decision_function(parties)
        which = (z >= 0).astype(np.int64) if z.ndim == 1 else z.argmax(axis=1)
        return np.asarray(self.classes_[which])

    @available_if(lambda self: self.loss in (None, "logistic", "softmax"))  # type: ignore[untyped-decorator]
    def predict_proba(self, parties: Parties) -> Floats:
        """The probability of each class of `classes_`; for the logistic loss and softmax only."""
        z = self.decision_function(parties)
        if z.ndim == 2:
            p: Floats = softmax(z, axis=1)
            return p
        p = expit(z)
        return np.column_stack([1 - p, p])

    def score(self, parties: Parties, y: ArrayLike | None = None) -> float:
        """The part of the rows whose class is right."""
        predicted = self.predict(parties)
        return float(np.mean(predicted == _truth(parties, y)))

    def _task(self) -> tuple[Task, int | None]:
        return "binary" if len(self.classes_) == 2 else "multiclass", len(self.classes_)

    def _encode(self, y: NDArray[Any]) -> Floats:
        classes, place = np.unique(y, return_inverse=True)
        if len(classes) == 1:
            raise DataError(f"every label is {classes[0]}; training needs two classes")
        if len(classes) > 2 and self.loss not in (None, "softmax"):
            raise DataError(
                f"y has {len(classes)} classes, and loss = {self.loss!r} is for two; use loss = 'softmax', "
                f"or make two of them first, e.g. y = (y == {classes[0].item()!r})"
            )
        self.classes_ = classes
        if len(classes) > 2 or self.loss == "softmax":
            return place.astype(np.float64)
        return np.where(place == 1, 1.0, -1.0)


class VerticalRegressor(RegressorMixin, _Vertical):  # type: ignore[misc]
    """Predicts a number from columns that several parties hold."""

    _tasks = ("regression",)

    def predict(self, parties: Parties) -> Floats:
        """The predicted number of every row."""
        return self.decision_function(parties)

    def score(self, parties: Parties, y: ArrayLike | None = None) -> float:
        """R2: 1 for a perfect prediction, 0 for the mean."""
        predicted = self.predict(parties)
        truth = _numbers(_truth(parties, y))
        spread = float(np.sum((truth - truth.mean()) ** 2))
        if spread == 0:
            raise DataError("every y is the same; R2 needs y that differ")
        return 1 - float(np.sum((truth - predicted) ** 2)) / spread

    def _task(self) -> tuple[Task, int | None]:
        return "regression", None

    def _encode(self, y: NDArray[Any]) -> Floats:
        return _numbers(y)


def _tables(parties: object) -> dict[str, Table]:
    """The parties' tables; anything but `Parties` is refused."""
    if not isinstance(parties, Parties):
        raise DataError(f"parties is {type(parties).__name__}; give what split_columns(X, y, ...) returns")
    return parties.tables


def _truth(parties: Parties, y: ArrayLike | None) -> NDArray[Any]:
    """The labels as the user wrote them: those given here, or those that an active party holds."""
    held = _tables(parties)[parties.active[0]].y
    if y is not None:
        values = np.asarray(y)
        if values.shape != (parties.rows,):
            raise DataError(f"y has shape {values.shape} where the parties have {parties.rows} rows")
        return values.astype(str) if values.dtype == object else values
    if held is None:
        raise DataError("no labels: give y to split_columns, or here")
    if parties.labels is not None:
        return np.array(parties.labels.classes)[held.astype(np.int64)]
    whole = held.astype(np.int64)
    return whole if np.array_equal(whole, held) else held


def _numbers(y: NDArray[Any]) -> Floats:
    """The labels as finite numbers; anything else is refused."""
    if y.dtype.kind not in "biuf":
        raise DataError("y is text; VerticalRegressor predicts numbers, VerticalClassifier predicts classes")
    if not np.isfinite(y).all():
        raise DataError(f"y: the label of row {int((~np.isfinite(y)).argmax()) + 1} is NaN or infinite")
    return y.astype(np.float64)


def _with_ones(table: Table) -> Table:
    """The table with a last column of ones, whose weight is the intercept."""
    wider = pool([table.X, np.ones((table.rows, 1))])
    return replace(table, columns=(*table.columns, INTERCEPT), X=wider)


def _difference(found: tuple[str, ...], fitted: tuple[str, ...]) -> str:
    """Says how a party's columns differ from those of training."""
    missing, new = [c for c in fitted if c not in found], [c for c in found if c not in fitted]
    if missing:
        return f"no column '{missing[0]}', which it was fitted with"
    if new:
        return f"a column '{new[0]}', which it was not fitted with"
    return "its columns in another order than it was fitted with"


def _plain(value: Any) -> Any:
    """The value as a plain Python number, if it is one of NumPy's (as parameter grids have them)."""
    return value.item() if isinstance(value, np.generic) else value
