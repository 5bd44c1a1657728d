"""What their owner should look at: leaks, gaps that are written as numbers, codes, counts."""

from __future__ import annotations

import tomllib

import numpy as np

from colonnade.data.prepare.labels import Labels
from colonnade.data.prepare.suspects import SAMPLE, like_codes, like_counts, like_gaps, like_labels
from colonnade.data.table import RawTable, Reading


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


def spiked(values: list[float], name: str = "rent") -> list[str]:
    return list(like_gaps(RawTable("people", (name,), np.array(values)[:, None]), [name]))


def test_spikes_are_named_and_ordinary_tails_are_not() -> None:
    usual = list(np.random.default_rng(0).lognormal(7, 1, 500))
    assert spiked(usual) == []
    assert spiked([*usual, *[1e9] * 2]) == []  # twice may be chance
    assert "has 1000000000 in 4 rows" in spiked([*usual, *[1e9] * 4])[0]
    assert "[-999, 999999]" in spiked([*usual, *[-999.0] * 9, *[999999.0] * 9])[0]
    assert spiked([*range(100), *[99.0] * 20]) == []  # the last of many, but near the others
    assert spiked([0.0] * 300 + [1.0] * 300 + [99.0] * 20) == []  # three values: categories, not a spike


def test_spikes_of_dates_are_told_as_dates() -> None:
    days = np.array([*range(18000, 18100), *[2932896] * 5], dtype=float)
    raw = RawTable("people", ("until",), days[:, None], reading=Reading(dates={"until": "ymd"}))
    assert "has 9999-12-31 in 5 rows" in next(like_gaps(raw, ["until"]))
    assert 'na_values.until = ["9999-12-31"]' in next(like_gaps(raw, ["until"]))


def test_lines_to_paste_go_together() -> None:
    usual = np.random.default_rng(0).lognormal(7, 1, 500)
    gaps = np.column_stack([np.append(usual, [-999.0] * 9), np.append(usual, [99999999.0] * 9)])
    said = like_gaps(RawTable("people", ("age (years)", "rent"), gaps), ["age (years)", "rent"])
    pasted = "\n".join(sentence.rpartition(" say ")[2] for sentence in said)
    assert tomllib.loads(pasted) == {"na_values": {"age (years)": [-999], "rent": [99999999]}}
    codes = np.tile([[10115.0, 1.0], [80331.0, 2.0], [20095.0, 3.0]], (30, 1))
    (sentence,) = like_codes(RawTable("people", ("zip", "branch code"), codes), ["zip", "branch code"])
    assert tomllib.loads(sentence.rpartition(" say ")[2]) == {"categorical": ["zip", "branch code"]}


def test_codes_are_known_by_their_names() -> None:
    values = np.tile([10115.0, 80331.0, 20095.0, 1067.0], 20)[:, None]

    def told(name: str, values: np.ndarray = values) -> bool:
        return bool(list(like_codes(RawTable("people", (name,), values), [name])))

    assert all(told(name) for name in ("zip", "ZIP", "home_zip", "zipCode", "branch code", "plz"))
    assert not any(told(name) for name in ("zipper", "decoded", "rent"))
    assert not told("zip", values + 0.5)
    assert not told("zip", np.arange(80.0)[:, None])  # its own number in every row


def test_counts_that_would_become_classes_are_told() -> None:
    visits = np.tile(np.arange(9.0), 10)
    assert "0 to 8, taken for 9 classes" in next(like_counts(Labels.fit(visits, "multiclass"), visits))
    assert not list(like_counts(Labels.fit(visits, "regression"), visits))
    apart = visits * 10
    assert not list(like_counts(Labels.fit(apart, "multiclass"), apart))
    three = np.tile(np.arange(3.0), 10)
    assert not list(like_counts(Labels.fit(three, "multiclass"), three))
