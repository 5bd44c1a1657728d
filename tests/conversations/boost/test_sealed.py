"""Two parties alone grow the trees of clear text, bit for bit, and hear nothing but what is told."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.conversations.boost.test_veiled import assert_alike
from tests.oracles.tables import random_job, random_tables, run
from tests.trees.test_sets import categorical

from colonnade.attacks.transcript import Transcript
from colonnade.conversations.boost import sealed
from colonnade.conversations.boost.sealed import SealedSums, sum_bits
from colonnade.conversations.boost.wire import in_few_bytes
from colonnade.data.table import Table
from colonnade.errors import JobError, MalformedMessage, ProtocolError
from colonnade.job import Trees, job_from
from colonnade.messages import Bins, Divide, Gradients, Histograms, Joined, Sealed
from colonnade.run.federate import Finished, Tables, run_tables
from colonnade.run.resolve import compose
from colonnade.secure.lattice.histograms import sums_over_bins
from colonnade.secure.lattice.parameters import MOST_SUM_BITS
from colonnade.trees.bins import BinGrid
from colonnade.trees.frontier import Frontier
from colonnade.trees.gradients import joined

SMALL: dict[str, Any] = {"max_depth": 3, "max_bin": 8, "bin_rows": 5, "node_rows": 20}


def grown(tables: Tables, labels: str, algorithm: str = "secureboost", **sections: Any) -> Finished:
    trees, train = {**SMALL, **sections.pop("trees", {})}, {"epochs": 8, **sections.pop("train", {})}
    return run(tables, algorithm, train=train, trees=trees, secure={"labels": labels}, **sections)


def two(**how: Any) -> Tables:
    return random_tables(**{"active": 1, "parties": 2, "rows": 300, "test_rows": 40, **how})


@pytest.mark.parametrize("algorithm", ["secureboost", "boosted-sum"])
@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"trees": {"subsample": 0.6, "colsample_bytree": 0.5}},
        {"trees": {"bits": 8, "noise": 3.0, "max_bin": 255}, "world": "local"},
    ],
)
def test_trees_are_those_of_clear_text_bit_for_bit(algorithm: str, sections: dict[str, Any]) -> None:
    tables = two()
    clear, blind = (grown(tables, labels, algorithm, **dict(sections)) for labels in ("clear", "blind"))
    assert_alike(clear, blind)
    assert any(
        name.startswith("split") and array.size for name, array in blind.shares["party1"].weights.items()
    )


def test_categories_gaps_and_several_classes_too() -> None:
    tables = categorical(300, gaps=0.1)
    for part in (tables.train, tables.test or {}):
        del part["party1"], part["party3"]  # party2 has the categories
    assert_alike(*(grown(tables, labels) for labels in ("clear", "blind")))
    several, train = two(classes=3), {"loss": "softmax", "classes": 3, "epochs": 3}
    assert_alike(*(grown(several, labels, train=train) for labels in ("clear", "blind")))


def heard_by(party: str, **sections: Any) -> Transcript:
    tables, heard = two(), Transcript(party)
    job = random_job(tables, "secureboost", train={"epochs": 4}, secure={"labels": "blind"}, trees=SMALL)
    run_tables(structs.replace(job, compare=False), tables, tap=heard.tap)
    return heard


def test_the_owner_hears_ciphertexts_and_who_shares_a_node() -> None:
    heard = [message for _, message in heard_by("party1").heard]
    kinds = {type(message) for message in heard}
    assert {Sealed, Divide} <= kinds
    assert not kinds & {Joined, Histograms}
    assert not any(message.words.size for message in heard if isinstance(message, Gradients))
    data = np.concatenate([message.body for message in heard if isinstance(message, Sealed)])
    counts = np.bincount(data, minlength=256)
    assert ((counts - data.size / 256) ** 2 / (data.size / 256)).sum() < 256 + 6 * np.sqrt(2 * 256)


def test_the_label_holder_hears_which_bins_are_joined_and_sums_alone() -> None:
    heard = [message for _, message in heard_by("party0").heard]
    assert {type(m) for m in heard} & {Bins, Joined, Sealed} == {Bins, Joined, Sealed}
    assert not any(m.spots.size for m in heard if isinstance(m, Joined))
    assert not any(isinstance(m, Histograms) for m in heard)


def test_every_level_has_a_key_of_its_own() -> None:
    sent = [bytes(m.body[:32]) for _, m in heard_by("party1").heard if isinstance(m, Sealed)]
    assert len(set(sent)) == len(sent) > 20


def test_a_level_takes_at_most_two_round_trips() -> None:
    """In a network whose one cost is a second for every message one way."""
    network = {"latency_ms": 1000.0, "bandwidth_mbps": 1e9, "ns_per_value": 0.0, "us_per_message": 0.0}
    took = []
    for epochs in (2, 4):
        train = {"epochs": epochs, "evaluate_every": 0}
        trees = {"max_depth": 4, "min_child_weight": 0.0}
        done = grown(two(rows=400), "blind", network=network, trees=trees, train=train)
        took.append(done.result.history[-1].virtual_seconds or 0.0)
    assert (took[1] - took[0]) / 2 <= 4 * (4 + 1)


def test_an_owner_that_answers_with_other_bytes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from colonnade.secure.lattice import histograms

    real = histograms.SumAnswer.__bytes__
    monkeypatch.setattr(histograms.SumAnswer, "__bytes__", lambda self: real(self)[:-1])
    with pytest.raises(ProtocolError, match="party1"):
        grown(two(), "blind")


def test_a_column_of_yes_and_no_is_one_sum_and_its_trees_are_those_of_clear_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Six columns that exclude each other, and two that do not: all but the first joined bin are summed."""
    rng = np.random.default_rng(2)
    kind, rows = rng.integers(0, 7, 600), 600
    flags = np.column_stack([kind[:, None] == np.arange(6), rng.random((rows, 2)) < 0.3]).astype(float)
    score = flags @ rng.standard_normal(8) + rng.standard_normal(rows)
    train = {
        "party0": Table("party0", ("a",), rng.standard_normal((rows, 1)), np.where(score > 0, 1.0, -1.0)),
        "party1": Table("party1", tuple(f"p{j}" for j in range(8)), flags),
    }
    tables, made = Tables("random", train, None, ("party0",)), []

    def noted(public: Any, heard: Any, bins: Any, noise: Any, apart: int) -> Any:
        made.append((len(noise), int((bins >= 0).sum()), bins.size))
        return sums_over_bins(public, heard, bins, noise, apart)

    monkeypatch.setattr(sealed, "sums_over_bins", noted)
    clear, blind = (grown(tables, labels) for labels in ("clear", "blind"))
    assert_alike(clear, blind)
    assert made[0][0] == 8  # the root's, of 16 bins
    assert all(sums <= 8 and 2 * summed < cells for sums, summed, cells in made)  # most rows say no
    stored = blind.shares["party1"].weights
    assert any(name.startswith("split") and array.size for name, array in stored.items())


