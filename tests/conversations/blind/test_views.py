"""What parties of whole blind runs are sent: uniform words, under masks that are used once."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections import defaultdict
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats
from tests.oracles.tables import random_job, random_tables, run, weights

from colonnade.arrays import Words
from colonnade.attacks.transcript import Transcript
from colonnade.conversations.blind.products import STRETCH, received
from colonnade.errors import JobError, SumError
from colonnade.messages import Dealt, Message, Piece, Unveil, Veil, Veiled
from colonnade.net.endpoint import Endpoint
from colonnade.run.federate import Tables, run_tables
from colonnade.secure.product import OwnerLot
from colonnade.secure.streams import Stream

BLIND = {"labels": "blind"}
TRAIN = {"epochs": 3, "step": 0.05, "batch": 32}
Heard = dict[str, list[Words]]


def arrays_of(message: Message) -> dict[str, Words]:
    """The words of a message, by what they are."""
    if isinstance(message, Veil):
        return {"moved": message.moved, "weights": message.weights}
    if isinstance(message, (Veiled, Dealt, Piece)):
        return {type(message).__name__: message.values}
    return {}


def words_heard(setting: Tables, party: str, algorithm: str = "vfb-sgd", **sections: Any) -> Heard:
    """All words that a party is sent in a run, by kind and sender, in order."""
    transcript = Transcript(party)
    job = random_job(setting, algorithm, **{"train": TRAIN, "secure": BLIND, **sections})
    run_tables(job, setting, tap=transcript.tap)
    found: Heard = defaultdict(list)
    for sender, message in transcript.heard:
        for kind, words in arrays_of(message).items():
            if words.size:
                found[f"{kind} by {sender}"].append(words)
    return found


def spread(words: list[Words]) -> float:
    """The p-value that the bytes of words are uniform."""
    whole = np.concatenate([each.ravel() for each in words])
    return float(stats.chisquare(np.bincount(whole.view(np.uint8), minlength=256)).pvalue)


def changes(words: list[Words]) -> list[Words]:
    """What two masks that are the same would leave of two messages one after the other."""
    return [b - a for a, b in pairwise(words) if a.shape == b.shape]


@pytest.mark.parametrize("algorithm", ["vfb-sgd", "vfb-svrg", "vfb-saga"])
@pytest.mark.parametrize("party", ["party0", "party1", "party2"])
def test_every_word_of_a_run_is_uniform_and_so_are_changes(algorithm: str, party: str) -> None:
    """Every owner deals for another one, so that these are all roles."""
    heard = words_heard(random_tables(parties=3, active=1, rows=400), party, algorithm)
    kinds = {name.split()[0] for name in heard}
    assert kinds == ({"Veiled", "Dealt", "Piece"} if party == "party0" else {"moved", "weights"})
    for name, words in heard.items():
        assert spread(words) > 1e-6, name
        if changes(words):
            assert spread(changes(words)) > 1e-6, name


def test_a_dealer_without_columns_is_sent_sizes_alone() -> None:
    """A neutral helper hears how wide blocks are and how long a run lasts: nothing that depends on data."""
    setting = random_tables(parties=4, active=1, rows=96)
    train = {p: t if p != "party3" else type(t)(t.name, (), t.X[:, :0]) for p, t in setting.train.items()}
    helped = Tables("random", train, None, setting.active)
    assert not words_heard(helped, "party3", secure={**BLIND, "helper": "party3"})


def test_a_mask_that_is_used_twice_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same test on a run whose streams forget their tags: it shows how theta changes."""
    monkeypatch.setattr(Stream, "once", lambda self, tag, count: self.words(0, count))
    heard = words_heard(random_tables(parties=3, active=1, rows=400), "party1")
    assert spread(changes(heard["moved by party0"])) < 1e-12


def test_what_is_sent_again_has_the_same_bytes() -> None:
    """A network that loses frames makes parties send them again: never another value under the same tag."""
    setting = random_tables(parties=3, active=1, rows=96)
    transcripts = {party: Transcript(party) for party in setting.train}
    faults = {"faults": {"drop": 0.2, "duplicate": 0.1}, "latency_ms": 1.0}
    job = random_job(setting, "vfb-svrg", train=TRAIN, secure=BLIND, network=faults)

    def tap(party: str, wire: Any) -> Any:
        return transcripts[party].tap(party, wire)

    run_tables(job, setting, tap=tap)
    sent: dict[tuple[Any, ...], bytes] = {}
    again = 0
    for party, transcript in transcripts.items():
        for to, message in transcript.said:
            if not isinstance(message, (Veil, Veiled, Dealt, Unveil, Piece)):
                continue
            words = [each.tobytes() for each in arrays_of(message).values()]
            key = (party, to, type(message).__name__, message.tag)
            again += key in sent
            assert sent.setdefault(key, b"".join(words)) == b"".join(words)
    assert again > 20


