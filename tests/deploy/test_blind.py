"""Blind labels between companies: a policy that refuses clear labels, training, storing and joint scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.companies import NAMES, job, lay_out, settled, together
from tests.deploy.joined import ids_of
from tests.deploy.runs.test_runs import scores_of

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.terms.contract import terms_from
from colonnade.errors import JobError, Refused

STRICT = 'accept = ["scores"]\nmin_rows = 20\n'


def trained_and_asked(root: Path, secure: dict[str, str], asker: str = "bank") -> tuple[Any, Any]:
    """The bank's manifest of a run at companies that accept no clear labels, and 20 applicants' scores."""
    consortium = lay_out(root, NAMES, bank=STRICT, shop=STRICT, telecom=STRICT)
    ids = ids_of(root / "bank" / "applicants.csv", "id")[:20]

    async def program(daemons: dict[str, Daemon]) -> tuple[Any, Any]:
        manifest = await daemons["bank"].train(job(secure=secure, split={"test": 0.2, "validation": 0.2}))
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        return manifest, await scores_of(daemons[asker], ids, "applicants")

    manifest, found = together(consortium, program)
    return manifest, [row["score"] for row in found["rows"]]


def test_blind_runs_train_store_and_score_where_clear_labels_are_refused(tmp_path: Path) -> None:
    manifest, blind = trained_and_asked(tmp_path / "blind", {"labels": "blind"})
    assert manifest.metrics["test_auc"] > 0.8
    kept, never = trained_and_asked(tmp_path / "never", {"labels": "blind", "reveal": "never"})
    assert kept.metrics["validation_auc"] == pytest.approx(manifest.metrics["validation_auc"], abs=0.01)
    assert np.corrcoef(never, blind)[0, 1] > 0.999  # other terms, and so another split of the rows
    share = stored_shares.load(tmp_path / "never" / "shop" / "runs" / "models", "repaid")
    assert "w" not in share.arrays
    with pytest.raises(Refused, match="leaks 'labels'"):
        trained_and_asked(tmp_path / "clear", {"labels": "clear"})


@pytest.mark.parametrize(
    ("secure", "every", "proofs"),
    [
        ({}, 0, 2),
        ({}, 1, 0),
        ({"proofs": 0}, 0, 0),
        ({"proofs": 1}, 1, 1),
        ({"labels": "clear"}, 0, 0),
        ({"scores": "hidden"}, 0, 0),
    ],
)
def test_a_job_that_measures_nothing_has_its_weights_proven(
    secure: dict[str, Any], every: int, proofs: int
) -> None:
    """Or else a wrong word of a dealer would make another model, and nobody would know."""
    told: dict[str, Any] = {"name": "repaid", "algorithm": "vfb-sgd"}
    told["secure"] = {"labels": "blind", **secure}
    told["train"] = {"evaluate_every": every, "tolerance": 0.0, "step": 0.1}
    told["parties"] = {name: {"data": "customers", "label": name == "bank"} for name in NAMES}
    assert terms_from(told).secure.proofs == proofs


def test_a_job_of_hidden_scores_that_asks_for_proofs_is_refused() -> None:
    """And not trained without them: they would open scores."""
    told: dict[str, Any] = {"name": "repaid", "algorithm": "vfb-sgd", "train": {"step": 0.1}}
    told["secure"] = {"labels": "blind", "scores": "hidden", "proofs": 2}
    told["parties"] = {name: {"data": "customers", "label": name == "bank"} for name in NAMES}
    with pytest.raises(JobError, match=r"secure\.proofs: .* drop secure\.proofs"):
        terms_from(told)


@pytest.mark.parametrize("secure", [{"reveal": "never"}, {"scores": "hidden"}], ids=["never", "hidden"])
def test_a_neutral_party_without_columns_deals_for_all(tmp_path: Path, secure: dict[str, str]) -> None:
    """A bank and a shop, too few for blind labels by themselves, and a notary that has ids alone."""
    names = ("bank", "shop", "notary")
    consortium = lay_out(tmp_path, names, bank=STRICT, shop=STRICT, notary=STRICT)
    members: dict[str, Any] = {name: {"data": "customers", "label": name == "bank"} for name in names}
    members["notary"]["columns"] = []
    ids = ids_of(tmp_path / "bank" / "applicants.csv", "id")[:20]
    terms = job(
        names,
        parties=members,
        algorithm="vfb-sgd",
        train={"epochs": 6, "batch": 32, "step": 0.2},
        secure={"labels": "blind", "helper": "notary", **secure},
    )

    async def program(daemons: dict[str, Daemon]) -> tuple[Any, Any]:
        manifest = await daemons["bank"].train(terms)
        for name in ("shop", "notary"):
            await settled(daemons[name])
        return manifest, await scores_of(daemons["bank"], ids, "applicants")

    manifest, found = together(consortium, program)
    assert manifest.metrics["test_auc"] > 0.8
    assert len(found["rows"]) == 20
    held = stored_shares.load(tmp_path / "notary" / "runs" / "models", "repaid")
    assert held.manifest.columns == []
    assert all(not array.size for array in held.arrays.values())


def test_nobody_is_shown_the_exact_loss() -> None:
    with pytest.raises(JobError, match="exact loss"):
        job(secure={"labels": "blind"}, use={"loss_seen_by": "all"})
