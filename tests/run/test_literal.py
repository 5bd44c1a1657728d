"""Algorithms to their papers' letter: what a job gets, who must say `labels`, how bad ends are kept."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.oracles.tables import pooled, random_tables, weights

from colonnade.deploy.terms.contract import terms_from
from colonnade.errors import Diverged, JobError
from colonnade.job import job_from
from colonnade.job.presets import PRESETS, defaults_of
from colonnade.run.federate import Finished, run_tables
from colonnade.run.resolve import compose

PAGES = Path(__file__).parents[2] / "docs" / "algorithms"
LITERAL = sorted(name for name, preset in PRESETS.items() if preset.literal)


LINES = re.compile(r"The name\s+`([\w-]+-paper)`\s+stands\s+for\s(?:[^\n]+\n)+\n((?:    [^\n]+\n)+)")


def lines_of(page: Path) -> tuple[str, dict[str, Any]]:
    """The literal preset that a page is about, and the lines of a job that it says its name stands for."""
    found = LINES.findall(page.read_text())
    assert len(found) == 1, page
    ((name, lines),) = found
    return name, tomllib.loads("\n".join(line.strip() for line in lines.splitlines()))


@pytest.mark.parametrize("page", ["vfb2", "asysqn", "asyrevel", "fdskl", "czofo"])
def test_a_literal_preset_is_what_its_page_says(page: str) -> None:
    name, lines = lines_of(PAGES / f"{page}.md")
    data = {"train": "a9a", "parties": 3, "active": 2}
    said, meant = job_from({**lines, "data": data}), job_from({"algorithm": name, "data": data})
    assert msgspec.structs.replace(said, algorithm=name) == meant
    assert {"algorithm": name.removesuffix("-paper"), **defaults_of(PRESETS[name], {})} == lines


def test_the_paper_s_active_parties_of_fdskl_have_a_step_each_under_way() -> None:
    job = job_from({"algorithm": "fdskl-paper", "data": {"train": "a9a", "parties": 3, "active": 3}})
    assert compose(job).ahead(3) == 3
    assert compose(job_from({"algorithm": "fdskl", "data": {"train": "a9a", "parties": 3}})).ahead(3) == 1


def trained(name: str, **train: Any) -> Finished:
    """Train a preset as it is, but for what is given, on a small table."""
    tables = random_tables(parties=3, active=3 if "asysqn" in name else 1, rows=80)
    data = {"train": "random", "parties": 3, "active": len(tables.active)}
    job = {"algorithm": name, "world": "simulated", "data": data, "train": {"epochs": 2, **train}}
    return run_tables(job_from(job), tables)


@pytest.mark.parametrize("name", LITERAL)
def test_a_literal_preset_draws_rows_and_has_a_better_twin(name: str) -> None:
    assert PRESETS[name].summary.startswith("as published, line by line")
    assert name.removesuffix("-paper") in PRESETS
    job = job_from({"algorithm": name, "data": {"train": "a9a", "parties": 3}})
    assert job.train.sampling == "replacement"
    assert job.train.step != "auto" or job.direction.pairs == "paper"
    assert job.secure.labels is None, "no preset says it for the job"


@pytest.mark.usefixtures("usual_labels")
@pytest.mark.parametrize("name", LITERAL)
def test_labels_are_in_clear_on_one_machine_with_a_line_that_says_so(name: str) -> None:
    done = trained(name)
    assert any("as published, labels in clear" in note for note in done.result.privacy.notes)
    ours = compose(job_from({"algorithm": "vfb2-saga", "data": {"train": "a9a", "parties": 3}}))
    assert ours.job.secure.labels == "blind"


@pytest.mark.parametrize("name", LITERAL)
def test_between_companies_a_job_says_labels_itself(name: str) -> None:
    holders = "abc" if "asysqn" in name else "a"
    parties = {party: {"data": "rows", "label": party in holders} for party in "abc"}
    plain: dict[str, Any] = {"name": "score", "algorithm": name, "parties": parties}
    with pytest.raises(JobError, match=r'labels = "clear", or .* algorithm = "' + name[:-6] + '"'):
        terms_from(plain)
    said = terms_from({**plain, "secure": {"labels": "clear", "accept_leak": True}})
    assert said.secure.labels == "clear"


def test_a_run_to_the_letter_that_ends_badly_is_kept_and_marked() -> None:
    done = trained("vfb2-sgd-paper", step=300.0)
    assert done.result.converged is False
    assert any("vfb2-sgd-paper ends at a loss of" in note for note in done.result.privacy.notes)
    assert (
        done.result.metrics["train_loss"] > done.result.metrics["untrained_loss"] == pytest.approx(np.log(2))
    )
    assert np.isfinite(weights(done)).all()


def test_a_run_to_the_letter_that_only_ends_early_is_not_marked() -> None:
    done = trained("vfb2-saga-paper", step=1e-3, tolerance=1e-9)
    assert done.result.converged is False
    assert not any("ends at a loss" in note for note in done.result.privacy.notes)
    assert "untrained_loss" not in done.result.metrics


def test_the_paper_s_pairs_astray_advise_what_their_paper_picks() -> None:
    tables = random_tables(parties=3, active=3, rows=80)
    data = {"train": "random", "parties": 3, "active": 3}
    job = {"algorithm": "asysqn-svrg", "world": "simulated", "data": data, "train": {"epochs": 3, "batch": 8}}
    picked = {"pairs": "paper", "delta": 0.01, "step": 1.0}
    with pytest.raises(Diverged, match=r"a larger direction\.delta, or another direction\.step"):
        run_tables(job_from({**job, "direction": picked}), tables)


def test_vfb2_sgd_is_the_paper_s_line_by_line() -> None:
    """One dominator, single rows drawn with replacement, w - gamma (theta x + lambda w), nothing else."""
    tables = random_tables(parties=3, active=1, rows=60)
    data = {"train": "random", "parties": 3, "active": 1, "intercept": False}
    train = {"epochs": 2, "batch": 1, "step": 0.1, "l2": 1e-3, "loss": "logistic"}
    job = job_from({"algorithm": "vfb2-sgd-paper", "world": "simulated", "data": data, "train": train})
    done = run_tables(job, tables)
    X, y = pooled(tables)
    w = np.zeros(X.shape[1])
    for epoch in range(2):
        for i in np.random.default_rng([job.seed, epoch, 1]).integers(len(y), size=len(y)):
            theta = -y[i] / (1 + np.exp(y[i] * (X[i] @ w)))
            w -= 0.1 * (theta * X[i] + 1e-3 * w)
    np.testing.assert_allclose(weights(done), w, atol=1e-6)
