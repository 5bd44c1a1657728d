"""Which algorithm for what: when to use each, and what people mean who name another library's."""

from __future__ import annotations

import re

from colonnade.job.presets import PRESETS

USE_IT_WHEN: dict[str, str] = {
    "lbfgs": "you begin, or want a linear model: it needs no settings and few messages",
    "vfb2-sgd": "links are slow, parties differ in speed, and an approximate linear model is enough",
    "vfb2-svrg": "as vfb2-sgd, but the linear model must reach the optimum",
    "vfb2-saga": "as vfb2-svrg, with memory for one number per row",
    "vfb-sgd": "you measure what asynchrony gains: the twin of vfb2-sgd",
    "vfb-svrg": "you measure what asynchrony gains: the twin of vfb2-svrg",
    "vfb-saga": "you measure what asynchrony gains: the twin of vfb2-saga",
    "afsgd-vp": "you compare with it: parties without labels stay untrained",
    "afsvrg-vp": "you compare with it: parties without labels stay untrained",
    "afsaga-vp": "you compare with it: parties without labels stay untrained",
    "asysqn-sgd": "all parties may have the labels, and messages are expensive",
    "asysqn-svrg": "as asysqn-sgd, but the model must reach the optimum",
    "asysqn-saga": "as asysqn-svrg, with memory for one number per row",
    "synsqn-sgd": "you measure what asynchrony gains: the twin of asysqn-sgd",
    "synsqn-svrg": "you measure what asynchrony gains: the twin of asysqn-svrg",
    "synsqn-saga": "you measure what asynchrony gains: the twin of asysqn-saga",
    "fd-svrg": "you compare with it",
    "secureboost": "columns interact or act in steps, as in most tables: gradient-boosted trees",
    "boosted-sum": "you want trees, and each party must explain its part of a score by itself",
    "asyrevel-gau": "parties' models are black boxes that can only be evaluated",
    "asyrevel-uni": "as asyrevel-gau, with directions on the sphere",
    "synrevel-gau": "you measure what asynchrony gains: the twin of asyrevel-gau",
    "synrevel-uni": "you measure what asynchrony gains: the twin of asyrevel-uni",
    "tig": "you compare with it: asynchronous split learning of AsyREVEL",
    "syntig": "you compare with it: the twin of tig",
    "czofo": "you want networks, and the server must not send gradients: replies are 8-bit loss differences",
    "czofo-central": "as czofo, with less noise for twice the messages",
    "czofo-coord": "as czofo, and outputs are few",
    "syn-czofo": "you measure what asynchrony gains: the twin of czofo",
    "czofo-ef": "as czofo, and traffic must be small: outputs in 2 bits",
    "split": "you want networks: images, text, or columns that interact in ways trees miss",
    "vafl": "as split, and parties differ in speed",
    "vafl-dp": "as vafl, and an epsilon must bound what is told about a label",
    "c-vfl": "you want networks with few messages, and all parties may have labels and outputs",
    "zoo-vfl": "you compare with it: zeroth order on both sides",
    "syn-zoo-vfl": "you compare with it: the twin of zoo-vfl",
    "fdskl": "there are few rows (up to 100,000), numbers only, and a linear model is not enough",
    "fdskl-capped": "as fdskl, with less traffic and time",
    "pp-svmv": "there are very few rows (up to 10,000) and two classes: an exact support vector machine",
    **{
        name: f"you compare with the paper to the letter; {name.removesuffix('-paper')} is the better one"
        for name, preset in PRESETS.items()
        if preset.literal
    },
}
"""Every algorithm's use in a line; a test holds it complete."""

FAMILIES = ("lbfgs", "secureboost", "fdskl-capped", "split")
"""One of each kind of model, to compare on a table that nobody knows yet."""

_NAMES = {
    "secureboost": "xgboost xgb lightgbm lgbm catboost gbdt gbm gradient-boosting hist-gradient-boosting "
    "random-forest trees decision-tree boosting",
    "lbfgs": "logistic logistic-regression logreg linear linear-regression ridge lasso glm ols lr hetero-lr "
    "poisson",
    "fdskl-capped": "svm svc kernel rbf gaussian-process",
    "split": "mlp nn network neural-network neural-net deep dnn cnn torch splitnn split-learning",
    "vfb2-saga": "sgd saga svrg vfb2",
}
ELSEWHERE = {name: chosen for chosen, names in _NAMES.items() for name in names.split()}
"""What other libraries and papers call a model, and the algorithm here that trains one of its kind."""


def meant(name: str) -> str | None:
    """Return the algorithm that somebody means who asks for another library's.

    >>> meant("XGBoost"), meant("LogisticRegression"), meant("lbfgs2")
    ('secureboost', 'lbfgs', None)
    """
    plain = re.sub(r"[^a-z0-9]|classifier$|regressor$", "", name.casefold())
    return {known.replace("-", ""): chosen for known, chosen in ELSEWHERE.items()}.get(plain)
