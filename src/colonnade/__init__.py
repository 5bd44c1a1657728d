"""Vertical federated learning: many columns carry one roof.

What there is to use from Python; everything else is inside. The estimators train on columns in memory, as in
scikit-learn:

>>> from colonnade import VerticalClassifier, split_columns

`federate(read_job("job.toml"))` runs a job as `colonnade run job.toml` does, `read_result` reads what an
earlier run stored, `read_table` reads a table of a database or a store, and every error of Colonnade's own is
a `ColonnadeError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.3.0"
__all__ = [
    "ColonnadeError",
    "Function",
    "VerticalClassifier",
    "VerticalRegressor",
    "__version__",
    "compare",
    "federate",
    "job_from",
    "read_job",
    "read_result",
    "read_table",
    "split_columns",
]

if TYPE_CHECKING:
    from colonnade.data.read.source import read_table
    from colonnade.data.split.parties import split_columns
    from colonnade.errors import ColonnadeError
    from colonnade.estimators import VerticalClassifier, VerticalRegressor
    from colonnade.estimators.comparing import compare
    from colonnade.job import job_from, read_job
    from colonnade.models.blackbox import Function
    from colonnade.result import read_result
    from colonnade.run.federate import federate
else:
    _HOMES = {
        "ColonnadeError": "colonnade.errors",
        "Function": "colonnade.models.blackbox",
        "VerticalClassifier": "colonnade.estimators",
        "VerticalRegressor": "colonnade.estimators",
        "compare": "colonnade.estimators.comparing",
        "federate": "colonnade.run.federate",
        "job_from": "colonnade.job",
        "read_job": "colonnade.job",
        "read_result": "colonnade.result",
        "read_table": "colonnade.data.read.source",
        "split_columns": "colonnade.data.split.parties",
    }

    def __getattr__(name):
        """Import a name when it is first used: a party's process and the command line need no sklearn."""
        if name not in _HOMES:
            raise AttributeError(f"module 'colonnade' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return exactly what there is to use; what Python itself needs here is left out."""
    return sorted(__all__)
