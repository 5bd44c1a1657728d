"""A client reads every label off exact gradients; off private ones, no more than the mechanism lets it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from scipy.special import ndtr
from tests.oracles.tables import random_job, random_tables

from colonnade.attacks.split_labels import judge_sides, sides
from colonnade.attacks.transcript import Transcript
from colonnade.attacks.zeroth_order import Recovery
from colonnade.privacy.accountant import multiplier_for
from colonnade.privacy.label_noise import keep_probability
from colonnade.run.federate import run_tables

CLIENT, ROWS = "party1", 1500
MODEL = {"outputs": 3, "server": {"kind": "linear"}}


def attack(algorithm: str, **sections: Any) -> Recovery:
    setting = random_tables(parties=3, active=1, rows=ROWS)
    train = {"evaluate_every": 0, "step": 0.01, "batch": 50, "epochs": 3}
    job = random_job(setting, algorithm, world="local", train=train, model=MODEL, **sections)
    transcript = Transcript(CLIENT)
    plan = run_tables(structs.replace(job, compare=False), setting, tap=transcript.tap).plan
    y = setting.train["party0"].y
    assert y is not None
    return judge_sides(sides(transcript, plan, ROWS), y)


@pytest.mark.parametrize("algorithm", ["vafl", "split", "czofo-coord"])
def test_without_a_mechanism_every_label_is_read_off_the_replies(algorithm: str) -> None:
    found = attack(algorithm)
    assert found.accuracy > 0.99
    assert found.covered > 0.99
    assert found.baseline < 0.6


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize("algorithm", ["vafl", "czofo-coord"])
def test_of_randomised_labels_as_many_are_right_as_were_kept(algorithm: str, epsilon: float) -> None:
    found = attack(algorithm, privacy={"mechanism": "labels", "epsilon": epsilon})
    bound = keep_probability(epsilon, 2)  # an advantage of (e^epsilon - 1) / (e^epsilon + 1) over guessing
    assert abs(found.accuracy - bound) < 5 * np.sqrt(0.25 / ROWS)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_noisy_gradients_leave_what_all_draws_together_tell(epsilon: float) -> None:
    found = attack("vafl-dp", privacy={"epsilon": epsilon})
    alone = multiplier_for(epsilon, 1e-5, 1)
    bound = float(ndtr(0.5 / alone))  # the best test between two normal distributions this far apart
    assert bound <= np.exp(epsilon) / (1 + np.exp(epsilon))
    # the judge's threshold suits the attacker best after the fact, which is worth a little
    assert found.accuracy < bound + 5 * np.sqrt(0.25 / ROWS)
    assert found.accuracy > found.baseline or epsilon < 2
