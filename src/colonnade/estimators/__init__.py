"""The scikit-learn front: `fit(X, y)` on columns that it deals out to parties, or on parties' own columns.

All parties belong to the caller of `fit`, as in an experiment; companies run `colonnade run` or a daemon
each. `fit` starts the very conversation that the job file would, on columns that are prepared as those of
files are, so what the parties learn of each other is what docs/threat-model.md says; `result_` is the same
as result.json.
"""

from __future__ import annotations

from colonnade.estimators.classifier import VerticalClassifier
from colonnade.estimators.regressor import VerticalRegressor

__all__ = ["VerticalClassifier", "VerticalRegressor"]