@pytest.mark.parametrize("honest", [True, False])
def test_a_flipped_word_of_a_measurement_ends_the_run(honest: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, asked = OwnerLot.scores, []

    def flipped(self: OwnerLot, batch: int, vectors: Words) -> Words:
        found = scores(self, batch, vectors)
        if not self.lot.added:  # a measurement asks for scores and adds nothing
            asked.append(self)
            if len(asked) == 5 and not honest:
                found[0, 7] ^= np.uint64(1 << 55)
        return found

    monkeypatch.setattr(OwnerLot, "scores", flipped)
    setting = random_tables(parties=3, active=1, rows=96)
    train = {"epochs": 5, "step": 0.05, "tolerance": 0.0}
    if honest:
        run(setting, "vfb-sgd", secure=BLIND, train=train)
        return
    with pytest.raises(SumError, match="do not fit"):
        run(setting, "vfb-sgd", secure=BLIND, train=train)


@pytest.mark.parametrize("algorithm", ["vfb-sgd", "vfb-svrg", "vfb-saga"])
@pytest.mark.parametrize("reveal", ["owner", "never"])
def test_a_wrong_word_of_a_dealer_shows_before_weights_are_told(
    algorithm: str, reveal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is measured in between, a wrong word made another model, and nobody knew."""
    add, added = OwnerLot.add, []

    def wrong(self: OwnerLot, batch: int, moved: Words) -> Words:
        found = add(self, batch, moved)
        added.append(self)
        if len(added) == turn:
            found[0, 0] += np.uint64(1 << 40)
        return found

    setting = random_tables(parties=3, active=1, rows=96)
    train = {"epochs": 2, "step": 0.05, "tolerance": 0.0, "evaluate_every": 0}
    monkeypatch.setattr(OwnerLot, "add", wrong)
    told = {}
    for proofs in (0, 2):
        turn, added = -1, []
        told[proofs] = run(
            setting, algorithm, secure={**BLIND, "reveal": reveal, "proofs": proofs}, train=train
        )
        honest = len(added)
        turn, added = honest - 2 * proofs, []  # the last before proofs, each of which adds at two owners
        if proofs:
            with pytest.raises(SumError, match="do not fit"):
                run(setting, algorithm, secure={**BLIND, "reveal": reveal, "proofs": 2}, train=train)
        else:
            run(setting, algorithm, secure={**BLIND, "reveal": reveal}, train=train)  # without a word
    losses = [each.result.metrics["train_loss"] for each in told.values()]
    assert losses[0] == losses[1]  # proofs change no model


def test_a_wrong_score_passes_proofs_and_moves_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are made of the step that it led to, as they are of a wrong label's."""
    scores, asked = OwnerLot.scores, []

    def wrong(self: OwnerLot, batch: int, vectors: Words) -> Words:
        found = scores(self, batch, vectors)
        asked.append(self)
        if len(asked) == 2 and not honest:
            found[0, 0] += np.uint64(1 << 56)
        return found

    monkeypatch.setattr(OwnerLot, "scores", wrong)
    setting, told = random_tables(parties=3, active=1, rows=96), {}
    train = {"epochs": 2, "step": 0.05, "tolerance": 0.0, "evaluate_every": 0, "batch": 32}
    for honest in (True, False):
        asked.clear()
        told[honest] = weights(run(setting, "vfb-sgd", secure={**BLIND, "proofs": 2}, train=train))
    longest = np.linalg.norm(np.hstack([table.X for table in setting.train.values()]), axis=1).max()
    assert 0 < np.linalg.norm(told[True] - told[False]) < 0.05 / 32 * longest  # theta is off by 1 at most


@pytest.mark.parametrize("in_file", [True, False])
def test_veiled_columns_are_side_by_side_and_many_are_in_a_file(in_file: bool) -> None:
    """8 n d bytes at the label holder; of many none are allocated: pages come and go."""
    rows, width, first = 50 * STRETCH + 7, 8, 1000
    piece = np.arange(STRETCH * width, dtype=np.uint64).reshape(STRETCH, width)

    class Owner:
        """Every owner sends its stretch again and again, from the first tag on, and in the end the rest."""

        async def recv(self, kind: type[Veiled], sender: str, tag: int, **due: Any) -> Veiled:
            due_rows = min(STRETCH, rows - (tag - first) * STRETCH)
            return Veiled(tag, piece[:due_rows] if sender == "p" else piece[:due_rows, :3] + np.uint64(1))

    tracemalloc.start()
    try:
        widths, held = {"p": width, "q": 3}, 0 if in_file else rows * (width + 3)
        veiled = asyncio.run(received(cast(Endpoint, Owner()), widths, first, rows, held))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    whole = np.concatenate([*[piece] * 50, piece[:7]])
    np.testing.assert_array_equal(veiled, np.hstack([whole, whole[:, :3] + np.uint64(1)]))
    assert not in_file or peak < veiled.nbytes / 20


def test_whoever_holds_the_label_deals_for_nobody() -> None:
    with pytest.raises(JobError, match="name another party"):
        run(random_tables(parties=3, active=1), "vfb-sgd", secure={**BLIND, "helper": "party0"})
