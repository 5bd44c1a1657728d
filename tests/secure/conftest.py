"""What tests of words share: both ways to compute, where a compiler was there."""

from __future__ import annotations

import pytest

from colonnade.secure import words

WAYS = [
    pytest.param(True, marks=pytest.mark.skipif(not words.COMPILED, reason="no compiler made _words")),
    False,
]


@pytest.fixture(params=WAYS, ids=lambda compiled: "compiled" if compiled else "numpy")
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(words, "COMPILED", request.param)
    return bool(request.param)
