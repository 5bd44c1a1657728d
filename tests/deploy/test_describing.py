"""Statistics between daemons: told with noise to all, kept by all, and only where policies accept them."""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.deploy.companies import COLUMNS, NAMES, job, lay_out, running, settled, together
from tests.deploy.joined import join

from colonnade.cli import main
from colonnade.deploy.books.opened import OpenedBooks
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.policy.cost_limits import check_floors
from colonnade.deploy.policy.policy import leaks
from colonnade.deploy.programs.describing import described, stored
from colonnade.deploy.rows.rows import split_rows
from colonnade.deploy.settings import Limits, read_settings
from colonnade.deploy.terms.contract import Contract, check_terms
from colonnade.deploy.terms.terms import Describe, Terms
from colonnade.describe.joint import NOISE
from colonnade.errors import JobError, Refused, ShareError

ACCEPT = 'accept = ["statistics"]\nmin_rows = 20\n'


def asked(names: tuple[str, ...] = NAMES, **changes: Any) -> Terms:
    terms = described(job(names, algorithm="lbfgs", train={}, **changes))
    check_terms(terms, "job")
    return terms


def exact(root: Path, names: tuple[str, ...], terms: Terms) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The correlations of the joined training rows, the label last."""
    files = {name: root / name / "customers.csv" for name in names}
    joined = join(files, "id", terms)
    train, _, _ = split_rows(joined.digests, terms.split, terms.seed)
    ids = [joined.ids[k] for k in train]
    columns, label = [], []
    for name in names:
        with files[name].open(newline="") as file:
            rows = {row["id"]: row for row in csv.DictReader(file)}
        columns += [[float(rows[each][column]) for each in ids] for column in COLUMNS[name]]
        if name == "bank":
            label = [float(rows[each]["repaid"] == rows[ids[0]]["repaid"]) for each in ids]
    return np.asarray(np.corrcoef(np.array([*columns, label])))


@pytest.mark.parametrize("names", [NAMES[:2], NAMES])
def test_companies_learn_how_their_columns_go_together_with_noise(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    consortium = lay_out(tmp_path, names, **dict.fromkeys(names, ACCEPT))
    terms = asked(names)

    async def program(daemons: dict[str, Daemon]) -> Any:
        manifest = await daemons["bank"].train(terms)
        for name in names:
            await settled(daemons[name])
        return manifest

    manifest = together(consortium, program)
    found = {name: stored(read_settings(consortium.config(name)), "repaid") for name in names}
    joint = found["bank"].joint
    rows = manifest.rows["train"]
    assert all(each.joint.correlations == joint.correlations for each in found.values())
    assert all(list(each.parties) == [name] for name, each in found.items())  # own columns stay at home
    assert [name for _, name in joint.names] == [*(c for n in names for c in COLUMNS[n]), "(label)"]
    pooled = exact(tmp_path, names, terms)
    told = np.array(joint.correlations)
    same = np.sign(pooled[-1] * told[-1])  # which of two labels is the positive one is not known here
    pooled[-1, :-1] *= same[0]
    pooled[:-1, -1] *= same[0]
    off = np.abs(told - pooled)[np.triu_indices(len(told), 1)]
    assert 0 < off.max() < 5 * joint.noise + 0.02  # outliers were capped
    steps = told * 2 ** np.ceil(np.log2(rows**0.5 / NOISE))
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert joint.fit is not None
    assert joint.fit.model == "least squares"
    assert not any(each.rare for each in found.values())
    _booked(tmp_path, names)
    for name in names:  # nothing was trained
        assert stored_shares.listing(tmp_path / name / "runs" / "models") == []
    _shown(consortium.config(names[-1]), names[-1])


def _booked(root: Path, names: tuple[str, ...]) -> None:
    """Every party has written down what each other hears of its columns, and the bank of its label."""
    for name in names:
        lines = OpenedBooks(root / name / "runs").lines()
        own, all_others = len(COLUMNS[name]), sum(len(COLUMNS[n]) for n in names if n != name)
        label = 0 if name == "bank" else 1
        for peer in set(names) - {name}:
            (columns,) = [x for x in lines if x.peer == peer and x.about == "columns"]
            assert columns.numbers == own * (own - 1) // 2 + own * (all_others + label)
        labels = [x.numbers for x in lines if x.about == "labels"]
        assert labels == ([own + all_others] * (len(names) - 1) if name == "bank" else [])


def _shown(config: Path, name: str) -> None:
    """The operator of a party that did not propose sees the same by its name."""
    done = CliRunner().invoke(main, ["describe", "repaid", "--config", str(config), "--json"])
    assert done.exit_code == 0, done.stderr
    assert list(json.loads(done.stdout)["parties"]) == [name]


def test_who_does_not_accept_statistics_refuses(tmp_path: Path) -> None:
    names = NAMES[:2]
    consortium = lay_out(tmp_path, names, bank=ACCEPT, shop='accept = ["labels", "scores", "evidence"]\n')

    async def program(daemons: dict[str, Daemon]) -> str:
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(asked(names))
        return str(told.value)

    assert "describing leaks 'statistics'" in together(consortium, program)
    with pytest.raises(ShareError, match="no statistics repaid are stored here; there are: none"):
        stored(read_settings(consortium.config("shop")), "repaid")


def test_statistics_are_proposed_like_a_training_and_leave_its_terms_as_they_were(tmp_path: Path) -> None:
    terms = asked()
    assert leaks(Contract.of(terms)) == ("statistics",)
    assert terms.digest() != job(NAMES, algorithm="lbfgs", train={}).digest()
    check_floors(Limits(), terms)
    with pytest.raises(Refused, match=r"describe\.noise = 0\.1 is below limits\.describe_noise = 0\.5"):
        check_floors(Limits(), asked(describe=Describe(noise=0.1)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"describe": Describe(noise=0.0)}, "describe.noise: give 0.01 to 10 standard errors"),
        ({"prepare": {"woe": True}}, "data.woe: statistics are of columns as they are"),
        ({"train": {"class_weight": "balanced"}}, "statistics count every row once"),
        (
            {"privacy": {"mechanism": "labels", "epsilon": 1.0}},
            "privacy.mechanism: correlations of the label",
        ),
    ],
)
def test_what_has_no_such_statistics_is_refused(changes: dict[str, Any], said: str) -> None:
    plain = {"algorithm": "vfb2-svrg", **changes}
    with pytest.raises(JobError, match=said):
        check_terms(described(job(NAMES, **plain)), "job")


def test_the_same_statistics_again_tell_nothing_new(tmp_path: Path) -> None:
    names = NAMES[:2]
    consortium = lay_out(tmp_path, names, **dict.fromkeys(names, ACCEPT))

    async def program(daemons: dict[str, Daemon]) -> Any:
        for _ in range(2):
            await daemons["bank"].train(asked(names))
            await settled(daemons["shop"])

    together(consortium, program)
    settings = read_settings(consortium.config("bank"))
    both = sorted((settings.state / "statistics").glob("*-*"))
    first, again = (stored(settings, folder.name).joint for folder in both)
    assert first.correlations == again.correlations


def test_statistics_have_a_process_of_their_own(tmp_path: Path) -> None:
    names = NAMES[:2]
    consortium = lay_out(tmp_path, names, **dict.fromkeys(names, ACCEPT))

    async def program() -> None:
        async with running(consortium, apart=True) as daemons:
            await daemons["bank"].train(asked(names))
            await settled(daemons["shop"])

    asyncio.run(program())
    assert stored(read_settings(consortium.config("shop")), "repaid").joint.fit is not None
