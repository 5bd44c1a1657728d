"""Two companies and nobody else: trained blind under encryption between daemons that accept no leak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.deploy.companies import job, lay_out, settled, together
from tests.deploy.joined import ids_of
from tests.patience import until

from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.stored_shares import StoredShare
from colonnade.deploy.settings import Serve
from colonnade.deploy.terms.contract import read_terms, terms_from
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import ColonnadeError, JobError, Refused
from colonnade.net.stream.port import free_ports

NAMES = ("bank", "shop")
NOTHING = "accept = []\nmin_rows = 20\n"
FEW = 'accept = ["few-rows"]\nmin_rows = 20\n'


def terms(**secure: Any) -> Terms:
    train = {"epochs": 100, "l2": 1e-3}
    return job(NAMES, algorithm="lbfgs", train=train, secure={"labels": "blind", **secure})


@pytest.mark.parametrize(
    ("secure", "train", "reveal"),
    [
        ({}, {}, "never"),
        ({"reveal": "owner"}, {}, "owner"),
        ({"epsilon": 5.0}, {}, "owner"),
        ({}, {"loss": "poisson"}, "owner"),
        ({"labels": "clear"}, {}, "owner"),
        ({"labels": None}, {}, "never"),
    ],
)
def test_a_job_that_does_not_say_keeps_weights_in_parts_where_that_can_be(
    tmp_path: Path, secure: dict[str, Any], train: dict[str, Any], reveal: str
) -> None:
    keys = {key: value for key, value in {"labels": "blind", **secure}.items() if value is not None}
    lines = ['name = "repaid"', 'algorithm = "lbfgs"', "[secure]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    lines += ["[train]", *(f"{key} = {json.dumps(value)}" for key, value in train.items())]
    for name in NAMES:
        lines += [f"[parties.{name}]", 'data = "customers"', f"label = {json.dumps(name == 'bank')}"]
    path = tmp_path / "job.toml"
    path.write_text("\n".join(lines))
    assert read_terms(path).secure.reveal == reveal


@pytest.mark.parametrize("parties", [2, 3])
def test_a_job_that_does_not_say_never_trains_in_clear(parties: int) -> None:
    told: dict[str, Any] = {"name": "repaid", "algorithm": "lbfgs"}
    told["parties"] = {
        f"party{k}": {"data": "customers", **({"label": True} if k == 0 else {})} for k in range(parties)
    }
    assert terms_from(told).secure.labels == "blind"
    assert terms_from({**told, "secure": {"labels": "clear"}}).secure.labels == "clear"
    private = {"mechanism": "labels", "epsilon": 2.0}
    assert terms_from({**told, "privacy": private}).secure.labels is None  # what is told is noise already
    softmax = {"loss": "softmax", "classes": 3}
    with pytest.raises(ColonnadeError, match=r"softmax loss cannot be shared.*labels = 'clear' trains it"):
        terms_from({**told, "train": softmax})
    assert terms_from({**told, "train": softmax, "secure": {"labels": "clear"}}).secure.labels == "clear"


def test_weights_in_parts_train_on_few_rows_and_score_new_ones(tmp_path: Path) -> None:
    """With few rows and policies that accept nothing, as nobody is told anything of them."""
    consortium = lay_out(tmp_path, NAMES, bank=NOTHING, shop=NOTHING)
    wanted = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> Any:
        proposed = terms(reveal="never")
        manifest = await daemons["bank"].train(proposed)
        for name in NAMES:
            await settled(daemons[name])
        request = commands.PredictRequest(proposed.name, [wanted], "applicants")
        found = []
        for _ in range(2):
            rows = (await verbs._predict(daemons["bank"], request, lambda event: None))["rows"]
            found.append([row["score"] for row in rows if row is not None])
        return manifest, found

    manifest, found = together(consortium, program)
    assert manifest.metrics["test_accuracy"] > 0.6
    assert len(found[0]) > 20
    assert found[0] == pytest.approx(found[1], abs=2e-3)  # noise of a score is that of its row
    for name in NAMES:
        share = stored_shares.load(tmp_path / name / "runs" / "models", "repaid")
        assert "w" not in share.arrays
        assert {"own", "others", "turn"} <= set(share.arrays)


def test_an_owner_of_columns_is_told_no_scores_by_any_software(
    tmp_path: Path,
) -> None:
    """Its weights would follow from scores of rows that it chooses, and labels of rows from these."""
    consortium = lay_out(tmp_path, NAMES, bank=NOTHING, shop=NOTHING)
    wanted = ids_of(tmp_path / "shop" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(terms(reveal="never"))
        for name in NAMES:
            await settled(daemons[name])
        request = commands.PredictRequest("repaid", [wanted], "applicants")
        with pytest.raises(JobError, match=r"shop holds no label of repaid.*; ask at bank"):
            await verbs._predict(daemons["shop"], request, lambda event: None)
        share = stored_shares.load(tmp_path / "shop" / "runs" / "models", "repaid")
        manifest = share.manifest
        said = {name: replace(party, label=True) for name, party in manifest.terms.parties.items()}
        lies = StoredShare(replace(manifest, terms=replace(manifest.terms, parties=said)), share.arrays)
        with pytest.raises(ColonnadeError, match=r"shop holds no label of repaid.*, or asks with others"):
            await daemons["shop"].score(lies, None, never_used, data="applicants")

    async def never_used(ready: Any) -> None:
        raise AssertionError("a session was opened")

    together(consortium, program)


def test_a_service_scores_with_weights_that_nobody_knows(tmp_path: Path) -> None:
    aiohttp = pytest.importorskip("aiohttp")
    from colonnade.deploy.http.service import Service

    consortium = lay_out(tmp_path, NAMES, bank=NOTHING, shop=NOTHING)
    secret = "a-token-of-some-length"  # noqa: S105
    token = tmp_path / "bank" / "token"
    token.write_text(secret)
    token.chmod(0o600)
    (port,) = free_ports(1)
    serve = Serve(listen=f"127.0.0.1:{port}", model="repaid", data="applicants", token_file="token")  # noqa: S106
    applicants = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> tuple[Any, Any]:
        bank = daemons["bank"]
        await bank.train(terms(reveal="never"))
        for name in NAMES:
            await settled(daemons[name])
        request = commands.PredictRequest("repaid", [applicants], "applicants")
        batch = await verbs._predict(bank, request, lambda event: None)
        service = Service(bank, serve)
        await service.open()
        try:
            await until(lambda: service.session.ready)
            async with (
                aiohttp.ClientSession(headers={"Authorization": f"Bearer {secret}"}) as session,
                session.post(f"http://127.0.0.1:{port}/v1/score", json={"ids": applicants[:5]}) as answer,
            ):
                return batch["rows"][:5], (await answer.json())["scores"]
        finally:
            await service.close()

    batch, served = together(consortium, program)
    assert [row["found"] for row in served] == [row is not None for row in batch]
    both = [(one["score"], other["score"]) for one, other in zip(served, batch, strict=True) if other]
    assert both
    for one, other in both:  # a row's noise is the same wherever it is scored, but for rounding
        assert one == pytest.approx(other, abs=2e-3)


def test_few_rows_are_trained_on_where_job_and_policies_say_so(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, NAMES, bank=FEW, shop=FEW)
    wanted = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> Any:
        with pytest.raises(ColonnadeError, match=r"secure.few_rows: \d+ rows for \d columns of \w+ are few"):
            await daemons["bank"].train(terms(reveal="owner"))
        for name in NAMES:
            await settled(daemons[name])
        accepted = terms(reveal="owner", few_rows=True)
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
            await daemons["bank"].train(terms(reveal="owner"))

    together(consortium, program)
