"""What each party of an encrypted run computes by itself: factors of theta, columns that stay, noise."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from colonnade.conversations.linear.encrypted.home_columns import (
    PARTED,
    TOLD,
    HomeColumns,
    length_for,
    refuse_large,
)
from colonnade.conversations.linear.noisy.product_forms import FORMS, Reaches, code_of, size_of
from colonnade.conversations.linear.noisy.rare import LIMIT, steady
from colonnade.conversations.linear.noisy.row_noise import Loudness
from colonnade.conversations.linear.parted import wave_theta
from colonnade.conversations.linear.parted.turned_columns import TurnedColumns
from colonnade.conversations.own_noise import OwnNoise, largest_of
from colonnade.engines.engine import Inline
from colonnade.errors import FixedPointOverflow, JobError
from colonnade.job.plan import Encrypted
from colonnade.losses import LOSSES, loss_for, with_weights
from colonnade.privacy.gaussian import delta_of, deviation_for
from colonnade.run.blind import MOST_LEAN
from colonnade.secure.lattice.parameters import LEAN, STRICT, SlotParameters, coefficients_beside

RING = coefficients_beside(LEAN)


def labels(loss: str, rng: np.random.Generator, rows: int) -> np.ndarray:
    if loss == "logistic":
        return rng.choice([-1.0, 1.0], rows)
    return rng.gamma(2.0, 1.0, rows) if loss == "gamma" else rng.poisson(2.0, rows).astype(float)


@pytest.mark.parametrize("loss", FORMS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 99), weighted=st.booleans())
def test_both_parties_functions_make_theta_and_the_loss(loss: str, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    u, v, y = rng.normal(0, 1.5, 200), rng.normal(0, 1.0, 200), labels(loss, rng, 200)
    weight = rng.uniform(0.2, 3.0, 200) if weighted else None
    reaches = Reaches(code_of(float(np.abs(u).max())), code_of(float(np.abs(v).max())), weighted)
    form, exact = FORMS[loss], loss_for(LOSSES[loss], with_weights(y, weight))
    known = with_weights(y, weight)

    a, p = form.holder(u, y, weight, reaches), form.owner(v, reaches)
    theta = a.own + p.own + (a.products * p.products).sum(axis=0)
    np.testing.assert_allclose(theta, exact.dz(u + v, known), atol=0.07, rtol=1e-9)
    largest, ratio = form.bound(u, y, weight, form.size(v))
    assert np.linalg.norm(theta) <= 1.1 * largest
    assert ratio > 0

    a, p = form.holders_loss(u, y, weight, reaches), form.owners_loss(v, reaches)
    found = a.own + p.own + (a.products * p.products).sum(axis=0)
    zeros = np.zeros(200)
    base = form.at_zero(y) if weight is None else weight * form.at_zero(y)
    found += exact.value(zeros, known) - base
    np.testing.assert_allclose(found, exact.value(u + v, known), atol=0.007, rtol=1e-9)


def test_parts_of_scores_that_reach_too_far_count_as_the_furthest() -> None:
    far = Reaches(15, 13, weighted=False).separated
    assert far is Reaches(9, 9, weighted=False).separated
    np.testing.assert_array_equal(
        far.u.at(np.array([-180.0, 22.7])), far.u.at(far.u.reach * np.array([-1, 1]))
    )
    assert size_of(code_of(3.1)) >= 3.1 > size_of(code_of(3.1) - 1)


def leverage(X: np.ndarray) -> float:
    return float(np.einsum("ij,jk,ik->i", X, np.linalg.pinv(X.T @ X), X).max())


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), rare=st.integers(0, 6), sparse=st.booleans())
def test_no_row_is_more_than_a_tenth_of_its_own_fit(seed: int, rare: int, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 6))
    few = np.zeros((400, rare))
    for k in range(rare):
        few[rng.choice(400, size=k + 1, replace=False), k] = 1.0
    both = rng.permutation(np.hstack([X, few]).T).T
    kept = steady(csr_array(both) if sparse else both)
    assert leverage(both[:, kept]) <= LIMIT + 1e-9
    assert len(kept) >= 6  # ordinary columns stay


def test_columns_whose_difference_is_one_row_do_not_both_stay() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    twin = X[:, :1].copy()
    twin[17] += 4.0
    assert leverage(np.hstack([X, twin])) > 0.9
    kept = steady(np.hstack([X, twin]))
    assert len(kept) == 3
    np.testing.assert_array_equal(steady(X), [0, 1, 2])


@pytest.mark.parametrize("rows", [0.5, 3.0, 200.0])
def test_noise_has_the_deviation_that_was_asked_for(rows: float) -> None:
    """200 rows are beyond what one draw has: then steps are coarser, and what lies between is uniform."""
    codes = np.full(4000, 80)
    bits = 12
    drawn = OwnNoise(bytes(32)).gaussian(RING, codes, rows, bits, "gradient", 3)
    noise = drawn * RING.unit
    deviation = rows * largest_of(codes)[0] * 2.0**bits
    assert abs(noise.mean()) < 5 * deviation / math.sqrt(4000)
    assert 0.93 * deviation < noise.std() < 1.08 * deviation
    again, other = OwnNoise(bytes(32)), OwnNoise(bytes(31) + b"1")
    np.testing.assert_array_equal(drawn, again.gaussian(RING, codes, rows, bits, "gradient", 3))
    for each, purpose, number in ((again, "gradient", 4), (again, "loss", 3), (other, "gradient", 3)):
        told = each.gaussian(RING, codes, rows, bits, purpose, number)
        assert abs(np.corrcoef(drawn, told)[0, 1]) < 0.1


def test_noise_never_shows_the_key_and_never_drowns_everything() -> None:
    noise = OwnNoise(bytes(32))
    quiet = noise.gaussian(RING, np.full(4000, -800), 1.0, 12, "", 0) * RING.unit
    assert quiet.std() > 0.93 * RING.least_noise
    with pytest.raises(FixedPointOverflow, match=r"secure.noise: noise of 1e\+05 rows leaves nothing"):
        noise.gaussian(RING, np.full(3, 80), 1e5, 12, "", 0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_epsilon_is_that_of_all_passes(epsilon: float) -> None:
    terms = Encrypted(passes=9, noise=3.0, epsilon=epsilon)
    loud = Loudness.of(terms, heaviest=1.0, longest=1.7)
    assert delta_of(loud.rows / (1.7 * 3), epsilon) <= 1e-5
    assert loud.rows < 1.1 * deviation_for(epsilon, 1e-5) * 1.7 * 3
    accountant = pytest.importorskip("colonnade.privacy.accountant")
    assert accountant.epsilon_of(deviation_for(epsilon, 1e-5), 1, 1e-5) == pytest.approx(epsilon, rel=2e-3)


def test_many_rare_columns_go_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eigenvalue problem for every one that goes would take minutes."""
    rng, solved, eigh = np.random.default_rng(0), [0], np.linalg.eigh

    def counted(table: np.ndarray) -> object:
        solved[0] += 1
        return eigh(table)

    X = (rng.random((4000, 400)) < rng.uniform(8e-4, 6e-3, 400)).astype(float)
    monkeypatch.setattr(np.linalg, "eigh", counted)
    kept = steady(csr_array(X), LIMIT)
    gone = 400 - len(kept)
    rare = int((X.sum(axis=0) < 10).sum())  # each of whose rows alone is more than a tenth
    assert gone > rare + 20
    assert solved[0] < (gone - rare) / 2
    left = X[:, kept]
    leverage = np.einsum("ij,ij->i", left @ np.linalg.inv(left.T @ left), left)
    assert leverage.max() <= LIMIT


