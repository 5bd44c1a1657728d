"""What columns may be worth, between daemons: near the joined rows', in steps, booked, and accepted."""

from __future__ import annotations

import csv
import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import roc_auc_score
from tests.deploy.companies import COLUMNS, NAMES, job, lay_out, settle, settled, together
from tests.deploy.joined import join

from colonnade.cli import main
from colonnade.deploy.books.ledger import Ledger, Spendable
from colonnade.deploy.books.opened import OpenedBooks
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.policy.cost_limits import check_floors
from colonnade.deploy.policy.policy import leaks
from colonnade.deploy.programs.describing import stored
from colonnade.deploy.programs.prospecting import before_training, stored_prospects
from colonnade.deploy.rows.rows import split_rows
from colonnade.deploy.settings import Limits, read_settings
from colonnade.deploy.terms.contract import Contract, check_terms
from colonnade.deploy.terms.terms import Terms
from colonnade.describe.prospects import Prospects, step_of
from colonnade.errors import JobError, Refused, ShareError
from colonnade.privacy.counts import CountNoise

WORDS = 'accept = ["values"]\nmin_rows = 20\n'
WITH_COUNTS = 'accept = ["values", "evidence"]\nmin_rows = 20\n'
FEW = "[limits]\nwoe_least = 10\nwoe_cases = 3\nwoe_noise = {noise}\n"
WOE = {"bins": 8, "least": 10, "cases": 3, "most": 5}
USUAL: dict[str, Any] = {"algorithm": "lbfgs", "train": {}, "woe": WOE, "secure": {"labels": "blind"}}


def asked(names: tuple[str, ...] = NAMES, **changes: Any) -> Terms:
    terms = before_training(job(names, **{**USUAL, **changes}))
    check_terms(terms, "job")
    return terms


def measured(root: Path, terms: Terms, policy: str, noise: float = 1e-9) -> tuple[Any, dict[str, Prospects]]:
    """Let real daemons weigh columns; returns the proposer's manifest, and what every party keeps."""
    names = tuple(terms.parties)
    consortium = lay_out(root, names)
    for name in names:
        settle(consortium, name, policy, FEW.format(noise=noise))

    async def program(daemons: dict[str, Daemon]) -> Any:
        manifest = await daemons["bank"].train(terms)
        for name in names:
            await settled(daemons[name])
        return manifest

    manifest = together(consortium, program)
    return manifest, {
        name: stored_prospects(read_settings(consortium.config(name)), "repaid") for name in names
    }


