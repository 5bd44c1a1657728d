"""What both estimators share: from columns and labels to a job, from a run to a model that scores rows."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self, get_args

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from colonnade.arrays import Floats
from colonnade.conversations.kernel.predict import KernelShare, KernelShares
from colonnade.credit.attribution import Attributions
from colonnade.data.prepare.party_data import Recipe
from colonnade.data.prepare.prepare import Missing, Rare
from colonnade.data.prepare.scaling import Scale
from colonnade.data.split.parties import Parties
from colonnade.data.table import RawTable, Table
from colonnade.errors import DataError, JobError
from colonnade.estimators.as_job import TRAIN_KEYS, for_labels, read
from colonnade.estimators.display import summary_html
from colonnade.estimators.fitted import Fitted, without_ones
from colonnade.estimators.fitting import Labelled, train
from colonnade.estimators.given_models import Chosen, chosen
from colonnade.estimators.habits import BaseEstimator
from colonnade.estimators.inputs import (
    Holders,
    checked_columns,
    checked_exposure,
    checked_labels,
    checked_weight,
    deal,
    dealt_again,
)
from colonnade.estimators.progress import Callback, told
from colonnade.estimators.reporting import facts_of
from colonnade.estimators.warned import openings_of, warn_of_data, warn_of_openings, warn_of_strangers
from colonnade.job import Job, MissingName
from colonnade.job.plan import Task
from colonnade.job.presets import DEFAULT_ALGORITHM
from colonnade.job.sections import LabelsName
from colonnade.losses import LOSSES
from colonnade.report.facts import ReportFacts
from colonnade.result import Result
from colonnade.run.resolve import compose


class Vertical(BaseEstimator, ABC):
    """What both estimators share: training on columns that several parties hold, and scoring such rows."""

    _tasks: tuple[str, ...]
    _model: Fitted
    _own: Table | None  # the label holder's training columns, to say in a report what it reaches alone
    result_: Result
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    columns_: dict[str, tuple[str, ...]]
    n_iter_: int

    def __init__(
        self,
        algorithm: str = DEFAULT_ALGORITHM,
        *,
        parties: int | None = None,
        columns: Holders | None = None,
        active: int | Sequence[str] = 1,
        loss: str | None = None,
        l2: float | Literal["auto"] | None = None,
        l1: float = 0.0,
        class_weight: Mapping[Any, float] | str | None = None,
        intercept: bool | None = None,
        labels: LabelsName | None = None,
        scale: Scale | float = "auto",
        missing: Missing = "auto",
        categorical: Sequence[str] | None = None,
        rare: Rare = "auto",
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
        self.l1 = l1
        self.class_weight = class_weight
        self.intercept = intercept
        self.labels = labels
        self.scale = scale
        self.missing = missing
        self.categorical = categorical
        self.rare = rare
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

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Train on the columns of X, or on parties' own columns.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Parties
            The columns; with `Parties` (from `split_columns`) their holders, too.
        y : array of shape (n_samples,), optional with Parties
            The labels; given here they replace those that the parties hold.
        sample_weight : array of shape (n_samples,), optional
            How much every row counts; only the label holders know it. A row of weight 0 is left out.
        exposure : array of shape (n_samples,), optional
            For how long the events of every row were counted, with the Poisson loss: `y` are counts then, and
            rates are learnt and predicted.

        Returns
        -------
        self
        """
        seed = self._seed()
        parties = self._dealt(X, seed)
        labels = checked_labels(X, y, parties.rows, type(self).__name__)
        weight = checked_weight(sample_weight, parties.rows)
        if exposure is not None:
            labels, weight = self._rates(labels, weight, exposure)
        if weight is not None and not weight.all():
            kept = weight > 0
            parties, labels, weight = parties[kept], labels[kept], weight[kept]
        data = self._labelled(parties, labels, weight)
        models = chosen(self.model, self.server, tuple(parties.tables))
        composition = compose(self._job(parties, models, seed))
        if composition.has("no-share"):
            raise JobError(
                f"algorithm: {composition.preset.name} is a comparator that keeps nothing to predict with; "
                "use fdskl, or `colonnade run` to compare with it"
            )
        if self.missing not in get_args(MissingName):
            raise JobError(f"missing: {self.missing!r} is none of {', '.join(get_args(MissingName))}")
        categorical = tuple(self.categorical or ()) + parties.categorical
        if self.rare != "auto" and not (isinstance(self.rare, Integral) and self.rare >= 0):
            raise JobError(f"rare: {self.rare!r} is neither auto nor a whole number >= 0")
        recipe = Recipe(self.scale, categorical=categorical, missing=self.missing, rare=self.rare)
        with told(composition.job.train.epochs, self.verbose, self.callbacks or ()) as progress:
            self._model, self.result_, self._own = train(composition, data, recipe, models, progress)
        self._split = parties.columns
        self.columns_ = {party: table.columns for party, table in parties.tables.items()}
        self.n_iter_ = self.result_.cost.epochs
        if self.result_.converged is False and not progress.stopped:
            warnings.warn(
                f"{type(self).__name__} did not converge in {self.n_iter_} epochs; allow more (epochs = "
                f"{2 * self.n_iter_}), or a larger tolerance",
                ConvergenceWarning,
                stacklevel=2,
            )
        warn_of_data(self.result_.data)
        warn_of_openings(self.result_)
        return self

    def _dealt(self, X: Any, seed: int) -> Parties:
        """Return every party's columns."""
        if self.parties is not None and not isinstance(self.parties, Integral):
            raise DataError(f"parties = {self.parties!r}: give their number; columns says who holds which")
        if not isinstance(X, Parties):
            return deal(checked_columns(self, X, reset=True), self.parties, self.columns, self.active, seed)
        if len(X) < 2:
            raise DataError(f"n_samples = {len(X)}: two rows are the least to learn from")
        places = {j: c for p, js in X.columns.items() for j, c in zip(js, X.tables[p].columns, strict=True)}
        self.n_features_in_ = len(places)
        names = [places[j] for j in sorted(places)]
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names != [f"x{j}" for j in range(len(names))]:  # columns of an array have no names of their own
            self.feature_names_in_ = np.array(names, dtype=object)
        return X

    def _seed(self) -> int:
        """Return the seed of the run; a RandomState gives another one every time, None any."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _job(self, parties: Parties, models: Chosen, seed: int) -> Job:
        """Return these parameters as a job; what is wrong with them is refused as in a job file."""
        # a module is made for a number of columns, and must not get one more
        intercept = False if models.own and self.intercept is None else self.intercept
        given = {
            "algorithm": self.algorithm,
            "world": self.world,
            "seed": seed,
            "data": {
                "train": "X",
                "parties": len(parties.tables),
                "active": list(parties.active),
                "intercept": intercept,
            },
            "train": {key: getattr(self, key) for key in TRAIN_KEYS if getattr(self, key) is not None},
            "secure": {} if self.labels is None else {"labels": self.labels},
            # objects come without what a job says of networks by default
            "model": models.section or ({"kind": "linear"} if models else {}),
        }
        task, classes = self._task()
        where = type(self).__name__
        return for_labels(read(given, self.job or {}, where), task, classes, self._tasks, where)

    @abstractmethod
    def _task(self) -> tuple[Task, int | None]:
        """Return what the labels mean, and how many classes there are."""

    def _rates(
        self, y: NDArray[Any], weight: Floats | None, exposure: ArrayLike
    ) -> tuple[NDArray[Any], Floats]:
        """Return counts as rates, weighted by their exposure."""
        if not LOSSES.of_counts(self.loss):
            known = LOSSES.named(lambda loss: loss.counts)
            raise JobError(f"exposure: counts have one; set loss = {known}, or leave exposure out")
        times = checked_exposure(exposure, len(y))
        return np.asarray(y, dtype=np.float64) / times, times if weight is None else weight * times

    @abstractmethod
    def _coded(self, y: ArrayLike) -> Floats:
        """Return the labels of other rows as the model has them."""

    @abstractmethod
    def _labelled(self, parties: Parties, y: NDArray[Any], weight: Floats | None) -> Labelled:
        """Return the columns with labels as the loss wants them, and weights of 1 on average."""

    # --- a trained model --------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Floats:
        """Return the score of every row, and of every class where there are several."""
        return self._fitted.scores(self._tables(X))

    def _tables(self, X: Any) -> dict[str, RawTable]:
        """Return every party's columns of new rows."""
        fitted = self._fitted
        dates = {c: how for each in fitted.preparations.values() for c, how in each.dates.items()}
        tables = dealt_again(self, X, self._split, self.columns_, dates).tables
        warn_of_strangers(fitted.preparations, tables)
        return tables

    @property
    def feature_names_(self) -> dict[str, tuple[str, ...]]:
        """The names of every party's prepared columns, those of its weights: a category is column=value."""
        return {party: without_ones(each.outputs) for party, each in self._fitted.preparations.items()}

    @property
    def coef_(self) -> dict[str, Floats]:
        """A linear model's weights by party, in the order of `feature_names_`."""
        return self._fitted.coefficients()

    @property
    def intercept_(self) -> float | Floats:
        """A linear model's intercept; one for every class, where there is a score for each."""
        return self._fitted.intercept()

    @property
    def feature_importances_(self) -> dict[str, Floats]:
        """The part of all gain that every column has in boosted trees, by party, as in `feature_names_`."""
        return self._fitted.importances()

    @property
    def _fitted(self) -> Fitted:
        check_is_fitted(self, "result_")
        return self._model

    @property
    def kernel_(self) -> dict[str, KernelShare]:
        """A kernel machine's features and coefficients, by party."""
        if not isinstance(self._fitted.kind, KernelShares):
            raise AttributeError("kernel_: this is not a kernel machine")  # noqa: TRY004  as getattr has it
        return {party: KernelShare.from_arrays(share) for party, share in self._fitted.shares.items()}

    def shap_values(self, X: Any) -> Attributions:
        """Return the SHAP values of rows: every column's part of a score, from the base that all begin at.

        Interventional of linear models, from the mean training row; path-dependent of boosted trees. Between
        companies each party could compute those of its own columns of a linear model alone.
        """
        return self._fitted.attributions(self._tables(X))

    def report(self, path: str | Path, X_test: Any = None, y_test: ArrayLike | None = None) -> Path:
        """Write a page that needs nothing else (.html), or how training went as a figure (.svg).

        With test rows the page says how good the model is on them, beside what the label holder reaches
        alone (which a model that was stored and loaded no longer knows).
        """
        from colonnade.report.page import write_report

        return write_report(self._facts(X_test, y_test), Path(path))

    def quality(self, X_test: Any, y_test: ArrayLike | None = None) -> Result:
        """Return `result_` with the metrics of test rows, their intervals, and what the label holder reaches
        alone."""
        return self._facts(X_test, y_test).result

    def _facts(self, X_test: Any, y_test: ArrayLike | None) -> ReportFacts:
        fitted = self._fitted
        if X_test is None and y_test is None:
            return facts_of(fitted, self.result_, self._own)
        tables = self._tables(X_test)
        rows = next(iter(tables.values())).rows
        truth = self._coded(checked_labels(X_test, y_test, rows, type(self).__name__))
        return facts_of(fitted, self.result_, self._own, tables, truth)

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
        """Return plain text and arrays instead of a plan and preparations, for pickle and for skops."""
        state = dict(super().__getstate__())
        if "_model" in state:
            state["_own"] = None
            state["_model"] = state["_model"].plain()
            state["result_"] = msgspec.json.encode(self.result_).decode()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_model" in state:
            self._model = Fitted.from_plain(state["_model"])
            self.result_ = msgspec.json.decode(state["result_"], type=Result)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters and, of a trained model, what the same job would tell between companies."""
        text: str = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        return f"{text}\n{openings_of(self.result_)}" if hasattr(self, "result_") else text

    def _html_repr(self) -> str:
        """Return scikit-learn's own diagram and, of a trained model, a short table."""
        diagram: str = estimator_html_repr(self)
        return diagram + summary_html(self.result_) if hasattr(self, "result_") else diagram
