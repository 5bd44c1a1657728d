"""Two companies and nobody else: trained blind under encryption between daemons that accept no leak."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import job, lay_out, settled, together
from tests.deploy.joined import ids_of

from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import ColonnadeError, Refused

NAMES = ("bank", "shop")
NOTHING = "accept = []\nmin_rows = 20\n"
FEW = 'accept = ["few-rows"]\nmin_rows = 20\n'


def terms(**secure: Any) -> Terms:
    train = {"epochs": 100, "l2": 1e-3}
    return job(NAMES, algorithm="lbfgs", train=train, secure={"labels": "blind", **secure})


def test_few_rows_are_trained_on_where_job_and_policies_say_so(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, NAMES, bank=FEW, shop=FEW)
    wanted = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> Any:
        with pytest.raises(ColonnadeError, match=r"secure.few_rows: \d+ rows for \d columns of \w+ are few"):
            await daemons["bank"].train(terms())
        for name in NAMES:
            await settled(daemons[name])
        accepted = terms(few_rows=True)
        manifest = await daemons["bank"].train(accepted)
        for name in NAMES:
            await settled(daemons[name])
        request = commands.PredictRequest(accepted.name, [wanted], "applicants")
        found = await verbs._predict(daemons["bank"], request, lambda event: None)
        return manifest, [row["score"] for row in found["rows"] if row is not None]

    manifest, scores = together(consortium, program)
    assert manifest.kind == "linear"
    assert manifest.metrics["test_accuracy"] > 0.6
    assert len(scores) > 20


def test_a_policy_that_accepts_nothing_refuses_clear_labels_and_few_rows(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, NAMES, bank=NOTHING, shop=NOTHING)

    async def program(daemons: dict[str, Daemon]) -> None:
        with pytest.raises(Refused, match="leaks 'scores'"):
            await daemons["bank"].train(terms(labels="clear"))
        with pytest.raises(Refused, match="leaks 'few-rows'"):
            await daemons["bank"].train(terms(few_rows=True))
        # what follows is refused for its rows alone: nothing in the job is
        with pytest.raises(ColonnadeError, match=r"secure.few_rows: \d+ rows"):
            await daemons["bank"].train(terms())

    together(consortium, program)
