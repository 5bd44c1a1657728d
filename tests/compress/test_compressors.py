"""Compression: unbiased, within its bound, of exactly the size it says, and never fooled by what arrives."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colonnade.compress.protocol import Compressor, Plain
from colonnade.compress.quantize import Bits, Quantizer
from colonnade.compress.topk import TopK
from colonnade.errors import Diverged, MalformedMessage
from colonnade.messages import Upload, decode, encode

BITS: list[Any] = list(get_args(Bits))
arrays = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, max_side=9),
    elements=st.floats(-1e6, 1e6, allow_nan=False),
)


KINDS = {
    "plain32": Plain("float32"),
    "plain64": Plain("float64"),
    "top-3": TopK(3),
    "top-all": TopK(10**6),
    **{
        f"{bits}-bit-{per}": Quantizer(bits, np.random.default_rng(0), per)
        for bits in BITS
        for per in ("message", "column")
    },
}


@pytest.mark.parametrize("compressor", KINDS.values(), ids=KINDS)
def test_every_compressor_survives_the_wire_and_refuses_what_is_not_due(compressor: Compressor) -> None:
    x = np.random.default_rng(1).standard_normal((5, 7, 3))
    packed, state = compressor.encode(compressor.init(x.shape), x)
    message = decode(encode(Upload(1, packed)))
    assert isinstance(message, Upload)
    found = compressor.decode(message.outputs, x.shape)
    np.testing.assert_array_equal(found, compressor.decode(packed, x.shape))
    assert found.shape == x.shape
    again, _ = compressor.encode(state, x)
    assert again.shape == packed.shape
    for wrong in (packed.ravel()[:-1], packed.astype(np.int64)):
        with pytest.raises(MalformedMessage, match="due are"):
            compressor.decode(wrong, x.shape)


@given(x=arrays, bits=st.sampled_from(BITS), per=st.sampled_from(["message", "column"]))
@settings(max_examples=40, deadline=None)
def test_the_nearest_level_is_at_most_half_a_level_away(x: Any, bits: Any, per: Any) -> None:
    quantizer = Quantizer(bits, None, per)
    found = quantizer.decode(quantizer.encode(None, x)[0], x.shape)
    table = x.reshape(-1, x.shape[-1] if per == "column" else 1)
    low, high = table.min(axis=0), table.max(axis=0)
    scale = 1e-6 * np.maximum(np.abs(low), np.abs(high)) + 1e-30  # the range is in single precision
    error = np.abs(found.reshape(table.shape) - table)
    assert (error <= (high - low) / (2**bits - 1) / 2 + scale).all()


@given(x=arrays, bits=st.sampled_from(BITS), per=st.sampled_from(["message", "column"]))
@settings(max_examples=60, deadline=None)
def test_the_error_is_less_than_one_level_and_the_size_is_exact(x: Any, bits: Any, per: Any) -> None:
    quantizer = Quantizer(bits, np.random.default_rng(0), per)
    packed, _ = quantizer.encode(None, x)
    ranges = x.shape[-1] if per == "column" else 1
    assert packed.dtype == np.uint8
    assert packed.size == quantizer.size(x.shape) == 8 * ranges + -(-x.size * bits // 8)
    flat = x.reshape(-1, ranges)
    width = (flat.max(axis=0) - flat.min(axis=0)) / (2**bits - 1)
    error = np.abs(quantizer.decode(packed, x.shape).reshape(-1, ranges) - flat)
    assert (error <= width * (1 + 1e-6) + 1e-6 * np.abs(flat).max() + 1e-40).all()


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("per", ["message", "column"])
def test_rounding_is_unbiased(bits: Any, per: Any) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((4, 3)) * [1.0, 10.0, 0.1]
    quantizer, rounds = Quantizer(bits, rng, per), 4000
    mean = sum(quantizer.decode(quantizer.encode(None, x)[0], x.shape) for _ in range(rounds)) / rounds
    width = (x.max(axis=0) - x.min(axis=0) if per == "column" else np.ptp(x)) / (2**bits - 1)
    # a rounding deviates by half a level at most
    assert (np.abs(mean - x) < 5 * width / 2 / rounds**0.5).all()


def test_a_constant_array_is_exact_and_what_is_not_finite_is_not_sent() -> None:
    quantizer = Quantizer(1, np.random.default_rng(0))
    packed, _ = quantizer.encode(None, np.full((3, 3), 0.5))
    np.testing.assert_array_equal(quantizer.decode(packed, (3, 3)), 0.5)
    for wrong in (np.inf, np.nan, 1e39):
        with pytest.raises(Diverged, match="too large"):
            quantizer.encode(None, np.array([1.0, wrong]))
    forged = packed.copy()
    forged[:4] = np.array([np.nan], dtype="<f4").view(np.uint8)
    with pytest.raises(MalformedMessage, match="not a range"):
        quantizer.decode(forged, (3, 3))


@given(x=arrays, k=st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_the_largest_are_sent_and_the_rest_is_only_late(x: Any, k: int) -> None:
    top = TopK(k)
    state, sent = top.init(x.shape), np.zeros(x.shape)
    for _ in range(5):
        packed, state = top.encode(state, x)
        assert packed.size == top.size(x.shape) == 8 * min(k, x.size)
        sent += top.decode(packed, x.shape)
    assert state is not None
    np.testing.assert_allclose(sent + state, 5 * x, rtol=1e-9, atol=1e-6)


def test_top_k_keeps_the_largest_by_size_and_refuses_places_outside() -> None:
    top = TopK(2)
    packed, left = top.encode(top.init((4,)), np.array([1.0, -8.0, 0.5, 4.0]))
    assert top.decode(packed, (4,)).tolist() == [0.0, -8.0, 0.0, 4.0]
    assert left is not None
    assert left.tolist() == [1.0, 0.0, 0.5, 0.0]
    forged = packed.copy()
    forged[4:8] = np.array([9], dtype="<u4").view(np.uint8)
    with pytest.raises(MalformedMessage, match="not in order"):
        top.decode(forged, (4,))
