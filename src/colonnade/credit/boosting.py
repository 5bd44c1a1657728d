"""Boosted trees as a model of scikit-learn, where all their shares are together.

scikit-learn's HistGradientBoosting compares numbers of 64 bits with thresholds and sends gaps left or right,
as the trees here do, so scores are the same to rounding. It has no public way to be given trees: a model is
fitted to a few made-up rows, which makes everything but its trees, and then gets ours. It takes prepared
columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from colonnade.credit.trees import TreeModel
from colonnade.errors import ShareError
from colonnade.losses import LOSSES
from colonnade.trees.tree import LEAF, Tree

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

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

    common = {"max_iter": 1, "early_stopping": False, "categorical_features": None}
    if model.loss in REGRESSIONS:
        fitted = HistGradientBoostingRegressor(loss=REGRESSIONS[model.loss], **common)
        return fitted.fit(np.zeros((4, width)), np.ones(4))
    if not LOSSES[model.loss].has_probabilities:
        raise ShareError(f"scikit-learn has no boosted trees with the {model.loss} loss; write .onnx")
    classes = np.array(model.classes)
    fitted = HistGradientBoostingClassifier(**common).fit(
        np.zeros((len(classes), width)), np.arange(len(classes))
    )
    fitted.classes_ = classes
    return fitted


def _predictor(model: TreeModel, tree: Tree) -> TreePredictor:
    """Return one tree as scikit-learn has it: a record for every node."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    nodes = np.zeros(len(tree.party), dtype=PREDICTOR_RECORD_DTYPE)
    nodes["value"], nodes["gain"] = tree.value, tree.gain
    nodes["is_leaf"] = tree.party == LEAF
    for node in np.flatnonzero(tree.party != LEAF).tolist():  # a child comes after its parent
        column, threshold, gaps_left = model.split(tree, node)
        left, right = int(tree.left[node]), int(tree.right[node])
        record = nodes[node]
        record["feature_idx"], record["num_threshold"] = column, threshold
        record["missing_go_to_left"], record["left"], record["right"] = gaps_left, left, right
        nodes["depth"][[left, right]] = record["depth"] + 1
    none = np.zeros((0, 8), dtype=np.uint32)
    return TreePredictor(nodes, none, none)
