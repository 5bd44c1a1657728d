"""A model for other programs, where all its shares are together: scikit-learn's own if linear, or ONNX.

Both take the prepared columns of all parties side by side, in the order of `feature_names`: party.column.
What makes prepared columns of raw ones stays in the shares, or goes along (`credit.pipeline`). A
scikit-learn model is stored by skops, and an ONNX graph is a graph: no file can carry code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from colonnade.arrays import Floats
from colonnade.credit.linear import LinearModel
from colonnade.credit.trees import TreeModel
from colonnade.data.table import INTERCEPT
from colonnade.errors import JobError
from colonnade.losses import LOSSES
from colonnade.trees.tree import LEAF

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.linear_model import LogisticRegression

OPSET = 18
ML, ML_OPSET = "ai.onnx.ml", 5
IR_VERSION = 10


def feature_names(model: LinearModel) -> list[str]:
    """Return the prepared columns of all parties but the intercept."""
    return [
        f"{party}.{output}"
        for party, block in model.blocks.items()
        for output in block.preparation.outputs
        if output != INTERCEPT
    ]


def weights(model: LinearModel) -> Floats:
    """Return the weight of every prepared column, in the order of `feature_names`."""
    return np.array(
        [
            weight
            for block in model.blocks.values()
            for output, weight in zip(block.preparation.outputs, block.weights.tolist(), strict=True)
            if output != INTERCEPT
        ]
    )


def to_sklearn(model: LinearModel) -> LogisticRegression:
    """Return a fitted LogisticRegression of the same weights, of prepared columns."""
    fitted = as_logistic(model, weights(model))
    fitted.feature_names_in_ = np.array(feature_names(model), dtype=object)
    return fitted


def as_logistic(model: LinearModel, coefficients: Floats) -> LogisticRegression:
    """Return a fitted LogisticRegression with these weights, and the intercept and labels of the model."""
    from sklearn.linear_model import LogisticRegression

    model.require_logistic("an export")
    fitted = LogisticRegression()
    fitted.classes_ = np.array(model.classes)
    fitted.coef_ = coefficients[None, :]
    fitted.intercept_ = np.array([model.intercept])
    fitted.n_features_in_ = fitted.coef_.shape[1]
    fitted.n_iter_ = np.array([0])
    return fitted


def skops_bytes(fitted: BaseEstimator) -> bytes:
    """Return a scikit-learn model as a skops file."""
    try:
        from skops.io import dumps
    except ImportError as error:
        raise JobError("skops is not installed; pip install 'colonnade[export]'") from error
    content: bytes = dumps(fitted)
    return content


def onnx_bytes(model: LinearModel) -> bytes:
    """Return an ONNX graph: input `columns` [rows, features], outputs `score` and `probability` [rows, 1]."""
    helper, double = _onnx()
    model.require_logistic("an export")

    def tensor(name: str, values: Floats) -> Any:
        return helper.make_tensor(name, double, values.shape, values.ravel().tolist())

    return _graph(
        "colonnade_linear",
        [
            helper.make_node("MatMul", ["columns", "weights"], ["sum"]),
            helper.make_node("Add", ["sum", "intercept"], ["score"]),
            helper.make_node("Sigmoid", ["score"], ["probability"]),
        ],
        Places(feature_names(model), {"score": 1, "probability": 1}, model.classes),
        [tensor("weights", weights(model)[:, None]), tensor("intercept", np.array([model.intercept]))],
    )


def tree_features(model: TreeModel) -> list[str]:
    """Return the prepared columns of all parties."""
    return [f"{party}.{output}" for party, made in model.preparations.items() for output in made.outputs]


def trees_onnx_bytes(model: TreeModel) -> bytes:
    """Return an ONNX graph of boosted trees: input `columns`, output `score`, and `probability` where it has
    one.

    A gap is a NaN.
    """
    helper, double = _onnx()
    several = len(model.forest.base)
    made = [
        helper.make_node(
            "TreeEnsemble", ["columns"], ["trees"], domain=ML, n_targets=several, **_ensemble(model)
        ),
        helper.make_node("Add", ["trees", "base"], ["score"]),
    ]
    outputs = {"score": several}
    last = {"logit": "Sigmoid", "softmax": "Softmax"}.get(LOSSES[model.loss].link or "none")
    if last is not None:
        made.append(helper.make_node(last, ["score"], ["probability"]))
        outputs["probability"] = several
    base = helper.make_tensor("base", double, [several], model.forest.base.tolist())
    return _graph("colonnade_trees", made, Places(tree_features(model), outputs, model.classes), [base])


def _ensemble(model: TreeModel) -> dict[str, Any]:
    """Return all trees as ONNX writes them: splits in one list, leaves in another, named by their places."""
    from onnx import TensorProto

    helper, double = _onnx()
    splits: dict[str, list[int]] = {name: [] for name in _SPLIT}
    thresholds: list[float] = []
    modes: list[int] = []
    members: list[float] = []  # of all sets of categories, each with NaN after it
    targets: list[int] = []
    weights: list[float] = []
    roots: list[int] = []
    for tree, kind in zip(model.forest.trees, model.forest.kind.tolist(), strict=True):
        inner = tree.party != LEAF
        # places of this tree's nodes: splits are counted apart from leaves
        place = np.where(inner, len(thresholds) + np.cumsum(inner) - 1, len(targets) + np.cumsum(~inner) - 1)
        roots.append(len(thresholds))
        for node in np.flatnonzero(inner).tolist():
            split = model.split(tree, node)
            children = tree.left[node], tree.right[node]
            row = (
                split.column,
                int(split.gaps_left),
                *(int(v) for c in children for v in (place[c], not inner[c])),
            )
            for name, value in zip(_SPLIT, row, strict=True):
                splits[name].append(value)
            thresholds.append(split.threshold)
            modes.append(_UP_TO if split.categories is None else _MEMBER)
            members += [] if split.categories is None else [*map(float, split.categories), math.nan]
        if not inner[0]:  # ONNX knows no tree without a split
            for name, value in zip(_SPLIT, (0, 0, int(place[0]), 1, int(place[0]), 1), strict=True):
                splits[name].append(value)
            thresholds.append(0.0)
            modes.append(_UP_TO)
        targets += [kind] * int((~inner).sum())
        weights += tree.value[~inner].tolist()
    sets = {}
    if members:
        sets["membership_values"] = helper.make_tensor("sets", double, [len(members)], members)
    return {
        **splits,
        "tree_roots": roots,
        "leaf_targetids": targets,
        "nodes_modes": helper.make_tensor("modes", TensorProto.UINT8, [len(thresholds)], modes),
        **sets,
        "nodes_splits": helper.make_tensor("splits", double, [len(thresholds)], thresholds),
        "leaf_weights": helper.make_tensor("leaves", double, [len(weights)], weights),
    }


_SPLIT = (
    "nodes_featureids",
    "nodes_missing_value_tracks_true",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
)
"""What ONNX says of every split beside its threshold."""
_UP_TO, _MEMBER = 0, 6  # how ONNX compares: BRANCH_LEQ, BRANCH_MEMBER


class Places(NamedTuple):
    """What goes into a graph and comes out: the columns, how wide each output is, and the labels."""

    features: Sequence[str]
    outputs: dict[str, int]
    classes: Sequence[str]


def _onnx() -> tuple[Any, int]:
    """Return ONNX's module that makes graphs, and its name for floats of 64 bits."""
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise JobError("onnx is not installed; pip install 'colonnade[export]'") from error
    return helper, TensorProto.DOUBLE


def _graph(name: str, nodes: list[Any], places: Places, constants: list[Any]) -> bytes:
    """Return the file of a graph from `columns` to its outputs."""
    from onnx import checker

    helper, double = _onnx()

    def place(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, double, ["rows", width])

    inputs = [place("columns", len(places.features))]
    outputs = [place(each, width) for each, width in places.outputs.items()]
    made = helper.make_model(
        helper.make_graph(nodes, name, inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
        ir_version=IR_VERSION,
        producer_name="colonnade",
    )
    helper.set_model_props(
        made, {"features": "\n".join(places.features), "labels": "\n".join(places.classes)}
    )
    checker.check_model(made)
    content: bytes = made.SerializeToString()
    return content
