"""What correlations tell of single rows, with each protection off, where the attack succeeds, and on."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conversations.test_correlate import together

from colonnade.data.table import Table
from colonnade.describe.joint import NOISE
from colonnade.describe.own import HEAVIEST, UnitColumns
from colonnade.errors import DataError

ROWS = 1000


def party(name: str, X: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> UnitColumns:
    return UnitColumns.of(Table(name, tuple(f"{name}{k}" for k in range(X.shape[1])), X))


def secret_column() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return (np.random.default_rng(5).random(ROWS) < 0.5).astype(float)


def read_off(own: UnitColumns, noise: float, rows: int) -> float:
    """How many of the first rows' values the party reads that has columns of its choice, by least squares."""
    values = secret_column()
    joint = together({"curious": own, "victim": party("victim", values[:, None])}, noise)["curious"]
    told = joint.R[:-1, -1] * ROWS
    found, *_ = np.linalg.lstsq(own.Z.T[:, :rows], told, rcond=None)
    guess = found > np.median(found)
    return float((guess == (values[:rows] > 0)).mean())


# noise is one draw, not the same on every Python: thirty of them read 0.83 to 0.97 of the rows, guessing 0.5
@pytest.mark.parametrize(("noise", "least", "most"), [(0.0, 1.0, 1.0), (NOISE, 0.75, 1.0)])
def test_a_column_of_one_row_reads_it_where_rare_columns_are_told(
    noise: float, least: float, most: float
) -> None:
    own = party("curious", np.eye(ROWS)[:, :60])
    assert least <= read_off(own, noise, 60) <= most
    with pytest.raises(DataError, match="no party has a column"):
        # with the rule none of these columns is left
        together({"curious": own.without_heavy_rows(), "victim": party("victim", np.eye(ROWS)[:, :0])})[
            "curious"
        ].statistics()
    assert len(own.without_heavy_rows().rare) == 60


def test_random_columns_read_rows_from_exact_correlations_and_not_from_told_ones() -> None:
    X = np.random.default_rng(6).choice([-1.0, 1.0], size=(ROWS, 90))
    X[80:] = np.random.default_rng(7).choice([-0.05, 0.05], size=(ROWS - 80, 90))  # all weight on 80 rows
    own = party("curious", X)
    assert read_off(own, 0.0, 80) > 0.75
    kept = own.without_heavy_rows()
    assert len(kept.names) < 20
    assert read_off(kept, NOISE, 80) < 0.65


def test_no_row_weighs_more_than_the_limit_in_what_is_told() -> None:
    rng = np.random.default_rng(8)
    X = np.column_stack(
        [rng.normal(size=(ROWS, 5)), rng.random((ROWS, 3)) < 0.004, np.exp(3 * rng.normal(size=ROWS))]
    )
    kept = party("shop", X).without_heavy_rows()
    assert (kept.Z**2).sum(axis=1).max() / ROWS <= HEAVIEST
    assert set(kept.names) >= {f"shop{k}" for k in range(5)}
    assert set(kept.rare) == {"shop5", "shop6", "shop7", "shop8"}
    label = np.zeros(ROWS)
    label[3] = 1
    with pytest.raises(DataError, match="one label is so rare"):
        UnitColumns.of(Table("bank", ("x",), rng.normal(size=(ROWS, 1))), label).without_heavy_rows()
