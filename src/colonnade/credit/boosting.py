"""Boosted trees as a model of scikit-learn, where all their shares are together.

scikit-learn's HistGradientBoosting compares numbers of 64 bits with thresholds and sends gaps left or right,
as the trees here do, so scores are the same to rounding. It has no public way to be given trees: a model is
fitted to a few made-up rows, which makes everything but its trees, and then gets ours. It takes prepared
columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from colonnade.credit.trees import TreeModel
from colonnade.errors import ShareError
from colonnade.losses import LOSSES
from colonnade.trees.bins import Counts
from colonnade.trees.tree import LEAF, Tree

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

MOST = 255  # categories of a column of scikit-learn's
B = TypeVar("B", "HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
REGRESSIONS = {"squared": "squared_error", "poisson": "poisson", "gamma": "gamma"}


def trees_to_sklearn(
    model: TreeModel, features: list[str]
) -> HistGradientBoostingClassifier | HistGradientBoostingRegressor:
    """Return a fitted HistGradientBoosting of the same trees, of these prepared columns."""
    fitted = _blank(model, len(features))
    several, trees = len(model.forest.base), model.forest.trees
    if model.forest.kind.tolist() != list(range(several)) * (len(trees) // several):
        raise ShareError("these trees do not come in rounds of one for every class; write .onnx")
    made = [_predictor(model, tree) for tree in trees]
    fitted._predictors = [made[first : first + several] for first in range(0, len(made), several)]
    fitted._baseline_prediction = np.array(model.forest.base, dtype=np.float64).reshape(1, -1)
    fitted.feature_names_in_ = np.array(features, dtype=object)
    fitted.max_iter = max(1, len(fitted._predictors))
    return fitted


def _blank(model: TreeModel, width: int) -> HistGradientBoostingClassifier | HistGradientBoostingRegressor:
    """Return a model of the same loss, labels and number of columns, fitted to rows of zeros."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    categories = _categories(model)
    if max(categories.values(), default=0) > MOST:
        raise ShareError(f"scikit-learn has no columns of more than {MOST} categories; write .onnx")
    common = {"max_iter": 1, "early_stopping": False, "categorical_features": None}
    classes = np.array(model.classes)
    X = np.zeros((max(4, len(classes)), width))
    if model.loss in REGRESSIONS:
        fitted = HistGradientBoostingRegressor(loss=REGRESSIONS[model.loss], **common)
        return _with_categories(fitted.fit(X, np.ones(len(X))), categories)
    if not LOSSES[model.loss].has_probabilities:
        raise ShareError(f"scikit-learn has no boosted trees with the {model.loss} loss; write .onnx")
    fitted = HistGradientBoostingClassifier(**common).fit(X, np.arange(len(X)) % len(classes))
    fitted.classes_ = classes
    return _with_categories(fitted, categories)


def _with_categories(fitted: B, categories: Mapping[int, int]) -> B:
    """Return the model with these numbers of categories in some columns, which it takes as numbers from 0."""
    for column, count in categories.items():
        fitted._bin_mapper.is_categorical_[column] = 1
        fitted._bin_mapper.bin_thresholds_[column] = np.arange(count, dtype=np.float64)
    return fitted


def _predictor(model: TreeModel, tree: Tree) -> TreePredictor:
    """Return one tree as scikit-learn has it: a record for every node."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    nodes = np.zeros(len(tree.party), dtype=PREDICTOR_RECORD_DTYPE)
    sets: list[NDArray[np.uint32]] = []
    nodes["value"], nodes["gain"] = tree.value, tree.gain
    nodes["is_leaf"] = tree.party == LEAF
    for node in np.flatnonzero(tree.party != LEAF).tolist():  # a child comes after its parent
        split = model.split(tree, node)
        left, right = int(tree.left[node]), int(tree.right[node])
        record = nodes[node]
        record["feature_idx"], record["num_threshold"] = split.column, split.threshold
        record["missing_go_to_left"], record["left"], record["right"] = split.gaps_left, left, right
        nodes["depth"][[left, right]] = record["depth"] + 1
        if split.categories is not None:
            record["is_categorical"], record["bitset_idx"] = True, len(sets)
            sets.append(_bitset(split.categories))
    raw = np.array(sets, dtype=np.uint32).reshape(-1, 8)
    return TreePredictor(nodes, raw, raw)


def _bitset(categories: Counts) -> NDArray[np.uint32]:
    """Return a set of numbers below 256 as scikit-learn has it: bits of eight words."""
    bits = np.zeros(256, dtype=np.uint8)
    bits[categories] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


def _categories(model: TreeModel) -> dict[int, int]:
    """Return how many categories the columns have that are split by sets."""
    found: dict[int, int] = {}
    first = 0
    for party, made in model.preparations.items():
        for place in {int(model.splits[party].column[split]) for split in model.splits[party].sets}:
            found[first + place] = len(made.categories[made.outputs[place]])
        first += len(made.outputs)
    return found
