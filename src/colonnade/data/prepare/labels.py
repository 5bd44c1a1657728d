"""Labels and categories: from what people write (1/2, yes/no, spam) to numbers.

A category is known by its text: 2, 2.0 and "2" are the same one, whichever way a file spelt it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Rows
from colonnade.data.read.recognise import numbers_of
from colonnade.data.table import Column, count, row_number, some
from colonnade.errors import DataError
from colonnade.losses import USUAL, Loss
from colonnade.losses import Task as Task

NO = frozenset(
    [
        "no",
        "n",
        "nein",
        "nee",
        "nej",
        "nei",
        "ne",
        "non",
        "não",
        "nie",
        "nem",
        "false",
        "falsch",
        "faux",
        "falso",
    ]
)
STRETCH = 2**20  # labels that are looked at together


@dataclass(frozen=True)
class Labels:
    """How raw labels become numbers: binary -> -1 and +1, multiclass -> 0..K-1, regression -> as they are.

    `classes` are the labels of the training rows in order. Of two labels the larger (or the later in the
    alphabet) is +1, but a word for no never is; unless `positive` lists those that are.
    """

    task: Task
    classes: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()

    @property
    def negative(self) -> tuple[str, ...]:
        """The labels that count as -1, where there are two kinds."""
        return tuple(c for c in self.classes if c not in self.positive) if self.task == "binary" else ()

    def said(self) -> str:
        """Return what the labels are, in words."""
        match self.task:
            case "binary":
                return f"two classes: {some(self.positive)} is positive, {some(self.negative)} is not"
            case "multiclass":
                return f"{len(self.classes)} classes: {some(self.classes)}"
        return "a number to predict"

    @staticmethod
    def fit(
        y: Column,
        task: Task,
        *,
        positive: Sequence[str | float] | None = None,
        name: str = "labels",
        origin: Rows | None = None,
    ) -> Labels:
        """Learn the coding from training labels. `name` and `origin` (see `RawTable`) are for error texts."""
        if task not in get_args(Task):
            raise DataError(f"task = {task!r} is not known; use {', '.join(get_args(Task))}")
        y = _checked(y, task, name, origin)
        if task == "regression":
            return Labels(task)
        classes = category_names(y)
        if len(classes) < 2:
            raise DataError(f"{name}: every label is {classes[0]}; training needs at least two classes")
        if task == "multiclass":
            return Labels(task, classes)
        if positive is None and len(classes) > 2:
            raise DataError(
                f"{name}: {len(classes)} different labels ({some(classes)}) where two are needed; list "
                f"those that count as +1 in positive = [...], or use loss = {USUAL['multiclass']!r}, or for "
                f"a number {USUAL['regression']!r}, for a count 'poisson'"
            )
        chosen = _second(classes) if positive is None else tuple(_known(v, classes) for v in positive)
        unknown = [v for v in chosen if v not in classes]
        if unknown or not chosen or set(chosen) == set(classes):
            fault = (
                f"no row has the positive label {unknown[0]}"
                if unknown
                else "positive must be some labels, not all"
            )
            raise DataError(f"{name}: {fault}; the labels are {some(classes)}")
        return Labels(task, classes, chosen)

    def transform(self, y: Column, *, name: str = "labels", origin: Rows | None = None) -> Floats:
        """Return the labels of any rows, coded like the training rows."""
        y = _checked(y, self.task, name, origin)
        if self.task == "regression":
            return y.astype(np.float64)
        y = _truths(y, self.classes)
        codes = category_codes(y, self.classes)
        if (codes < 0).any():
            row = int((codes < 0).argmax())
            counts = numbers_of(np.array(self.classes, dtype=object)) is not None and len(self.classes) > 2
            remedy = (
                f", or if labels are numbers to predict and no classes, set loss = {USUAL['regression']!r}"
                if counts
                else ""
            )
            raise DataError(
                f"{name}: label {_text(y[row])} in row {row_number(row, origin)} is in no training row, so "
                f"no model can know it ({count(int((codes < 0).sum()), 'such row')}; the training rows have "
                f"{some(self.classes)}); leave such rows out{remedy}"
            )
        if self.task == "multiclass":
            return codes.astype(np.float64)
        sign = np.array([1.0 if c in self.positive else -1.0 for c in self.classes])
        return sign[codes]

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain lists and text, for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Labels:
        """Return the labels that `to_dict` described, also after a journey through JSON."""
        return Labels(plain["task"], tuple(plain["classes"]), tuple(plain["positive"]))


def _known(value: str | float, classes: Sequence[str]) -> str:
    """Return a label as the classes have it: true, TRUE and 1 are one label, where True and False or 1 and 0
    are all."""
    text = _text(value)
    return text if text in classes else _TRUTHS.get(tuple(classes), {}).get(text.lower(), text)


_WORDS = {"true": "True", "false": "False", "1": "True", "0": "False"}
_TRUTHS: dict[tuple[str, ...], dict[str, str]] = {
    ("False", "True"): _WORDS,
    ("0", "1"): {"true": "1", "false": "0"},
}


def _truths(y: Column, classes: tuple[str, ...]) -> Column:
    """Return labels as the classes have them, where one file says True and another 1."""
    if classes not in _TRUTHS or (y.dtype != object and classes == ("0", "1")):
        return y
    return np.array([_known(value, classes) for value in y], dtype=object)


def check_labels(loss: Loss, y: Floats, name: str, origin: Rows | None = None) -> None:
    """Refuse labels, as numbers, that the loss is not for."""
    for start in range(0, len(y), STRETCH):
        fits = loss.admits(y[start : start + STRETCH])
        if not fits.all():
            row = start + int((~fits).argmax())
            raise DataError(
                f"{name}: the label of row {row_number(row, origin)} is {y[row]:g}, and loss = {loss.name!r} "
                f"is for labels {loss.label_range}; use loss = {USUAL['regression']!r}"
            )


FEW_NUMBERS, FEW_TEXTS = 20, 200  # more different numbers are no classes; nor are more texts


def guessed_task(y: Column, name: str) -> Task:
    """Return what labels are, where nobody says: two different ones, a few texts or whole numbers, or
    numbers."""
    names = category_names(y)
    if len(names) <= 2:
        return "binary"  # one alone is refused with the labels
    numbers = numbers_of(np.asarray(y, dtype=object)) if y.dtype.kind in "OUS" else y.astype(np.float64)
    if numbers is None and len(names) <= min(FEW_TEXTS, len(y) / 2):
        return "multiclass"
    if numbers is None:
        raise DataError(
            f"{name}: the label has {len(names):,} different texts in {len(y):,} rows ({some(names, 3)}); "
            "that is neither classes nor a number: name another column as label, or correct them"
        )
    whole = bool(np.array_equal(numbers, np.floor(numbers)))
    return "multiclass" if whole and len(names) <= min(FEW_NUMBERS, len(y) / 2) else "regression"


def category_names(values: Column) -> tuple[str, ...]:
    """Return the different values as text, without gaps; sorted by size if all are numbers, else by
    alphabet."""
    names = {_text(v) for v in _different(values)[0]} - {""}
    try:
        return tuple(sorted(names, key=lambda text: (float(text), text)))
    except ValueError:
        return tuple(sorted(names))


def category_codes(values: Column, names: Sequence[str]) -> Rows:
    """Return each value's position in `names`; -1 for a gap and for a value that is not among them."""
    place = {text: k for k, text in enumerate(names)}
    different, which = _different(values)
    codes = np.array([place.get(_text(v), -1) for v in different], dtype=np.int64)
    return codes[which]


