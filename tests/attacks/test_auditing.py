"""An audit of runs: every party of every conversation is tried, and finds what is there and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.oracles.tables import random_job, random_tables

from colonnade.arrays import Words
from colonnade.attacks import confidence
from colonnade.attacks.audit import audit, audit_run
from colonnade.attacks.closing import CLOSED_BY
from colonnade.attacks.registry import ATTACKS
from colonnade.errors import DataError
from colonnade.findings import Finding, read_findings, write_findings
from colonnade.job import job_from
from colonnade.job.presets import PRESETS
from colonnade.privacy.label_noise import NoisyLabels
from colonnade.run.federate import Tables, plan_for
from colonnade.run.gather_result import DataFacts
from colonnade.run.world import Launch
from colonnade.secure.product import Lot
from colonnade.secure.streams import Stream
from colonnade_bench.micro.noise import in_doubles


def audited(tables: Tables, algorithm: str, **sections: Any) -> dict[tuple[str, str], Finding]:
    """What every attack of every party found, by party and attack."""
    job = structs.replace(random_job(tables, algorithm, **sections), compare=False)
    plan, data = plan_for(job, tables)
    done = audit_run(job, DataFacts("random"), Launch(plan, data))
    alone = [each for each in done.findings if not each.attack.endswith(", together") and each.aim != "ids"]
    assert {each.by for each in alone} == set(tables.train)  # nobody is left out
    return {(each.by, each.attack): each for each in alone}


THETA = "labels from theta"


@pytest.mark.parametrize("algorithm", ["vfb2-sgd", "vfb2-svrg", "lbfgs"])
@pytest.mark.parametrize(
    "options", [{}, {"classes": 3}, {"regression": True}], ids=["two", "three", "number"]
)
def test_theta_gives_every_label_away(algorithm: str, options: dict[str, Any]) -> None:
    tables = random_tables(parties=3, active=1, rows=120, **options)
    loss = {"classes": "softmax", "regression": "squared"}.get(next(iter(options), ""), "logistic")
    train = {"epochs": 3, "loss": loss, **({"classes": 3} if "classes" in options else {})}
    found = audited(tables, algorithm, train=train)["party2", THETA]
    assert found.found
    assert found.value is not None
    assert found.value > (0.999 if loss != "squared" or algorithm == "lbfgs" else 0.9)


def test_one_matrix_over_all_blocks_rides_behind_theta_and_is_no_obstacle() -> None:
    tables = random_tables(parties=3, active=1, rows=120)
    direction = {"train": {"epochs": 3, "direction": "lbfgs", "step": "auto"}}
    assert audited(tables, "vfb2-svrg", **direction)["party1", THETA].value == 1.0


def lonely(tables: Tables) -> Tables:
    """The tables with a single column at every party but the first, so that two parties hide nothing."""
    train = {
        party: table if party == "party0" else replace(table, X=table.X[:, :1], columns=table.columns[:1])
        for party, table in tables.train.items()
    }
    return replace(tables, train=train)


@pytest.mark.parametrize("algorithm", ["vfb2-saga", "afsvrg-vp", "fd-svrg", "lbfgs"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_score_of_one_other_column_is_that_column(algorithm: str, loss: str) -> None:
    tables = lonely(random_tables(parties=2, active=1, rows=200, columns=4, regression=loss == "squared"))
    train = {"epochs": 12, "loss": loss, "step": "auto", "tolerance": 0}
    if algorithm != "lbfgs":
        train["batch"] = 20
    found = audited(tables, algorithm, train=train)["party0", "columns from joint scores"]
    assert found.value is not None
    assert found.baseline is not None
    assert found.value > 0.95 > 0.9 > found.baseline


def test_many_columns_hide_each_other() -> None:
    tables = random_tables(parties=4, active=1, rows=200, columns=80)
    found = audited(tables, "lbfgs", train={"epochs": 30})["party0", "columns from joint scores"]
    assert found.value is not None
    assert found.value < 0.6


MODEL = {"outputs": 1, "server": {"kind": "linear"}}


def test_clients_of_cascades_read_labels_off_their_replies() -> None:
    tables = random_tables(parties=3, active=1, rows=90)
    train = {"epochs": 2, "batch": 20, "step": 0.01, "evaluate_every": 0}
    gradients = audited(tables, "vafl", train=train, model=MODEL)
    assert gradients["party1", "labels from gradients"].value == 1.0
    train = {"epochs": 2, "batch": 1, "step": 0.01, "evaluate_every": 0}
    values = audited(tables, "asyrevel-gau", train=train, cascade={"directions": 1})
    assert values["party2", "labels from function values"].value == 1.0
    assert values["party2", "labels from probes"].value == 1.0
    assert values["party0", "none of ours applies"].found is None


@pytest.mark.parametrize("omega", ["shared", "private"])
def test_owners_of_features_solve_for_columns_where_directions_are_shared(omega: str) -> None:
    tables = random_tables(parties=4, active=1, rows=120, columns=12)
    kernel = {"block": 16, "features": 64, "omega": omega, "bits": 32}
    train = {"batch": 16, "epochs": 2, "loss": "logistic"}
    found = audited(tables, "fdskl-capped", train=train, kernel=kernel)["party0", "columns from angles"]
    assert found.value is not None
    assert (found.value > 0.999) == (omega == "shared")
    assert found.value > 0.999 or found.value < 0.7


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_labels_by_coin_bound_epsilon_from_below(epsilon: float) -> None:
    tables = random_tables(parties=2, active=1, rows=2000, columns=4)
    privacy = {"mechanism": "labels", "epsilon": epsilon}
    found = audited(tables, "lbfgs", train={"epochs": 3}, privacy=privacy)
    bound = found["party1", f"epsilon, by {THETA}"].value
    assert bound is not None
    # of 4,000 draws of 500 coins one hundredth was above epsilon, and none above 1.2 of it or below 0.35
    assert 0.3 * epsilon < bound < 1.3 * epsilon


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_algorithm_can_be_audited(name: str) -> None:
    tables = random_tables(parties=3, active=1, rows=60, columns=6)
    train: dict[str, Any] = {"epochs": 1, "evaluate_every": 0}
    if name == "lbfgs":
        train["evaluate_every"] = 1
    sections: dict[str, Any] = {"privacy": {"mechanism": "gradient", "epsilon": 2.0}} if "dp" in name else {}
    assert audited(tables, name, train=train, **sections)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    parts = [confidence.of_part(int(hits), 50) for hits in rng.binomial(50, 0.8, 400)]
    assert 0.93 < np.mean([low <= 0.8 <= high for _, low, high in parts]) <= 1
    draws = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], size=(400, 60))
    spans = [confidence.of_correlation(float(np.corrcoef(pair.T)[0, 1]), 60) for pair in draws]
    assert 0.91 < np.mean([low <= 0.4 <= high for _, low, high in spans]) < 0.98


def test_what_was_found_is_stored_and_read(tmp_path: Path) -> None:
    found = [Finding(attack="labels", by="b", success="62%", value=0.62, found=True)]
    write_findings(tmp_path / "audit.json", found)
    assert read_findings(tmp_path / "audit.json") == found
    (tmp_path / "audit.json").write_text("{}")
    with pytest.raises(DataError, match="colonnade audit"):
        read_findings(tmp_path / "audit.json")


@pytest.mark.parametrize("algorithm", ["vfb-sgd", "vfb-svrg", "vfb-saga"])
def test_blind_labels_stay_hidden_from_every_owner(algorithm: str) -> None:
    tables = random_tables(parties=4, active=1, rows=900)
    train = {"epochs": 2, "batch": 64}
    found = audited(tables, algorithm, train=train, secure={"labels": "blind"})
    for party in ("party1", "party2", "party3"):
        veiled = found[party, "labels from veiled words"]
        assert veiled.value is not None
        assert veiled.baseline is not None
        assert veiled.value < veiled.baseline + 0.1, veiled  # six standard deviations
    assert ("party1", THETA) not in found
    assert ("party0", "columns from joint scores") in found


def test_labels_show_where_nothing_veils_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack on veiled words finds every label as soon as the words are not random."""

    def nothing(self: Lot, streams: Sequence[Stream]) -> list[Words]:
        return [0 * mask for mask in masks(self, streams)]

    masks = Lot.masks
    monkeypatch.setattr(Lot, "masks", nothing)
    tables = random_tables(parties=3, active=1, rows=300)
    found = audited(tables, "vfb-sgd", train={"epochs": 1, "batch": 64}, secure={"labels": "blind"})
    assert found["party1", "labels from veiled words"].found


