"""L-BFGS by inner products: the same direction as with matrices, whoever holds which part of the vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.lbfgs import DenseLbfgs

from colonnade.arrays import Floats
from colonnade.optim.lbfgs import LimitedMemory

Pair = tuple[Floats, Floats]

seeds = st.integers(0, 2**32 - 1)


def alone(memory: int, pairs: list[Pair], *, delta: float = 0.05, floor: float = 0.0) -> LimitedMemory:
    """The memory of a party that holds the whole vectors."""
    lbfgs = LimitedMemory(memory, delta)
    for s, y in pairs:
        lbfgs.add(s, y, lbfgs.dots(s, y), floor)
    return lbfgs


def naive(memory: int, pairs: list[Pair], *, delta: float = 0.05, floor: float = 0.0) -> DenseLbfgs:
    dense = DenseLbfgs(memory, delta)
    for s, y in pairs:
        dense.add(s, y, floor)
    return dense


def direction(lbfgs: LimitedMemory, v: Floats) -> Floats:
    return lbfgs.direction(v, lbfgs.dots(v)[:-1, 0])


def curved_pairs(rng: np.random.Generator, shape: tuple[int, ...], count: int, noise: float) -> list[Pair]:
    """Pairs of a quadratic, with noise that makes some of them point the wrong way."""
    d = int(np.prod(shape))
    A = rng.standard_normal((2 * d, d))
    A = A.T @ A / d
    steps = rng.standard_normal((count, d))
    return [(s.reshape(shape), (A @ s + noise * rng.standard_normal(d)).reshape(shape)) for s in steps]


@given(seeds, st.integers(1, 12), st.integers(0, 9), st.sampled_from([0.0, 1.0, 10.0]), st.booleans())
@settings(max_examples=80)
def test_the_direction_is_that_of_the_matrix(
    seed: int, memory: int, count: int, noise: float, classes: bool
) -> None:
    rng = np.random.default_rng(seed)
    shape = (3, 2) if classes else (6,)
    pairs = curved_pairs(rng, shape, count, noise)
    v = rng.standard_normal(shape)
    ours, dense = alone(memory, pairs), naive(memory, pairs)
    assert ours.pairs == len(dense.pairs) == min(memory, count)
    expected = dense.direction(v) if count else v
    np.testing.assert_allclose(direction(ours, v), expected, rtol=1e-7, atol=1e-9)


@given(seeds, st.integers(1, 6), st.integers(1, 9), st.sampled_from([0.0, 3.0]))
@settings(max_examples=60)
def test_the_table_holds_the_inner_products_of_the_stored_vectors(
    seed: int, memory: int, count: int, noise: float
) -> None:
    lbfgs = alone(memory, curved_pairs(np.random.default_rng(seed), (5,), count, noise))
    stored = np.array(lbfgs.vectors)
    np.testing.assert_allclose(lbfgs.products, stored @ stored.T, rtol=1e-9, atol=1e-9)
    assert len(stored) == 2 * min(memory, count)


@given(
    st.lists(
        st.tuples(*[st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=4, max_size=4)] * 2),
        min_size=1,
        max_size=8,
    ),
    st.floats(0, 10),
    seeds,
)
@settings(max_examples=200)
def test_however_wild_the_pairs_h_stays_positive(
    wild: list[tuple[list[float], list[float]]], floor: float, seed: int
) -> None:
    lbfgs = LimitedMemory(5, 0.05)
    for raw_s, raw_y in wild:
        s, y = np.array(raw_s), np.array(raw_y)
        if 0 < np.linalg.norm(s) < 1e-3:
            continue  # a move of nothing against a jump of the gradient leaves no digits to check
        assert lbfgs.add(s, y, lbfgs.dots(s, y), floor) is bool(s @ s > 0)
    assert lbfgs.gamma >= (max(0.05, floor) if lbfgs.pairs else 1.0)
    # curvature along every stored pair is positive: the recursion H -> V'HV + rho ss' keeps H positive
    for i in range(0, len(lbfgs.vectors), 2):
        s, y = lbfgs.vectors[i : i + 2]
        assert lbfgs.products[i, i + 1] > 0
        np.testing.assert_allclose(s @ y, lbfgs.products[i, i + 1], rtol=1e-5)
    if lbfgs.pairs:
        # H is positive exactly if v'Hv > 0; the newest pair's terms alone bound it from below
        v = np.random.default_rng(seed).standard_normal(4)
        s, y = lbfgs.vectors[-2:]
        rho = 1 / (s @ y)
        size = np.linalg.norm(v) * np.linalg.norm(direction(lbfgs, v))
        assert v @ direction(lbfgs, v) >= rho * (s @ v) ** 2 - 1e-9 * size


@given(seeds, st.sampled_from([0.5, 5.0]))
@settings(max_examples=60)
def test_every_eigenvalue_of_h_is_positive_with_noisy_pairs(seed: int, noise: float) -> None:
    lbfgs = alone(6, curved_pairs(np.random.default_rng(seed), (5,), 8, noise))
    H = np.array([direction(lbfgs, e) for e in np.eye(5)])
    np.testing.assert_allclose(H, H.T, rtol=1e-6, atol=1e-8 * np.abs(H).max())
    assert np.linalg.eigvalsh((H + H.T) / 2)[0] > 0


@given(seeds, st.integers(1, 5), st.sampled_from([0.0, 3.0]))
@settings(max_examples=60)
def test_parties_that_add_up_their_inner_products_get_the_direction_of_the_whole(
    seed: int, parties: int, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    pairs = curved_pairs(rng, (7,), 6, noise)
    v = rng.standard_normal(7)
    cuts = [part.tolist() for part in np.array_split(np.arange(7), parties)]
    blocks = [LimitedMemory(4, 0.05) for _ in cuts]
    for s, y in pairs:
        total = np.sum([b.dots(s[c], y[c]) for b, c in zip(blocks, cuts, strict=True)], axis=0)
        for b, c in zip(blocks, cuts, strict=True):
            b.add(s[c], y[c], total, floor=0.1)
    total = np.sum([b.dots(v[c])[:-1, 0] for b, c in zip(blocks, cuts, strict=True)], axis=0)
    joined = np.concatenate([b.direction(v[c], total) for b, c in zip(blocks, cuts, strict=True)])
    np.testing.assert_allclose(joined, direction(alone(4, pairs, floor=0.1), v), rtol=1e-7, atol=1e-9)
    assert all(np.array_equal(b.products, blocks[0].products) for b in blocks)


@given(seeds, st.floats(1e-4, 1e4))
@settings(max_examples=40)
def test_the_length_of_a_pair_does_not_matter(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    pairs = curved_pairs(rng, (5,), 4, 1.0)
    v = rng.standard_normal(5)
    longer = [(scale * s, scale * y) for s, y in pairs]
    np.testing.assert_allclose(
        direction(alone(5, longer), v), direction(alone(5, pairs), v), rtol=1e-7, atol=1e-10
    )


def test_h_takes_the_newest_change_of_gradient_back_to_its_change_of_weights() -> None:
    rng = np.random.default_rng(0)
    lbfgs = alone(10, curved_pairs(rng, (6,), 4, 0.0))
    s, y = lbfgs.vectors[-2:]
    np.testing.assert_allclose(direction(lbfgs, y), s, atol=1e-10)


def test_no_movement_teaches_nothing() -> None:
    lbfgs = LimitedMemory(3, 0.05)
    zero = np.zeros(4)
    assert not lbfgs.add(zero, np.ones(4), lbfgs.dots(zero, np.ones(4)), 0.0)
    assert lbfgs.pairs == 0


def test_an_empty_memory_leaves_the_gradient_alone() -> None:
    v = np.array([1.0, -2.0])
    np.testing.assert_array_equal(direction(LimitedMemory(3, 0.05), v), v)


@pytest.mark.parametrize("condition", [1e3, 1e5])
def test_on_a_quadratic_exact_pairs_take_a_fraction_of_gradient_descent_s_steps(condition: float) -> None:
    curvature = np.geomspace(1 / condition, 1.0, 15)
    lbfgs = LimitedMemory(15, 1e-9)
    w = plain = np.ones(15)
    for _ in range(60):
        plain = plain - curvature * plain
        g = curvature * w
        d = direction(lbfgs, g)
        s = -(g @ d) / (d @ (curvature * d)) * d  # exact line search
        w = w + s
        lbfgs.add(s, curvature * s, lbfgs.dots(s, curvature * s), 0.0)
    value = {name: 0.5 * curvature @ x**2 for name, x in (("plain", plain), ("lbfgs", w))}
    assert value["lbfgs"] < 1e-12 < 1e-4 < value["plain"]


@given(seeds, st.integers(0, 6), st.integers(1, 3), st.booleans())
@settings(max_examples=60)
def test_inner_products_are_those_of_all_vectors_in_a_row(
    seed: int, count: int, others: int, classes: bool
) -> None:
    """Stored vectors are not copied for their products, which therefore come in two parts."""
    rng = np.random.default_rng(seed)
    shape = (3, 2) if classes else (6,)
    lbfgs = alone(4, curved_pairs(rng, shape, count, 0.0))
    new = list(rng.standard_normal((others, *shape)))
    flat = [vector.ravel() for vector in new]
    whole = np.array([*lbfgs.vectors, *flat])
    np.testing.assert_allclose(lbfgs.dots(*new), whole @ np.array(flat).T, rtol=1e-12, atol=1e-12)


def test_the_oldest_pair_drops_out_and_the_pinned_ones_stay() -> None:
    rng = np.random.default_rng(0)
    lbfgs = LimitedMemory(2, 0.05)
    pinned = list(rng.standard_normal((2, 5)))
    lbfgs.pin(pinned, lbfgs.dots(*pinned), 1.0)
    pairs = curved_pairs(rng, (5,), 4, 0.0)
    before = lbfgs.inverse
    for s, y in pairs:
        lbfgs.append(s, y, lbfgs.dots(s, y), 1.0)
    kept = np.array([*pinned, *(vector for pair in pairs[-2:] for vector in pair)])
    np.testing.assert_array_equal(lbfgs.vectors, kept)
    np.testing.assert_allclose(lbfgs.products, kept @ kept.T, rtol=1e-12)
    assert len(before.vectors) == 2, "whoever keeps an H keeps it as it was"
