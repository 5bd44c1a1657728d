"""Bins that are veiled once tell what clear text tells, bit for bit; nobody hears more; and what it costs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.oracles.tables import random_job, random_tables, run
from tests.trees.test_sets import categorical

from colonnade.attacks.transcript import Transcript
from colonnade.conversations.boost import veiled
from colonnade.conversations.boost.column_owner import ColumnOwner
from colonnade.conversations.boost.veiled import packed_words, pays, ring_bytes, unpacked_words
from colonnade.conversations.boost.wire import ends_told, grid_of, tag_for
from colonnade.errors import ProtocolError
from colonnade.job import Trees
from colonnade.messages import (
    Announce,
    Bins,
    DealtSums,
    Divide,
    Histograms,
    Joined,
    Shuffled,
    Sides,
    VeiledBins,
)
from colonnade.run.federate import Finished, Tables, run_tables
from colonnade.trees.bins import BinGrid
from colonnade.trees.told import first_told, told_in

FEW_BINS: dict[str, Any] = {"max_depth": 3, "max_bin": 8, "bin_rows": 5, "node_rows": 20}


def grown(tables: Tables, labels: str, **sections: Any) -> Finished:
    trees, secure = {**FEW_BINS, **sections.pop("trees", {})}, {"labels": labels}
    if labels == "blind":
        secure |= sections.get("secure", {})
    sections.pop("secure", None)
    train = {"epochs": 20, **sections.pop("train", {})}
    return run(tables, "secureboost", train=train, trees=trees, secure=secure, **sections)


def assert_alike(clear: Finished, blind: Finished) -> None:
    for party, share in clear.shares.items():
        for name, array in share.weights.items():
            np.testing.assert_array_equal(blind.shares[party].weights[name], array)
    assert blind.result.metrics == clear.result.metrics


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"trees": {"subsample": 0.6, "colsample_bytree": 0.5}},
        {"trees": {"bits": 8, "noise": 3.0}, "world": "local"},
        {"secure": {"helper": "party3"}},
    ],
)
def test_trees_are_those_of_clear_text_bit_for_bit(
    sections: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    dealt = count_deals(monkeypatch)
    tables = random_tables(active=1, rows=300, test_rows=40)
    clear, blind = (grown(tables, labels, **dict(sections)) for labels in ("clear", "blind"))
    assert dealt, "bins are veiled here"
    assert_alike(clear, blind)


def count_deals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the levels that dealers deal for."""
    dealt, deal = [], veiled.VeilDealer.deal

    async def counted(self: Any, net: Any, tree: int, depth: int, frontier: Any) -> None:
        dealt.append(depth)
        await deal(self, net, tree, depth, frontier)

    monkeypatch.setattr(veiled.VeilDealer, "deal", counted)
    return dealt


def test_categories_and_gaps_and_several_classes_are_veiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    dealt = count_deals(monkeypatch)
    tables = categorical(300, gaps=0.1)
    assert_alike(*(grown(tables, labels) for labels in ("clear", "blind")))
    several = random_tables(active=1, parties=3, classes=3, rows=200)
    train = {"loss": "softmax", "classes": 3, "epochs": 8}
    assert_alike(*(grown(several, labels, train=train) for labels in ("clear", "blind")))
    assert len(dealt) > 100


def few_valued(rows: int, seed: int = 0) -> Tables:
    """Columns of yes and no that exclude each other; of every party the first is constant, but for gaps."""
    tables, rng = random_tables(active=1, rows=rows), np.random.default_rng(seed)
    train = {}
    for number, (party, table) in enumerate(tables.train.items()):
        X = np.eye(table.width)[rng.integers(0, table.width, rows)]
        X[:, 0] = 1.0
        if number % 2:
            X[rng.random(rows) < 0.3, 0] = np.nan
        train[party] = replace(table, X=X)
    return replace(tables, train=train)


def heard_by_the_label_holder(tables: Tables, **trees: Any) -> Transcript:
    heard = Transcript("party0")
    rules = FEW_BINS | trees
    job = random_job(tables, "secureboost", train={"epochs": 20}, secure={"labels": "blind"}, trees=rules)
    run_tables(structs.replace(job, compare=False), tables, tap=heard.tap)
    return heard


