"""Blind histograms are those of clear text bit for bit, and what an owner or a dealer sees says nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.conversations.boost.test_boost import ROUNDS, SMALL
from tests.oracles.tables import random_job, random_tables, run

from colonnade.attacks.transcript import Transcript
from colonnade.conversations.boost.blind import order_of
from colonnade.conversations.boost.clear import NoReader
from colonnade.errors import JobError, MalformedMessage, ProtocolError
from colonnade.messages import Divide, Gradients, Histograms, Sides
from colonnade.run.federate import Finished, Tables, run_tables

TOLD = {"bits": 6, "bin_rows": 5, "node_rows": 20}


def grown(tables: Tables, labels: str, **sections: Any) -> Finished:
    algorithm = sections.pop("algorithm", "secureboost")
    trees, train = {**SMALL, **sections.pop("trees", {})}, {**ROUNDS, **sections.pop("train", {})}
    secure = {"labels": labels}
    if labels == "blind":
        secure |= sections.pop("secure", {})
    sections.pop("secure", None)
    return run(tables, algorithm, train=train, trees=trees, secure=secure, **sections)


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"trees": {"subsample": 0.6, "colsample_bytree": 0.5, "max_leaves": 6}},
        {"trees": {"max_depth": 9, "min_child_weight": 0.0, "reg_lambda": 0.1}},
        {"algorithm": "boosted-sum"},
        {"algorithm": "boosted-sum", "trees": {"turns": "round"}},
        {"secure": {"helper": "party3"}},
        {"world": "local"},
        {"trees": TOLD},
        {"trees": {**TOLD, "subsample": 0.8, "colsample_bytree": 0.5}, "secure": {"helper": "party3"}},
        {"trees": TOLD, "algorithm": "boosted-sum"},
    ],
)
def test_blind_trees_are_those_of_clear_text_bit_for_bit(sections: dict[str, Any]) -> None:
    tables = random_tables(active=1, rows=300, test_rows=40)
    clear, blind = (grown(tables, labels, **sections) for labels in ("clear", "blind"))
    assert blind.plan.blind is not None
    for party, share in clear.shares.items():
        for name, array in share.weights.items():
            np.testing.assert_array_equal(blind.shares[party].weights[name], array)
    assert blind.result.metrics == clear.result.metrics


def test_several_classes_are_blind_too() -> None:
    tables = random_tables(active=1, parties=3, classes=3)
    train = {"loss": "softmax", "classes": 3}
    clear, blind = (grown(tables, labels, train=train) for labels in ("clear", "blind"))
    assert blind.result.metrics == clear.result.metrics


def test_nobody_but_the_label_holder_learns_labels_and_the_result_says_so() -> None:
    blind = grown(random_tables(active=1), "blind").result
    assert "labels" not in blind.privacy.leaks
    assert "nodes" in blind.privacy.leaks
    assert not any("gives away the label" in note for note in blind.privacy.notes)


def test_an_order_has_every_row_once_and_is_that_of_its_words() -> None:
    words = np.random.default_rng(0).integers(0, 2**64, 5000, dtype=np.uint64)
    order = order_of(words.copy())
    assert sorted(order.tolist()) == list(range(5000))
    exponents = words & ~np.uint64(3 << 61) | np.uint64(1 << 61)  # without the words that are no number
    np.testing.assert_array_equal(order, np.argsort(exponents.view(np.float64)))
    assert order_of(words[:1]).tolist() == [0]
    assert order_of(words[:0]).tolist() == []


def test_all_orders_are_equally_likely() -> None:
    words = np.random.default_rng(1).integers(0, 2**64, (6000, 3), dtype=np.uint64)
    seen = [tuple(order_of(row).tolist()) for row in words]
    counts = [seen.count(order) for order in itertools.permutations(range(3))]
    assert min(counts) > 850
    assert max(counts) < 1150


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        (lambda order: order[::-1].astype(np.uint16), "another order"),
        (lambda order: order.astype(np.uint16) + np.uint16(1), "order of values"),
        (lambda order: order[1:].astype(np.uint16), "order of"),
        (lambda order: order, "order of"),
    ],
)
def test_a_dealer_that_tells_another_order_is_named(
    told: Callable[[Any], Any], wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who could choose an order could choose one that the label holder knows."""
    monkeypatch.setattr("colonnade.conversations.boost.blind.told", told)
    with pytest.raises(ProtocolError, match=f"party[1-3] .*{wrong}"):
        grown(random_tables(active=1, rows=60), "blind")


def test_what_an_owner_sees_is_uniform_whatever_the_words_are() -> None:
    """Verb 3 in Z_2 with two rows and one column, by enumeration: P's view, and T's, for every x."""

    def views(x: tuple[int, ...]) -> list[tuple[int, ...]]:
        found = []
        for r in itertools.product((0, 1), repeat=2):
            for s in itertools.product((0, 1), repeat=2):
                for rho in ((0, 1), (1, 0)):
                    masked = tuple((x[i] + r[i]) % 2 for i in range(2))
                    dealt = tuple((r[rho[i]] - s[i]) % 2 for i in range(2))
                    found.append((*masked, *dealt, *rho))
        return sorted(found)

    assert len({tuple(views(x)) for x in itertools.product((0, 1), repeat=2)}) == 1


def test_the_label_holder_sees_nothing_of_which_row_is_in_which_bin() -> None:
    """A's view, bins in the order rho and masked sums, depends on the histogram of bins alone."""

    def views(bins: tuple[int, ...], x: tuple[int, ...]) -> list[tuple[Any, ...]]:
        found = []
        for s in itertools.product((0, 1), repeat=3):
            for rho in itertools.permutations(range(3)):
                order = tuple(bins[i] for i in rho)
                sums = tuple(sum(x[rho[k]] + s[k] for k in range(3) if order[k] == b) % 2 for b in (0, 1))
                found.append((order, sums, s))
        return sorted(found)

    x = (1, 1, 0)
    same = [
        bins
        for bins in itertools.product((0, 1), repeat=3)
        if _histogram(bins, x) == _histogram((0, 1, 1), x)
    ]
    assert len(same) == 2
    assert len({tuple(views(bins, x)) for bins in same}) == 1


def _histogram(bins: tuple[int, ...], x: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Rows and words of every bin."""
    return tuple(
        (sum(b == k for b in bins), sum(x[i] for i, b in enumerate(bins) if b == k) % 2) for k in (0, 1)
    )


def test_a_dealer_without_columns_hears_nothing_of_nodes() -> None:
    tables = random_tables(active=1, rows=200)
    notary = tables.train["party3"]
    tables.train["party3"] = replace(notary, X=np.zeros((notary.rows, 0)), columns=())
    heard = Transcript("party3")
    job = random_job(tables, "secureboost", secure={"labels": "blind", "helper": "party3"}, trees=SMALL)
    run_tables(structs.replace(job, compare=False), tables, tap=heard.tap)
    kinds = {type(message) for _, message in heard.heard}
    assert Gradients in kinds, "it is told whom to deal to"
    assert not kinds & {Sides, Divide, Histograms}


def test_nobody_is_sent_gradients_in_clear_who_has_no_dealer() -> None:
    with pytest.raises(MalformedMessage, match="nobody deals"):
        NoReader("notary").gradients(0, np.zeros(3, dtype=np.uint64), np.array([2]))


def test_two_parties_have_nobody_to_deal() -> None:
    with pytest.raises(JobError, match=r"secure\.helper"):
        grown(random_tables(active=1, parties=2), "blind")
