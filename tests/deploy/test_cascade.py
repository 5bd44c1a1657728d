"""Private models below and one on top, between daemons: every family trains, stores its shares and scores."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from tests.deploy.companies import NAMES, job, lay_out, propose, settled, together
from tests.deploy.joined import ids_of

from colonnade.cli import main
from colonnade.data.read.files import load
from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import export, stored_shares
from colonnade.deploy.models import party_models as models
from colonnade.deploy.negotiate.agreement import Agreement
from colonnade.deploy.settings import read_settings
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Proposal
from colonnade.errors import ColonnadeError, ModelError, Refused
from colonnade.job import with_defaults
from colonnade.job.presets import PRESETS

TRAIN = {"epochs": 12, "batch": 32, "l2": 1e-4}


async def trained_and_scored(
    root: Path, daemons: dict[str, Daemon], terms: Any, asker: str = "bank"
) -> tuple[Any, list[Any]]:
    manifest = await daemons["bank"].train(terms)
    for name in NAMES[1:]:
        await settled(daemons[name])
    ids = ids_of(root / "bank" / "applicants.csv", "id")[:20]
    asked = commands.PredictRequest(terms.name, [ids], "applicants")
    found = await verbs._predict(daemons[asker], asked, lambda event: None)
    return manifest, found["rows"]


def outputs_at(root: Path, name: str, wanted: list[str]) -> Any:
    """What a party's stored model makes of its own columns, computed from its files alone."""
    settings = read_settings(root / name / "party.toml")
    share = stored_shares.load(root / name / "runs" / "models", "repaid")
    raw = load(root / name / "applicants.csv", id="id")
    assert raw.ids is not None
    place = {each: k for k, each in enumerate(raw.ids)}
    X = share.preparation.transform(raw.take(np.array([place[each] for each in wanted]))).X
    model = models.own_model(settings, share.manifest.terms, int(X.shape[1]))
    return np.asarray(model.forward(share.arrays["w"][None], X))[0]


def joined_scores(root: Path) -> Any:
    """F0 of all outputs side by side, where one process reads all folders."""
    wanted = ids_of(root / "bank" / "applicants.csv", "id")[:20]
    C = np.concatenate([outputs_at(root, name, wanted) for name in NAMES], axis=1)
    share = stored_shares.load(root / "bank" / "runs" / "models", "repaid")
    terms, settings = share.manifest.terms, read_settings(root / "bank" / "party.toml")
    plan = Contract.of(terms).plan("bank", 1, 100)
    head = models.head_model(settings, terms, plan, 1)
    return head.forward(share.arrays["w0"][None], C)[0][:, 0]


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("asyrevel-gau", {}),
        ("synrevel-uni", {"model": {"server": {"kind": "linear"}}}),
        ("tig", {"model": {"outputs": 2, "server": {"kind": "linear"}}}),
    ],
    ids=["zeroth-sum", "zeroth-linear-server", "gradient-two-outputs"],
)
def test_linear_models_train_and_score(tmp_path: Path, algorithm: str, more: dict[str, Any]) -> None:
    consortium = lay_out(tmp_path)
    terms = job(algorithm=algorithm, train=TRAIN, split={"test": 0.2, "validation": 0.1}, **more)
    manifest, rows = together(consortium, lambda daemons: trained_and_scored(tmp_path, daemons, terms))
    assert manifest.kind == "cascade"
    assert manifest.metrics["test_auc"] > 0.9
    assert manifest.metrics["validation_auc"] > 0.8
    assert np.allclose([row["score"] for row in rows], joined_scores(tmp_path), atol=1e-5)
    for name in NAMES:
        share = stored_shares.load(tmp_path / name / "runs" / "models", "repaid")
        assert set(share.arrays) == ({"w", "w0"} if name == "bank" else {"w"})
        assert share.manifest.metrics.keys() == (manifest.metrics.keys() if name == "bank" else set())


def test_models_give_a_number_for_every_class_unless_the_job_says_how_many(tmp_path: Path) -> None:
    lay_out(tmp_path)
    settings = read_settings(tmp_path / "bank" / "party.toml")
    for asked, due in ({}, 3), ({"outputs": 2, "server": {"kind": "linear"}}, 2):
        terms = job(algorithm="split", train={**TRAIN, "loss": "softmax", "classes": 3}, model=asked)
        plan = Contract.of(terms).plan("bank", 4, 100)
        assert {plan.settings.model.of(party).width for party in NAMES} == {due}
        assert models.own_model(settings, terms, 4).parameters == 4 * due
        assert models.head_model(settings, terms, plan, 4).parameters == (len(NAMES) * 2 + 1) * 3 * (due == 2)


