"""What colluding parties learn from the messages of a sum: theorems about every kind of sum."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.coalitions import learnt, placements, shapes

from colonnade.attacks.coalitions import (
    coalition_table,
    derives,
    exposes,
    leaks,
    masked_graph,
    plain_graph,
    smallest_exposing_coalition,
    smallest_leaking_coalition,
    tree_graph,
)
from colonnade.secure.hosts import Join, SumTree, TreePair, choose_trees, tree_is_safe


@st.composite
def trees(draw: st.DrawFn, q: int) -> SumTree:
    """Any pairing with any hosts, children or not."""
    open_nodes = list(range(q))
    joins = []
    for k in range(q - 1):
        left = open_nodes.pop(draw(st.integers(0, len(open_nodes) - 1)))
        right = open_nodes.pop(draw(st.integers(0, len(open_nodes) - 1)))
        joins.append(Join(draw(st.integers(0, q - 1)), left, right))
        open_nodes.append(q + k)
    return SumTree(tuple(joins))


@st.composite
def tree_pairs(draw: st.DrawFn, at_least: int = 2, at_most: int = 7) -> TreePair:
    q = draw(st.integers(at_least, at_most))
    return TreePair(q, draw(st.integers(0, q - 1)), (draw(trees(q)), draw(trees(q))))


@given(tree_pairs(), st.data())
def test_algebra_agrees_with_perturbing_numbers(pair: TreePair, data: st.DataObject) -> None:
    coalition = data.draw(st.frozensets(st.integers(0, pair.q - 1), min_size=1))
    assert len(derives(tree_graph(pair), coalition)) == learnt(pair, coalition)


@given(tree_pairs())
def test_the_root_always_learns_the_total(pair: TreePair) -> None:
    graph = tree_graph(pair)
    told = list(graph.receives)
    told[pair.root] = (*told[pair.root], dict.fromkeys(range(pair.q), 1))
    assert len(derives(replace(graph, receives=tuple(told)), {pair.root})) == len(derives(graph, {pair.root}))


@given(tree_pairs(), st.data())
def test_more_parties_never_know_less(pair: TreePair, data: st.DataObject) -> None:
    graph = tree_graph(pair)
    small = data.draw(st.frozensets(st.integers(0, pair.q - 1), min_size=1))
    large = small | data.draw(st.frozensets(st.integers(0, pair.q - 1)))
    # the larger one also knows its new members' own values, which `derives` does not list
    assert len(derives(graph, large)) + len(large - small) >= len(derives(graph, small))


@pytest.mark.parametrize("q", range(3, 65))
def test_chosen_trees_leak_to_no_two_parties(q: int) -> None:
    pair = choose_trees(q, q // 2)
    assert pair.totally_different
    assert smallest_leaking_coalition(tree_graph(pair), upto=2) is None
    assert tree_is_safe(q)


@pytest.mark.parametrize("q", [2, 5, 8])
def test_another_root_turns_the_schedule_round(q: int) -> None:
    """So what holds for one root holds for all."""
    for root in range(q):
        turned = [
            (tree, (node + root) % q if node < q else node, (sender + root) % q, (to + root) % q)
            for tree, node, sender, to in choose_trees(q, 0).hops
        ]
        assert turned == list(choose_trees(q, root).hops)


@pytest.mark.parametrize("q", [3, 4])
def test_with_three_or_four_parties_no_coalition_learns_more_than_the_total(q: int) -> None:
    for root in range(q):
        assert smallest_leaking_coalition(tree_graph(choose_trees(q, root))) is None


@settings(max_examples=200)
@given(tree_pairs(at_least=5, at_most=9))
def test_from_five_parties_on_three_can_always_learn_more(pair: TreePair) -> None:
    """No trees and hosts whatever resist every three parties, so the chosen ones are as good as any."""
    assert smallest_leaking_coalition(tree_graph(pair), upto=3) is not None


@pytest.mark.parametrize("q", range(3, 17))
def test_values_and_masks_meet_only_at_the_root(q: int) -> None:
    pair = choose_trees(q, 0)
    graph = tree_graph(pair)
    adders = [{hop.to for hop in pair.hops if hop.tree == tree and hop.to != 0} for tree in (0, 1)]
    assert not adders[0] & adders[1]
    for half in adders:
        assert not derives(graph, half)
        assert not leaks(graph, half | {0})


def test_with_two_parties_every_schedule_tells_the_root_the_other_value() -> None:
    trees = list(placements((0, 1), 2, anywhere=True))
    assert len(trees) == 2
    assert all(exposes(tree_graph(TreePair(2, 0, (a, b))), {0}) for a in trees for b in trees)
    assert not tree_is_safe(2)
    # the total does: no kind of sum is any better
    assert exposes(masked_graph(2), {0})


@pytest.mark.parametrize(("q", "different", "pairs"), [(2, 1, 1), (3, 6, 9), (4, 150, 225)])
def test_how_many_pairs_of_trees_are_totally_different(q: int, different: int, pairs: int) -> None:
    """For two parties the only tree has no proper subtree at all, so the definition says nothing."""
    any_hosts = [next(placements(shape, q)) for shape in shapes(tuple(range(q)))]
    every = [TreePair(q, 0, (a, b)) for a in any_hosts for b in any_hosts]
    assert len(every) == pairs
    assert sum(pair.totally_different for pair in every) == different


@pytest.mark.parametrize(
    ("q", "candidates", "leak_to_one", "leak_to_two"), [(3, 96, 36, 16), (4, 9600, 3468, 5700)]
)
def test_totally_different_is_not_enough(q: int, candidates: int, leak_to_one: int, leak_to_two: int) -> None:
    """Every totally different pair of trees, every host among a node's own two parts: who learns more
    than the total? 44 of 96 pairs of three parties and 432 of 9,600 of four survive every coalition."""
    hosted = [tree for shape in shapes(tuple(range(q))) for tree in placements(shape, q)]
    sizes = [0] * (q + 1)
    for pair in (TreePair(q, 0, (a, b)) for a in hosted for b in hosted):
        if pair.totally_different:
            sizes[len(smallest_leaking_coalition(tree_graph(pair)) or ())] += 1
    assert sum(sizes) == candidates
    assert sizes[:3] == [candidates - leak_to_one - leak_to_two, leak_to_one, leak_to_two]


def test_totally_different_is_not_needed() -> None:
    """One tree twice, with different hosts, resists every coalition of three parties."""
    values, masks = SumTree((Join(0, 0, 1), Join(2, 3, 2))), SumTree((Join(1, 0, 1), Join(2, 3, 2)))
    pair = TreePair(3, 2, (values, masks))
    assert not pair.totally_different
    assert smallest_leaking_coalition(tree_graph(pair)) is None


@pytest.mark.parametrize("q", range(2, 9))
def test_masked_sum_tells_nobody_more_than_the_total(q: int) -> None:
    graph = masked_graph(q, root=q - 1)
    assert smallest_leaking_coalition(graph) is None
    exposing = smallest_exposing_coalition(graph)
    assert exposing is not None
    assert len(exposing) == q - 1
    assert graph.root in exposing


@pytest.mark.parametrize("q", range(3, 9))
def test_plain_sum_tells_the_root_every_value(q: int) -> None:
    graph = plain_graph(q, root=1)
    assert derives(graph, {1}) == [{i: 1} for i in range(q) if i != 1]
    assert smallest_leaking_coalition(graph) == frozenset({1})
    assert not any(derives(graph, pair) for pair in combinations([i for i in range(q) if i != 1], 2))


def test_table_of_smallest_coalitions() -> None:
    rows = {row.q: row for row in coalition_table()}
    assert [rows[q].more_than_total["plain"] for q in range(2, 9)] == [None, 1, 1, 1, 1, 1, 1]
    assert [rows[q].more_than_total["tree"] for q in range(2, 9)] == [None, None, None, 3, 3, 3, 3]
    assert [rows[q].more_than_total["masked"] for q in range(2, 9)] == [None] * 7
    assert [rows[q].one_value["plain"] for q in range(2, 9)] == [1] * 7
    assert [rows[q].one_value["tree"] for q in range(2, 9)] == [1, 2, 3, 3, 3, 3, 3]
    assert [rows[q].one_value["masked"] for q in range(2, 9)] == [1, 2, 3, 4, 5, 6, 7]