def test_packed_columns_are_read_off_weights_that_are_told_finely() -> None:
    tables = random_tables(parties=3, active=1, rows=400)
    found = audited(tables, "vfb2-sgd", secure={"labels": "blind"}, train={"epochs": 1})
    packed = found["party1", "labels from packed columns"]
    assert packed.value is not None
    assert packed.value > 0.95
    assert "closed by secure.reveal = 'never'" in packed.note
    hidden = audited(tables, "vfb2-sgd", secure={"labels": "blind", "reveal": "never"}, train={"epochs": 1})
    assert ("party1", "labels from packed columns") not in hidden


def test_every_attack_says_what_closes_it_and_has_a_row_in_the_docs() -> None:
    assert {each.name for each in ATTACKS} == set(CLOSED_BY)
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text("utf-8")
    first = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]
    named = {name.strip() for names in first for name in names.split(";")}
    assert {each.name for each in ATTACKS} | {GAPS[1]} <= named


@pytest.mark.parametrize("noise", [None, 2.0])
def test_evidence_of_many_columns_gives_labels_away_unless_counts_have_noise(
    noise: float | None, tmp_path: Path
) -> None:
    """A party with columns of chance: their WOE is about nothing but labels."""
    rng, rows = np.random.default_rng(2), 400
    table: dict[str, Any] = {f"c{k}": rng.standard_normal(rows) for k in range(120)}
    table |= {"own": rng.standard_normal(rows), "more": rng.random(rows)}
    table["y"] = np.where(rng.random(rows) < 0.4, "bad", "good")
    lines = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    (tmp_path / "all.csv").write_text(",".join(table) + "\n" + "\n".join(lines) + "\n")
    shop = [name for name in table if name[0] == "c"]
    raw = {
        "algorithm": "vfb2-sgd",
        "data": {
            "train": str(tmp_path / "all.csv"),
            "label": "y",
            "positive": ["bad"],
            "columns": {"bank": ["own"], "shop": shop, "rest": ["more"]},
            "woe": True,
        },
        "secure": {"labels": "clear"},
        "train": {"epochs": 1},
        "woe": {"least": 15, "cases": 4, "bins": 8, **({} if noise is None else {"noise": noise})},
    }
    found = audit(job_from(raw)).findings
    attack = next(e for e in found if (e.attack, e.by) == ("labels from weight of evidence", "shop"))
    assert attack.value is not None
    if noise is None:
        assert attack.value > 0.99
        assert "closed by woe.noise" in attack.note
    else:
        assert attack.value < 0.75


