"""What a user gives to an estimator, as parties' columns: checked the way scikit-learn's estimators do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight, validate_data

from colonnade.arrays import Floats
from colonnade.data.prepare.weights import check_exposure, check_weights
from colonnade.data.read.frames import FrameColumns, as_table, columns_of, is_frame
from colonnade.data.split.assign import label_holders
from colonnade.data.split.parties import Parties, dealer, dealt
from colonnade.data.split.split import Split
from colonnade.errors import DataError

USUAL_PARTIES = 4

Holders = Mapping[str, Sequence[str | int]]


def checked_columns(
    estimator: BaseEstimator, X: Any, *, reset: bool, dates: dict[str, str] | None = None
) -> FrameColumns:
    """Return the columns of X; `reset` remembers how many there are and their names, else they are compared.

    `dates` are the columns of dates in training.
    """
    X = as_table(X)
    if is_frame(X):
        found = columns_of(X, dates=dates)  # which refuses two columns of one name in words of its own
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        count = len(found.raw.columns)
        if not reset and count != estimator.n_features_in_:
            raise DataError(
                f"X has {count} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input"
            )
        estimator.n_features_in_ = count
        return found
    checked = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=None,
        ensure_all_finite="allow-nan",
        ensure_min_samples=2 if reset else 1,
    )
    return columns_of(checked, dates=dates)


def deal(
    found: FrameColumns, parties: int | None, columns: Holders | None, active: int | Sequence[str], seed: int
) -> Parties:
    """Return every party's columns: as `columns` says, or about as many each by chance; none of them has
    labels yet."""
    names = found.raw.columns
    count = min(USUAL_PARTIES, len(names)) if parties is None else parties
    split = dealer(found, count, columns, seed)
    holders = label_holders(tuple(split), active if isinstance(active, int) else list(active))
    return dealt(found, split, holders, None)


def dealt_again(
    estimator: BaseEstimator,
    X: Any,
    split: Split,
    names: dict[str, tuple[str, ...]],
    dates: dict[str, str],
) -> Parties:
    """Return the columns of new rows, given to the parties that held them in training."""
    if isinstance(X, Parties):
        return same_columns(X, names)
    raw = checked_columns(estimator, X, reset=False, dates=dates).raw
    tables = {party: replace(raw.select(places), columns=names[party]) for party, places in split.items()}
    return Parties(tables, tuple(split)[:1], split)


def same_columns(parties: Parties, names: dict[str, tuple[str, ...]]) -> Parties:
    """Return the parties; refused unless they have the columns of the training tables."""
    if set(parties.tables) != set(names):
        raise DataError(
            f"fitted with the parties {', '.join(names)}, not {', '.join(parties.tables)}; "
            "split with split_columns(X, like=...)"
        )
    for party, columns in names.items():
        if parties.tables[party].columns != columns:
            raise DataError(
                f"{party} holds {_difference(parties.tables[party].columns, columns)}; "
                "split with split_columns(X, like=...)"
            )
    return parties


def checked_labels(X: Any, y: Any, rows: int, name: str) -> NDArray[Any]:
    """Return the labels as one array: those given, or those that the active parties hold."""
    if y is None and isinstance(X, Parties):
        y = X.y
    if y is None:
        raise DataError(
            f"{name} requires y to be passed, but the target y is None; with parties: split_columns(X, y)"
        )
    values: NDArray[Any] = column_or_1d(y, warn=True)
    check_consistent_length(np.empty(rows), values)
    if values.dtype.kind in "fc" and not np.isfinite(values).all():
        raise DataError(f"Input y contains NaN or infinity, first in row {_first(~np.isfinite(values))}")
    if values.dtype == object:
        gaps = np.array([value is None or value != value for value in values], dtype=bool)
        if gaps.any():
            raise DataError(f"Input y contains NaN: the label of row {_first(gaps)} is missing")
    return values


def checked_weight(sample_weight: Any, rows: int) -> Floats | None:
    """Return the rows' weights, none of them negative; None if every row counts alike."""
    if sample_weight is None:
        return None
    weight: Floats = _check_sample_weight(sample_weight, np.empty((rows, 1)), dtype=np.float64)
    check_weights(weight, "sample_weight")
    return weight


def checked_exposure(exposure: Any, rows: int) -> Floats:
    """Return for how long every row's events were counted, all above 0."""
    times: Floats = _check_sample_weight(exposure, np.empty((rows, 1)), dtype=np.float64)
    check_exposure(times, "exposure")
    return times


def _first(bad: NDArray[np.bool_]) -> int:
    """Return the number of the first row that is bad, counted from 1."""
    return int(bad.argmax()) + 1


def _difference(found: tuple[str, ...], fitted: tuple[str, ...]) -> str:
    """Return how a party's columns differ from those of training, in words."""
    missing, new = [c for c in fitted if c not in found], [c for c in found if c not in fitted]
    if missing:
        return f"no column '{missing[0]}', which it was fitted with"
    if new:
        return f"a column '{new[0]}', which it was not fitted with"
    return "its columns in another order than it was fitted with"
