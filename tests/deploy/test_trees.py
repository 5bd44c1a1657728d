"""Boosted trees between daemons: trained, stored and scored as in one process."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.deploy.companies import NAMES, job, lay_out, settle, settled, together
from tests.deploy.joined import ids_of, join

from colonnade.conversations.predict import Holding
from colonnade.data.read.files import load
from colonnade.data.table import RawTable, Table
from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.policy.cost_limits import check_floors
from colonnade.deploy.rows.rows import split_rows
from colonnade.deploy.settings import Limits
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import Refused
from colonnade.run.federate import Tables, run_tables
from colonnade.run.registry import CONVERSATIONS

ACCEPT = 'accept = ["labels", "nodes", "scores"]\nmin_rows = 20\n'


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"bits": 0}, "limits.trees_exact"),
        ({"bits": 6, "bin_rows": 5}, "trees.bin_rows = 5 is below limits.trees_bin_rows = 10"),
        ({"bits": 6, "node_rows": 0}, "trees.node_rows = 0 is below limits.trees_node_rows = 40"),
        ({"bits": 6, "noise": 0.1}, "trees.noise = 0.1 is below limits.trees_noise = 0.5"),
    ],
)
def test_no_job_lowers_what_a_party_demands_of_histograms(asked: dict[str, Any], told: str) -> None:
    terms = job(algorithm="secureboost", train={"epochs": 2}, trees=asked)
    with pytest.raises(Refused, match=re.escape(told)):
        check_floors(Limits(), terms)
    check_floors(Limits(trees_exact=True), terms)
    raised = {"bits": 4, "bin_rows": 20, "node_rows": 100, "noise": 1.0}
    check_floors(Limits(), job(algorithm="secureboost", train={"epochs": 2}, trees=raised))
    check_floors(Limits(), job(trees=asked))


TREES: Any = {"train": {"epochs": 8}, "trees": {"max_depth": 3, "subsample": 0.8, "bits": 6}}


def rows_of(path: Path, column: str, wanted: list[str], label: str | None = None) -> RawTable:
    raw = load(path, id=column, label=label)
    assert raw.ids is not None
    place = {each: k for k, each in enumerate(raw.ids)}
    return raw.take(np.array([place[each] for each in wanted]))


def scores_in_one_process(
    root: Path, terms: Terms, wanted: list[str], column: str = "id", label: str = "repaid"
) -> Any:
    """The scores of new rows by trees of the local world, grown on the rows that daemons train on."""
    names = sorted(terms.parties)
    joined = join({name: root / name / "customers.csv" for name in names}, column, terms)
    train, _, _ = split_rows(joined.digests, terms.split, terms.seed)
    ids = [joined.ids[k] for k in train]
    tables: dict[str, Table] = {}
    new = {}
    for name in names:
        share = stored_shares.load(root / name / "runs" / "models", terms.name)
        raw = rows_of(root / name / "customers.csv", column, ids, label if name == "bank" else None)
        tables[name] = share.preparation.transform(raw)
        if share.labels is not None and raw.y is not None:
            tables[name] = replace(tables[name], y=share.labels.transform(raw.y))
        applicants = rows_of(root / name / "applicants.csv", column, wanted)
        new[name] = share.preparation.transform(applicants).X
    local = msgspec.structs.replace(terms.job(), world="local")
    finished = run_tables(local, Tables("rows", tables, None, ("bank",)))
    held = {name: Holding(finished.plan, name, finished.shares[name].weights, new[name]) for name in names}
    return CONVERSATIONS["boost"].share.together(held)


@pytest.mark.parametrize("algorithm", ["secureboost", "boosted-sum"])
def test_trees_of_daemons_score_as_those_of_one_process(tmp_path: Path, algorithm: str) -> None:
    consortium = lay_out(tmp_path)
    for name in NAMES:
        settle(consortium, name, ACCEPT)
    terms = job(algorithm=algorithm, secure={"labels": "clear"}, **TREES)
    wanted = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    async def program(daemons: dict[str, Daemon]) -> Any:
        manifest = await daemons["bank"].train(terms)
        for name in NAMES:
            await settled(daemons[name])
        request = commands.PredictRequest(terms.name, [wanted], "applicants")
        found = await verbs._predict(daemons["bank"], request, lambda event: None)
        return manifest, [row["score"] for row in found["rows"] if row is not None]

    manifest, scores = together(consortium, program)
    assert manifest.kind == "trees"
    assert manifest.metrics["test_accuracy"] > 0.65
    assert np.allclose(scores, scores_in_one_process(tmp_path, terms, wanted), atol=1e-8)


STRICT = 'algorithms = ["secureboost"]\naccept = ["nodes", "scores"]\nmin_rows = 20\n'


def test_gaps_categories_and_a_neutral_party_and_what_its_policy_refuses(tmp_path: Path) -> None:
    """A shop with gaps, a column of nothing, one of categories and one of dates; a notary with ids alone."""
    names = ("bank", "shop", "notary")
    consortium = lay_out(tmp_path, names, bank=STRICT, shop=STRICT, notary=STRICT)
    settle(consortium, "notary", STRICT, "[limits]\nepochs = 8\n")
    for entry in ("customers", "applicants"):
        _make_messy(tmp_path / "shop" / f"{entry}.csv")
    members: dict[str, Any] = {name: {"data": "customers", "label": name == "bank"} for name in names}
    bare: dict[str, Any] = {**members, "notary": {"data": "customers", "columns": []}}
    ids = ids_of(tmp_path / "bank" / "applicants.csv", "id")

    def terms(**changes: Any) -> Terms:
        secure = {"helper": "notary"}
        return job(
            names, **{"parties": bare, "algorithm": "secureboost", "secure": secure, **TREES, **changes}
        )

    async def program(daemons: dict[str, Daemon]) -> list[Any]:
        for wrong, says in (
            (terms(secure={"labels": "clear"}), "leaks 'labels'"),
            (terms(train={"epochs": 9}), "over limits.epochs = 8"),
            (terms(parties=members), "its data cannot be used"),
        ):
            with pytest.raises(Refused, match=says):
                await daemons["bank"].train(wrong)
        manifest = await daemons["bank"].train(terms())
        assert manifest.metrics["test_accuracy"] > 0.6
        for name in names[1:]:
            await settled(daemons[name])
        request = commands.PredictRequest("repaid", [ids], "applicants")
        found = await verbs._predict(daemons["bank"], request, lambda event: None)
        return [row["score"] for row in found["rows"] if row is not None]

    assert np.ptp(together(consortium, program)) > 0.5


def _make_messy(path: Path) -> None:
    """Take every fifth number away, and add three columns that are no plain numbers."""
    first, *lines = path.read_text().splitlines()
    more = [
        "nothing,tariff,since",
        *(f",{'SML'[k % 3]},20{k % 23:02d}-0{k % 9 + 1}-11" for k in range(len(lines))),
    ]
    gone = [line if k % 5 else line.split(",")[0] + "," for k, line in enumerate(lines)]
    path.write_text("\n".join(f"{a},{b}" for a, b in zip([first, *gone], more, strict=True)) + "\n")
