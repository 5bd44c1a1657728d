"""The penalty that `l2 = "auto"` chooses beside a row of given ones: test errors on made-up and real data.

The test errors of given penalties are what nobody could know before; `auto` sees training rows only. Trained
on pooled columns (`dsg`), with the settings of fdskl and of fdskl-capped; federations choose alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from colonnade.conversations.kernel.record import pooled_fit
from colonnade.run.federate import Tables, plan_for
from colonnade_bench.common import Grid, Say
from colonnade_bench.kernel.made_up import some_tables
from colonnade_bench.kernel.runs import job_for, pooled_rows, rows_in, wrong

GIVEN = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
FEATURES = 2048  # at most; of the capped machine, so that all this takes minutes


def penalties(
    names: Sequence[str], rows: int | None, say: Say, algorithms: Sequence[str] = ("fdskl", "fdskl-capped")
) -> list[Grid]:
    """A table for each algorithm: these made-up sets and data sets, of at most so many training rows."""
    grids = []
    for algorithm in algorithms:
        table = []
        for name in names:
            tables = some_tables(name, rows)
            table.append([name, rows_in(tables), *_errors(tables, algorithm)])
            say(f"{algorithm}: " + "  ".join(map(_short, table[-1])))
        heads = ["data set", "training rows", "chosen", "auto", *(f"{l2:.0e}" for l2 in GIVEN)]
        note = "Test errors on pooled columns."
        if algorithm == "fdskl-capped":
            note += f" At most {FEATURES} features."
        grids.append(Grid(f"{algorithm}: l2 = auto beside given ones", heads, table, note))
    return grids


def _errors(tables: Tables, algorithm: str) -> list[float]:
    """The penalty that is chosen, then the test errors with it and with the given ones."""
    X, y, X_test, y_test = pooled_rows(tables)
    found: list[float] = []
    features = min(FEATURES, 10**8 // len(y))
    kernel = {"features": features} if algorithm == "fdskl-capped" else {}
    for l2 in ("auto", *GIVEN):
        plan = plan_for(job_for(tables, algorithm, 0, train={"l2": l2}, kernel=kernel), tables)[0]
        fit = pooled_fit(plan, X, y)
        if l2 == "auto":
            found.append(fit.l2)
        found.append(wrong(fit.scores(X_test), y_test))
    return found


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
