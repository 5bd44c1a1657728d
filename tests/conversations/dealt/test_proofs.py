"""`lbfgs` with hidden scores: its finished model is shown to be an optimum, or the run ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.conversations.dealt.test_dealt import HIDDEN, fit, made
from tests.oracles.tables import random_job

from colonnade.arrays import Words
from colonnade.conversations.linear.noisy import whole_columns
from colonnade.conversations.linear.noisy.optimum import check_rows
from colonnade.conversations.linear.parties import dealt
from colonnade.conversations.linear.parties.dealt import DealtParty
from colonnade.errors import ColonnadeError, SumError
from colonnade.run.blind import noise_left
from colonnade.secure.product import Dealer, Lot

PROVEN, PASSES, ROWS = {**HIDDEN, "proofs": 2}, 12, 2400
ROW = 2.0 ** (whole_columns.BITS + dealt.theta_bits(ROWS))  # what a row of largest theta adds to a sum


def spoil(monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Words], None]) -> None:
    """Let whoever deals for party1 deal other sums: [1, passes and proofs, columns]."""
    due = Dealer.deal

    def deal(self: Dealer, lot: Lot) -> tuple[list[Words], Words]:
        scores, sums = due(self, lot)
        if self.roles.asker == "party0" and self.roles.owner == "party1":
            wrong(sums)
        return scores, sums

    monkeypatch.setattr(Dealer, "deal", deal)


@pytest.mark.parametrize(("loss", "parties", "rows"), [("logistic", 3, 800), ("squared", 4, 800)])
def test_no_honest_run_ends_by_a_proof(loss: str, parties: int, rows: int) -> None:
    tables = made(loss, parties=parties, rows=rows)
    for _ in range(25):
        assert fit(tables, PROVEN, train={"loss": loss}).result.metrics["objective"] > 0


def test_a_word_that_is_wrong_in_the_last_pass_ends_the_run_or_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A step by a gradient that is far off may be short, as its pair says that the loss bends much."""
    tables = made(rows=ROWS)
    usual = fit(tables, HIDDEN).result.metrics["objective"]

    def wrong(sums: Words) -> None:
        sums[0, PASSES - 1, 0] += np.uint64(500 * ROW)

    spoil(monkeypatch, wrong)
    rises, ended = {0: [0.0], 2: [0.0]}, set()
    for number in range(40):
        if number >= 5 and max(rises[0]) > 0.05 and "secure.proofs" in ended:
            break
        for proofs, found in rises.items():
            try:
                loss = fit(tables, {**HIDDEN, "proofs": proofs}).result.metrics["objective"]
                found.append(loss / usual - 1)
            except ColonnadeError as error:
                ended.add(str(error).split(":")[0])
    assert max(rises[0]) > 0.05  # a model that nobody knows to be wrong
    assert max(rises[2]) < 0.03
    assert "secure.proofs" in ended


@pytest.mark.parametrize("sign", [1, -1])
def test_a_dealer_that_is_wrong_by_the_same_number_has_to_guess_a_sign(
    sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = made(rows=ROWS)
    usual = fit(tables, HIDDEN).result.metrics["objective"]

    def wrong(sums: Words) -> None:
        sums[0, :, 0] += np.uint64(100 * ROW)

    spoil(monkeypatch, wrong)
    monkeypatch.setattr(DealtParty, "_sign", lambda self, number: sign)
    if sign == -1:
        with pytest.raises(ColonnadeError, match=r"secure\.proofs: the model is no optimum"):
            fit(tables, PROVEN)
    else:  # and the label holder draws it by chance
        assert fit(tables, PROVEN).result.metrics["objective"] > 1.03 * usual


def test_the_label_holder_draws_signs_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, due = [], DealtParty._sign

    def noted(self: DealtParty, number: int) -> int:
        drawn.append(due(self, number))
        return drawn[-1]

    monkeypatch.setattr(DealtParty, "_sign", noted)
    for _ in range(5):
        fit(made(rows=800), {**HIDDEN, "proofs": 8})
    assert len(drawn) == 40
    assert {-1, 1} == set(drawn)
    assert 4 < drawn.count(1) < 36  # but for one run of this test in a million


def test_rows_far_on_the_wrong_side_end_the_run() -> None:
    """A column of few rows has next to no gradient however far its weight is off."""
    margins = np.full(1000, 2.0)
    check_rows(margins - 20)  # a loss of 18 in each
    margins[0] = -30.0
    with pytest.raises(SumError, match="rows whose scores are far on the wrong side have"):
        check_rows(margins)


def test_a_proof_costs_no_more_than_a_product() -> None:
    tables = made(rows=ROWS)
    sent = [_sent(fit(tables, {**HIDDEN, "proofs": proofs})) for proofs in (0, 2)]
    assert sent[0] < sent[1] < 1.04 * sent[0]


def test_proofs_are_gradients_of_which_noise_is_counted() -> None:
    tables, train = made(rows=800), {"epochs": PASSES}
    asked = ({**HIDDEN, "proofs": proofs} for proofs in (0, 4))
    left = [noise_left(random_job(tables, "lbfgs", secure=secure, train=train)) for secure in asked]
    assert left[0] / left[1] == pytest.approx(np.sqrt(16 / 12))
    terms: dict[str, Any] = {**HIDDEN, "epsilon": 1.0}
    rows = [_loudness(tables, {**terms, "proofs": proofs}) for proofs in (0, 4)]
    assert rows[1] / rows[0] == pytest.approx(np.sqrt(16 / 12), rel=0.1)


def _sent(done: Any) -> int:
    return sum(share.traffic.bytes_sent for share in done.shares.values())


def _loudness(tables: Any, secure: dict[str, Any]) -> float:
    told = []
    begun = DealtParty.begin

    def noted(self: DealtParty, *given: Any) -> None:
        told.append(self.loudness.rows)
        begun(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DealtParty, "begin", noted)
        fit(tables, secure)
    return told[0]
