"""What the same model reaches where all columns lie together: the measure of a federation.

Made by whoever has dealt the columns; no party takes part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from colonnade.arrays import Matrix, Numbers
from colonnade.baselines.dsg import fit_dsg
from colonnade.baselines.pooled import fit_pooled, pool
from colonnade.baselines.svc import fit_svc, median_bandwidth, trade_off
from colonnade.conversations.kernel.gram import check_memory
from colonnade.conversations.kernel.setup import plan_of
from colonnade.data.table import Table
from colonnade.job import Job
from colonnade.job.rules import preset_of
from colonnade.losses import LOSSES, Loss
from colonnade.metrics import metrics_of
from colonnade.regularizers import REGULARIZERS
from colonnade.run.inputs import Setting


@dataclass(frozen=True)
class Pooled:
    """The same model on pooled data: its loss, from which sub-optimality is counted, and its metrics."""

    optimum: float
    metrics: dict[str, float]


def compare(job: Job, setting: Setting) -> Pooled:
    """The comparison that belongs to the job's algorithm."""
    return POOLED[preset_of(job).conversation](job, setting)


@dataclass(frozen=True, eq=False)
class _Rows:
    """All columns of some rows side by side, with the label."""

    X: Matrix
    y: Numbers

    @classmethod
    def of(cls, setting: Setting, tables: dict[str, Table]) -> _Rows:
        y = tables[setting.active[0]].y
        assert y is not None  # noqa: S101  an active party holds the label
        return cls(pool([table.X for table in tables.values()]), y)


def _measured(
    loss: Loss, setting: Setting, scores: Callable[[Matrix], Numbers], train_loss: float, penalty: float
) -> Pooled:
    """A fit by its loss, and by all metrics on the test rows if there are any."""
    metrics = {"train_loss": train_loss}
    if setting.test is not None:
        test = _Rows.of(setting, setting.test)
        metrics |= metrics_of(loss, scores(test.X), test.y, penalty)
    return Pooled(train_loss, metrics)


def _linear(job: Job, setting: Setting) -> Pooled:
    """The linear model at its pooled optimum."""
    loss, regularizer = LOSSES[job.train.loss or ""], REGULARIZERS[job.train.regularizer]
    train = _Rows.of(setting, setting.train)
    fit = fit_pooled(train.X, train.y, loss, regularizer, job.train.l2, classes=job.train.classes)
    return _measured(loss, setting, fit.scores, fit.loss, job.train.l2 * regularizer.value(fit.w))


def _cascade(job: Job, setting: Setting) -> Pooled:
    """The optimum where there is one to compute, else the same models trained side by side."""
    models, given = job.model, bool(setting.models) or setting.server_model is not None
    kinds = {models.kind, *(model.kind for model in models.parties.values())}
    if kinds == {"linear"} and models.server.kind == "sum" and job.train.loss != "softmax" and not given:
        return _linear(job, setting)
    from colonnade.baselines.pooled_cascade import pooled_cascade

    found = pooled_cascade(
        job, setting.train, setting.test, setting.active[0], setting.models, setting.server_model
    )
    return Pooled(*found)


def _kernel(job: Job, setting: Setting) -> Pooled:
    """Doubly stochastic gradients on pooled data, in the same blocks and with the same cap."""
    loss, train = LOSSES[job.train.loss or ""], _Rows.of(setting, setting.train)
    features = plan_of(job, len(train.y), setting.active).features
    fit = fit_dsg(train.X, train.y, loss, job.kernel, job.train, features=features, seed=job.seed)
    train_loss = float(loss.value(fit.scores(train.X), train.y).mean()) + fit.penalty
    return _measured(loss, setting, fit.scores, train_loss, fit.penalty)


def _svc(job: Job, setting: Setting) -> Pooled:
    """scikit-learn's SVC on pooled data."""
    loss, train = LOSSES[job.train.loss or ""], _Rows.of(setting, setting.train)
    n = len(train.y)
    check_memory(n)
    sigma = job.kernel.sigma
    if sigma == "median":
        sigma = median_bandwidth(train.X, train.y, job.kernel.fraction, job.seed)
    fit = fit_svc(train.X, train.y, sigma=sigma, C=trade_off(n, job.train.l2))
    train_loss = float(loss.value(fit.decision_function(train.X), train.y).mean())
    return _measured(loss, setting, fit.decision_function, train_loss, 0.0)


POOLED: dict[str, Callable[[Job, Setting], Pooled]] = {
    "backward": _linear,
    "pull": _linear,
    "kernel": _kernel,
    "gram": _svc,
    "cascade": _cascade,
}