def _different(values: Column) -> tuple[Iterable[Any], Rows]:
    """Return the different values, and which of them every row has."""
    if values.dtype != object:
        found, which = np.unique(values, return_inverse=True)
        return found, which.ravel()
    rows = values.tolist()
    place = {value: k for k, value in enumerate(dict.fromkeys(rows))}  # in less time than sorting texts takes
    return place, np.fromiter(map(place.__getitem__, rows), dtype=np.int64, count=len(rows))


def _second(classes: Sequence[str]) -> tuple[str, ...]:
    """Return the one of two labels that is +1 where nobody says.

    >>> _second(("no", "yes")), _second(("ja", "nein"))
    (('yes',), ('ja',))
    """
    first, second = classes
    return (first,) if second.casefold() in NO and first.casefold() not in NO else (second,)


def _text(value: Any) -> str:
    """Return a value as text without blanks around it: 2.0 is "2", a gap is ""."""
    if isinstance(value, str):
        return value.strip()
    number = float(value)
    if np.isnan(number):
        return ""
    return str(int(number)) if number.is_integer() else repr(number)


def _checked(y: NDArray[Any], task: Task, name: str, origin: Rows | None) -> Column:
    """Return the labels as float64 or as text, none of them missing."""
    if len(y) == 0:
        raise DataError(f"{name}: no labels")
    text = y.dtype.kind in "OUS"
    values: Column = y.astype(object) if text else y.astype(np.float64)
    if text and task == "regression":
        values = _parsed(values, name, origin)
    gaps = np.array([not str(v).strip() for v in values]) if values.dtype == object else ~np.isfinite(values)
    if gaps.any():
        row = row_number(int(gaps.argmax()), origin)
        raise DataError(f"{name}: the label of row {row} is missing or infinite")
    return values


def _parsed(y: NDArray[Any], name: str, origin: Rows | None) -> Floats:
    """Return labels that were read as text, as numbers."""
    numbers = np.empty(len(y))
    for row, value in enumerate(y):
        try:
            numbers[row] = float({"True": 1, "False": 0}.get(value, value))
        except ValueError:
            raise DataError(
                f"{name}: label '{value}' in row {row_number(row, origin)} is not a number, "
                "as regression needs"
            ) from None
    return numbers
