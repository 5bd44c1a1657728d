"""The label holder reads others' bins row by row off exact histograms, and nothing off those that owners tell
by default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.oracles.tables import random_job, random_tables

from colonnade.attacks.case import Case
from colonnade.attacks.registry import ATTACKS
from colonnade.attacks.transcript import Transcript
from colonnade.attacks.tree_bins import bins_from_small_sums
from colonnade.attacks.verdict import on_bins
from colonnade.findings import Finding
from colonnade.run.federate import run_tables
from colonnade.trees.bins import Cuts

SMALL_SUMS = next(attack for attack in ATTACKS if attack.name == "bins from small sums")


def found_with(**trees: Any) -> tuple[Finding, float]:
    """What an audit says of a run, and which part of the bins that the attack names are right."""
    setting = random_tables(parties=3, active=1, rows=1000, columns=9)
    job = random_job(
        setting,
        "secureboost",
        world="local",
        train={"epochs": 6},
        trees={"max_bin": 32, **trees},
        secure={"labels": "clear"},
    )
    transcript = Transcript("party0")
    done = run_tables(structs.replace(job, compare=False), setting, tap=transcript.tap)
    own, share = setting.train["party0"], done.shares["party0"]
    case = Case(done.plan, "party0", transcript, own, share, {}, lambda model: transcript)
    assert SMALL_SUMS.applies(case)
    guess, right = bins_from_small_sums(case), []
    for party, bins in guess.bins.items():
        codes = Cuts.of(setting.train[party].X, 32, done.plan.seed).codes(setting.train[party].X).T
        right.append((bins == codes)[bins >= 0])
    named = np.concatenate(right)
    return on_bins(SMALL_SUMS, case, guess, setting.train), float(named.mean()) if len(named) else 0.0


def test_exact_histograms_give_bins_away_row_by_row() -> None:
    found, right = found_with(bits=0)
    assert found.found
    assert (found.value or 0) > (found.baseline or 0) + 0.15
    assert right > 0.98


@pytest.mark.parametrize("trees", [{}, {"noise": 0.0}])  # or all that is left of it in the mean of many trees
def test_what_owners_tell_by_default_does_not(trees: dict[str, Any]) -> None:
    found, _ = found_with(**trees)
    assert (found.value or 0) < (found.baseline or 0) + 0.05


@pytest.mark.parametrize("trees", [{"noise": 0.0, "bin_rows": 0, "node_rows": 0}])
def test_few_bits_alone_are_not_enough(trees: dict[str, Any]) -> None:
    found, _ = found_with(**trees)
    assert (found.value or 0) > (found.baseline or 0) + 0.05