def first_joined_bins(heard: Transcript) -> dict[tuple[str, int], Any]:
    """Return what stands in the places of first joined bins, by sender and tag, [2, slots, columns]."""
    grids = {who: grid_of(m, who) for who, m in heard.heard if isinstance(m, Bins)}
    found = {}
    for who, message in heard.heard:
        if isinstance(message, Joined):
            grid = grids[who]
            slots = 8 * len(message.ends) // (2 * grid.total)
            ends, _ = ends_told(message, slots, grid)
            sums = np.zeros((2, slots, grid.total), dtype=np.uint32)
            sums[:, ends] = unpacked_words(message.sums, 3).reshape(2, -1)
            first = first_told(told_in(ends, grid), grid)
            found[who, message.tag] = np.take_along_axis(sums, np.stack([first, first]), axis=2)
    return found


@pytest.mark.parametrize("trees", [{}, {"colsample_bytree": 0.5, "subsample": 0.7}])
def test_columns_of_yes_and_no_are_one_number_a_row_and_constant_ones_none(trees: dict[str, Any]) -> None:
    tables = few_valued(300)
    assert_alike(*(grown(tables, labels, trees=trees) for labels in ("clear", "blind")))
    heard = heard_by_the_label_holder(tables).heard
    grids = {who: grid_of(m, who) for who, m in heard if isinstance(m, Bins)}
    for who, grid in grids.items():
        assert grid.width.tolist() == [1 + int(who in ("party1", "party3")), 2, 2]
        veiled_bytes = sum(m.words.size for sender, m in heard if sender == who and isinstance(m, VeiledBins))
        assert veiled_bytes == 300 * (grid.total - grid.columns) * ring_bytes(300, Trees(bits=6))
    dealt = [m for _, m in heard if isinstance(m, DealtSums)]
    of_a_bin = 2 * ring_bytes(300, Trees(bits=6))
    assert {len(m.sums) for m in dealt if m.tag == tag_for(0)} == {2 * of_a_bin, 3 * of_a_bin}


def test_what_stands_for_the_first_joined_bin_is_noise_of_the_columns_and_nothing_of_labels() -> None:
    tables = random_tables(active=1, rows=300)
    for told in first_joined_bins(heard_by_the_label_holder(tables, noise=0.0)).values():
        assert not told.any()
    holder = tables.train["party0"]
    assert holder.y is not None
    other = replace(tables, train={**tables.train, "party0": replace(holder, y=np.roll(-holder.y, 7))})
    one, another = (first_joined_bins(heard_by_the_label_holder(each, noise=0.5)) for each in (tables, other))
    for who in ("party1", "party2", "party3"):
        assert one[who, tag_for(0)].any()
        np.testing.assert_array_equal(one[who, tag_for(0)], another[who, tag_for(0)])


def test_an_owner_with_fewer_bins_than_columns_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    introduce = ColumnOwner._introduce

    async def turned(self: Any) -> None:
        send = self.context.net.send

        async def sending(to: str, message: Any) -> None:
            if isinstance(message, Announce):
                message = structs.replace(message, values=message.values[::-1])
            await send(to, message)

        monkeypatch.setattr(self.context.net, "send", sending)
        await introduce(self)

    monkeypatch.setattr(ColumnOwner, "_introduce", turned)
    with pytest.raises(ProtocolError, match=r"party[0-3] says that it has columns and bins"):
        grown(random_tables(active=1, rows=300), "blind")


def test_a_neutral_helper_follows_nodes_and_hears_no_histogram() -> None:
    tables = random_tables(active=1, rows=300)
    notary = tables.train["party3"]
    tables.train["party3"] = replace(notary, X=np.zeros((notary.rows, 0)), columns=())
    heard = Transcript("party3")
    secure = {"labels": "blind", "helper": "party3"}
    job = random_job(tables, "secureboost", train={"epochs": 20}, secure=secure, trees=FEW_BINS)
    blind = run_tables(structs.replace(job, compare=False), tables, tap=heard.tap)
    kinds = {type(message) for _, message in heard.heard}
    assert {Divide, Sides} <= kinds
    assert not kinds & {Histograms, Joined, VeiledBins, DealtSums}
    clear = grown(tables, "clear")
    assert blind.result.metrics["objective"] == clear.result.metrics["objective"]


def test_the_label_holder_hears_joined_bins_and_not_how_many_rows_a_bin_has() -> None:
    heard = heard_by_the_label_holder(random_tables(active=1, rows=300))
    told = [message for _, message in heard.heard if isinstance(message, Joined)]
    assert told
    assert not any(message.spots.size for message in told)
    assert not any(isinstance(message, Shuffled) for _, message in heard.heard)
    bins = np.concatenate([m.words for _, m in heard.heard if isinstance(m, VeiledBins)])
    counts = np.bincount(bins, minlength=256)
    assert ((counts - bins.size / 256) ** 2 / (bins.size / 256)).sum() < 256 + 6 * np.sqrt(2 * 256)


