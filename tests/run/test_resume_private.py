"""Private runs that were cut off: the same noise again, or replies that are counted before they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.run.test_resume import cut, order_of

from colonnade.arrays import Rows
from colonnade.conversations.cascade.private_replies import PrivateReplies
from colonnade.errors import CheckpointError, ShareError
from colonnade.privacy.accountant import epsilon_of, multiplier_for
from colonnade.run.launch import launch
from colonnade.run.world import Launch

LABELS = {"mechanism": "labels", "epsilon": 1.0}
GRADIENT = {"mechanism": "gradient", "epsilon": 4.0}
SCALAR = {"mechanism": "scalar", "epsilon": 4.0}


def going_on(order: Launch) -> Launch:
    return Launch(order.plan, order.data, out=order.out, resume=True)


@pytest.mark.parametrize(
    ("algorithm", "sections"),
    [
        ("vfb2-sgd", {"secure": {"labels": "clear"}, "privacy": LABELS, "holders": 1}),
        ("split", {"privacy": GRADIENT, "world": "local"}),
        ("vafl-dp", {"privacy": GRADIENT}),
    ],
)
def test_noise_on_labels_is_the_same_again_and_so_are_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str, sections: dict[str, Any]
) -> None:
    monkeypatch.setattr("colonnade.conversations.gates.secrets.token_bytes", bytes)  # one key for both: zeros
    expected = launch(order_of(algorithm, tmp_path / "whole", **sections))
    order = order_of(algorithm, tmp_path / "cut", **sections)
    for epoch in (1, 3, 5):
        cut(order, epoch)
        order = going_on(order)
    found = launch(order)
    holder = order.plan.evaluator
    assert (found[holder].epsilon or 0.0) >= (expected[holder].epsilon or 0.0) > 0
    assert (found[holder].epsilon or 0.0) <= sections["privacy"]["epsilon"] + 1e-6
    for party, share in expected.items():
        for name, array in share.weights.items():
            assert np.array_equal(array, found[party].weights[name]), (party, name)
    assert not list((tmp_path / "cut").rglob("*.note"))


@pytest.mark.parametrize("algorithm", ["synrevel-gau", "asyrevel-gau"])
def test_replies_that_may_have_been_given_stay_spent_however_often_a_run_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    given = np.zeros(60, dtype=np.int64)  # in all sessions together
    labels = PrivateReplies.labels
    answers = 4 if algorithm.startswith("syn") else 1  # to a wave

    def noted(self: PrivateReplies, rows: Rows) -> Any:
        given[rows] += answers
        return labels(self, rows)

    monkeypatch.setattr(PrivateReplies, "labels", noted)
    order = order_of(algorithm, tmp_path, privacy=SCALAR, checkpoint={"every": 3})
    for _ in range(3):  # before there is any checkpoint
        cut(order, 1)
        order = going_on(order)
    found = launch(order)
    holder = order.plan.evaluator
    epsilon, told = found[holder].epsilon or 0.0, int(given.max())
    allowed = 6 * 4 if answers == 4 else 6 * 4 + 3
    multiplier = multiplier_for(4.0, order.plan.privacy.delta, allowed)
    assert epsilon >= epsilon_of(multiplier, told, order.plan.privacy.delta)
    assert epsilon <= 4.0 + 1e-6
    assert told <= allowed


def test_a_reply_that_cannot_be_counted_is_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, name: str, body: bytes) -> None:
        raise ShareError("no space left on device")

    monkeypatch.setattr("colonnade.records.Records.note", full)
    for algorithm, privacy in (("synrevel-gau", SCALAR), ("vfb2-sgd", LABELS)):
        sections: dict[str, Any] = {"secure": {"labels": "clear"}} if privacy is LABELS else {}
        with pytest.raises(ShareError, match="no space left"):
            launch(order_of(algorithm, tmp_path, holders=1, privacy=privacy, **sections))


@pytest.mark.parametrize("damage", ["lost", "torn"])
def test_a_run_whose_key_is_lost_does_not_draw_another(tmp_path: Path, damage: str) -> None:
    order = order_of("split", tmp_path, privacy=GRADIENT)
    cut(order, 3)
    (key,) = tmp_path.rglob("noise.note")
    key.write_bytes(key.read_bytes()[:-1]) if damage == "torn" else key.unlink()
    with pytest.raises(CheckpointError, match="start again"):
        launch(going_on(order))


def test_a_run_that_began_with_noise_in_doubles_is_not_gone_on_with(tmp_path: Path) -> None:
    order = order_of("split", tmp_path, privacy=GRADIENT)
    cut(order, 3)
    (key,) = tmp_path.rglob("noise.note")
    key.rename(key.with_name("secret.note"))  # as version 0.2 wrote it
    with pytest.raises(CheckpointError, match="whose noise was another"):
        launch(going_on(order))
