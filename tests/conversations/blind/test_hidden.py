"""Runs that open nothing: the model of a clear run, near enough, and transcripts that are noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.oracles.tables import random_job, random_tables, run, weights

from colonnade.arrays import Words
from colonnade.attacks.transcript import Transcript
from colonnade.errors import FixedPointOverflow, JobError
from colonnade.messages import Dealt, Piece, Veil, Veiled
from colonnade.run.blind import dealers_of, hidden_of
from colonnade.run.federate import Tables, run_tables
from colonnade.secure.product import Dealer, Lot, OwnerLot
from colonnade.secure.shared_logistic import LogisticDealer
from colonnade.secure.truncate import Truncation

HIDDEN = {"labels": "blind", "scores": "hidden"}


def tables_of(loss: str, **more: Any) -> Tables:
    return random_tables(active=1, regression=loss == "squared", **{"rows": 150, "test_rows": 40, **more})


@pytest.mark.parametrize(
    ("loss", "l2", "parties"),
    [("logistic", 0.0, 3), ("logistic", 0.01, 5), ("squared", 0.0, 4), ("squared", 0.01, 3)],
)
def test_the_model_is_that_of_a_clear_run(loss: str, l2: float, parties: int) -> None:
    setting = tables_of(loss, parties=parties)
    train = {"loss": loss, "epochs": 6, "l2": l2, "step": 0.05, "tolerance": 0.0}
    clear = run(setting, "vfb-sgd", train=train)
    hidden = run(setting, "vfb-sgd", train=train, secure=HIDDEN)
    np.testing.assert_allclose(weights(hidden), weights(clear), atol=4e-3)
    for name in ("train_loss", "test_loss"):
        assert hidden.result.metrics[name] == pytest.approx(clear.result.metrics[name], abs=2e-3)
    assert len(hidden.result.history) == 1  # measured once, in the end


def test_a_helper_and_lost_frames_change_nothing_but_random_roundings() -> None:
    setting = tables_of("logistic", parties=4)
    calm = run(setting, "vfb-sgd", secure=HIDDEN)
    np.testing.assert_array_equal(weights(calm), weights(run(setting, "vfb-sgd", secure=HIDDEN)))
    faults = {"faults": {"drop": 0.1, "duplicate": 0.1, "corrupt": 0.05}, "latency_ms": 1.0}
    rough = run(setting, "vfb-sgd", secure=HIDDEN, network=faults)
    np.testing.assert_allclose(weights(calm), weights(rough), atol=1e-3)
    helped = run(setting, "vfb-sgd", secure={**HIDDEN, "helper": "party3"})
    np.testing.assert_allclose(weights(helped), weights(calm), atol=1e-3)


def words_heard(setting: Tables, party: str) -> dict[str, Any]:
    """All words that a party is sent while it trains, by kind of message and sender."""
    transcript = Transcript(party)
    train = {"epochs": 3, "step": 0.05}
    job = random_job(setting, "vfb-sgd", train=train, secure=HIDDEN)
    run_tables(job, setting, tap=transcript.tap)
    found: dict[str, list[Any]] = {}
    for sender, message in transcript.heard:
        kind = type(message).__name__
        if isinstance(message, Veil):
            name = f"{message.moved.dtype} moved by {sender}"  # phases have 16 bits
            found.setdefault(name, []).append(message.moved.ravel())
            found.setdefault(f"weights by {sender}", []).append(message.weights.ravel())
        elif isinstance(message, (Veiled, Dealt, Piece)):
            found.setdefault(f"{kind} by {sender}", []).append(message.values.ravel())
    return {name: np.concatenate(values) for name, values in found.items() if any(v.size for v in values)}


@pytest.mark.parametrize("party", ["party0", "party1", "party2"])
def test_everything_that_anybody_is_sent_is_uniform(party: str) -> None:
    heard = words_heard(tables_of("logistic", parties=3, rows=600, test_rows=0), party)
    assert len(heard) >= 3
    for name, words in heard.items():
        counts = np.bincount(np.ascontiguousarray(words).view(np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-6, name


def test_scores_beyond_the_sines_end_the_run() -> None:
    setting = tables_of("logistic", parties=3)
    with pytest.raises(FixedPointOverflow, match="scores reach"):
        run(setting, "vfb-sgd", secure=HIDDEN, train={"step": 60.0, "epochs": 3})


def test_errors_beyond_the_division_end_the_run() -> None:
    train = {"loss": "squared", "step": 20.0, "epochs": 5}
    with pytest.raises(FixedPointOverflow, match="errors reach"):
        run(tables_of("squared", parties=3), "vfb-sgd", secure=HIDDEN, train=train)


@pytest.mark.parametrize(
    ("loss", "l2", "verb", "owned"),
    [
        ("logistic", 0.0, Dealer, None),
        ("logistic", 0.0, LogisticDealer, None),
        ("logistic", 0.01, Truncation, None),
        ("logistic", 0.0, OwnerLot, "add"),
        ("squared", 0.0, Dealer, None),
        ("squared", 0.0, Truncation, None),
        ("squared", 0.0, OwnerLot, "add"),
    ],
)
def test_a_word_drawn_in_place_of_what_was_due_ends_the_run(
    loss: str, l2: float, verb: type, owned: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are no proofs where scores are hidden, but scores of such a model are beyond any honest run's."""
    setting, rng, name = tables_of(loss, parties=3), np.random.default_rng(1), owned or "deal"
    due, made = getattr(verb, name), [0]

    def wrong(self: Any, *given: Any) -> Any:
        found = due(self, *given)
        words = (found[1] if isinstance(found, tuple) else found).reshape(-1)
        made[0] += 1
        if made[0] == 2:
            words[rng.integers(len(words))] = rng.integers(2**64, dtype=np.uint64)
        return found

    train = {"loss": loss, "epochs": 3, "l2": l2, "step": 0.05, "tolerance": 0.0}
    honest, ended = weights(run(setting, "vfb-sgd", train=train, secure=HIDDEN)), 0
    monkeypatch.setattr(verb, name, wrong)
    for _ in range(10):
        made[0] = 0
        try:
            found = weights(run(setting, "vfb-sgd", train=train, secure=HIDDEN))
        except FixedPointOverflow:
            ended += 1
        else:  # half of the words of a division, and few of sines, are multiplied by zero
            np.testing.assert_allclose(found, honest, atol=1e-6)
    assert ended == 10 or (ended > 2 and verb is Truncation)


