"""Every run says what it gives away, in the words that fit its conversation and its parties."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.oracles.tables import random_job, random_tables

from colonnade.job.presets import PRESETS
from colonnade.losses import LOSSES, Loss
from colonnade.run.federate import plan_for
from colonnade.run.notes import notes


@pytest.mark.parametrize("algorithm", PRESETS)
def test_every_algorithm_gives_something_away_unless_it_is_alone(algorithm: str) -> None:
    privacy = {"mechanism": "gradient", "epsilon": 1.0} if algorithm == "vafl-dp" else {}
    found = {}
    for parties in (1, 4):
        setting = random_tables(parties=parties, active=1)
        plan, _ = plan_for(random_job(setting, algorithm, privacy=privacy), setting)
        found[parties] = notes(plan)
    assert found[4]
    assert found[1] == ["one party: nothing is sent to anybody"]
    told_theta = any("theta" in note for note in found[4])
    assert told_theta == (PRESETS[algorithm].conversation in ("backward", "full"))


@pytest.mark.parametrize(
    ("secure", "evaluate_every", "said"),
    [
        ({}, 1, None),
        ({}, 0, "secure.proofs = 2"),
        ({"proofs": 2}, 0, None),
        ({"scores": "hidden"}, 0, "in the end"),
    ],
)
def test_a_run_that_nobody_measures_says_that_a_wrong_word_stays_unseen(
    secure: dict[str, object], evaluate_every: int, said: str | None
) -> None:
    setting = random_tables(parties=3, active=1)
    train = {"step": 0.1, "evaluate_every": evaluate_every}
    job = random_job(setting, "vfb-sgd", train=train, secure={"labels": "blind", **secure})
    found = [note for note in notes(plan_for(job, setting)[0]) if "nothing is measured" in note]
    assert len(found) == (said is not None)
    assert all(said in note for note in found if said)


@pytest.mark.parametrize(
    ("parties", "scores", "said"),
    [(2, "open", None), (3, "open", "up to 2.5 times"), (3, "hidden", "up to 5 times")],
)
def test_a_run_with_dealers_says_how_dear_encryption_would_be(
    parties: int, scores: str, said: str | None
) -> None:
    setting = random_tables(parties=parties, active=1)
    job = random_job(setting, "lbfgs", secure={"labels": "blind", "scores": scores})
    found = [note for note in notes(plan_for(job, setting)[0]) if "as dear" in note]
    assert len(found) == (said is not None)
    assert all(said in note for note in found if said)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_a_run_says_what_theta_of_its_loss_tells(loss: Loss) -> None:
    setting = random_tables(parties=3, active=1)
    plan, _ = plan_for(random_job(setting, "vfb2-sgd", secure={"labels": "clear"}), setting)
    plan = structs.replace(plan, objective=structs.replace(plan.objective, loss=loss.name))
    assert any(note.endswith(f": {loss.theta_tells}") for note in notes(plan))
