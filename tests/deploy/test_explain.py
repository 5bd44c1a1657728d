"""What a company's own columns did to scores: from its own disk, with nobody else there."""

from __future__ import annotations

import csv
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from tests.deploy.companies import NAMES, job, lay_out, settled, together
from tests.deploy.joined import ids_of
from tests.deploy.test_trees import rows_of

from colonnade.cli import main
from colonnade.deploy.books.opened import OpenedBooks
from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.errors import ShareError
from colonnade.trees.tree import LEAF, Forest, Splits, Tree


def test_each_company_explains_its_own_columns_alone(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, NAMES)

    async def program(daemons: dict[str, Daemon]) -> None:
        await daemons["bank"].train(job(algorithm="lbfgs", train={"l2": 1e-3, "epochs": 50}))
        await daemons["bank"].train(
            job(
                name="trees",
                algorithm="secureboost",
                train={"epochs": 2},
                secure={"labels": "clear"},
                trees={"bits": 6},
            )
        )
        for name in NAMES:
            await settled(daemons[name])

    together(consortium, program)  # and all daemons are gone
    folder = tmp_path / "shop"
    with (folder / "customers.csv").open() as file:
        rows = list(csv.DictReader(file))
    (tmp_path / "ids.csv").write_text("id\n" + "\n".join([*(row["id"] for row in rows[:5]), "nobody"]) + "\n")
    out = tmp_path / "explained.csv"
    words = ["--config", str(consortium.config("shop")), "--explain", "--reasons", "1", "--out", str(out)]
    done = CliRunner().invoke(main, ["predict", "repaid", str(tmp_path / "ids.csv"), *words])
    assert done.exit_code == 0, done.stderr
    assert "5 of 6 ids explained by 1 own columns" in done.stdout
    share = stored_shares.load(folder / "runs" / "models", "repaid")
    visits = np.array([float(row["visits"]) for row in rows])
    with out.open() as file:
        found = list(csv.DictReader(file))
    slope = [float(row["shap_visits"]) for row in found[:5]]
    (w,) = share.arrays["w"]
    assert share.preparation.columns == ("visits",)
    assert np.polyfit(visits[:5], slope, 1)[0] * (visits - visits.mean())[:5] == pytest.approx(
        slope, abs=1e-9
    )
    assert np.sign(np.polyfit(visits[:5], slope, 1)[0]) == np.sign(w)
    assert found[5]["shap_visits"] == ""
    assert [row["reason_1"] for row in found[:5]] == ["visits" if s > 0 else "" for s in slope]
    refused = CliRunner().invoke(main, ["predict", "trees", str(tmp_path / "ids.csv"), *words])
    assert refused.exit_code != 0
    assert "is not a sum over columns" in refused.stderr


ACCEPT = 'accept = ["labels", "nodes", "scores"]\nmin_rows = 20\n'
TREES: dict[str, Any] = {
    "train": {"epochs": 6},
    "trees": {"max_depth": 4, "bits": 6},
    "secure": {"labels": "clear"},
}


