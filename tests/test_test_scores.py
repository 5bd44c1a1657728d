"""Test scores come back from their file as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colonnade.errors import DataError
from colonnade.test_scores import TestScores


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("with_ids", [False, True])
def test_scores_survive_their_file(tmp_path: Path, classes: int, with_ids: bool) -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((5, classes) if classes else 5)
    ids = np.array(["007", "a,b", 'quo"te', "x", "ü"]) if with_ids else None
    scores = TestScores(np.array([1.0, -1.0, 1.0, -1.0, 1.0]), z, ids, with_probabilities=not classes)
    scores.write(tmp_path / "s.csv")
    found = TestScores.read(tmp_path / "s.csv")
    assert np.array_equal(found.z, z)
    assert np.array_equal(found.y, scores.y)
    assert found.with_probabilities == (not classes)
    if ids is None:
        assert found.ids is None
    else:
        assert found.ids is not None
        assert found.ids.tolist() == ids.tolist()


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="no test scores"):
        TestScores.read(tmp_path / "s.csv")
