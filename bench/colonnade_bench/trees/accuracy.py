"""The same columns, prepared once, for our trees over four parties and for others' trees on all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from colonnade.data.datasets.loading import known_dataset
from colonnade.data.table import Table
from colonnade.job import job_from
from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of
from colonnade.run.federate import Tables, prepare, run_tables
from colonnade.run.resolve import compose

SETS = {
    "uci-credit": "test_auc",
    "givemesomecredit": "test_auc",
    "a9a": "test_auc",
    "cod-rna": "test_auc",
    "phishing": "test_auc",
    "digits": "test_accuracy",
    "mnist": "test_accuracy",
    "news20": "test_accuracy",
    "diabetes": "r2",
}
SLOW = {"mnist": 10, "news20": 10}  # fewer rounds
WIDE = 2000  # columns of a party beyond which scikit-learn, which wants them dense, has no room
MOST_COLUMNS = 250  # of a party: those that are other than 0 in the most training rows
SPLITS, FEW = 5, 3  # of the rows into those to train on and to test, where a set has no test rows of its own
LARGE = {"givemesomecredit"}  # fewer splits
RATE, DEPTH, BINS = 0.1, 6, 255
Quality = dict[str, float]


def measured(name: str, *, rounds: int, quick: bool) -> dict[str, Quality]:
    """The metrics of every way on a set's test rows; means over some splits where it has none of its own."""
    rounds = min(rounds, SLOW.get(name, rounds))
    known = known_dataset(name)
    several = not quick and known is not None and not known.test_rows and name not in SLOW
    splits = (FEW if name in LARGE else SPLITS) if several else 1
    runs = [_measured(name, seed, rounds, quick=quick) for seed in range(splits)]
    return {
        way: {key: float(np.mean([run[way][key] for run in runs])) for key in runs[0][way]} for way in runs[0]
    }


def _measured(name: str, seed: int, rounds: int, *, quick: bool) -> dict[str, Quality]:
    tables, loss = dealt(name, seed, 2000 if quick else None)
    found = {}
    for algorithm in ("secureboost", "boosted-sum"):
        job = _job(algorithm, loss, rounds, tables)
        done = run_tables(structs.replace(job, compare=quick and algorithm == "secureboost"), tables)
        found[algorithm] = done.result.metrics
        if done.result.pooled:
            found["pooled"] = done.result.pooled
    found["scikit-learn"] = _others(_scikit_learn(loss, rounds), tables, loss)
    found["leaves of any size"] = _others(_scikit_learn(loss, rounds, leaf=1), tables, loss)
    if (model := _xgboost(loss, rounds)) is not None:
        found["XGBoost"] = _others(model, tables, loss)
    return found


def dealt(name: str, seed: int = 0, most: int | None = None, parties: int = 4) -> tuple[Tables, str]:
    """A data set's columns as trees take them, dealt to some parties; and the loss for its labels."""
    data = {"train": name, "parties": parties}
    plain = {"algorithm": "secureboost", "seed": seed, "data": data, "secure": {"labels": "clear"}}
    source, order = prepare(compose(job_from(plain)))
    made = {party: data.prepare() for party, data in order.data.items()}
    train = {party: _some(each.train, most) for party, each in made.items()}
    test = {party: each.test for party, each in made.items() if each.test is not None}
    for party, table in train.items():
        if not isinstance(table.X, np.ndarray) and table.width > WIDE:
            usual = most_filled(table, MOST_COLUMNS)
            train[party], test[party] = dense(table, usual), dense(test[party], usual)
    return Tables(source.name, train, test, order.plan.label_holders), order.plan.objective.loss


def most_filled(table: Table, count: int) -> Any:
    """The columns that are other than 0 in the most rows."""
    filled = np.bincount(table.X.nonzero()[1], minlength=table.width)
    return np.sort(np.argsort(-filled, kind="stable")[:count])


def dense(table: Table, columns: Any) -> Table:
    """Some columns of a table of few numbers, with their zeros."""
    names, X = tuple(table.columns[j] for j in columns.tolist()), table.X[:, columns]
    return replace(table, columns=names, X=X if isinstance(X, np.ndarray) else X.toarray())


def _some(table: Table, most: int | None) -> Table:
    return table if most is None else table.take(np.arange(min(most, table.rows)))


def _job(algorithm: str, loss: str, rounds: int, tables: Tables) -> Any:
    y = tables.train[tables.active[0]].y
    classes = {"classes": int(y.max()) + 1} if loss == "softmax" and y is not None else {}
    plain = {
        "algorithm": algorithm,
        "data": {"train": "dealt", "parties": len(tables.train)},
        "secure": {"labels": "clear"},  # blind trees are the same, bit for bit
        "train": {"epochs": rounds, "loss": loss, "evaluate_every": 0, **classes},
        "trees": {"learning_rate": RATE, "max_depth": DEPTH, "max_bin": BINS},
    }
    return job_from(plain)


def _pooled(tables: dict[str, Table], active: str) -> tuple[Any, Any]:
    blocks = [t.X if isinstance(t.X, np.ndarray) else t.X.toarray() for t in tables.values()]
    return np.hstack(blocks), tables[active].y


def _others(model: Any, tables: Tables, loss: str) -> Quality:
    """The metrics of another library's model."""
    (X, y), (X_test, y_test) = (_pooled(part or {}, tables.active[0]) for part in (tables.train, tables.test))
    model.fit(X, np.where(y > 0, 1, 0) if loss == "logistic" else y)
    if loss == "squared":
        z = model.predict(X_test)
    else:
        p = np.clip(model.predict_proba(X_test), 1e-12, 1)
        z = np.log(p[:, 1] / p[:, 0]) if loss == "logistic" else np.log(p)
    return metrics_of(LOSSES[loss], np.asarray(z, dtype=np.float64), y_test)


def _scikit_learn(loss: str, rounds: int, leaf: int = 20) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if loss == "squared" else HistGradientBoostingClassifier
    return kind(
        max_iter=rounds,
        learning_rate=RATE,
        max_depth=DEPTH,
        max_leaf_nodes=None,
        max_bins=BINS,
        min_samples_leaf=leaf,
        l2_regularization=1.0,
        early_stopping=False,
    )


def _xgboost(loss: str, rounds: int) -> Any:
    try:
        import xgboost  # type: ignore[import-not-found, unused-ignore]  # no dependency: where it is there
    except ImportError:
        return None
    kind = xgboost.XGBRegressor if loss == "squared" else xgboost.XGBClassifier
    return kind(n_estimators=rounds, learning_rate=RATE, max_depth=DEPTH, max_bin=BINS, tree_method="hist")
