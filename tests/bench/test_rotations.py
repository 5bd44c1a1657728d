"""Certificates are changed over while companies train and score, and nothing is cut or fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from colonnade_bench.deploy.rotations import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_three_rotations_and_one_taken_back(tmp_path: Path) -> None:
    seen = run(tmp_path, 3, 60.0)
    assert seen["failed"] == []
    assert isinstance(seen["scores"], int)
    assert seen["scores"] > 1
    assert "was revoked by its authority" in str(seen["taken back"])