def joined_rows(root: Path, terms: Terms) -> tuple[dict[str, np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """Every column of the common training rows, and which of two labels each row has."""
    files = {name: root / name / "customers.csv" for name in terms.parties}
    joined = join(files, "id", terms)
    train, _, _ = split_rows(joined.digests, terms.split, terms.seed)
    ids = [joined.ids[k] for k in train]
    columns: dict[str, np.ndarray[Any, Any]] = {}
    label: list[str] = []
    for name, path in files.items():
        with path.open(newline="") as file:
            rows = {row["id"]: row for row in csv.DictReader(file)}
        columns |= {c: np.array([float(rows[each][c]) for each in ids]) for c in COLUMNS[name]}
        if name == "bank":
            label = [rows[each]["repaid"] for each in ids]
    return columns, np.array(label) == label[0]


@pytest.mark.parametrize(
    ("names", "labels", "policy"),
    [
        (NAMES[:2], "blind", WORDS),
        (NAMES, "blind", WORDS),
        (NAMES, "clear", WITH_COUNTS),
    ],
)
def test_parties_hear_what_all_columns_may_be_worth(
    tmp_path: Path, names: tuple[str, ...], labels: str, policy: str
) -> None:
    terms = asked(names, secure={"labels": labels})
    manifest, found = measured(tmp_path, terms, policy)
    columns, bad = joined_rows(tmp_path, terms)
    step = step_of(manifest.rows["train"])
    for name in names:
        assert found[name].step == step
        assert {each.party: (each.columns, each.iv, each.best_iv) for each in found[name].parties} == {
            each.party: (each.columns, each.iv, each.best_iv) for each in found["bank"].parties
        }
        for each in found[name].parties:
            assert each.iv / step == round(each.iv / step)
            assert each.columns == len(COLUMNS[each.party])
            assert (each.best in COLUMNS[name]) if each.party == name else each.best == ""
    for each in found["bank"].parties:
        ivs = [_iv(columns[c], bad) for c in COLUMNS[each.party]]
        # five bins instead of eight, joined where they differ least, lose a little; a step is added
        assert 0.6 * sum(ivs) <= each.iv <= sum(ivs) + step
        assert 0.6 * max(ivs) <= each.best_iv <= max(ivs) + step
        for c in COLUMNS[each.party]:
            auc = roc_auc_score(bad, _bins(columns[c]) if len(COLUMNS[each.party]) == 1 else columns[c])
            assert max(auc, 1 - auc) <= each.auc_at_most + 0.02
        assert stored_shares.listing(tmp_path / each.party / "runs" / "models") == []  # nothing was trained
    _booked(tmp_path, names)
    with pytest.raises(ShareError, match="no statistics repaid are stored here"):
        stored(read_settings(tmp_path / "bank" / "party.toml"), "repaid")


def _bins(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.searchsorted(np.quantile(values, np.arange(1, 8) / 8), values)


def _iv(values: np.ndarray[Any, Any], bad: np.ndarray[Any, Any]) -> float:
    """The information value by its definition, over eight quantile bins."""
    found, bins = 0.0, _bins(values)
    for k in range(8):
        b, g = (bad & (bins == k)).sum() / bad.sum(), (~bad & (bins == k)).sum() / (~bad).sum()
        found += (g - b) * log(g / b)
    return found


def _booked(root: Path, names: tuple[str, ...]) -> None:
    """The bank has booked two numbers of each party whose counts a peer did not hear, and all their own."""
    for name in names:
        lines = OpenedBooks(root / name / "runs").lines()
        for peer in set(names) - {name}:
            told = [x for x in lines if x.peer == peer and x.about == "columns" and x.numbers == 2]
            assert len(told) == 1, (name, peer)
            if name == "bank":
                labels = [x for x in lines if x.peer == peer and x.about == "labels"]
                assert [x.numbers for x in labels if x.numbers == 2 * (len(names) - 1)]


def test_noise_is_on_the_label_holders_own_bins_too_and_its_epsilon_is_spent(tmp_path: Path) -> None:
    terms = asked(NAMES[:2])
    _, found = measured(tmp_path, terms, WORDS, noise=2.0)
    _, without = measured(tmp_path / "exact", terms, WORDS)
    assert {x.party: x.iv for x in found["bank"].parties} != {x.party: x.iv for x in without["bank"].parties}
    one = CountNoise(2.0).epsilon
    assert one is not None
    (spent,) = Ledger(tmp_path / "bank" / "runs").entries()
    assert spent.epsilon == pytest.approx(2 * one)  # the shop's bins, and the bank's own
    assert Spendable.of(Contract.of(asked()), Limits()).epsilon == pytest.approx(3 * one)
    heard = [x for x in OpenedBooks(tmp_path / "bank" / "runs").lines() if x.about == "labels"]
    assert sum(x.epsilon or 0.0 for x in heard) == pytest.approx(2 * one)


def test_policies_floors_and_losses_hold_as_for_training(tmp_path: Path) -> None:
    terms = asked()
    assert leaks(Contract.of(terms)) == ("values",)
    assert leaks(Contract.of(asked(secure={"labels": "clear"}))) == ("evidence", "values")
    with pytest.raises(Refused, match=r"woe\.least = 10 is below limits\.woe_least = 50"):
        check_floors(Limits(), terms)
    check_floors(Limits(describe_noise=9.0), asked(woe={}))
    with pytest.raises(JobError, match=r"data\.woe: weight of evidence needs two classes"):
        asked(train={"loss": "squared"})

    consortium = lay_out(tmp_path, NAMES[:2], bank=WORDS, shop='accept = ["statistics", "evidence"]\n')

    async def program(daemons: dict[str, Daemon]) -> str:
        with pytest.raises(Refused) as told:
            await daemons["bank"].train(asked(NAMES[:2], woe={}))
        return str(told.value)

    assert "weighing columns leaks 'values'" in together(consortium, program)


def test_the_command_asks_the_own_daemon_and_prints_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Prospects.among("repaid", [], step_of(100))
    heard: dict[str, Terms] = {}

    def ask(settings: Any, request: Any, tell: Any) -> dict[str, str]:
        heard["terms"] = request.terms
        return {"model": "repaid-1"}

    monkeypatch.setattr("colonnade.cli.daemon.ask_to_train", ask)
    monkeypatch.setattr("colonnade.deploy.programs.prospecting.stored_prospects", lambda *_: found)
    consortium = lay_out(tmp_path, NAMES[:2])
    path = tmp_path / "job.toml"
    path.write_text(
        'name = "repaid"\nalgorithm = "lbfgs"\nvalue = true\n'
        '[parties.bank]\ndata = "customers"\nlabel = true\n[parties.shop]\ndata = "customers"\n'
    )
    words = ["value", str(path), "--before", "--config", str(consortium.config("bank"))]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "IV is told in steps of 0.125, rounded up" in done.output
    assert (heard["terms"].statistics_only, heard["terms"].prepare.woe, heard["terms"].value) == (
        True,
        True,
        False,
    )
    assert json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout) == []
