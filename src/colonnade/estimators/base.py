"""What both estimators share: from columns and labels to a job, from a run to a model that scores rows."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._repr_html.estimator import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from colonnade.arrays import Arrays, Floats
from colonnade.conversations.kernel.predict import KernelShare
from colonnade.data.parties import Parties
from colonnade.data.party_data import PartyData, Prepared, Recipe
from colonnade.data.prepare import INTERCEPT
from colonnade.errors import JobError
from colonnade.estimators.display import summary_html
from colonnade.estimators.fitted import Fitted
from colonnade.estimators.inputs import Holders, checked_columns, checked_labels, deal, dealt_again
from colonnade.estimators.models import Chosen, built, chosen, model_of
from colonnade.estimators.progress import Callback, told
from colonnade.estimators.settings import TRAIN_KEYS, for_labels, read
from colonnade.job import Job
from colonnade.job.plan import Task
from colonnade.job.presets import DEFAULT_ALGORITHM
from colonnade.result import Result
from colonnade.run.federate import Finished, Tables, run_tables
from colonnade.run.resolve import Composition, compose


class Vertical(BaseEstimator, ABC):  # type: ignore[misc]
    """What both estimators share: training on columns that several parties hold, and scoring such rows."""

    _tasks: tuple[str, ...]
    _model: Fitted
    result_: Result
    n_features_in_: int
    columns_: dict[str, tuple[str, ...]]
    feature_names_: dict[str, tuple[str, ...]]
    coef_: dict[str, Floats]
    intercept_: float | Floats
    n_iter_: int

    def __init__(
        self,
        algorithm: str = DEFAULT_ALGORITHM,
        *,
        parties: int | None = None,
        columns: Holders | None = None,
        active: int | Sequence[str] = 1,
        loss: str | None = None,
        l2: float = 1e-4,
        intercept: bool | None = None,
        scale: str | float = "auto",
        missing: str = "auto",
        categorical: Sequence[str] | None = None,
        epochs: int | None = None,
        tolerance: float | None = None,
        batch: int | None = None,
        step: float | str = "auto",
        model: Any = None,
        server: Any = None,
        world: str = "local",
        job: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.parties = parties
        self.columns = columns
        self.active = active
        self.loss = loss
        self.l2 = l2
        self.intercept = intercept
        self.scale = scale
        self.missing = missing
        self.categorical = categorical
        self.epochs = epochs
        self.tolerance = tolerance
        self.batch = batch
        self.step = step
        self.model = model
        self.server = server
        self.world = world
        self.job = job
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    # --- training ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Train on the columns of X, or on parties' own columns.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Parties
            The columns; with `Parties` (from `split_columns`) their holders, too.
        y : array of shape (n_samples,), optional with Parties
            The labels; given here they replace those that the parties hold.
        """
        seed = self._seed()
        parties = self._dealt(X, seed)
        labels = self._encode(checked_labels(X, y, parties.rows, type(self).__name__))
        models = chosen(self.model, self.server, tuple(parties.tables))
        composition = compose(self._job(parties, models, seed))
        prepared = self._prepared(composition, parties)
        tables = Tables(
            "X",
            {
                party: replace(each.train, y=labels if party in parties.active else None)
                for party, each in prepared.items()
            },
            None,
            parties.active,
        )
        self._learn(composition, tables, models, prepared)
        self._split = parties.columns
        self.columns_ = {party: table.columns for party, table in parties.tables.items()}
        return self

    def _dealt(self, X: Any, seed: int) -> Parties:
        """Every party's columns."""
        if isinstance(X, Parties):
            self.n_features_in_ = X.shape[1]
            names = sorted((j, c) for p, js in X.columns.items() for j, c in zip(js, X.tables[p].columns))
            self.feature_names_in_ = np.array([name for _, name in names], dtype=object)
            return X
        found = checked_columns(self, X, reset=True)
        return deal(found, self.parties, self.columns, self.active, seed)

    def _seed(self) -> int:
        """The seed of the run; a RandomState gives another one every time, None any."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _prepared(self, composition: Composition, parties: Parties) -> dict[str, Prepared]:
        """Every party's columns as numbers, prepared as those of files are."""
        holder = composition.label_holders(tuple(parties.tables), parties.active)[0]
        ones = composition.has("intercept") if self.intercept is None else self.intercept
        if ones and composition.has("no-intercept"):
            raise JobError(f"{type(self).__name__}: a kernel machine has no intercept; drop intercept = True")
        declared = tuple(self.categorical or ()) + parties.categorical
        return {
            party: PartyData(
                party,
                replace(table, y=None),
                None,
                TEMP(self, table, declared, ones and party == holder),
            ).prepare()
            for party, table in parties.tables.items()
        }

    def _learn(
        self, composition: Composition, tables: Tables, models: Chosen, prepared: dict[str, Prepared]
    ) -> None:
        """Run the job on prepared tables, and keep what is left of it."""
        job, scores = composition.job, composition.job.train.classes or 1
        own = {p: built(each, tables.train[p].width, scores) for p, each in models.own.items()}
        head = None if models.head is None else built(models.head, len(tables.train), scores)
        given = replace(
            tables,
            models={party: model_of(made) for party, made in own.items()},
            head=None if head is None else model_of(head),
        )
        with told(job.train.epochs, self.verbose, self.callbacks or ()) as progress:
            done = run_tables(job, given, progress=progress)
        preparations = {party: each.preparation for party, each in prepared.items()}
        shares: dict[str, Arrays] = {party: dict(share.weights) for party, share in done.shares.items()}
        self._model = Fitted(done.plan, preparations, shares, own, head)
        self._describe(done, {party: table.columns for party, table in tables.train.items()})

    def _describe(self, done: Finished, names: dict[str, tuple[str, ...]]) -> None:
        """Set the attributes that tell of a finished run."""
        self.result_ = done.result
        self.n_iter_ = done.result.cost.epochs
        self.feature_names_ = {p: tuple(c for c in columns if c != INTERCEPT) for p, columns in names.items()}
        self.coef_, self.intercept_ = {}, 0.0
        for party, share in self._model.shares.items() if self._model.kind.name == "linear" else ():
            w, ones = np.asarray(share["w"]), names[party][-1:] == (INTERCEPT,)
            self.coef_[party] = w[:-1] if ones else w
            if ones:
                self.intercept_ = w[-1] if w.ndim > 1 else float(w[-1])
        if done.result.converged is False:
            warnings.warn(
                f"{type(self).__name__} did not converge in {self.n_iter_} epochs; allow more (epochs = "
                f"{2 * self.n_iter_}), or accept a larger tolerance",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _job(self, parties: Parties, models: Chosen, seed: int) -> Job:
        """These parameters as a job; what is wrong with them is refused as in a job file."""
        given = {
            "algorithm": self.algorithm,
            "world": self.world,
            "seed": seed,
            "data": {"train": "X", "parties": len(parties.tables), "active": list(parties.active)},
            "train": {key: getattr(self, key) for key in TRAIN_KEYS if getattr(self, key) is not None},
            "model": models.section,
        }
        task, classes = self._task()
        where = type(self).__name__
        return for_labels(read(given, self.job or {}, where), task, classes, self._tasks, where)

    @abstractmethod
    def _task(self) -> tuple[Task, int | None]:
        """What the labels mean, and how many classes there are."""

    @abstractmethod
    def _encode(self, y: NDArray[Any]) -> Floats:
        """The labels as the loss wants them."""

    # --- a trained model --------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Floats:
        """The score of every row, and of every class where there are several."""
        check_is_fitted(self, "result_")
        return self._model.scores(dealt_again(self, X, self._split, self.columns_).tables)

    @property
    def kernel_(self) -> dict[str, KernelShare]:
        """A kernel machine's features and coefficients, by party."""
        check_is_fitted(self, "result_")
        if self._model.plan.conversation != "kernel":
            raise AttributeError("kernel_: this is no kernel machine; its weights are coef_")
        return {party: KernelShare.from_arrays(share) for party, share in self._model.shares.items()}

    def report(self, path: str | Path) -> Path:
        """Write how training went: a figure (.png, .svg) or a page that needs nothing else (.html)."""
        check_is_fitted(self, "result_")
        from colonnade.report.page import write_report

        return write_report(self.result_, Path(path))

    # --- scikit-learn's habits --------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Plain text and arrays instead of a plan and preparations, for pickle and for skops."""
        state = dict(super().__getstate__())
        if "_model" in state:
            state["_model"] = state["_model"].plain()
            state["result_"] = msgspec.json.encode(self.result_).decode()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_model" in state:
            self._model = Fitted.from_plain(state["_model"])
            self.result_ = msgspec.json.decode(state["result_"], type=Result)

    def _html_repr(self) -> str:
        """scikit-learn's own diagram and, of a trained model, a short table."""
        diagram: str = estimator_html_repr(self)
        return diagram + summary_html(self.result_) if hasattr(self, "result_") else diagram



def TEMP(self, table, declared, ones):
    scale = ("maxabs" if table.sparse else "zscore") if self.scale == "auto" else self.scale
    text = tuple(c for c in table.columns if isinstance(table.values, tuple) and table.column(c).dtype == object)
    return Recipe(scale, declared + text, "mean" if self.missing == "auto" else self.missing, ones)
