"""Every way to compute that this machine has, and rings that are small enough for whole numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from colonnade.secure.lattice import arithmetic


@pytest.fixture(params=("numpy", "scalar", "avx2", "avx512ifma"))
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param not in arithmetic.WAYS:
        pytest.skip(f"this processor, or this installation, has no way '{request.param}'")
    with arithmetic.using(request.param):
        yield request.param