@pytest.mark.parametrize("algorithm", ["vafl", "czofo"])
def test_networks_train_and_score(tmp_path: Path, algorithm: str) -> None:
    pytest.importorskip("torch")
    consortium = lay_out(tmp_path)
    model = {"kind": "mlp", "hidden": [8], "outputs": 2, "server": {"kind": "mlp", "hidden": [8]}}
    terms = job(algorithm=algorithm, train={**TRAIN, "step": 0.5}, model=model)
    manifest, rows = together(consortium, lambda daemons: trained_and_scored(tmp_path, daemons, terms))
    assert manifest.metrics["test_auc"] > 0.85
    assert manifest.tensors["w"][0] == ("0.weight", (8, 2))  # income and age; a network has biases of its own
    assert np.allclose([row["score"] for row in rows], joined_scores(tmp_path), atol=1e-5)
    _exported_tensors_load_into_the_module(tmp_path)


def _exported_tensors_load_into_the_module(root: Path) -> None:
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file

    wanted = ids_of(root / "bank" / "applicants.csv", "id")[:20]
    config, share = str(root / "bank/party.toml"), stored_shares.load(root / "bank/runs/models", "repaid")
    raw = load(root / "bank" / "applicants.csv", id="id")
    assert raw.ids is not None
    place = {each: k for k, each in enumerate(raw.ids)}
    X = share.preparation.transform(raw.take(np.array([place[each] for each in wanted]))).X
    for part, columns, outputs in (("own", 2, 2), ("server", 6, 1)):
        out = root / f"{part}.safetensors"
        words = ["models", "export", "repaid", str(out), "--part", part, "-c", config]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        with safe_open(out, "np") as opened:
            assert opened.metadata()["party"] == "bank"
        module = torch.nn.Sequential(
            torch.nn.Linear(columns, 8), torch.nn.ReLU(), torch.nn.Linear(8, outputs)
        )
        module.load_state_dict(load_file(out))  # strict: every name, no other
        if part == "own":
            with torch.no_grad():
                found = module(torch.tensor(np.asarray(X), dtype=torch.float32)).numpy()
            assert np.allclose(found, outputs_at(root, "bank", wanted), atol=1e-6)


def test_what_a_module_keeps_beside_its_parameters_is_stored_restored_and_exported(tmp_path: Path) -> None:
    """Running means of a normalisation are drawn at random here, so a module built anew has others."""
    pytest.importorskip("torch")
    consortium = lay_out(tmp_path)
    (tmp_path / "telecom" / "net.py").write_text(
        "import torch\n"
        "def build(columns, outputs):\n"
        "    layers = torch.nn.Sequential(torch.nn.BatchNorm1d(columns), torch.nn.Linear(columns, outputs))\n"
        "    layers[0].running_mean.normal_()\n"
        "    return layers\n"
    )
    config = consortium.config("telecom")
    config.write_text(config.read_text() + "[models.net]\nkind = 'torch'\npath = 'net.py:build'\n")
    model = {"parties": {"telecom": {"kind": "torch", "name": "net"}}}
    terms = job(algorithm="vafl", train=TRAIN, model=model)
    _, rows = together(consortium, lambda daemons: trained_and_scored(tmp_path, daemons, terms))
    share = stored_shares.load(tmp_path / "telecom" / "runs" / "models", "repaid")
    assert share.arrays["w.0.running_mean"].shape == (1,)
    assert set(export.tensors_of(share, "own")) == {
        "0.weight", "0.bias", "0.running_mean", "0.running_var", "0.num_batches_tracked",
        "1.weight", "1.bias",
    }  # fmt: skip

    async def once_more(daemons: dict[str, Daemon]) -> Any:
        ids = ids_of(tmp_path / "bank" / "applicants.csv", "id")[:20]
        return await verbs._predict(
            daemons["bank"], commands.PredictRequest("repaid", [ids], "applicants"), lambda event: None
        )

    found = together(consortium, once_more)["rows"]
    assert np.allclose([r["score"] for r in found], [r["score"] for r in rows], atol=1e-7)