def test_an_owner_whose_noise_is_not_of_its_columns_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "in_few_bytes", lambda words: in_few_bytes(words[1:]))
    with pytest.raises(ProtocolError, match="party1"):
        grown(two(), "blind")


def test_an_owner_that_tells_bins_of_a_node_of_few_rows_is_named() -> None:
    ends = np.ones((1, 16), dtype=bool)
    reader = sealed.SealedReader(None, Trees(bits=6))  # type: ignore[arg-type]
    grid = BinGrid(np.array([8, 8]), np.zeros(2, dtype=bool), np.zeros(2, dtype=np.int64))
    reader.gradients(np.zeros(30, dtype=np.uint64))
    reader._key = object()  # type: ignore[assignment]
    message = Joined(0, np.zeros(4, dtype=np.uint16), np.packbits([ends, ends]), sealed.NOTHING, 0)
    with pytest.raises(MalformedMessage, match="fewer than 40 rows"):
        asyncio.run(reader.told(message, Frontier(np.ones(30, dtype=bool)), grid))


def test_sums_of_two_numbers_come_apart_again() -> None:
    rules = Trees(bits=6)
    grid = BinGrid(np.array([8]), np.zeros(1, dtype=bool), np.zeros(1, dtype=np.int64))
    sums = SealedSums.of(rules, np.array([1000, 30]), grid)
    most = 31 * 1000 + 480  # of all rows, and half of all coins
    words = joined(np.array([-most, most, 0, -1]), np.array([most, -480, -1, 0]))
    np.testing.assert_array_equal(sums.unpacked(sums.packed(words)), words)
    assert len(sums.apart) == 2


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(JobError, match=r"trees.bits = 0: exact histograms do not fit"):
        grown(two(), "blind", trees={"bits": 0})
    rules = Trees(bits=6)
    assert sum_bits(135_000, rules) == MOST_SUM_BITS < sum_bits(136_000, rules)
    with pytest.raises(JobError, match="hold the label"):
        grown(random_tables(parties=2, active=2, rows=300), "blind")
    plain = {"algorithm": "secureboost", "data": {"train": "x.csv", "parties": 2}}
    with pytest.raises(JobError, match="two parties have no third one"):
        compose(job_from({**plain, "secure": {"labels": "blind", "products": "dealer"}}))
    with pytest.raises(JobError, match="nobody deals"):
        compose(job_from({**plain, "secure": {"labels": "blind", "helper": "notary"}}))
