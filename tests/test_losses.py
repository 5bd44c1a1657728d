"""Losses and regularisers: derivatives are derivatives, bounds are bounds, predictions are signs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.sgd import BOUNDED_LOSSES, SCALAR_LOSSES

from colonnade.arrays import Floats
from colonnade.errors import JobError
from colonnade.job import job_from
from colonnade.losses import LOSSES, Loss, SmoothHinge, UsualLoss, Weighted
from colonnade.regularizers import REGULARIZERS, Regularizer

every_loss = pytest.mark.parametrize("loss", SCALAR_LOSSES.values(), ids=SCALAR_LOSSES.keys())
binary_loss = pytest.mark.parametrize("loss", [loss for loss in LOSSES.values() if loss.task == "binary"])
every_regularizer = pytest.mark.parametrize("regularizer", REGULARIZERS.values(), ids=REGULARIZERS.keys())

scores = st.floats(-30, 30)


def label_for(loss: Loss, raw: float) -> float:
    return raw if loss.task == "regression" else (1.0 if raw >= 0 else -1.0)


@every_loss
@given(z=scores, raw=st.floats(-5, 5))
@settings(max_examples=60)
def test_dz_is_the_derivative_of_the_value(loss: Loss, z: float, raw: float) -> None:
    y, h = np.array([label_for(loss, raw)]), 1e-5
    slope = (loss.value(np.array([z + h]), y) - loss.value(np.array([z - h]), y)) / (2 * h)
    np.testing.assert_allclose(loss.dz(np.array([z]), y), slope, atol=2e-5)


@every_loss
@given(a=scores, b=scores, raw=st.floats(-5, 5))
@settings(max_examples=60)
def test_smoothness_bounds_how_fast_dz_changes(loss: Loss, a: float, b: float, raw: float) -> None:
    y = np.array([label_for(loss, raw)] * 2)
    first, second = loss.dz(np.array([a, b]), y)
    assert abs(first - second) <= loss.smoothness * abs(a - b) + 1e-12


@every_loss
def test_smoothness_is_attained_so_no_smaller_constant_would_do(loss: Loss) -> None:
    y, z, h = 1.0, np.linspace(-3, 3, 6001), 1e-4
    second = (loss.dz(z + h, np.full_like(z, y)) - loss.dz(z - h, np.full_like(z, y))) / (2 * h)
    assert second.max() == pytest.approx(loss.smoothness, rel=1e-6)


@every_loss
@given(a=scores, b=scores, t=st.floats(0, 1), raw=st.floats(-5, 5))
@settings(max_examples=60)
def test_every_loss_is_convex_and_not_negative(loss: Loss, a: float, b: float, t: float, raw: float) -> None:
    y = np.array([label_for(loss, raw)] * 3)
    left, right, middle = loss.value(np.array([a, b, t * a + (1 - t) * b]), y)
    assert middle <= t * left + (1 - t) * right + 1e-9
    assert min(left, right, middle) >= 0


# -- curvature, from theta alone --------------------------------------------------------------------


def random_rows(loss: Loss, seed: int, classes: int, spread: float) -> tuple[Floats, Floats, Floats]:
    """Scores, labels and directions of a few rows; with several axes where the loss has classes."""
    rng = np.random.default_rng(seed)
    shape = (2, 5, classes) if loss.task == "multiclass" else (10,)
    z, u = spread * rng.standard_normal(shape), rng.standard_normal(shape)
    if loss.task == "multiclass":
        return z, rng.integers(0, classes, shape[:-1]).astype(np.float64), u
    return z, (rng.standard_normal(10) if loss.task == "regression" else rng.choice([-1.0, 1.0], 10)), u


all_losses = pytest.mark.parametrize("loss", BOUNDED_LOSSES.values(), ids=BOUNDED_LOSSES.keys())
rows_of_scores = {
    "seed": st.integers(0, 2**32 - 1),
    "classes": st.integers(2, 6),
    "spread": st.sampled_from([0.1, 1.0, 5.0]),
}


@all_losses
@given(**rows_of_scores)
@settings(max_examples=60)
def test_bend_is_the_second_derivative_times_u(loss: Loss, seed: int, classes: int, spread: float) -> None:
    z, y, u = random_rows(loss, seed, classes, spread)
    h = 1e-6
    numerical = (loss.dz(z + h * u, y) - loss.dz(z - h * u, y)) / (2 * h)
    bent = loss.bend(loss.dz(z, y), u)
    smooth = np.ones(bent.shape, dtype=bool)
    if not loss.always_curved:
        smooth = np.minimum(np.abs(y * z), np.abs(1 - y * z)) > 1e-4  # not at a kink
    np.testing.assert_allclose(bent[smooth], numerical[smooth], atol=1e-7)


@all_losses
@given(**rows_of_scores)
@settings(max_examples=60)
def test_curvature_bounds_the_second_derivative_of_every_row_and_smoothness_bounds_curvature(
    loss: Loss, seed: int, classes: int, spread: float
) -> None:
    z, y, u = random_rows(loss, seed, classes, spread)
    theta = loss.dz(z, y)
    along = u * loss.bend(theta, u)
    most = loss.curvature(theta) * (np.sum(u**2, axis=-1) if loss.task == "multiclass" else u**2)
    if loss.task == "multiclass":
        along = along.sum(axis=-1)
    assert (along >= -1e-12).all()  # convex
    assert (along <= most * (1 + 1e-9) + 1e-12).all()
    assert (loss.curvature(theta) <= loss.smoothness).all()


def test_softmax_s_dz_is_the_derivative_of_its_value() -> None:
    z, y, _ = random_rows(LOSSES["softmax"], 0, 4, 2.0)
    h, loss = 1e-6, LOSSES["softmax"]
    for k, e in enumerate(np.eye(4)):
        slope = (loss.value(z + h * e, y) - loss.value(z - h * e, y)) / (2 * h)
        np.testing.assert_allclose(loss.dz(z, y)[..., k], slope, atol=1e-8)


def test_softmax_of_two_classes_is_logistic_of_their_difference() -> None:
    rng = np.random.default_rng(0)
    z, y = 3 * rng.standard_normal((20, 2)), rng.integers(0, 2, 20).astype(np.float64)
    two, one = LOSSES["softmax"], LOSSES["logistic"]
    difference, sign = z[:, 1] - z[:, 0], 2 * y - 1
    np.testing.assert_allclose(two.value(z, y), one.value(difference, sign))
    np.testing.assert_allclose(two.dz(z, y)[:, 1], one.dz(difference, sign))
    np.testing.assert_array_equal(2 * two.predict(z) - 1, one.predict(difference))


def test_softmax_of_huge_scores_neither_overflows_nor_warns() -> None:
    z, y, loss = np.array([[1e8, 0.0, -1e8]] * 3), np.arange(3.0), LOSSES["softmax"]
    assert loss.value(z, y).tolist() == [0.0, 1e8, 2e8]
    theta = loss.dz(z, y)
    assert theta.tolist() == [[0, 0, 0], [1, -1, 0], [1, 0, -1]]
    assert np.abs(loss.bend(theta, np.ones((3, 3)))).max() == 0
    assert loss.curvature(theta).tolist() == [0, 0, 0]


# -- what a loss answers ------------------------------------------------------------------------------

any_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def scores_and_labels(loss: Loss) -> tuple[Floats, Floats]:
    """A grid of scores, each with a label that the loss takes."""
    z = np.linspace(-6, 6, 241)
    if loss.task == "multiclass":
        return np.column_stack([z, -z, z**2 / 6]), np.arange(241.0) % 3
    signs = np.where(np.arange(241) % 2, 1.0, -1.0)
    return z, signs if loss.task == "binary" else 1.5 + signs


@any_loss
def test_a_loss_is_always_curved_if_no_score_has_a_second_derivative_of_zero(loss: Loss) -> None:
    z, y = scores_and_labels(loss)
    second = loss.second(loss.dz(z, y), y)
    assert second.shape == z.shape
    assert (second >= 0).all()
    assert loss.always_curved == bool((second > 0).all())


@any_loss
def test_sums_of_second_derivatives_are_rows_if_a_loss_says_so(loss: Loss) -> None:
    z, y = scores_and_labels(loss)
    assert loss.counts_rows == bool((loss.second(loss.dz(z, y), y) == 1).all())


@any_loss
def test_second_is_the_derivative_of_each_dz_by_its_own_score(loss: Loss) -> None:
    z, y = scores_and_labels(loss)
    h, found = 1e-6, loss.second(loss.dz(z, y), y)
    for k in range(z.shape[1] if z.ndim == 2 else 1):
        e = h * (np.eye(z.shape[1])[k] if z.ndim == 2 else 1.0)
        slopes = ((loss.dz(z + e, y) - loss.dz(z - e, y)) / (2 * h)).reshape(len(z), -1)[:, k]
        smooth = np.ones(len(z), dtype=bool)
        if not loss.always_curved:
            smooth = np.minimum(np.abs(y * z), np.abs(1 - y * z)) > 1e-4  # not at a kink
        np.testing.assert_allclose(found.reshape(len(z), -1)[smooth, k], slopes[smooth], rtol=1e-6, atol=1e-7)


@any_loss
def test_a_loss_needs_labels_beside_theta_if_it_says_so(loss: Loss) -> None:
    z, y = scores_and_labels(loss)
    theta = loss.dz(z, y)
    if loss.curved_by_theta:
        np.testing.assert_array_equal(loss.bend(theta, z), loss.bend(theta, z, y))
    else:
        with pytest.raises(TypeError, match="needs the labels"):
            loss.bend(theta, z)


@any_loss
def test_a_loss_takes_labels_of_its_range_alone(loss: Loss) -> None:
    least = {None: [True, True, True], ">= 0": [False, True, True], "> 0": [False, False, True]}
    assert loss.admits(np.array([-1.0, 0.0, 1.0])).tolist() == least[loss.label_range]
    assert not loss.counts or loss.label_range == ">= 0"


@any_loss
def test_a_loss_is_the_same_in_any_unit_if_it_says_so(loss: Loss) -> None:
    z, y = scores_and_labels(loss)
    as_squares = loss.task == "regression" and np.allclose(loss.value(3 * z, 3 * y), 9 * loss.value(z, y))
    assert loss.any_unit == as_squares


@any_loss
def test_a_score_through_the_link_is_what_fits_a_mean_label_best(loss: Loss) -> None:
    if loss.link in (None, "softmax"):
        return
    mean = 0.3 if loss.task == "binary" else 1.7
    odds = (1 + mean) / abs(1 - mean)  # of classes alone
    z = np.full(2, {"identity": mean, "log": np.log(mean), "logit": np.log(odds)}[loss.link])
    if loss.task == "binary":
        slope = np.average(loss.dz(z, np.array([1.0, -1.0])), weights=[(1 + mean) / 2, (1 - mean) / 2])
    else:
        slope = loss.dz(z, np.array([mean - 0.5, mean + 0.5])).mean()
    assert slope == pytest.approx(0, abs=1e-12)


def test_probabilities_are_those_of_the_logistic_loss_and_softmax() -> None:
    assert [name for name, loss in LOSSES.items() if loss.has_probabilities] == ["logistic", "softmax"]


@any_loss
def test_a_weighted_loss_gives_the_answers_of_its_own(loss: Loss) -> None:
    weighted = Weighted(loss, 1.0)
    same = ("task", "link", "has_probabilities", "label_range", "counts", "any_unit", "theta_tells")
    for name in (*same, "counts_rows"):
        assert getattr(weighted, name) == getattr(loss, name)
    assert not weighted.curved_by_theta
    assert weighted.shared_form is None


def test_an_unknown_loss_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(JobError, match=r"^loss: 'cubed' is not one of 'logistic', 'squared', .*'gamma'$"):
        _ = LOSSES["cubed"]
    data = {"train": "a9a", "parties": 2}
    with pytest.raises(JobError, match=r"^job: train.loss: 'cubed' is not one of 'logistic', 'squared',"):
        job_from({"algorithm": "lbfgs", "data": data, "train": {"loss": "cubed"}})


def test_a_loss_without_a_form_for_tensors_is_refused_and_not_replaced() -> None:
    class Bare(SmoothHinge):
        name = "bare"
        in_torch = UsualLoss.in_torch

    with pytest.raises(JobError, match=r"train\.loss = 'bare': networks cannot train it"):
        Bare().in_torch(None, np.zeros(1), np.ones(1))


# -- binary losses ----------------------------------------------------------------------------------


@binary_loss
@given(z=scores)
def test_a_binary_loss_sees_only_the_margin(loss: Loss, z: float) -> None:
    one = np.ones(1)
    np.testing.assert_array_equal(loss.value(np.array([z]), one), loss.value(np.array([-z]), -one))
    np.testing.assert_array_equal(loss.dz(np.array([z]), one), -loss.dz(np.array([-z]), -one))


@binary_loss
def test_theta_of_a_binary_loss_points_against_the_label_and_is_smaller_where_it_is_right(loss: Loss) -> None:
    z = np.linspace(-50, 50, 1001)
    for y in (1.0, -1.0):
        theta = loss.dz(z, np.full_like(z, y))
        assert (theta * y <= 0).all()
        assert np.abs(theta[z * y >= 0]).max() <= np.abs(theta[z * y <= 0]).min()


@binary_loss
def test_a_binary_prediction_is_the_sign_and_zero_counts_as_positive(loss: Loss) -> None:
    assert loss.predict(np.array([-2.0, -1e-300, 0.0, 3.0])).tolist() == [-1.0, -1.0, 1.0, 1.0]


def test_a_regression_predicts_its_score() -> None:
    assert LOSSES["squared"].predict(np.array([-2.5, 0.0])).tolist() == [-2.5, 0.0]


@pytest.mark.parametrize(
    ("margin", "value", "slope"),
    [(-2.0, 2.5, -1.0), (0.0, 0.5, -1.0), (0.5, 0.125, -0.5), (1.0, 0.0, 0.0), (7.0, 0.0, 0.0)],
)
@pytest.mark.parametrize("y", [1.0, -1.0])
def test_smooth_hinge_is_a_line_then_a_parabola_then_nothing(
    margin: float, value: float, slope: float, y: float
) -> None:
    z, label = np.array([y * margin]), np.array([y])
    assert SmoothHinge().value(z, label) == pytest.approx([value])
    assert SmoothHinge().dz(z, label) == pytest.approx([slope * y])


def test_logistic_loss_of_huge_scores_neither_overflows_nor_warns() -> None:
    z, y = np.array([-1e8, 1e8]), np.ones(2)
    assert LOSSES["logistic"].value(z, y).tolist() == [1e8, 0.0]
    assert LOSSES["logistic"].dz(z, y).tolist() == [-1.0, 0.0]


@every_regularizer
@given(w=st.lists(st.floats(-10, 10), min_size=1, max_size=5))
@settings(max_examples=60)
def test_a_regularizer_s_gradient_is_its_derivative(regularizer: Regularizer, w: list[float]) -> None:
    x, h = np.array(w), 1e-5
    slopes = [(regularizer.value(x + h * e) - regularizer.value(x - h * e)) / (2 * h) for e in np.eye(len(x))]
    np.testing.assert_allclose(regularizer.gradient(x), slopes, atol=1e-7)


@every_regularizer
@given(w=st.lists(st.floats(-10, 10), min_size=1, max_size=5))
@settings(max_examples=60)
def test_a_regularizer_s_curvature_is_the_derivative_of_its_gradient(
    regularizer: Regularizer, w: list[float]
) -> None:
    x, h = np.array(w), 1e-5
    numerical = (regularizer.gradient(x + h) - regularizer.gradient(x - h)) / (2 * h)
    np.testing.assert_allclose(np.broadcast_to(regularizer.curvature(x), x.shape), numerical, atol=1e-7)
    assert (np.abs(numerical) <= regularizer.smoothness + 1e-7).all()


@every_regularizer
@given(a=st.floats(-10, 10), b=st.floats(-10, 10))
def test_a_regularizer_s_smoothness_bounds_how_fast_its_gradient_changes(
    regularizer: Regularizer, a: float, b: float
) -> None:
    first, second = regularizer.gradient(np.array([a, b]))
    assert abs(first - second) <= regularizer.smoothness * abs(a - b) + 1e-12


@every_regularizer
def test_a_penalty_of_blocks_is_the_penalty_of_the_whole(regularizer: Regularizer) -> None:
    w = np.random.default_rng(0).standard_normal(9)
    assert regularizer.value(w) == pytest.approx(sum(regularizer.value(part) for part in np.split(w, 3)))


def test_the_nonconvex_penalty_of_a_huge_weight_is_one_half() -> None:
    assert REGULARIZERS["nonconvex"].value(np.array([1e9])) == pytest.approx(0.5)