def test_what_everybody_hears_is_uniform_but_for_the_sum() -> None:
    """By enumeration in Z_2, for two rows and one bin: P, T and A, who knows t and learns X't."""

    def views(x: tuple[int, ...], t: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
        owner, asker = [], []
        for m in itertools.product((0, 1), repeat=2):
            for a in itertools.product((0, 1), repeat=2):
                for r in (0, 1):
                    veil = tuple((x[i] - m[i]) % 2 for i in range(2))
                    hidden = tuple((t[i] - a[i]) % 2 for i in range(2))
                    dealt = (sum(m[i] * a[i] for i in range(2)) + r) % 2
                    told = (sum(x[i] * hidden[i] for i in range(2)) - r) % 2
                    own = sum(veil[i] * a[i] for i in range(2))
                    assert (own + dealt + told) % 2 == sum(x[i] * t[i] for i in range(2)) % 2
                    owner.append((m, r, hidden))
                    asker.append((veil, a, dealt, told))
        return sorted(owner), sorted(asker)

    every = list(itertools.product((0, 1), repeat=2))
    for x in every:
        assert len({tuple(views(x, t)[0]) for t in every}) == 1
    for t in every:
        by_sum: dict[int, set[Any]] = {}
        for x in every:
            by_sum.setdefault(sum(a * b for a, b in zip(x, t, strict=True)) % 2, set()).add(
                tuple(views(x, t)[1])
            )
        assert all(len(seen) == 1 for seen in by_sum.values())


def test_a_dealer_that_deals_too_little_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(veiled, "packed_words", lambda words, size: packed_words(words, size)[:-1])
    with pytest.raises(ProtocolError, match=r"party[0-3]"):
        grown(random_tables(active=1, rows=300), "blind")


@pytest.mark.parametrize("size", [3, 4])
def test_words_travel_in_as_many_bytes_as_they_need(size: int) -> None:
    words = np.random.default_rng(0).integers(0, 2 ** (8 * size), 1001, dtype=np.uint32)
    packed = packed_words(words, size)
    assert packed.nbytes == size * 1001
    np.testing.assert_array_equal(unpacked_words(packed, size), words)


def test_a_ring_holds_the_sums_of_all_rows_with_their_noise() -> None:
    rules = Trees(bits=6, noise=0.5)
    assert ring_bytes(100_000, rules) == 3
    assert ring_bytes(2**23 // 31, rules) == 4
    assert (2**23 // 31 + 16) * 127 < 2**31


def test_bins_are_veiled_where_that_sends_less() -> None:
    rules, none = Trees(bits=6), np.zeros(19, dtype=bool)
    numbers = BinGrid(np.full(19, 64), none, np.zeros(19, dtype=np.int64))
    few = BinGrid(np.full(19, 2), none, np.zeros(19, dtype=np.int64))
    assert pays(rules, 24_000, 100, numbers)
    assert not pays(rules, 24_000, 5, numbers)
    assert pays(rules, 24_000, 5, few)
    assert not pays(rules, 2_000_000, 100, numbers), "there is no room for them"
    alone = BinGrid(np.ones(19, dtype=np.int64), none, np.zeros(19, dtype=np.int64))
    assert not pays(rules, 24_000, 100, alone), "columns of one bin have nothing to veil"
    assert not pays(Trees(), 24_000, 100, few), "version 0.2 has none"


@pytest.mark.parametrize("labels", ["clear", "blind"])
def test_a_level_takes_at_most_two_round_trips(labels: str) -> None:
    """In a network whose one cost is a second for every message one way."""
    tables = random_tables(active=1, rows=400)
    network = {"latency_ms": 1000.0, "bandwidth_mbps": 1e9, "ns_per_value": 0.0, "us_per_message": 0.0}
    trees = {"max_depth": 4, "min_child_weight": 0.0}
    took = []
    for epochs in (10, 20):
        train = {"epochs": epochs, "evaluate_every": 0}
        done = grown(tables, labels, network=network, trees=trees, train=train)
        took.append(done.result.history[-1].virtual_seconds or 0.0)
    one_way = (took[1] - took[0]) / 10
    assert one_way <= 4 * (4 + 1)
