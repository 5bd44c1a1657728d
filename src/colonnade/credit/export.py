"""A linear model for other programs, where all its shares are together: scikit-learn's own, or ONNX.

Both take the prepared columns of all parties side by side, in the order of `feature_names`: party.column.
What makes prepared columns of raw ones stays in the shares, or goes along (`credit.pipeline`). A
scikit-learn model is stored by skops, and an ONNX graph is a graph: no file can carry code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from colonnade.arrays import Floats
from colonnade.credit.linear import LinearModel
from colonnade.data.table import INTERCEPT
from colonnade.errors import JobError

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.linear_model import LogisticRegression

OPSET = 18
IR_VERSION = 9


def feature_names(model: LinearModel) -> list[str]:
    """The prepared columns of all parties but the intercept."""
    return [
        f"{party}.{output}"
        for party, block in model.blocks.items()
        for output in block.preparation.outputs
        if output != INTERCEPT
    ]


def weights(model: LinearModel) -> Floats:
    """The weight of every prepared column, in the order of `feature_names`."""
    return np.array(
        [
            weight
            for block in model.blocks.values()
            for output, weight in zip(block.preparation.outputs, block.weights.tolist(), strict=True)
            if output != INTERCEPT
        ]
    )


def to_sklearn(model: LinearModel) -> LogisticRegression:
    """A fitted LogisticRegression of the same weights, of prepared columns."""
    fitted = as_logistic(model, weights(model))
    fitted.feature_names_in_ = np.array(feature_names(model), dtype=object)
    return fitted


def as_logistic(model: LinearModel, coefficients: Floats) -> LogisticRegression:
    """A fitted LogisticRegression with these weights, and the intercept and labels of the model."""
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
    """A scikit-learn model as a skops file."""
    try:
        from skops.io import dumps
    except ImportError as error:
        raise JobError("skops is not installed; pip install 'colonnade[export]'") from error
    content: bytes = dumps(fitted)
    return content


def onnx_bytes(model: LinearModel) -> bytes:
    """An ONNX graph: input `columns` [rows, features], outputs `score` and `probability` [rows, 1]."""
    try:
        from onnx import TensorProto, checker, helper
    except ImportError as error:
        raise JobError("onnx is not installed; pip install 'colonnade[export]'") from error
    model.require_logistic("an export")
    names = feature_names(model)

    def tensor(name: str, values: Floats) -> Any:
        return helper.make_tensor(name, TensorProto.DOUBLE, values.shape, values.ravel().tolist())

    def place(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["rows", width])

    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["columns", "weights"], ["sum"]),
            helper.make_node("Add", ["sum", "intercept"], ["score"]),
            helper.make_node("Sigmoid", ["score"], ["probability"]),
        ],
        "colonnade_linear",
        [place("columns", len(names))],
        [place("score", 1), place("probability", 1)],
        [tensor("weights", weights(model)[:, None]), tensor("intercept", np.array([model.intercept]))],
    )
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="colonnade",
    )
    helper.set_model_props(made, {"features": "\n".join(names), "labels": "\n".join(model.classes)})
    checker.check_model(made)
    content: bytes = made.SerializeToString()
    return content
