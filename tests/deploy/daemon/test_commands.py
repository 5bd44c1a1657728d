"""The commands around a party that need no daemon: what they print, and how they refuse."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.deploy.companies import lay_out, settle, together
from tests.deploy.models.test_stored_shares import stored

from colonnade.cli import main
from colonnade.deploy.daemon import check, control
from colonnade.deploy.daemon.daemon import Daemon


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words])


def test_models(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    config = str(consortium.config("bank"))
    assert "no models yet" in run("models", "list", "-c", config).stdout
    stored(tmp_path / "bank" / "runs" / "models")
    assert "repaid-00000010" in run("models", "list", "-c", config).stdout
    assert json.loads(run("models", "list", "-c", config, "--json").stdout)[0]["algorithm"] == "vfb2-svrg"
    assert json.loads(run("models", "show", "repaid", "-c", config).stdout)["party"] == "bank"
    out = tmp_path / "share.npz"
    assert (
        "linear share of repaid-00000010" in run("models", "export", "repaid", str(out), "-c", config).stdout
    )
    with np.load(out, allow_pickle=False) as arrays:
        assert arrays["w"].shape == (3,)
    for name, text in (
        ("share.npz", "not overwritten"),
        ("s.safetensors", "is not a network, so it has no tensors with names; write .json or .npz"),
        ("s.txt", "write .json, .npz or .safetensors"),
    ):
        done = run("models", "export", "repaid", str(tmp_path / name), "-c", config)
        assert (done.exit_code, text in done.stderr) == (2, True), done.stderr
    done = run("models", "show", "churn", "-c", config)
    assert (done.exit_code, "there is no model churn" in done.stderr) == (2, True)


def test_check_says_what_is_offered(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    done = run("party", "--check", "-c", str(consortium.config("bank")))
    assert "bank listens on" in done.stdout
    assert re.search(r"id id \(such as '\w+'\), label repaid, offers 2 columns: income, age", done.stdout)
    more = '[models.net]\nkind = "torch"\npath = "net.py:build"\n'
    (tmp_path / "bank" / "net.py").write_text("def build(columns, outputs): ...\n")
    settle(consortium, "bank", "epsilon = 2.5", more)
    done = run("party", "--check", "-c", str(consortium.config("bank")))
    assert "model net: torch, net.py:build, for jobs that ask for it by name" in done.stdout
    assert "labels repaid: epsilon 2.5 of 2.5 is left" in done.stdout
    settle(consortium, "bank", 'epsilon = 2.5\nnever = ["acount", "repaid"]', more)
    done = run("party", "--check", "-c", str(consortium.config("bank")))
    assert "policy.never: no file has a column 'acount'; there is " in done.stdout
    assert "'repaid';" not in done.stdout
    path = tmp_path / "shop" / "customers.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1].split(",")[0] + ","]) + "\n")
    assert "visits lacks 1" in run("party", "--check", "-c", str(consortium.config("shop"))).stdout
    key = tmp_path / "bank" / "certificates" / "bank.key"
    key.chmod(0o644)
    done = run("party", "--check", "-c", str(consortium.config("bank")))
    assert f"{key} can be read by other users of this machine" in done.stdout
    (tmp_path / "bank" / "certificates" / "shop.crt").unlink()
    done = run("party", "--check", "-c", str(consortium.config("bank")))
    assert (done.exit_code, "shop.crt cannot be read" in done.stderr) == (2, True)


def test_check_finds_what_the_daemon_would_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once: an extra that is not installed, tokens, certificates, code, an entry that is not there."""
    consortium = lay_out(tmp_path)
    more = (
        'monitor = "127.0.0.1:9401"\nmonitor_token_file = "page-token"\n'
        '[models.net]\nkind = "program"\ncommand = ["./scorecard"]\n'
        '[serve]\nlisten = "127.0.0.1:8401"\nmodel = "repaid"\ndata = "newcomers"\ntoken_file = "token"\n'
        'client_ca = "ca.crt"\ncertificate = "x.crt"\nkey = "x.key"\n'
    )
    settle(consortium, "bank", "", more)
    config = str(consortium.config("bank"))
    there = importlib.util.find_spec
    monkeypatch.setattr(check, "find_spec", lambda name: None if name == "aiohttp" else there(name))
    done = run("party", "--check", "-c", config)
    assert done.exit_code == 2
    for text in (
        "monitor_token_file: needs aiohttp; install it with `pip install 'colonnade[serve]'`",
        "serve: needs aiohttp",
        "page-token: No such file or directory; `colonnade party --make-tokens` writes one",
        "serve.token_file: ",
        "serve.key: there is no ",
        "serve.data: no entry 'newcomers'",
        "models.net: there is no ./scorecard",
    ):
        assert text in done.stderr
    found = json.loads(run("party", "--check", "--json", "-c", config).stdout)
    assert len(found["problems"]) == done.stderr.count("\n")
    assert any("customers" in line for line in found["offers"])


@pytest.mark.parametrize("host", ["no-such-host.invalid", "203.0.113.7"])
def test_check_refuses_to_listen_where_this_machine_is_not(tmp_path: Path, host: str) -> None:
    consortium = lay_out(tmp_path)
    path = consortium.config("bank")
    path.write_text(re.sub(r'(?m)^listen = "[^:]+', f'listen = "{host}', path.read_text()))
    done = run("party", "--check", "-c", str(path))
    assert (done.exit_code, f"listen: {host}:" in done.stderr) == (2, True), done.stderr
    assert "is not an address of this machine" in done.stderr
    assert "label repaid, offers 2 columns" in done.stdout  # all the rest is looked at as well