def test_a_word_that_is_little_wrong_makes_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is what proofs would show, and why a job that asks for them is refused."""
    setting, train = tables_of("logistic", parties=3), {"epochs": 3, "step": 0.05, "tolerance": 0.0}
    honest, deal, made = weights(run(setting, "vfb-sgd", train=train, secure=HIDDEN)), Dealer.deal, [0]

    def wrong(self: Dealer, lot: Lot) -> tuple[list[Words], Words]:
        scores, sums = deal(self, lot)
        made[0] += 1
        if made[0] == 2:
            sums[0, 0, 0] += np.uint64(2**40)
        return scores, sums

    monkeypatch.setattr(Dealer, "deal", wrong)
    apart = np.abs(weights(run(setting, "vfb-sgd", train=train, secure=HIDDEN)) - honest).max()
    assert 0.5 < apart < 1.0


@pytest.mark.parametrize(
    ("algorithm", "sections", "words"),
    [
        ("vfb-saga", {}, "use vfb-sgd"),
        ("vfb-sgd", {"train": {"step": "auto"}}, "give a number"),
        ("vfb-sgd", {"train": {"ahead": 2}}, "synchronous"),
        ("vfb-sgd", {"train": {"loss": "smooth_hinge"}}, "use 'logistic' or 'squared'"),
        ("vfb-sgd", {"secure": {**HIDDEN, "reveal": "never"}}, "use 'owner'"),
        ("vfb-sgd", {"secure": {"labels": "clear", "scores": "hidden"}}, "set labels = 'blind'"),
        ("vfb-sgd", {"secure": {**HIDDEN, "proofs": 2}}, "drop secure.proofs"),
    ],
)
def test_what_cannot_be_hidden_is_refused(algorithm: str, sections: dict[str, Any], words: str) -> None:
    with pytest.raises(JobError, match=words):
        run(random_tables(parties=3, active=1), algorithm, **{"secure": HIDDEN, **sections})


def test_nobody_deals_for_a_product_of_its_own() -> None:
    for others in (["p", "q"], ["p", "q", "r"], ["p", "q", "h"]):
        helper = "h" if "h" in others else None
        owners = [party for party in others if party != "h"]
        hidden = hidden_of("a", dealers_of(owners, others, helper), others, helper)
        assert len({"a", hidden.mate, hidden.dealer}) == 3
        assert all(dealer not in (owner, hidden.mate) for owner, dealer in hidden.dealers.items())
        assert helper is None or set(hidden.dealers.values()) == {"h"}
