"""A cascade is measured as often as the job says, also within an epoch, on training and on test rows."""

from __future__ import annotations

import pytest
from tests.oracles.tables import random_tables, run

from colonnade.errors import JobError

TRAIN = {"epochs": 2, "batch": 20, "step": 0.1}


@pytest.mark.parametrize(("every", "marks"), [(0, 1), (1, 2), (0.5, 4), (0.25, 8), (1e-9, 2 * 2 * 8)])
def test_marks_lie_where_the_job_puts_them(every: float, marks: int) -> None:
    setting = random_tables(parties=2, active=1, rows=160, test_rows=80)
    done = run(setting, "vafl", train={**TRAIN, "evaluate_every": every})
    history = done.result.history
    assert len(history) == marks
    answers = 2 * 2 * 8
    assert [moment.rounds for moment in history] == [answers * (k + 1) // marks for k in range(marks)]
    assert all(0 <= moment.test["test_accuracy"] <= 1 for moment in history)
    last = {key: value for key, value in done.result.metrics.items() if key in history[-1].test}
    assert history[-1].test == last
    sent = [moment.bytes for moment in history]
    assert sent == sorted(sent)


def test_without_test_rows_the_history_has_the_training_loss_alone() -> None:
    done = run(random_tables(parties=2, active=1, rows=160), "czofo", train=TRAIN)
    assert [moment.test for moment in done.result.history] == [{}, {}]


def test_algorithms_that_pull_are_measured_after_whole_epochs() -> None:
    with pytest.raises(JobError, match="whole epochs"):
        run(random_tables(parties=2, active=1), "afsgd-vp", train={"evaluate_every": 0.5})
