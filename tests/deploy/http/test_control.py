"""The verbs of a daemon over HTTP: its client, roles, errors, OpenAPI, and certificates instead of tokens."""

from __future__ import annotations

import asyncio
import json
import ssl
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import lay_out, read_decisions, settle, settled, together
from tests.patience import until

from colonnade.client import ControlError, DaemonClient
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http.routes import ROUTES
from colonnade.deploy.settings import read_settings
from colonnade.errors import JobError
from colonnade.net.stream.authority import issue
from colonnade.net.stream.port import free_ports

aiohttp = pytest.importorskip("aiohttp")

TOKENS = {name: f"a-token-of-{name}-that-is-long" for name in ("airflow", "grafana", "ada")}
ROLES = {"airflow": ["operator"], "grafana": ["viewer"], "ada": ["approver"]}
JOB = """name = "repaid"
algorithm = "vfb2-svrg"
seed = {seed}
[parties]
bank = {{ data = "customers", label = true }}
shop = {{ data = "customers" }}
telecom = {{ data = "customers" }}
[train]
epochs = 4
batch = 32
[secure]
labels = "clear"
"""
CONTROL, VIEWER = '[control]\nlisten = "{}:8410"\n', 'roles = ["viewer"]\n'
ASK = 'accept = ["labels", "scores"]\nmin_rows = 20\napproval = "ask"\n'


def people(folder: Path) -> str:
    """Settings of three people with a token each."""
    text = ""
    for name, token in TOKENS.items():
        (folder / f"token-{name}").write_text(token)
        (folder / f"token-{name}").chmod(0o600)
        text += f'[people.{name}]\ntoken_file = "token-{name}"\nroles = {ROLES[name]}\n'
    return text


def under_control(
    tmp_path: Path,
    program: Callable[[dict[str, Daemon], dict[str, DaemonClient]], Awaitable[None]],
    *,
    policies: dict[str, str] | None = None,
) -> None:
    """Run a program with clients for the daemons of the bank and the shop, by person and party."""
    from colonnade.deploy.http.control_server import ControlServer

    given: dict[str, Any] = dict(policies or {})
    consortium = lay_out(tmp_path, **given)
    ports = dict(zip(("bank", "shop"), free_ports(2), strict=True))
    for name, port in ports.items():
        more = f'[control]\nlisten = "127.0.0.1:{port}"\n' + people(tmp_path / name)
        settle(consortium, name, (policies or {}).get(name, ""), more)

    async def main(daemons: dict[str, Daemon]) -> None:
        servers = []
        for name in ports:
            control = daemons[name].settings.control
            assert control is not None
            servers.append(ControlServer(daemons[name], control))
            await servers[-1].open()
        clients = {
            f"{person}@{name}": DaemonClient(f"http://127.0.0.1:{port}", token=token)
            for person, token in TOKENS.items()
            for name, port in ports.items()
        }
        try:
            await program(daemons, clients)
        finally:
            for server in servers:
                await server.close()

    together(consortium, main)


async def do(function: Callable[..., Any], *words: Any, **more: Any) -> Any:
    """Ask as a program elsewhere does, while the daemons of this process answer."""
    return await asyncio.to_thread(function, *words, **more)


def test_a_pipeline_proposes_waits_promotes_and_scores(tmp_path: Path) -> None:
    async def program(daemons: dict[str, Daemon], clients: dict[str, DaemonClient]) -> None:
        airflow, ada = clients["airflow@bank"], clients["ada@shop"]
        (tmp_path / "job.toml").write_text(JOB.format(seed=1))
        run = await do(airflow.propose, tmp_path / "job.toml", alone=True, if_better="auc")
        with pytest.raises(ControlError, match="goes on or waits here") as busy:
            await do(airflow.propose, tmp_path / "job.toml", alone=True)
        assert busy.value.exit_code == 4
        await until(lambda: bool(daemons["shop"].approvals.held))
        (waiting,) = await do(ada.get, "proposals")
        assert waiting["run"] == run["run"]
        assert waiting["reads"]
        decision = await do(ada.approve, run["run"], waiting["digest"])
        assert (decision["what"], decision["who"]) == ("approved", "ada (token)")
        found = await do(airflow.wait, run["run"], timeout=60)
        assert found["gate"].startswith("promoted by airflow (token)")
        assert found["bytes_sent"] > 0
        (model,) = await do(airflow.get, "models")
        assert model["in_use"]
        with pytest.raises(ControlError, match="is in use for repaid") as used:
            await do(airflow.delete, model["model"])
        assert used.value.exit_code == 2
        lines = await do(clients["grafana@bank"].journal)
        assert [each["what"] for each in lines if each["type"] == "decision"] == ["proposed", "promoted"]
        assert lines[0]["number"] == 1
        assert await do(airflow.journal, "2999-01-01") == []
        scores = await do(airflow.scores, "repaid", [["C00401", "C00402"]], "applicants")
        assert [row is not None for row in scores["rows"]] == [True, True]
        assert (await do(airflow.get, "runs"))[-1]["run"] == run["run"]
        assert (await do(airflow.get, "status"))["party"] == "bank"
        assert (await do(airflow.get, "budget"))["heard"]
        await settled(daemons["shop"])

    under_control(tmp_path, program, policies={"shop": ASK})
    decisions = read_decisions(tmp_path / "bank" / "runs" / "journal.jsonl")
    assert [(each.what, each.who) for each in decisions] == [
        ("proposed", "airflow (token)"),
        ("promoted", "airflow (token)"),
    ]


