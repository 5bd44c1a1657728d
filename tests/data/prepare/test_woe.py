"""Bins hold enough rows, joined bins keep the IV they can, and WOE is what its definition says."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import woe as oracle

from colonnade.data.prepare import join
from colonnade.data.prepare.bins import UNSEEN, _joined, category_bins, number_bins
from colonnade.data.prepare.join import join_bins
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.prepare.woe import Counts, Weighed, codes_of, make_bins, weigh_columns, woe_of
from colonnade.data.read.files import load
from colonnade.data.table import RawTable, stack
from colonnade.job import Woe
from colonnade.job.limits import MOST_BINS

numbers = st.lists(
    st.one_of(st.floats(-5, 5).map(lambda x: round(x, 1)), st.just(float("nan")), st.just(-99.0)),
    min_size=1,
    max_size=120,
)


@settings(max_examples=200)
@given(numbers, st.integers(2, 12), st.integers(1, 30))
def test_every_value_has_a_bin_and_no_bin_has_too_few_rows(
    values: list[float], bins: int, least: int
) -> None:
    column = np.array(values)
    made = number_bins("x", column, bins, least, [-99.0, -98.0])
    codes = made.codes(column)
    sizes = np.bincount(codes, minlength=made.count)
    assert codes.min() >= 0
    assert len(sizes) == made.count
    assert sizes.min() >= min(least, len(column))
    assert made.count <= bins + 2


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["a", "b", "c", "d", "", " "]), min_size=1, max_size=80), st.integers(1, 30))
def test_categories_have_a_bin_each_and_rare_ones_share(values: list[str], least: int) -> None:
    column = np.array(values, dtype=object)
    made = category_bins("x", column, least)
    codes = made.codes(column)
    sizes = np.bincount(codes, minlength=made.count)
    assert codes.min() >= 0
    assert sizes.min() >= min(least, len(column))
    own = {name for name, _ in made.categories}
    assert own == {name for name in "abcd" if values.count(name) >= least}


def test_quantile_bins_are_those_of_the_definition() -> None:
    column = np.random.default_rng(0).normal(size=997).round(2)
    made = number_bins("x", column, 20, 1)
    of = oracle.quantile_bin(column.tolist(), 20)
    assert made.codes(column).tolist() == [of(value) for value in column.tolist()]


def test_special_values_and_gaps_have_bins_of_their_own() -> None:
    column = np.array([1.0] * 50 + [2.0] * 50 + [np.nan] * 40 + [-99.0] * 30)
    made = number_bins("x", column, 4, 20, [-99.0, -98.0])
    assert made.codes(np.array([1.0, 2.0, -99.0, np.nan])).tolist() == [0, 1, 2, 3]
    assert [made.describe([k]) for k in range(4)] == ["<= 1", "> 1", "= -99", "missing"]
    assert made.describe([0, 1, 3]) == "any number, missing"
    assert number_bins("x", column, 4, 35, [-99.0]).special == ((-99.0, 0),)  # too few: with the largest


def test_what_the_training_rows_did_not_have_says_nothing() -> None:
    made = category_bins("x", np.array(["a"] * 9 + ["b"] * 9, dtype=object), 5)
    assert made.codes(np.array(["a", "z", ""], dtype=object)).tolist() == [0, UNSEEN, UNSEEN]
    table = RawTable("t", ("x",), (np.array(["b", "z", ""], dtype=object),))
    assert Weighed(made, (0, 1), (0.5, -0.5), 0.1).transform(table).tolist() == [-0.5, 0.0, 0.0]


counted = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=2, max_size=9)


@settings(max_examples=100)
@given(counted, st.integers(1, 6))
def test_neighbours_are_joined_as_the_oracle_joins_them(tally: list[tuple[int, int]], most: int) -> None:
    counts = Counts(len(tally), False, tuple(g + b for g, b in tally), tuple(b for _, b in tally))
    group = join_bins(counts, Woe(most=most, cases=1))
    expected = oracle.best_join(tally, most)
    # two joins may lose the same IV to the last digit, and either is right
    found, due = (_iv(tally, each) for each in (list(group), expected))
    assert found == pytest.approx(due, abs=1e-9) or group == tuple(expected)
    assert len(set(group)) == min(most, len(tally))


def _iv(tally: list[tuple[int, int]], group: list[int]) -> float:
    counts = Counts(len(tally), False, tuple(g + b for g, b in tally), tuple(b for _, b in tally))
    return woe_of(counts.joined(group))[1]


@settings(max_examples=100)
@given(counted)
def test_woe_and_iv_are_those_of_the_definition(tally: list[tuple[int, int]]) -> None:
    woe, iv = woe_of(Counts(len(tally), False, tuple(g + b for g, b in tally), tuple(b for _, b in tally)))
    expected, total = oracle.woe(dict(enumerate(tally)))
    np.testing.assert_allclose(woe, [expected[k] for k in range(len(tally))], atol=1e-12)
    assert iv == pytest.approx(total, abs=1e-12)


@settings(max_examples=100)
@given(counted)
def test_monotone_means_that_bad_rates_only_rise_or_only_fall(tally: list[tuple[int, int]]) -> None:
    counts = Counts(len(tally), False, tuple(g + b for g, b in tally), tuple(b for _, b in tally))
    group = join_bins(counts, Woe(monotone=True, cases=1, most=99))
    joined = counts.joined(group)
    rates = np.array(joined.bads) / np.array(joined.rows)
    assert list(group) == sorted(group)
    assert (np.diff(rates) > 0).all() or (np.diff(rates) < 0).all()


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=9),
    st.integers(1, 20),
    st.booleans(),
)
def test_no_joined_bin_has_fewer_goods_or_bads_than_it_must(
    tally: list[tuple[int, int]], cases: int, chained: bool
) -> None:
    ordered = 0 if chained else len(tally) // 2
    counts = Counts(ordered, chained, tuple(g + b for g, b in tally), tuple(b for _, b in tally))
    joined = counts.joined(join_bins(counts, Woe(cases=cases)))
    fewest = min(min(b, r - b) for r, b in zip(joined.rows, joined.bads, strict=True))
    assert fewest >= cases or len(joined.rows) == 1


def test_weighed_columns_are_prepared_as_numbers_and_survive_json() -> None:
    import json

    rng = np.random.default_rng(1)
    text = rng.choice(["x", "y", ""], size=300).astype(object)
    plain = np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300))
    raw = RawTable("t", ("plain", "text"), stack([plain, text], 300))
    bad = rng.random(300) < 0.4
    weighed = []
    for bins in make_bins(raw, (), Woe(bins=5, least=20)):
        codes = codes_of(raw, bins)
        table = oracle.woe(oracle.counts(codes.tolist(), bad.tolist()))
        weighed.append(
            Weighed(bins, tuple(range(bins.count)), tuple(table[0][k] for k in range(bins.count)), table[1])
        )
    preparation = Preparation.fit(raw, intercept=True, woe=tuple(weighed))
    again = Preparation.from_dict(json.loads(json.dumps(preparation.to_dict())))
    assert again == preparation
    X = again.transform(raw).X
    np.testing.assert_array_equal(X[:, :2], weigh_columns(raw, weighed).values)
    assert again.outputs == ("plain", "text", "(intercept)")
    for j, each in enumerate(weighed):
        codes = codes_of(raw, each.bins)
        naive = oracle.woe(oracle.counts(codes.tolist(), bad.tolist()))[0]
        np.testing.assert_allclose(X[:, j], [naive[k] for k in codes.tolist()], atol=1e-12)


def test_bins_of_dates_are_named_by_dates_and_those_of_durations_are_not(tmp_path: Path) -> None:
    path = tmp_path / "loans.csv"
    days = [f"{day:02}.01.2020,{'01:30' if day % 2 else '06:00'}" for day in range(1, 9)]
    path.write_text("\n".join(["opened,talked", *days]) + "\n")
    opened, talked = make_bins(load(path, bare=True), (), Woe(bins=2, least=1))
    assert [opened.describe([k]) for k in range(2)] == ["<= 2020-01-04", "> 2020-01-04"]
    assert talked.describe([0]) == "<= 0.0625"


@settings(max_examples=150)
@given(st.data(), st.integers(1, 40), st.booleans(), st.booleans())
def test_bins_are_joined_as_if_all_were_looked_at_anew_each_time(
    data: st.DataObject, bins: int, chained: bool, monotone: bool
) -> None:
    few = st.integers(0, 4) | st.integers(0, 60)  # many are alike, and then it matters which comes first
    tally = data.draw(st.lists(st.tuples(few, few).filter(any), min_size=bins, max_size=bins))
    counts = Counts(
        data.draw(st.integers(0, bins)),
        chained,
        tuple(goods + bads for goods, bads in tally),
        tuple(bads for _, bads in tally),
    )
    terms = Woe(cases=data.draw(st.integers(1, 30)), most=data.draw(st.integers(1, 12)), monotone=monotone)
    assert join_bins(counts, terms) == oracle.join(counts, terms)


@settings(max_examples=200)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 30))
def test_small_bins_are_joined_with_the_smaller_neighbour(counts: list[int], least: int) -> None:
    groups = oracle.join_small(counts, least)
    edges, sizes = _joined(np.arange(len(counts) - 1.0), list(counts), least)
    assert sizes == [sum(counts[k] for k in group) for group in groups]
    assert edges == [group[-1] for group in groups[:-1]]


def test_as_many_bins_as_a_job_may_ask_for_are_joined_with_few_looks_at_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    def counted(x: float) -> float:
        nonlocal looks
        looks += 1
        return math.log(x)

    monkeypatch.setattr(join, "log", counted)
    rng = np.random.default_rng(0)
    for chained in (False, True):
        looks, rows = 0, rng.integers(2, 9, MOST_BINS)
        bads = rng.binomial(rows, 0.3)
        ordered = 0 if chained else MOST_BINS
        counts = Counts(ordered, chained, tuple(rows.tolist()), tuple(bads.tolist()))
        assert max(join_bins(counts, Woe(bins=MOST_BINS, least=1, cases=1, most=8))) == 7
        assert looks < 40 * MOST_BINS  # and not the square or the cube of it