def test_tokens_are_made_once_and_for_their_owner_only(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    config = str(consortium.config("bank"))
    assert "the settings name no token" in run("party", "--make-tokens", "-c", config).stderr
    settle(consortium, "bank", "", 'monitor = "127.0.0.1:9401"\nmonitor_token_file = "page-token"\n')
    assert "written" in run("party", "--make-tokens", "-c", config).stdout
    path = tmp_path / "bank" / "page-token"
    made = path.read_text()
    assert len(made.strip()) >= 40
    assert "stays as it is" in run("party", "--make-tokens", "-c", config).stdout
    assert path.read_text() == made
    assert run("party", "--check", "-c", config).exit_code == 0
    path.chmod(0o640)
    done = run("party", "--check", "-c", config)
    assert (done.exit_code, "other users of this machine can read it" in done.stderr) == (2, True)
    path.write_text("short")
    path.chmod(0o600)
    assert "at least 16 characters" in run("party", "--check", "-c", config).stderr


def test_check_finds_what_a_run_would_refuse(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    config = consortium.config("bank")
    right, file = config.read_text(), tmp_path / "bank" / "customers.csv"
    config.write_text(right.replace('id = "id"', 'id = "identity"'))
    done = run("party", "--check", "-c", str(config))
    assert (done.exit_code, "no id column 'identity'; " in done.stderr) == (2, True)
    config.write_text(right)
    header, first, second, *rest = file.read_text().splitlines()
    another = f"{first.partition(',')[0]},{second.partition(',')[2]}"
    file.write_text("\n".join([header, first, another, *rest]) + "\n")
    done = run("party", "--check", "-c", str(config))
    assert (done.exit_code, "id 'C" in done.stderr, "keep one row per id" in done.stderr) == (2, True, True)


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    config = str(consortium.config("bank"))
    stored(tmp_path / "bank" / "runs" / "models")
    ids = tmp_path / "ids.csv"
    ids.write_text("number\n1\n")
    none = tmp_path / "header.csv"
    none.write_text("id\n")
    cases = [
        (("predict", "repaid", str(none)), "header.csv: the file has a header but no rows"),
        (("predict", "repaid", str(ids), "--out", "nowhere/x.csv"), "there is no folder nowhere"),
        (("predict", "repaid", str(ids)), "no id column 'id'"),
        (("predict", "repaid", str(tmp_path / "none.csv")), "none.csv: no such file"),
        (("predict", "repaid", str(ids), "--out", "x.json"), "written as .csv or .parquet"),
        (("predict", "repaid", str(ids), "--data", "applicant"), "did you mean 'applicants'"),
        (("train", str(tmp_path / "none.toml")), "there is no such job file"),
    ]
    for words, text in cases:
        done = run(*words, "-c", config)
        assert done.exit_code == 2, done.stderr
        assert text in done.stderr
        assert done.stderr.count("\n") == 1


def test_commands_without_a_daemon_say_so(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    config = str(consortium.config("bank"))
    job = tmp_path / "job.toml"
    job.write_text(
        'name = "repaid"\nalgorithm = "vfb2-svrg"\n[parties]\n'
        'bank = { data = "customers", label = true }\nshop = { data = "customers" }\n'
        '[secure]\nlabels = "clear"\n'
    )
    for words in (
        ("train", str(job)),
        ("party", "--status"),
        ("party", "--login"),
        ("proposals", "list"),
        ("proposals", "approve", "00000010"),
        ("models", "promote", "repaid-00000010"),
        ("models", "rollback"),
    ):
        done = run(*words, "-c", config)
        assert done.exit_code == 4  # the same may work later
        assert "the daemon of bank does not run; start it with `colonnade party" in done.stderr
    digest = run("train", str(job), "--digest").stdout.strip()
    assert json.loads(run("train", str(job), "--digest", "--json").stdout) == {"digest": digest}
    assert len(digest) == 64
    # what a daemon may choose by its lines is in the digest as well
    assert "its daemon chooses train.batch and train.ahead" in run("train", str(job), "--digest").stderr
    job.write_text(job.read_text() + "[train]\nbatch = 256\nahead = 2\n")
    given = run("train", str(job), "--digest")
    assert "its daemon chooses" not in given.stderr
    assert given.stdout.strip() != digest


def test_a_daemon_of_another_version_says_that_it_does_not_understand(tmp_path: Path) -> None:
    """As after an upgrade without a restart: the command knows a key that the daemon does not."""
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> Any:
        server = await control.serve(daemons["bank"])
        reader, writer = await asyncio.open_unix_connection(daemons["bank"].settings.socket)
        asked = b'{"type":"Train","terms":{"name":"x","colour":"red"}}'
        writer.write(len(asked).to_bytes(4, "big") + asked)
        size = int.from_bytes(await reader.readexactly(4), "big")
        answer = json.loads(await reader.readexactly(size))
        writer.close()
        server.close()
        return answer

    answer = together(consortium, program)
    assert answer["code"] == 2
    assert "the daemon of bank does not know what is asked" in answer["error"]
    assert "Start it again" in answer["error"]


def test_check_names_codes_and_counts_with_what_a_job_should_say(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    file = tmp_path / "bank" / "customers.csv"
    header, *rows = file.read_text().splitlines()
    place = header.split(",").index("repaid")
    lines = [f"{header},zip"]
    for k, row in enumerate(rows):
        cells = row.split(",")
        cells[place] = str(k % 7)
        lines.append(",".join([*cells, str(10000 + k % 5)]))
    file.write_text("\n".join(lines) + "\n")
    done = run("party", "--check", "-c", str(consortium.config("bank")))
    assert (
        "customers: column 'zip' has whole numbers that may be codes; if so say categorical = [\"zip\"]"
        in (done.stdout)
    )
    assert "whole numbers from 0 to 6, taken for 7 classes" in done.stdout