def test_a_model_that_is_not_better_is_kept_out_of_use(tmp_path: Path) -> None:
    async def program(daemons: dict[str, Daemon], clients: dict[str, DaemonClient]) -> None:
        airflow = clients["airflow@bank"]
        for seed, what in ((1, "promoted"), (2, "kept")):
            job = tomllib.loads(JOB.format(seed=seed))
            run = await do(airflow.propose, job, if_better="auc", by=1.0)
            assert (await do(airflow.wait, run["run"]))["gate"].startswith(what)
            worse = f"repaid-{run['run']}"
        models = {each["model"]: each["in_use"] for each in await do(airflow.get, "models")}
        assert list(models.values()) == [False, True]
        with pytest.raises(ControlError, match="has no test_loglik; there is") as wrong:
            await do(airflow.promote, next(iter(models)), if_better="loglik")
        assert wrong.value.exit_code == 2
        gone = await do(airflow.delete, worse, "it was not better")
        assert (gone["what"], gone["about"], gone["reason"]) == ("deleted", worse, "it was not better")
        models = {each["model"]: each["in_use"] for each in await do(airflow.get, "models")}
        assert list(models.values()) == [True]

    under_control(tmp_path, program)


def test_roles_bound_what_somebody_may_do(tmp_path: Path) -> None:
    async def program(daemons: dict[str, Daemon], clients: dict[str, DaemonClient]) -> None:
        viewer, approver = clients["grafana@bank"], clients["ada@bank"]
        assert (await do(viewer.get, "runs")) == []
        for refused in (
            (viewer.propose, tomllib.loads(JOB.format(seed=1))),
            (viewer.approve, "12345678", ""),
            (viewer.reload,),
            (approver.propose, tomllib.loads(JOB.format(seed=1))),
            (clients["airflow@bank"].approve, "12345678", ""),
        ):
            with pytest.raises(ControlError, match="may not do this: it takes the role") as error:
                await do(*refused)
            assert error.value.exit_code == 3
        assert not daemons["bank"].runs
        nobody = DaemonClient(viewer._url, token="a-token-that-nobody-has")  # noqa: S106
        with pytest.raises(ControlError, match="show a token"):
            await do(nobody.get, "runs")

    under_control(tmp_path, program)


def test_errors_are_those_of_the_commands(tmp_path: Path) -> None:
    async def program(daemons: dict[str, Daemon], clients: dict[str, DaemonClient]) -> None:
        airflow = clients["airflow@bank"]
        job = tomllib.loads(JOB.format(seed=1))
        for words, code, text in (
            (lambda: airflow.propose({**job, "algorithm": "vfb2"}), 2, "vfb2"),
            (lambda: airflow.wait(airflow.propose({**job, "algorithm": "vfb2-sgd"})["run"]), 3, "shop ref"),
            (lambda: airflow.stop("12345678"), 2, "no run 12345678 goes on"),
            (lambda: airflow.wait("12345678"), 2, "no run 12345678 is known here"),
            (lambda: airflow._ask("POST", "/v1/runs", {"jobs": {}}), 2, "unknown field"),
            (lambda: airflow._ask("GET", "/v1/nothing"), 2, "Not Found"),
        ):
            with pytest.raises(ControlError, match=text) as error:
                await do(words)
            assert error.value.exit_code == code
        form = {"Authorization": f"Bearer {TOKENS['airflow']}", "Content-Type": "text/plain"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{airflow._url}/v1/reload", data="{}", headers=form) as answer,
        ):
            assert answer.status == 415
        for daemon in list(daemons.values())[1:]:
            await daemon.close()
        with pytest.raises(ControlError, match="is away") as error:
            await do(airflow.propose, job)
        assert error.value.exit_code == 4

    only = 'accept = ["labels", "scores"]\nmin_rows = 20\nalgorithms = ["vfb2-svrg"]\n'
    under_control(tmp_path, program, policies={"shop": only})