def test_the_label_holder_of_trees_learns_what_every_party_did_to_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consortium = lay_out(tmp_path, NAMES, **dict.fromkeys(NAMES, ACCEPT))
    wanted = ids_of(tmp_path / "bank" / "applicants.csv", "id")
    request = commands.PredictRequest("trees", [wanted], "applicants", explain=True)
    booked: list[Any] = []

    async def program(daemons: dict[str, Daemon]) -> Any:
        await daemons["bank"].train(job(name="trees", algorithm="secureboost", **TREES))
        await daemons["bank"].train(job(name="sum", algorithm="boosted-sum", **TREES))
        for name in NAMES:
            await settled(daemons[name])
        found, before = (
            [],
            [(name, x) for name in NAMES for x in OpenedBooks(tmp_path / name / "runs").lines()],
        )
        for asked in (msgspec.structs.replace(request, explain=False), request):
            found.append(await verbs._predict(daemons["bank"], asked, lambda event: None))
            for name in NAMES:
                await settled(daemons[name])
            lines = [(name, x) for name in NAMES for x in OpenedBooks(tmp_path / name / "runs").lines()]
            new = [each for each in lines if each not in before]
            before += new
            told = [(n, x.peer, x.kinds, x.numbers, x.bits) for n, x in new if x.run.startswith("scores")]
            booked.append(told)
        for party, model, said in (
            ("shop", "trees", "only bank, which holds"),
            ("bank", "sum", "secureboost's trees"),
        ):
            with pytest.raises(ShareError, match=said):
                await verbs._predict(
                    daemons[party], msgspec.structs.replace(request, model=model), lambda event: None
                )
        return found

    plain, found = together(consortium, program)
    assert booked[0]
    assert booked[0] == booked[1]  # nobody is told more than for scores
    rows = [row for row in found["rows"] if row is not None]
    assert [row["score"] for row in rows] == [row["score"] for row in plain["rows"] if row is not None]
    ids = [key for key, row in zip(wanted, found["rows"], strict=True) if row is not None]
    base, values = by_definition(tmp_path, ids)
    np.testing.assert_allclose([row["base"] for row in rows], base, atol=1e-9)
    np.testing.assert_allclose([[row["parties"][name] for name in NAMES] for row in rows], values, atol=1e-9)
    np.testing.assert_allclose([row["score"] for row in rows], base + values.sum(axis=1), atol=1e-9)
    assert np.abs(values).max(axis=0).min() > 0.01  # every party matters to some row

    monkeypatch.setattr("colonnade.cli.daemon.ask", lambda settings, asked, tell: {**found, "asked": asked})
    (tmp_path / "ids.csv").write_text("id\n" + "\n".join(wanted) + "\n")
    words = [
        "predict",
        "trees",
        str(tmp_path / "ids.csv"),
        "--config",
        str(consortium.config("bank")),
        "--explain",
    ]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "by_party.csv")])
    assert done.exit_code == 0, done.output
    with (tmp_path / "by_party.csv").open() as file:
        lines = [line for line in csv.DictReader(file) if line["score"]]
    assert len(lines) == len(rows)
    for line in lines:
        parts = [float(line["base"]), *(float(line[f"shap_{name}"]) for name in NAMES)]
        assert float(line["score"]) == pytest.approx(sum(parts), abs=1e-9)


def by_definition(root: Path, ids: list[str]) -> tuple[float, np.ndarray[Any, Any]]:
    """Shapley values over parties from all companies' shares: the mean over all orders of parties."""
    shares = {name: stored_shares.load(root / name / "runs" / "models", "trees") for name in NAMES}
    forest = Forest.from_arrays(shares["bank"].arrays)
    left = {}
    for number, name in enumerate(NAMES):
        made = shares[name].preparation
        X = made.transform(rows_of(root / name / "applicants.csv", "id", ids)).X
        left[number] = Splits.from_arrays(shares[name].arrays).left(X)

    def value(known: frozenset[int], row: int) -> float:
        def below(tree: Tree, node: int) -> float:
            party = int(tree.party[node])
            if party == LEAF:
                return float(tree.value[node])
            children = int(tree.left[node]), int(tree.right[node])
            if party in known:
                return below(tree, children[0 if left[party][int(tree.split[node]), row] else 1])
            cover = [float(tree.cover[child]) for child in children]
            return sum(c * below(tree, child) for c, child in zip(cover, children, strict=True)) / sum(cover)

        return float(forest.base[0]) + sum(below(tree, 0) for tree in forest.trees)

    values = np.zeros((len(ids), len(NAMES)))
    orders = list(permutations(range(len(NAMES))))
    for row in range(len(ids)):
        for order in orders:
            for place, party in enumerate(order):
                before = frozenset(order[:place])
                values[row, party] += (value(before | {party}, row) - value(before, row)) / len(orders)
    return value(frozenset(), 0), values
