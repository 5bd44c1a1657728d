"""Every run says what it gives away, in the words that fit its conversation and its parties."""

from __future__ import annotations

import pytest
from tests.oracles.tables import random_job, random_setting

from colonnade.job.presets import PRESETS
from colonnade.losses import LOSSES
from colonnade.run.notes import THETA, disclosures


@pytest.mark.parametrize("algorithm", PRESETS)
def test_every_algorithm_gives_something_away_unless_it_is_alone(algorithm: str) -> None:
    privacy = {"mechanism": "gradient", "epsilon": 1.0} if algorithm == "vafl-dp" else {}
    job = random_job(random_setting(parties=4), algorithm, privacy=privacy)
    assert disclosures(job, 4)
    assert disclosures(job, 1) == ["one party: nothing is sent to anybody"]
    told_theta = any("theta" in note for note in disclosures(job, 4))
    assert told_theta == (PRESETS[algorithm].conversation == "backward")


def test_every_loss_has_a_theta_that_tells_something() -> None:
    assert THETA.keys() == LOSSES.keys()