def test_the_openapi_document_has_every_address(tmp_path: Path) -> None:
    async def program(daemons: dict[str, Daemon], clients: dict[str, DaemonClient]) -> None:
        url = clients["ada@bank"]._url
        async with aiohttp.ClientSession() as session, session.get(f"{url}/openapi.json") as answer:
            document = json.loads(await answer.text())
        assert document["openapi"] == "3.1.0"
        for route in ROUTES:
            said = document["paths"][route.path][route.method.lower()]
            assert ("requestBody" in said) == (route.body is not None)
            schema = said["responses"]["200"]["content"]["application/json"]["schema"]
            assert schema
        text = json.dumps(document)
        for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
            assert name in document["components"]["schemas"]
        # what is answered is what the document says
        run = await do(clients["airflow@bank"].propose, tomllib.loads(JOB.format(seed=3)))
        await do(clients["airflow@bank"].wait, run["run"])
        schemas = document["components"]["schemas"]
        for name, found in (
            ("RunView", (await do(clients["ada@bank"].get, "runs"))[0]),
            ("ModelView", (await do(clients["ada@bank"].get, "models"))[0]),
            ("DaemonStatus", await do(clients["ada@bank"].get, "status")),
        ):
            assert set(schemas[name].get("required", ())) <= set(found) <= set(schemas[name]["properties"])

    under_control(tmp_path, program)


def test_certificates_instead_of_tokens(tmp_path: Path) -> None:
    """A server with TLS asks for a certificate; the name in it is a person, and nobody else is."""
    from colonnade.deploy.http.control_server import ControlServer

    consortium = lay_out(tmp_path)
    (port,) = free_ports(1)
    authority = tmp_path / "authority"
    for name in ("localhost", "airflow.bank.example", "stranger"):
        issue(authority, name)
    at = {name: str(authority / name) for name in ("localhost", "airflow.bank.example", "stranger", "ca")}
    more = f"""[control]
listen = "127.0.0.1:{port}"
certificate = "{at["localhost"]}.crt"
key = "{at["localhost"]}.key"
client_ca = "{at["ca"]}.crt"
[people.airflow]
certificate = "airflow.bank.example"
roles = ["operator"]
"""
    settle(consortium, "bank", more=more)

    async def program(daemons: dict[str, Daemon]) -> None:
        control = daemons["bank"].settings.control
        assert control is not None
        server = ControlServer(daemons["bank"], control)
        await server.open()
        try:
            url, ca = f"https://localhost:{port}", f"{at['ca']}.crt"
            known, stranger = (
                DaemonClient(url, ca=ca, certificate=f"{at[name]}.crt", key=f"{at[name]}.key")
                for name in ("airflow.bank.example", "stranger")
            )
            assert (await do(known.get, "status"))["party"] == "bank"
            for client in (stranger, DaemonClient(url, ca=ca)):
                with pytest.raises(ControlError, match="show a token"):
                    await do(client.get, "status")
            with pytest.raises(ControlError, match=r"[Cc]ertificate|SSL") as error:
                await do(DaemonClient(url).get, "status")  # without the authority of the company
            assert error.value.exit_code == 4
        finally:
            await server.close()

    together(consortium, program)
    assert ssl.HAS_TLSv1_3


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (f'{CONTROL.format("10.0.0.5")}[people.a]\ntoken_file = "t"\n{VIEWER}', "is encrypted"),
        (CONTROL.format("127.0.0.1"), r"nobody in \[people\] has a token_file or a certificate"),
        (f"[people.a]\n{VIEWER}", "say how it is known"),
        ('[people.a]\nuser = "a"\nroles = []\n', "roles is empty"),
        (f'[people.a]\nuser = "a"\n{VIEWER}[people.b]\nuser = "a"\n{VIEWER}', "the same user"),
        ('[people.a]\nuser = "a"\nroles = ["king"]\n', "roles"),
    ],
)
def test_people_that_cannot_be_are_refused(tmp_path: Path, more: str, why: str) -> None:
    consortium = lay_out(tmp_path)
    settle(consortium, "bank", more=more)
    with pytest.raises(JobError, match=why):
        read_settings(consortium.config("bank"))
    settle(consortium, "bank", 'approvals = 2\n[people.a]\nuser = "a"\nroles = ["approver"]\n')
    with pytest.raises(JobError, match=r"approvals = 2, and 1 of \[people\] are approvers"):
        read_settings(consortium.config("bank"))
