"""The attack finds every label where replies are exact, and nothing where they are private."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.oracles.tables import random_job, random_tables

from colonnade.attacks.transcript import Transcript
from colonnade.attacks.zeroth_order import DIGITS, Probe, Recovery, judge, passive, read_off
from colonnade.conversations.cascade.row_order import BatchRows, passes_of
from colonnade.job import Job
from colonnade.messages import Embeddings, Reply, Upload
from colonnade.models.blackbox import Model
from colonnade.run.federate import Tables, plan_for, run_tables

CLIENT = "party1"
PRIVATE = {"mechanism": "scalar", "epsilon": 1.0}


def attack(setting: Tables, job: Job, *, probing: bool = False) -> tuple[Recovery, Transcript]:
    rows, (plan, _) = setting.train[CLIENT].rows, plan_for(job, setting)
    transcript = Transcript(CLIENT)
    models: dict[str, Model] = {}
    if probing:
        walk = BatchRows(passes_of(plan, CLIENT, rows))
        private = job.privacy.mechanism != "none"
        probe = Probe(walk, rows, job.cascade.directions + 1, 1 if private else DIGITS)
        models[CLIENT] = probe
    run_tables(structs.replace(job, compare=False), replace(setting, models=models), tap=transcript.tap)
    score = read_off(probe, transcript, plan) if probing else passive(transcript, plan, rows)
    y = setting.train["party0"].y
    assert y is not None
    return judge(score, y), transcript


def setting_and_job(rows: int = 300, **sections: Any) -> tuple[Tables, Job]:
    setting = random_tables(parties=3, active=1, rows=rows)
    train = {"evaluate_every": 0, "step": 0.05, **sections.pop("train", {})}
    return setting, random_job(setting, "asyrevel-gau", world="local", train=train, **sections)


def test_a_client_that_only_takes_part_learns_every_label_of_single_rows() -> None:
    found, _ = attack(*setting_and_job(train={"batch": 1, "epochs": 2}, cascade={"directions": 1}))
    assert found.accuracy == 1.0
    assert found.covered > 0.9
    assert found.baseline < 0.6


def test_batches_hide_labels_only_for_a_while() -> None:
    found, _ = attack(*setting_and_job(train={"batch": 8, "epochs": 10}))
    assert found.accuracy > found.baseline + 0.25


def test_a_client_that_probes_learns_every_label_of_large_batches() -> None:
    found, _ = attack(*setting_and_job(train={"batch": 100, "epochs": 3}), probing=True)
    assert (found.accuracy, found.covered) == (1.0, 1.0)


@pytest.mark.parametrize("probing", [False, True], ids=["passive", "probing"])
def test_private_replies_leave_the_attack_at_its_baseline(probing: bool) -> None:
    setting, job = setting_and_job(
        1500, train={"batch": 250, "epochs": 10}, privacy=PRIVATE, cascade={"directions": 8}
    )
    found, _ = attack(setting, job, probing=probing)
    assert found.accuracy < found.baseline + 0.08
    assert 0.35 < found.auc < 0.65


def test_a_transcript_holds_what_one_party_says_and_hears_and_no_more() -> None:
    setting, job = setting_and_job(train={"batch": 50, "epochs": 1})
    _, transcript = attack(setting, job)
    assert {other for other, _ in [*transcript.said, *transcript.heard] if other == CLIENT} == set()
    kinds = {type(message) for _, message in transcript.said}
    assert {Upload, Embeddings} <= kinds
    assert Reply not in kinds
    uploads = [m for _, m in transcript.said if isinstance(m, Upload)]
    replies = [m for _, m in transcript.heard if isinstance(m, Reply)]
    assert [m.tag for m in uploads] == [m.tag for m in replies]


def test_the_judge_is_generous_and_honest() -> None:
    y = np.array([1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
    perfect = judge(np.array([3.0, 2.0, 1.0, 0.5, -1.0, -2.0]), y)  # a threshold at 1.5 finds all
    assert (perfect.accuracy, perfect.auc) == (1.0, 1.0)
    silent = judge(np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0]), y)
    assert silent.covered == 0.5
    assert silent.accuracy == pytest.approx(silent.baseline) == pytest.approx(2 / 3)
