"""A linear model with its preparation as one scikit-learn Pipeline, which takes raw columns.

Its input is a data frame with the columns `party.column` of all parties, as their files have them. Caps,
imputation, scaling, marks of gaps and one-hot columns are scikit-learn's own steps, so a file of it carries
no code. What those steps cannot say is refused with its reason: weight of evidence, dates, sparse files, and
categories that are numbers, of which text is not sure to be spelt alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from colonnade.credit.export import as_logistic
from colonnade.credit.linear import LinearBlock, LinearModel
from colonnade.data.prepare.categories import MISSING, OTHER
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.read.recognise import number_of
from colonnade.errors import ShareError

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Step = tuple[str, Any, list[str]]


def to_pipeline(model: LinearModel) -> Pipeline:
    """Return the fitted Pipeline; ShareError where it cannot say what the preparation does."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    steps: list[Step] = []
    weights: list[float] = []
    for block in model.blocks.values():
        _check(block)
        for step, own in _steps(block):
            steps.append(step)
            weights += own
    text = {f"{party}.{c}" for party, b in model.blocks.items() for c in b.preparation.categories}
    columns = [f"{party}.{c}" for party, b in model.blocks.items() for c in b.preparation.needed]
    example = pd.DataFrame({c: [""] if c in text else [0.0] for c in columns})
    prepare = ColumnTransformer(steps, sparse_threshold=0.0).fit(example)
    return Pipeline([("prepare", prepare), ("model", as_logistic(model, np.array(weights)))])


def _check(block: LinearBlock) -> None:
    """Refuse what scikit-learn's own steps cannot say."""
    made = block.preparation
    numbers = [c for c, names in made.categories.items() if any(map(_is_number, names))]
    reasons = {
        "its columns are weighed (woe)": bool(made.woe),
        "its columns are sparse": made.sparse,
        "its outliers are drawn nearer": bool(made.numbers.bend),
        f"{', '.join(made.dates)}: dates": bool(made.dates),
        f"{', '.join(numbers)}: categories that are numbers": bool(numbers),
    }
    if found := [words for words, there in reasons.items() if there]:
        raise ShareError(
            f"{block.party}: {'; '.join(found)}: no scikit-learn step says this; export prepared columns"
        )


def _steps(block: LinearBlock) -> list[tuple[Step, list[float]]]:
    """Return the steps of one party's columns, each with the weights of what it puts out.

    A step is learnt from rows that are made up so that it learns what the preparation has learnt.
    """
    made, party = block.preparation, block.party
    by_output = dict(zip(made.outputs, block.weights.tolist(), strict=True))
    found: list[tuple[Step, list[float]]] = []
    kept = [k for k, c in enumerate(made.numbers.names) if c not in made.constant]
    if kept:
        names = [made.numbers.names[k] for k in kept]
        step = (f"{party} numbers", _numbers(made, kept, party), [f"{party}.{c}" for c in names])
        found.append((step, [by_output[c] for c in names]))
    for c, values in made.categories.items():
        if c not in made.constant:
            step = (f"{party} {c}", _one_hot(values, f"{party}.{c}"), [f"{party}.{c}"])
            ordered = [v for v in values if v != OTHER] + [OTHER] * (OTHER in values)
            found.append((step, [by_output[f"{c}={v}"] for v in ordered]))
    if made.gaps:
        gaps = [f"{party}.{c}" for c in made.gaps]
        step = (f"{party} gaps", _marks(gaps), gaps)
        found.append((step, [by_output[f"{c} {MISSING}"] for c in made.gaps]))
    return found


def _numbers(made: Preparation, kept: list[int], party: str) -> Any:
    """Return a step that caps numbers, then fills gaps, then scales."""
    import pandas as pd
    from sklearn.frozen import FrozenEstimator
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    numbers = made.numbers
    fill, shift, divisor = (np.array(each)[kept] for each in (numbers.fill, numbers.shift, numbers.divisor))
    row = pd.DataFrame([fill], columns=[f"{party}.{numbers.names[k]}" for k in kept])
    steps: list[Any] = []
    if numbers.low:
        caps = {"a_min": np.array(numbers.low)[kept], "a_max": np.array(numbers.high)[kept]}
        steps.append(FunctionTransformer(np.clip, kw_args=caps).fit(row))
    steps.append(SimpleImputer(keep_empty_features=True).fit(row))
    steps.append(StandardScaler().fit(np.stack([shift - divisor, shift + divisor])))
    return FrozenEstimator(make_pipeline(*steps))


def _one_hot(values: tuple[str, ...], column: str) -> Any:
    """Return a column for every value; what is rare or unknown goes to the one for others, if there is
    one."""
    import pandas as pd
    from sklearn.frozen import FrozenEstimator
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    filled = SimpleImputer(missing_values="", strategy="constant", fill_value=MISSING)
    often = [v for v in values if v != OTHER]
    listed = [*often, *([OTHER] * (OTHER in values))]
    rows = pd.DataFrame({column: pd.Series([*often, *listed], dtype=object)})
    encoder = OneHotEncoder(
        categories=[np.array(listed, dtype=object)],
        handle_unknown="infrequent_if_exist",
        min_frequency=2 if OTHER in values else None,
        sparse_output=False,
    )
    return FrozenEstimator(make_pipeline(filled.fit(rows), encoder.fit(rows.to_numpy())))


def _marks(columns: list[str]) -> Any:
    """Return a step that gives 1 where a number was missing."""
    import pandas as pd
    from sklearn.frozen import FrozenEstimator
    from sklearn.impute import MissingIndicator

    return FrozenEstimator(
        MissingIndicator(features="all").fit(pd.DataFrame([[0.0] * len(columns)], columns=columns))
    )


def _is_number(name: str) -> bool:
    return number_of(name) is not None
