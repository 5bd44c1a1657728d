"""Columns that give the label away are named, also among more rows than are looked at first."""

from __future__ import annotations

import numpy as np

from colonnade.data.prepare.suspects import SAMPLE, like_labels
from colonnade.data.table import RawTable


def test_a_copy_of_the_label_is_found_among_many_rows() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(3 * SAMPLE) < 0.02).astype(np.float64)
    copy = y + 0.1 * rng.standard_normal(len(y))
    telling = y + 0.7 * rng.standard_normal(len(y))  # an AUC of 0.84
    raw = RawTable("people.csv", ("copy", "telling"), np.column_stack([copy, telling]), y=y)
    assert list(like_labels(raw, raw.columns, {})) == [
        "column 'copy' tells the label almost by itself; drop it if it is a copy of it"
    ]


def test_what_only_the_first_rows_show_is_no_copy() -> None:
    rng = np.random.default_rng(1)
    y = np.resize([0.0, 1.0], 2 * SAMPLE)
    column = y.copy()
    column[1::2] = rng.random(SAMPLE)  # every second row, which the first look leaves out, says nothing
    y[1::2] = rng.random(SAMPLE) < 0.5
    y[::2] = column[::2] = np.resize([0.0, 1.0], SAMPLE)
    raw = RawTable("people.csv", ("half",), column[:, None], y=y)
    assert not list(like_labels(raw, raw.columns, {}))
