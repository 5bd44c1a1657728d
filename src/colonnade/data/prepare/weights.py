"""Row weights: how much every row counts in the loss, from a column of the label holder and from its class.

Only label holders know them, as only they know labels: they act on the loss and on theta, so nobody else has
to. A weight of 0 leaves a row out. Training weights are brought to a mean of 1, so that penalties and steps
mean the same with and without them; with `class_weight = "balanced"` every class weighs the same in all.
Test rows have the weights of the column alone: what a class is worth in training says nothing of how often
it occurs.

Exposure is how long, or how much, a row was watched while its events were counted. For the Poisson loss a
count y with the offset log(exposure) is the same as the rate y / exposure with the weight exposure: both have
the derivative exposure * exp(z) - y. So labels become rates, and models predict rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.data.prepare.labels import Labels, category_codes
from colonnade.data.table import Column, RawTable, row_number
from colonnade.errors import DataError, JobError, suggest
from colonnade.job.sections import ClassWeight


def take_weights(raw: RawTable, column: str) -> RawTable:
    """Return the table with a column moved out of its features: it says how much every row counts."""
    weight = _numbers(
        raw.column(column), f"{raw.name}: the weight column '{column}'", "weights are numbers >= 0"
    )
    check_weights(weight, raw.name, raw.origin)
    left = [name for name in raw.columns if name != column]
    return replace(raw.select(left), weight=weight)


def take_exposure(raw: RawTable, column: str) -> RawTable:
    """Return the table with its counts as rates, weighted by a column of exposures, which is no feature."""
    which = f"{raw.name}: the exposure column '{column}'"
    exposure = _numbers(raw.column(column), which, "exposures are numbers > 0")
    counts = None if raw.y is None else _numbers(raw.y, f"{raw.name}: the label", "counts have an exposure")
    check_exposure(exposure, raw.name, raw.origin)
    left = raw.select([name for name in raw.columns if name != column])
    weight = exposure if raw.weight is None else exposure * raw.weight
    return replace(left, y=None if counts is None else counts / exposure, weight=weight)


def _numbers(column: Column, which: str, why: str) -> Floats:
    """Return a column as numbers; text is refused."""
    try:
        return np.asarray(column, dtype=np.float64)
    except ValueError:
        raise DataError(f"{which} is text; {why}") from None


def check_exposure(exposure: Floats, name: str, origin: Rows | None = None) -> None:
    """Refuse exposures of which one is missing, infinite or not above 0."""
    bad = ~(np.isfinite(exposure) & (exposure > 0))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{name}: the exposure of row {row_number(row, origin)} is {exposure[row]:g}; give numbers > 0"
        )


def check_weights(weight: Floats, name: str, origin: Rows | None = None) -> None:
    """Refuse weights of which one is missing, negative or infinite, or none is above 0."""
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{name}: the weight of row {row_number(row, origin)} is {weight[row]:g}; give numbers >= 0"
        )
    if not weight.any():
        raise DataError(f"{name}: every row has weight 0; nothing is left to learn from")


def training_weights(raw: RawTable, labels: Labels, class_weight: ClassWeight) -> Floats | None:
    """Return the weights of training rows, 1 on average: of the table times that of the class; None if all
    are 1."""
    weight = raw.weight
    if class_weight is not None and raw.y is not None:
        if labels.task == "regression":
            raise JobError("train.class_weight: the labels are numbers, not classes; drop it")
        codes = category_codes(raw.y, labels.classes)
        weight = class_weights(codes, labels.classes, class_weight, weight, sides=_sides(labels))
    return None if weight is None else normalised(weight, raw.name)


def class_weights(
    codes: Rows,
    classes: tuple[str, ...],
    class_weight: ClassWeight,
    weight: Floats | None = None,
    sides: Rows | None = None,
) -> Floats:
    """Return the weight of every row, whose class is `classes[code]`, times the weight that it has already.

    "balanced" gives every class the same sum of weights; with `sides`, every group of classes that they name.

    >>> class_weights(np.array([0, 0, 0, 1]), ("no", "yes"), "balanced").round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    >>> class_weights(np.array([0, 1]), ("no", "yes"), {"yes": 5.0}).tolist()
    [1.0, 5.0]
    """
    own = np.ones(len(codes)) if weight is None else weight
    if isinstance(class_weight, Mapping):
        for name in class_weight:
            if name not in classes:
                raise JobError(f"train.class_weight: no row has the label {name!r}; {suggest(name, classes)}")
        factors = np.array([class_weight.get(name, 1.0) for name in classes])
        return np.asarray(own * factors[codes])
    group = codes if sides is None else sides[codes]
    sums = np.bincount(group, weights=own)
    factors = own.sum() / (len(sums) * np.where(sums > 0, sums, 1.0))
    return np.asarray(own * factors[group])


def normalised(weight: Floats, name: str) -> Floats:
    """Return the weights over their mean."""
    check_weights(weight, name)
    scaled: Floats = weight / weight.mean()
    return scaled


def _sides(labels: Labels) -> Rows | None:
    """Return where there are two sides: on which of them every class is."""
    if labels.task != "binary":
        return None
    return np.array([int(name in labels.positive) for name in labels.classes])