GAPS = ("party1", "labels from gaps of noise")


def test_an_audit_asks_which_label_noise_can_have_become(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise in doubles, as it once was, gives most labels away by its gaps; on the grid there are none."""
    tables = random_tables(parties=2, active=1, rows=1200, regression=True)
    privacy = {"mechanism": "labels", "epsilon": 0.5, "delta": 1e-5}
    sections: dict[str, Any] = {"train": {"epochs": 1, "loss": "squared"}, "privacy": privacy}
    on_grid = audited(tables, "lbfgs", **sections)[GAPS]
    assert on_grid.found is False
    assert on_grid.baseline is not None
    assert on_grid.baseline < 0.6

    def in_gaps(self: NoisyLabels, rows: Any) -> Any:
        return in_doubles(self.grid.values(self.points[rows]), self.grid.deviation, np.random.default_rng(3))

    monkeypatch.setattr(NoisyLabels, "__call__", in_gaps)
    in_doubles_found = audited(tables, "lbfgs", **sections)[GAPS]
    assert in_doubles_found.found
    assert in_doubles_found.value is not None
    assert in_doubles_found.value > 0.85  # epsilon allows 62%
    assert "this is a fault" in in_doubles_found.closed_by


def test_classes_drawn_by_chance_have_no_gaps() -> None:
    tables = random_tables(parties=2, active=1, rows=200)
    privacy = {"mechanism": "labels", "epsilon": 1.0}
    assert GAPS not in audited(tables, "lbfgs", train={"epochs": 1}, privacy=privacy)
