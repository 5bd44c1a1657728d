"""Settings and terms: what is wrong is named when the file is read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from colonnade.deploy.negotiate.proposals import read_proposal
from colonnade.deploy.policy.policy import check_training
from colonnade.deploy.settings import read_settings
from colonnade.deploy.terms.contract import check_terms, read_terms
from colonnade.deploy.terms.terms import Proposal
from colonnade.errors import JobError

PARTY = """name = "bank"
listen = "127.0.0.1:7401"
[peers]
shop = "shop.example:7402"
[data.customers]
file = "customers.csv"
id = ["name", "born"]
columns = ["age"]
[policy]
never = ["address"]
[policy.peers.shop]
algorithms = ["vfb2-svrg"]
"""
JOB = """name = "credit"
algorithm = "vfb2-svrg"
[parties.bank]
data = "customers"
label = true
[parties.shop]
data = "customers"
"""


def test_settings(tmp_path: Path) -> None:
    (tmp_path / "party.toml").write_text(PARTY)
    settings = read_settings(tmp_path / "party.toml")
    assert settings.data["customers"].keys == ("name", "born")
    assert settings.socket == tmp_path / "runs" / "daemon.sock"
    assert settings.policy.peers["shop"].algorithms == ("vfb2-svrg",)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("listen =", "lisen =", "unknown key lisen; did you mean listen"),
        ("127.0.0.1:7401", "localhost", "'localhost' is not an address; write HOST:PORT"),
        ('shop = "shop.example:7402"', 'bank = "a:1"', "bank is this party itself"),
        ('columns = ["age"]', 'columns = ["address"]', "offers column address, which policy.never forbids"),
        ("[policy.peers.shop]", "[policy.peers.shoe]", "shoe is not among the peers"),
        ('name = "bank"', 'name = "bank"\nmonitor = "0.0.0.0:1"', "stays on 127.0.0.1"),
        ("[policy]", '[serve]\nlisten = "a:1"\nmodel = "m"\n[policy]', "give token_file or client_ca"),
        ("[policy]", "[models.net]\nkind = 'torch'\n[policy]", "models.net: kind = 'torch' needs path"),
        ("[policy]", "[models.f]\nkind = 'function'\npath = 'f:g'\n[policy]", "needs parameters"),
        ("[policy]", "[policy]\nepsilon = 0.0", "epsilon must be above 0"),
        ('["vfb2-svrg"]', '["vfb2-svgr"]', "there is no 'vfb2-svgr'; did you mean 'vfb2-svrg'"),
        ("[policy]", "[policy]\nmin_rows = -1", "min_rows and min_parties are not below 0"),
        ("id = ", "ids = ", "unknown key data.customers.ids; did you mean data.customers.id"),
    ],
)
def test_mistakes_in_settings(tmp_path: Path, old: str, new: str, text: str) -> None:
    assert old in PARTY
    (tmp_path / "party.toml").write_text(PARTY.replace(old, new, 1))
    with pytest.raises(JobError, match=text):
        read_settings(tmp_path / "party.toml")


def test_terms_mean_the_same_however_they_are_spelt(tmp_path: Path) -> None:
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text(JOB)
    other.write_text("# the same\nseed = 0\n" + JOB + "\n[train]\nl2 = 0.0001\n")
    assert read_terms(one).digest() == read_terms(other).digest()
    other.write_text(JOB + "\n[train]\nl2 = 0.0002\n")
    assert read_terms(one).digest() != read_terms(other).digest()
    assert read_terms(one).job().data.active == ["bank"]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("vfb2-svrg", "vfb2-svrgh", "did you mean vfb2-svrg"),
        ("vfb2-svrg", "pp-svmv", "keeps the whole kernel matrix at one party"),
        (
            "[parties.bank]",
            "[model]\npath = 'x:y'\n[parties.bank]",
            "a job between companies carries no code",
        ),
        ("[parties.bank]", "[model.parties.shop]\ncommand = ['x']\n[parties.bank]", "carries no code"),
        ("[parties.bank]", "[model]\nkind = 'program'\n[parties.bank]", "needs name = 'NAME'"),
        ("[parties.bank]", "[model]\nname = 'x'\n[parties.bank]", "comes with Colonnade and has no name"),
        ("[parties.bank]", "[model]\nhidden = [99999999]\n[parties.bank]", "16 numbers from 1 to 4096"),
        ("[parties.bank]", "[model]\noutputs = 0\n[parties.bank]", "0 is not a number from 1"),
        ("[parties.bank]", "[model.parties.shoe]\n[parties.bank]", "there is no party shoe"),
        ("[parties.bank]", "[model]\noutputs = 2\n[parties.bank]", "trains linear models only"),
        ("vfb2-svrg", "asysqn-svrg", "trains the blocks of label holders only; shop would learn nothing"),
        (
            'algorithm = "vfb2-svrg"',
            'algorithm = "tig"\n[use]\ndegraded = true\n[model.server]\nkind = "linear"',
            "only scores that are a sum over parties",
        ),
        (
            'algorithm = "vfb2-svrg"',
            'algorithm = "asyrevel-gau"\n[use]\nloss_seen_by = "all"\n'
            '[privacy]\nmechanism = "scalar"\nepsilon = 1.0',
            "the exact loss tells about labels",
        ),
        ("label = true", "label = false", "nobody holds the label"),
        ('name = "credit"', 'name = "../credit"', "use letters, digits"),
        ("[parties.bank]", "[data]\ntest_fraction = 1.5\n[parties.bank]", "data.test_fraction and"),
        ("[parties.bank]", "[train]\nepochs = 0\n[parties.bank]", "train.epochs: 0 is not a positive number"),
        ("[parties.bank]", "[train]\ntarget = 0.1\n[parties.bank]", "only known where data is pooled"),
        ("[parties.bank]", "[algin]\nminimum = 1\n[parties.bank]", "did you mean align"),
        ('[parties.shop]\ndata = "customers"\n', "", "1 parties cannot train together"),
    ],
)
def test_mistakes_in_terms(tmp_path: Path, old: str, new: str, text: str) -> None:
    assert old in JOB
    (tmp_path / "job.toml").write_text(JOB.replace(old, new, 1))
    with pytest.raises(JobError, match=text):
        read_terms(tmp_path / "job.toml")


def test_results_from_second_hand_are_refused_between_companies(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(JOB + '[network]\nbroadcast = "tree"\n')
    with pytest.raises(JobError, match=r"network\.broadcast = 'tree': between companies everybody hears"):
        read_terms(path)


def test_a_job_over_grpc_is_refused_in_one_line(tmp_path: Path) -> None:
    """gRPC is gone: a job that asks for it is refused when its file is read, and by any peer."""
    path = tmp_path / "job.toml"
    reason = "network.transport = 'grpc': gRPC is gone, processes speak over TLS; leave the key out"
    path.write_text(JOB + '[network]\ntransport = "grpc"\n')
    with pytest.raises(JobError) as told:
        read_terms(path)
    assert str(told.value) == f"{path}: {reason}"
    path.write_text(JOB)
    terms = read_terms(path)
    network = msgspec.structs.replace(terms.network, transport="grpc")
    proposed = Proposal(train=msgspec.structs.replace(terms, network=network))
    received = read_proposal(msgspec.json.encode(proposed)).train
    assert received is not None
    with pytest.raises(JobError) as answered:
        check_terms(received, "job")
    assert str(answered.value) == f"job: {reason}"


def test_a_transport_that_is_as_now_changes_no_digest(tmp_path: Path) -> None:
    """A daemon of 0.2 has "tls" by default and leaves it out of digests, so a job may go on saying it."""
    path = tmp_path / "job.toml"
    path.write_text(JOB)
    silent = read_terms(path)
    path.write_text(JOB + '[network]\ntransport = "tls"\n')
    said = read_terms(path)
    assert said.digest() == silent.digest()
    assert said.written() == silent.written()
    assert "transport" not in msgspec.json.encode(silent).decode()


EXAMPLES = Path(__file__).parents[2] / "examples" / "deploy"


def test_the_examples_are_read_and_go_together() -> None:
    settings = {name: read_settings(EXAMPLES / f"{name}.toml") for name in ("bank", "shop")}
    terms = read_terms(EXAMPLES / "credit.toml")
    contract = check_terms(terms, "job")
    check_training(settings["shop"], "bank", contract)
    check_training(settings["bank"], "bank", contract)
    assert set(terms.parties) == set(settings)
