"""Which model a name stands for: pinned at first use, changed by operators only, checked with the peers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.deploy.companies import ADA, job, lay_out, read_decisions, together
from tests.deploy.models.test_stored_shares import stored
from tests.patience import until

from colonnade.deploy.daemon import commands, control, operators
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.serving import Serving
from colonnade.deploy.settings import Serve
from colonnade.errors import JobError, PeerUnreachable, ShareError
from colonnade.net.stream.port import free_ports


def test_a_name_stands_for_what_was_promoted(tmp_path: Path) -> None:
    models = tmp_path / "models"
    old = stored(models, "000000f0", "2026-01-01T00:00:00+00:00")
    serving = Serving(tmp_path)
    assert serving.find("repaid").model == old.model  # nothing was promoted: the newest
    serving.promote(old, "ada")
    new = stored(models, "00000020", "2026-02-01T00:00:00+00:00")
    assert Serving(tmp_path).find("repaid").model == old.model  # another process, a newer model
    assert serving.find(new.model).model == new.model
    rung: list[str] = []
    serving.listeners.append(lambda: rung.append(""))
    serving.promote(new, "ada")
    assert (serving.before("repaid"), len(rung)) == (old.model, 1)
    serving.rollback("repaid")
    assert serving.load("repaid").manifest.model == old.model
    with pytest.raises(JobError, match=f"no model was in use for repaid before {old.model}"):
        serving.rollback("repaid")
    (models / old.model / "manifest.json").unlink()
    with pytest.raises(ShareError, match="was promoted for repaid and is not here"):
        serving.find("repaid")
    (tmp_path / "serving.json").write_text("{")
    with pytest.raises(ShareError, match=r"serving\.json: cannot be read"):
        serving.find("repaid")


def test_promotion_asks_the_peers_and_changes_the_service_without_a_restart(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    from colonnade.deploy.http.service import Service

    consortium = lay_out(tmp_path)
    (port,) = free_ports(1)
    token = tmp_path / "bank" / "token"
    token.write_text("a-token-of-some-length")
    token.chmod(0o600)
    serve = Serve(listen=f"127.0.0.1:{port}", model="repaid", data="applicants", token_file="token")  # noqa: S106

    async def train(daemons: dict[str, Daemon], **changes: Any) -> str:
        manifest = await daemons["bank"].train(job(**changes))
        path = f"runs/models/{manifest.model}/manifest.json"
        await until(lambda: all((tmp_path / name / path).exists() for name in ("shop", "telecom")))
        return manifest.model

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        bank = daemons["bank"]
        first = await train(daemons)
        service = Service(bank, serve)
        await service.open()
        try:

            async def answers_with(model: str) -> None:
                await until(lambda: service.session.ready and service.session.share.manifest.model == model)

            await answers_with(first)
            second = await train(daemons, seed=5)
            service.session.refresh()
            await asyncio.sleep(0.2)
            await answers_with(first)  # a newer model does not take over, nor after a new session
            with pytest.raises(JobError, match="is a name; say which of its models"):
                await operators.promote(bank, "repaid", ADA)
            await operators.promote(bank, second, ADA)
            await answers_with(second)
            with pytest.raises(JobError, match="is in use for repaid already"):
                await operators.promote(bank, second, ADA)
            await operators.rollback(bank, None, ADA)
            await answers_with(first)
            await refusals(daemons, second)
        finally:
            await service.close()
        return [first, second]

    async def refusals(daemons: dict[str, Daemon], second: str) -> None:
        bank, shop = daemons["bank"], daemons["shop"]
        with pytest.raises(JobError, match="shop holds no label of"):
            await operators.promote(shop, second, ADA)
        weights = tmp_path / "shop" / "runs" / "models" / second / "weights.npz"
        content = weights.read_bytes()
        weights.write_bytes(b"damaged")
        with pytest.raises(ShareError, match=f"shop has no usable share of {second}"):
            await operators.promote(bank, second, ADA)
        weights.write_bytes(content)
        manifest = weights.with_name("manifest.json")
        plain = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**plain, "alignment": "ff"}))
        with pytest.raises(ShareError, match="shop holds a share of another run"):
            await operators.promote(bank, second, ADA)
        await daemons["telecom"].close()
        with pytest.raises(PeerUnreachable, match="telecom is away"):
            await operators.promote(bank, second, ADA)
        await operators.promote(bank, second, ADA, ask_peers=False)

    first, second = together(consortium, program)
    written = read_decisions(tmp_path / "bank" / "runs" / "journal.jsonl")
    assert [(each.what, each.who, each.about) for each in written] == [
        ("pinned", "service", first),
        ("promoted", "ada (command)", second),
        ("rolled back", "ada (command)", first),
        ("promoted", "ada (command)", second),
    ]
    assert written[0].digest == stored_shares.find(tmp_path / "bank" / "runs" / "models", first).digest


def test_a_stranger_learns_nothing_of_a_model(tmp_path: Path) -> None:
    """Whoever had no part in a model is told what it would be told if there were none."""
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> list[str]:
        manifest = await daemons["bank"].train(job(("bank", "shop")))
        await until(lambda: not daemons["shop"].runs)
        holdings = daemons["telecom"].shares_held
        return [
            await holdings._problem("shop", replace(manifest, model=model))
            for model in (manifest.model, "nothing-00000010")
        ]

    known, unknown = together(consortium, program)
    assert known.replace("repaid", "nothing")[:30] == unknown[:30]
    assert known.partition(": ")[2] == unknown.partition(": ")[2] != ""


def test_commands_decide(tmp_path: Path) -> None:
    """The requests of commands reach the same verbs, and the user of this machine is written down."""
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> Any:
        manifest = await daemons["bank"].train(job())
        server = await control.serve(daemons["bank"])
        replies = [
            [reply async for reply in commands.ask(daemons["bank"].settings, request)][-1]
            for request in (
                commands.PromoteRequest(manifest.model),
                commands.ProposalsRequest(),
                commands.DecideRequest("00000010", approve=True),
                commands.RollbackRequest(),
                commands.LoginRequest(),
            )
        ]
        server.close()
        return manifest, replies

    manifest, (promoted, waiting, missing, before, login) = together(consortium, program)
    assert (promoted.result["what"], promoted.result["about"]) == ("promoted", manifest.model)
    assert promoted.result["who"].endswith("(command)")
    assert waiting.result == []
    assert (missing.code, "no proposal 00000010 waits here" in missing.error) == (2, True)
    assert "no model was in use for repaid before" in before.error
    assert "there is no page; set monitor and monitor_token_file" in login.error
