"""What every parameter and attribute means: one text for both estimators, at the end of their docstrings."""

from __future__ import annotations

import textwrap
from typing import TypeVar

from colonnade.losses import LOSSES, USUAL

C = TypeVar("C", bound=type)


def _losses() -> str:
    """Return what `loss` may be: the table of losses in words."""
    classes = LOSSES.named(lambda loss: loss.task != "regression")
    numbers = LOSSES.named(lambda loss: loss.task == "regression")
    text = (
        f"{classes} for classes; {numbers} for numbers. None: what the labels ask for: {USUAL['binary']} of "
        f"two classes, {USUAL['multiclass']} of more, {USUAL['regression']} of numbers."
    )
    return textwrap.fill(text.replace("'", ""), 102).replace("\n", "\n        ")


PARAMETERS = """
    Parameters
    ----------
    algorithm : str, default="lbfgs"
        One of `colonnade algorithms`. The default needs no step, no batch and no scaling of your own.
    parties : int, default=None
        Over how many parties the columns of X are dealt out by chance; None: four, or one for every column.
    columns : dict of party to columns, default=None
        Who holds which columns, by name or by place: `{"bank": ["age", "income"], "shop": ["visits"]}`.
    active : int or list of names, default=1
        How many parties hold the label (the first of them), or which.
    loss : str, default=None
        LOSSES
    l2, l1 : float, default=None and 0
        What is added to the mean loss of a row: half of l2 times the sum of the squares of all weights, and
        l1 times the sum of their sizes; intercepts are in neither. scikit-learn's C is 1 / (n_samples l2),
        and its alpha of Ridge is n_samples l2. l2 None: "auto" for "lbfgs", which is 1 / n_samples, and
        for kernel machines, the best on sampled rows; 1e-4 for other algorithms.
    class_weight : dict or "balanced", default=None
        How much the rows of a class count; "balanced": all classes count alike. For the classifier alone.
    intercept : bool, default=None
        Whether one party has a column of ones; None: if the model is linear.
    labels : {"clear", "blind"}, default=None
        "blind": trained as companies would that hide labels from each other, with the same noise. None: as
        exactly as can be, and in clear where that is exact; `repr` and `result_` say what it would tell.
    scale : {"auto", "none", "zscore", "minmax", "maxabs"} or a number, default="auto"
        How parties scale their number columns, each by itself and by training rows alone. "auto": z-scores
        with outliers capped (drawn nearer or kept, where a linear model is to predict a number) for dense
        columns, at most 1 for sparse ones.
    missing : {"auto", "error", "zero", "mean"}, default="auto"
        What a gap becomes. "auto": the mean, and a column that says where, or a category of its own.
    categorical : list of str, default=None
        Columns that are categories though they look like numbers. Text is by itself, unless it has too many
        different values that it must be an id; so is what a data frame calls categorical.
    rare : int or "auto", default="auto"
        Categories of fewer rows become one, which also takes unknown values. "auto": those of a single row,
        where there are more than a hundred rows and more than a quarter of the values are such; 0: keep all.
    epochs : int, default=None
        The most passes over the rows; None: what suits the algorithm.
    tolerance : float, default=None
        Training ends once the loss falls by no more than this part of itself an epoch; 0: after all epochs.
    batch : int, default=None
        Rows of a batch; None: what suits algorithm and rows.
    step : float or "auto", default="auto"
        The length of a step, found by itself from smoothness, batch and delay.
    model : dict, torch module, `Function`, function, or dict of party to these, default=None
        What every party trains in a cascade (`split`, `vafl`, `asyrevel-gau`, ...): a description as in
        [model] of a job, `{"kind": "mlp", "hidden": [64]}`; a torch module; a `colonnade.Function`, which is
        a black box; or a function of (columns, outputs) that makes one. Every fit starts from new weights.
    server : str, dict, torch module or function, default=None
        The model on top of all parties' outputs; None: their sum.
    world : {"local", "simulated", "network"}, default="local"
        All parties in this process on its clock, on a virtual clock that makes every run the same to the last
        bit, or a process each with mutual TLS. The last takes no Python objects as models.
    job : dict, default=None
        Everything else that a job file may say, by section: `{"secure": {"sum": "tree"}, "compare": True}`.
    random_state : int, RandomState or None, default=0
        Who gets which columns, the order of rows, first weights and random directions.
    verbose : int, default=0
        1: a bar in a terminal or a notebook, lines elsewhere; 2: lines everywhere.
    callbacks : list of functions, default=None
        Called with every evaluation (a `Moment`: epoch, loss, seconds, rounds, bytes) while training goes on;
        one that returns True ends it, unless steps fade over a fixed number of epochs (plain SGD, kernels).
        In the network world nobody waits for an answer.

    Attributes
    ----------
    result_ : Result
        What result.json has: metrics, cost, privacy, history, and what was done to the columns (`data`).
    coef_, intercept_ : dict of party to array, float or array
        A linear model's weights, in the order of `feature_names_`.
    feature_importances_ : dict of party to array
        The part of all gain that every column has in boosted trees, in the order of `feature_names_`.
    feature_names_ : dict of party to names
        Every party's columns after preparation: a category is column=value.
    columns_ : dict of party to names
        Every party's columns as they were given.
    n_features_in_, feature_names_in_, n_iter_
        As everywhere in scikit-learn; an iteration is an epoch.
    """


def documented(estimator: C) -> C:
    """Put what all parameters mean at the end of an estimator's docstring."""
    text = (estimator.__doc__ or "").rstrip()
    estimator.__doc__ = f"{text}\n{PARAMETERS.replace('LOSSES', _losses())}"
    return estimator
