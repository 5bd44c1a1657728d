"""Vertical federated learning: many columns carry one roof.

>>> from colonnade import VerticalClassifier, split_columns
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colonnade.data.split import split_columns
    from colonnade.estimators import VerticalClassifier, VerticalRegressor

__version__ = "0.1.0"
__all__ = ["VerticalClassifier", "VerticalRegressor", "__version__", "split_columns"]

_HOMES = {
    "VerticalClassifier": "colonnade.estimators",
    "VerticalRegressor": "colonnade.estimators",
    "split_columns": "colonnade.data.split",
}


def __getattr__(name: str) -> Any:
    """Imported when first asked for: a party's process and the command line do not need scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module 'colonnade' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