@pytest.mark.parametrize(
    ("slots", "rows"),
    [(LEAN, 2), (LEAN, MOST_LEAN), (STRICT, MOST_LEAN + 1), (STRICT, 10_000_000), (STRICT, 100_000_000)],
)
def test_every_number_of_rows_leaves_columns_a_bit_in_its_ring(slots: SlotParameters, rows: int) -> None:
    assert length_for(slots, rows) >= 2**0.5 * math.sqrt(rows)


def test_rows_beyond_the_smaller_ring_are_refused_there() -> None:
    with pytest.raises(FixedPointOverflow, match=r"1,500,000 rows leave columns less than a bit"):
        length_for(LEAN, 1_500_000)


@pytest.mark.parametrize(("of_scores", "key"), [(TOLD, "told"), (PARTED, "parted")])
def test_functions_of_scores_fit_what_is_counted_for_them_and_rows_without_room_are_refused(
    of_scores: int, key: str
) -> None:
    rows, rng = 60_000, np.random.default_rng(0)
    u, y = rng.uniform(-8, 8, rows), rng.choice([-1.0, 1.0], rows)
    far = Reaches(6, 6, weighted=False)  # as codes: 8
    made: list[Callable[[], object]] = [
        lambda: FORMS["logistic"].holder(u, y, None, far).whole(12, 6, rng),
        lambda: FORMS["logistic"].owner(u, far).whole(12, 6, rng),
        lambda: FORMS["logistic"].holders_loss(u, y, None, far),
        lambda: FORMS["logistic"].owners_loss(u, far),
    ]
    if key == "parted":
        made = [
            lambda: wave_theta.holder(u, y, None).whole(12, 6, rng),
            lambda: wave_theta.owner(u).whole(12, 6, rng),
            lambda: wave_theta.holders_loss(u, y, None),
            lambda: wave_theta.owners_loss(u),
        ]
    peaks = []
    for make in made:
        make()  # what is worked out once
        tracemalloc.start()
        make()
        peaks.append(tracemalloc.get_traced_memory()[1] / rows)
        tracemalloc.stop()
    assert 0.5 * of_scores < max(peaks) < of_scores
    few = 16 * rows * 2 + of_scores * rows
    refuse_large(rows, 2, few, of_scores, "secure.products")
    with pytest.raises(JobError, match="60,000 rows of 2 columns take"):
        refuse_large(rows, 2, few - 1, of_scores, "secure.products")
    X = np.column_stack([u, y])
    homes: dict[str, Callable[[], object]] = {
        "told": lambda: HomeColumns(X, LEAN, RING, few - 1, Inline(), rng),
        "parted": lambda: TurnedColumns(X, np.zeros(2), 0.25, few - 1),
    }
    with pytest.raises(JobError, match="60,000 rows of 2 columns take"):
        homes[key]()


def test_columns_are_prepared_in_what_is_announced_and_larger_ones_are_refused() -> None:
    """Stretch by stretch, so that a copy of all as numbers is never there."""
    rows, width = 40_000, 12
    X = np.random.default_rng(0).normal(size=(rows, width))
    due = 16 * rows * width + (8 * width + 160) * rows

    def home(memory: int) -> HomeColumns:
        return HomeColumns(X, LEAN, RING, memory, Inline(), np.random.default_rng(1))

    with pytest.raises(
        JobError, match=r"40,000 rows of 12 columns take 17 MiB .* may use 17; raise `memory`"
    ):
        home(due - 1)
    tracemalloc.start()
    columns = home(due)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak + X.nbytes < 1.1 * due
    # one table whatever the stretches: each number is its own, rounded up or down
    whole = np.round(X * columns.scale)
    w = np.random.default_rng(2).normal(size=rows)
    tables = columns.tables
    assert (len(tables), tables[0].rows, tables[0].width) == (1, rows, width)
    assert tables[0].size <= np.abs(whole).sum(axis=0).max() + rows
    np.testing.assert_allclose(columns.gradient(w), X.T @ w / rows, rtol=1e-9)
