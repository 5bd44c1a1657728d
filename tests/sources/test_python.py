"""Whatever speaks Arrow is taken by the estimators, and gives what the same numbers give as an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from colonnade import VerticalClassifier, read_table


class Capsule:
    """Only the protocol, as a library has it that nobody here knows."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def numbers(kind: str, table: Any) -> Any:
    match kind:
        case "pyarrow":
            return table
        case "reader":
            return table.to_reader(max_chunksize=70)
        case "capsule":
            return Capsule(table)
        case "polars":
            return pytest.importorskip("polars").from_arrow(table)
        case "pandas":
            return table.to_pandas()
        case "duckdb":
            return pytest.importorskip("duckdb").from_arrow(table)
        case "ibis":
            return pytest.importorskip("ibis").memtable(table)
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("kind", ["pyarrow", "reader", "capsule", "polars", "pandas", "duckdb", "ibis"])
def test_a_frame_trains_the_model_of_its_numbers(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] - X[:, 2] > 0).astype(int)
    table = pa.table({f"c{j}": X[:, j] for j in range(4)})
    wanted = VerticalClassifier(parties=2).fit(X, y).decision_function(X)
    model = VerticalClassifier(parties=2).fit(numbers(kind, table), y)
    assert list(model.feature_names_in_) == table.column_names
    np.testing.assert_allclose(model.decision_function(numbers(kind, table)), wanted, atol=1e-6)


def test_a_table_of_a_database_trains_a_model(sqlite: str) -> None:
    table = read_table(f"{sqlite}#customers")
    X, y = table.drop_columns(["id", "bad"]), table["bad"].to_numpy()
    assert VerticalClassifier(parties=2).fit(X, y).score(X, y) > 0.75