CASCADES = [p.name for p in PRESETS.values() if p.conversation in ("cascade", "exchange")]


@pytest.mark.parametrize("algorithm", CASCADES)
def test_every_cascade_can_be_deployed(tmp_path: Path, algorithm: str) -> None:
    names = ("bank", "shop")
    said = {"secure": {"labels": "clear"}} if PRESETS[algorithm].literal else {}
    plain = with_defaults({"algorithm": algorithm, "train": {"epochs": 1, "batch": 64}, **said})
    if PRESETS[algorithm].private:
        pytest.importorskip("dp_accounting")
        plain["privacy"] = {**plain["privacy"], "epsilon": 8.0}

    async def program(daemons: dict[str, Daemon]) -> Any:
        await daemons["shop"].train(job(names, **plain))
        await settled(daemons["bank"])
        ids = ids_of(tmp_path / "bank" / "applicants.csv", "id")
        asked = commands.PredictRequest("repaid", [ids], "applicants")
        return await verbs._predict(daemons["bank"], asked, lambda event: None)

    rows = together(lay_out(tmp_path, names), program)["rows"]
    assert len({row["score"] for row in rows}) > 40


def test_a_server_without_columns(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    for entry in ("customers", "applicants"):
        path = tmp_path / "bank" / f"{entry}.csv"
        lines = [line.split(",") for line in path.read_text().splitlines()]
        path.write_text("\n".join(",".join([line[0], *line[3:]]) for line in lines) + "\n")
    terms = job(
        algorithm="tig", train=TRAIN, prepare={"intercept": False}, model={"server": {"kind": "linear"}}
    )
    manifest, rows = together(consortium, lambda daemons: trained_and_scored(tmp_path, daemons, terms))
    assert set(stored_shares.load(tmp_path / "bank" / "runs" / "models", "repaid").arrays) == {"w0"}
    assert manifest.columns == []
    assert np.std([row["score"] for row in rows]) > 0.1


def test_a_label_holder_that_is_not_the_server_may_ask(tmp_path: Path) -> None:
    """The shop holds the label too; the server (the bank) applies F0 and the shop reads the score."""
    consortium = lay_out(tmp_path)
    path = tmp_path / "shop" / "customers.csv"
    lines = path.read_text().splitlines()
    known = dict(line.split(",")[::3] for line in (tmp_path / "bank/customers.csv").read_text().splitlines())
    kept = [line for line in lines[1:] if line.split(",")[0] in known]
    path.write_text(
        "\n".join([lines[0] + ",repaid", *(f"{line},{known[line.split(',')[0]]}" for line in kept)]) + "\n"
    )
    config = consortium.config("shop")
    config.write_text(config.read_text().replace('id = "id"\n', 'id = "id"\nlabel = "repaid"\n', 1))
    parties = {name: {"data": "customers", "label": name != "telecom"} for name in NAMES}
    terms = job(
        algorithm="syntig", train=TRAIN, parties=parties, model={"server": {"kind": "linear"}, "outputs": 2}
    )
    _, rows = together(consortium, lambda daemons: trained_and_scored(tmp_path, daemons, terms, "shop"))
    assert np.allclose([row["score"] for row in rows], joined_scores(tmp_path), atol=1e-5)
    assert {row["label"] for row in rows} <= {"yes", "no"}


# -- models that are code ---------------------------------------------------------------------------------

SCORES = """
import pathlib
import time
import numpy as np

pathlib.Path(__file__).with_suffix(".ran").touch()

def scores(w, rows):
    return np.tanh(rows @ w[:-1]) + w[-1]
"""
ALLOWED = '[models.bend]\nkind = "function"\npath = "bend.py:scores"\nparameters = 2\n'


def with_function(root: Path, *, allowed: bool = True) -> Any:
    consortium = lay_out(root)
    (root / "shop" / "bend.py").write_text(SCORES)
    if allowed:
        config = consortium.config("shop")
        config.write_text(config.read_text() + ALLOWED)
    return consortium


BEND = {"parties": {"shop": {"kind": "function", "name": "bend"}}}


def test_a_function_runs_where_its_own_party_allows_it(tmp_path: Path) -> None:
    consortium = with_function(tmp_path)
    terms = job(algorithm="asyrevel-gau", train=TRAIN, model=BEND)
    manifest, rows = together(consortium, lambda daemons: trained_and_scored(tmp_path, daemons, terms))
    assert manifest.metrics["test_auc"] > 0.85
    assert np.allclose([row["score"] for row in rows], joined_scores(tmp_path), atol=1e-5)
    share = stored_shares.load(tmp_path / "shop" / "runs" / "models", "repaid")
    assert set(share.manifest.code) == {"w"}

    async def again(daemons: dict[str, Daemon]) -> tuple[str, str]:
        ids = ids_of(tmp_path / "bank" / "applicants.csv", "id")[:5]
        asked = commands.PredictRequest("repaid", [ids], "applicants")
        with pytest.raises(Refused) as told:
            await verbs._predict(daemons["bank"], asked, lambda event: None)
        return str(told.value), "; ".join(daemons["shop"].journal.latest)

    (tmp_path / "shop" / "bend.py").write_text(SCORES + "# another\n")
    here, there = together(consortium, again)
    assert "shop refused: it cannot read or store its share of the model" in here
    assert "models.bend is not what it was when this share was trained" in there


STALL = """
    if pathlib.Path(__file__).with_suffix(".slow").exists():
        began = time.perf_counter()
        max(range(2 * 10**7))  # one call, during which no other thread of its process runs
        pathlib.Path(__file__).with_suffix(".took").write_text(str(time.perf_counter() - began))
    if pathlib.Path(__file__).with_suffix(".dead").exists():
        pathlib.os._exit(7)
"""


@pytest.mark.slow
def test_code_that_stalls_or_dies_while_it_scores_does_not_stop_a_daemon(
    tmp_path: Path,
) -> None:
    consortium = with_function(tmp_path)
    body, last = SCORES.rsplit("    return", 1)
    (tmp_path / "shop" / "bend.py").write_text(body + STALL + "    return" + last)
    terms = job(algorithm="asyrevel-gau", train={"epochs": 3, "batch": 64}, model=BEND)
    ids = ids_of(tmp_path / "bank" / "applicants.csv", "id")[:5]
    asked = commands.PredictRequest("repaid", [ids], "applicants")

    async def program(daemons: dict[str, Daemon]) -> tuple[float, str, str]:
        await trained_and_scored(tmp_path, daemons, terms)
        await settled(daemons["shop"])
        (tmp_path / "shop" / "bend.slow").touch()
        gaps = [0.0]

        async def beat() -> None:
            while True:
                at = time.perf_counter()
                await asyncio.sleep(0.01)
                gaps.append(time.perf_counter() - at)

        beating = asyncio.ensure_future(beat())
        await verbs._predict(daemons["bank"], asked, lambda event: None)
        beating.cancel()
        (tmp_path / "shop" / "bend.dead").touch()
        with pytest.raises(ColonnadeError) as told:
            await verbs._predict(daemons["bank"], asked, lambda event: None)
        await settled(daemons["shop"])
        return max(gaps), str(told.value), "; ".join(daemons["shop"].journal.latest)

    gap, here, there = together(consortium, program)
    assert gap < 0.7 * float((tmp_path / "shop" / "bend.took").read_text())
    assert "shop" in here
    assert "its process for the run has ended; its operator sees why" in here
    assert "the process of this party's models ended with status 7" in there


def test_no_proposal_makes_a_daemon_run_code_it_does_not_name(tmp_path: Path) -> None:
    """Not by a name that is unknown, not by a path or a command slipped into the message."""
    consortium = with_function(tmp_path, allowed=False)
    terms = job(algorithm="asyrevel-gau", model=BEND)
    ran = tmp_path / "shop" / "bend.ran"

    async def program(daemons: dict[str, Daemon]) -> tuple[list[str], str]:
        heard: list[str] = []
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(terms)
        heard.append(str(told.value))
        plain = msgspec.to_builtins(Proposal(train=terms))
        path = str(ran.with_suffix(".py")) + ":scores"
        models: list[tuple[str, dict[str, Any]]] = [
            ("function", {"path": path, "parameters": 2}),
            ("program", {"command": ["touch", str(ran)]}),
            ("torch", {"path": path}),
        ]
        for number, (kind, slipped) in enumerate(models):
            plain["train"]["model"] = {"parties": {"shop": {"kind": kind, **slipped}}}
            agreement = Agreement.of(["shop"], terms.digest(), 10.0)
            run = 0x1000 + 16 * number
            waiting: Any = SimpleNamespace(agreement=agreement)
            daemons["bank"].runs[run] = waiting
            await propose(daemons["bank"], "shop", run, msgspec.json.encode(plain))
            with pytest.raises(Refused) as told:
                await agreement.reached()
            heard.append(str(told.value))
            del daemons["bank"].runs[run]
        return heard, "; ".join(daemons["shop"].journal.latest)

    heard, there = together(consortium, program)
    assert "shop refused: no function named bend may be run here; offered: none" in heard[0]
    assert "no function named bend may be run here" in there
    assert "unknown field `path`" in heard[1]
    assert "unknown field `command`" in heard[2]
    assert "unknown field `path`" in heard[3]
    assert not ran.exists()


def test_a_policy_may_keep_a_model_from_a_peer_and_broken_code_is_the_operators_business(
    tmp_path: Path,
) -> None:
    consortium = with_function(tmp_path)
    config = consortium.config("shop")
    plain = config.read_text()
    terms = job(algorithm="asyrevel-gau", model=BEND)

    async def program(daemons: dict[str, Daemon]) -> tuple[str, str]:
        with pytest.raises((Refused, ModelError)) as told:
            await daemons["bank"].train(terms)
        return str(told.value), "; ".join(daemons["shop"].journal.latest)

    config.write_text(plain.replace("[policy]\n", "[policy]\nmodels = []\n"))
    here, there = together(consortium, program)
    assert "shop refused: model bend may not be asked for by bank here; allowed: none" in here
    assert "may not be asked for by bank" in there
    config.write_text(plain)
    (tmp_path / "shop" / "bend.py").write_text("secret_folder = 1 / 0\n")
    here, there = together(consortium, program)
    assert "shop refused: its model cannot be used as the job asks" in here
    assert "ZeroDivisionError" not in here
    assert "models.bend: ZeroDivisionError" in there


PROGRAM = """
import sys

calls = 0
for line in sys.stdin:
    words = line.split()
    if words[0] == "start":
        columns = int(words[1])
        print(columns, 1, flush=True)
        continue
    calls += 1
    if calls > LIMIT:
        sys.exit(3)
    vectors, rows = int(words[1]), int(words[2])
    W = [[float(x) for x in sys.stdin.readline().split()] for _ in range(vectors)]
    X = [[float(x) for x in sys.stdin.readline().split()] for _ in range(rows)]
    for w in W:
        for x in X:
            print(sum(a * b for a, b in zip(w, x)))
    sys.stdout.flush()
"""


def test_a_program_scores_and_one_that_dies_ends_the_run_at_all(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    config = consortium.config("shop")
    command = f'["{sys.executable}", "scorecard.py"]'
    config.write_text(config.read_text() + f'[models.scorecard]\nkind = "program"\ncommand = {command}\n')
    model = {"parties": {"shop": {"kind": "program", "name": "scorecard"}}}
    terms = job(algorithm="asyrevel-gau", train={"epochs": 4, "batch": 64}, model=model)
    (tmp_path / "shop" / "scorecard.py").write_text(PROGRAM.replace("LIMIT", "10**9"))
    manifest, rows = together(consortium, lambda daemons: trained_and_scored(tmp_path, daemons, terms))
    assert manifest.metrics["test_auc"] > 0.7
    assert np.allclose([row["score"] for row in rows], joined_scores(tmp_path), atol=1e-5)

    async def dying(daemons: dict[str, Daemon]) -> tuple[str, str]:
        with pytest.raises(ColonnadeError) as told:
            await daemons["bank"].train(terms)
        await settled(daemons["shop"])
        return str(told.value), "; ".join(daemons["shop"].journal.latest)

    (tmp_path / "shop" / "scorecard.py").write_text(PROGRAM.replace("LIMIT", "9"))
    here, there = together(consortium, dying)
    assert "shop" in here
    assert "its model cannot be used as the job asks; its operator sees why" in here
    assert "scorecard.py" not in here
    assert "scorecard.py: the program ended with status 3" in there
