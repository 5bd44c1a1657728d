"""Figure 4 is made by the sums and broadcasts that ship, in the time that messages take through cards."""

from __future__ import annotations

import math

import pytest

from colonnade.net.simulated import Link
from colonnade_bench.common import Bench
from colonnade_bench.kernel.topologies import RESULTS, SUMS, TRAINING, crossing, figure_4, measure, seconds

LINK = Link(latency_s=0.01, bandwidth_bps=1e6)
VALUES = 2000
T = 8 * 8 * VALUES / 1e6  # seconds of an array through a card, but for some bytes of framing


@pytest.mark.parametrize("q", [2, 3, 5, 8, 17])
def test_stars_wait_for_one_card_and_trees_for_their_height(q: int) -> None:
    height = math.ceil(math.log2(q))
    for star in (SUMS["masked star"], SUMS["plain star"], RESULTS["star"]):
        assert seconds(q, VALUES, star, LINK) == pytest.approx((q - 1) * T + 0.01, rel=0.02)
    down = seconds(q, VALUES, RESULTS["reverse tree"], LINK)
    assert height * T + 0.01 <= 1.02 * down
    assert down <= 1.02 * height * (T + 0.01)
    up = seconds(q, VALUES, SUMS["tree"], LINK)
    assert 2 * T <= up <= 1.02 * (height + 2) * (T + 0.01)  # both sums come to the root


@pytest.mark.parametrize("q", [2, 5, 8])
def test_a_ring_waits_for_every_party_in_turn(q: int) -> None:
    assert seconds(q, VALUES, SUMS["ring"], LINK) == pytest.approx(q * (T + 0.01), rel=0.02)
    assert seconds(q, VALUES, RESULTS["ring"], LINK) == pytest.approx((q - 1) * (T + 0.01), rel=0.02)
    both = seconds(q, VALUES, TRAINING["ring up, ring down"], LINK)
    assert q * (T + 0.01) <= 1.02 * both  # a sum may begin while the result before is still on its way
    assert both <= 1.02 * (2 * q - 1) * (T + 0.01)


def test_lines_cross_where_a_tree_stays_below_a_star() -> None:
    lines = {"star": [(2.0, 1.0), (4.0, 3.0), (8.0, 7.0)], "tree": [(2.0, 2.0), (4.0, 3.0), (8.0, 4.0)]}
    assert crossing(lines, "star", "tree") == 8
    assert crossing(lines, "tree", "star") is None  # faster with two parties, but not from there on


def test_trees_win_with_many_parties_and_long_arrays_and_never_with_short_ones() -> None:
    parties = (4, 8, 16)
    long = measure(VALUES, TRAINING, parties, LINK)
    assert crossing(long, "masked star up, star down", "tree up, reverse tree down") in (8, 16)
    short = measure(4, TRAINING, parties, Link(latency_s=0.01, bandwidth_bps=1e9))
    assert crossing(short, "masked star up, star down", "tree up, reverse tree down") is None


def test_the_bench_says_where_the_lines_cross() -> None:
    bench = Bench("x", "x", quick=True)
    figure_4(bench, 2**12, parties=(2, 4, 8), link=Link(1e-5, 1e8))
    assert [len(panel.lines) for panel in bench.panels] == [4, 3, 4]
    assert "reverse tree is faster than star from 4 parties on." in bench.grids[1].note
    assert [row[0] for row in bench.grids[-1].rows] == [256, 4096, 16384, 65536]
