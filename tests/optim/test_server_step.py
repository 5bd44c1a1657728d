"""The server's own zeroth-order step: as long as its model allows, whatever the size of the embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from colonnade.arrays import Numbers
from colonnade.losses import LOSSES
from colonnade.models.blackbox import Linear
from colonnade.optim.replies import CAUTION, Head, ZerothStep
from colonnade.optim.smoothing import Directions, Smoothing

ROWS, COLUMNS, CLASSES = 300, 4, 3


def head(scale: float) -> tuple[Head, Numbers, Numbers]:
    """A linear F0 over embeddings of some size, with labels it can learn."""
    rng = np.random.default_rng(3)
    C = scale * rng.standard_normal((ROWS, COLUMNS))
    y = (C @ rng.standard_normal((COLUMNS, CLASSES))).argmax(axis=1).astype(np.float64)
    model = Linear(COLUMNS, CLASSES, bias=True)
    return Head(model, LOSSES["softmax"], np.zeros(model.parameters)), C, y


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("kind", ["gaussian", "sphere", "rademacher"])
def test_a_measured_step_is_the_rule_s_for_a_linear_model(kind: Directions, two_sided: bool) -> None:
    top, C, y = head(2.0)
    K = 4000
    smoothing = Smoothing(kind, K, two_sided=two_sided)
    measured, plain = (
        ZerothStep(top, smoothing, np.random.default_rng(0), flag).gradient(C, y) for flag in (True, False)
    )
    # an output is w'c + b: its own part of J'J has the trace |c|^2 + 1, every output the same
    each = float((C**2).sum(axis=1).mean()) + 1
    curvature = LOSSES["softmax"].smoothness * (each + (CLASSES + 1) * each / K)
    np.testing.assert_allclose(measured, CAUTION / curvature * plain, rtol=0.03)


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_measured_steps_learn_at_every_size_of_embeddings(scale: float) -> None:
    top, C, y = head(scale)
    own = ZerothStep(top, Smoothing("gaussian", 4), np.random.default_rng(1), measured=True)
    losses = []
    for _ in range(400):
        losses.append(float(top.losses(top.w[None], C, y).mean()))
        top.w = top.w - own.gradient(C, y)
    assert max(losses) <= losses[0] * 1.05
    if scale >= 1.0:  # tiny embeddings say little beside the bias, and are learnt slowly by any rule
        assert losses[-1] < 0.6 * losses[0]
