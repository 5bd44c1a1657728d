"""Runs that open nothing: the model of a clear run, near enough, and transcripts that are noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.oracles.tables import random_job, random_tables, run, weights

from colonnade.attacks.transcript import Transcript
from colonnade.errors import FixedPointOverflow, JobError
from colonnade.messages import Dealt, Piece, Veil, Veiled
from colonnade.run.blind import dealers_of, hidden_of
from colonnade.run.federate import Tables, run_tables

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


@pytest.mark.parametrize(
    ("algorithm", "sections", "words"),
    [
        ("vfb-saga", {}, "use vfb-sgd"),
        ("vfb-sgd", {"train": {"step": "auto"}}, "give a number"),
        ("vfb-sgd", {"train": {"ahead": 2}}, "synchronous"),
        ("vfb-sgd", {"train": {"loss": "smooth_hinge"}}, "use 'logistic' or 'squared'"),
        ("vfb-sgd", {"secure": {**HIDDEN, "reveal": "never"}}, "use 'owner'"),
        ("vfb-sgd", {"secure": {"labels": "clear", "scores": "hidden"}}, "set labels = 'blind'"),
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
