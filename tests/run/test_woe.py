"""Columns are weighed alike in every world, and a model trains on them as on any other columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.oracles import woe as oracle

from colonnade.data.prepare.party_data import PartyData, Recipe
from colonnade.data.table import RawTable, stack
from colonnade.errors import DataError
from colonnade.job import Woe, World, job_from
from colonnade.run.federate import federate
from colonnade.run.woe import weigh_all, with_evidence
from colonnade.run.woe_party import WeighingTerms

ROWS = 600
Y = np.where(np.random.default_rng(5).random(ROWS) < 0.4, 1.0, -1.0)


def data() -> dict[str, PartyData]:
    found = {}
    for k, party in enumerate(("bank", "post", "shop")):
        rng = np.random.default_rng(k)
        plain = np.where(rng.random(ROWS) < 0.1, np.nan, rng.normal(size=ROWS) + 0.5 * Y)
        text = rng.choice(["a", "b", ""], size=ROWS).astype(object)
        table = RawTable(
            party, ("plain", "text"), stack([plain, text], ROWS), y=Y if party == "bank" else None
        )
        found[party] = PartyData(party, table, None, Recipe())
    return found


@pytest.mark.parametrize("world", ["local", "simulated", "network"])
def test_weighing_is_the_same_in_every_world(world: World) -> None:
    terms = WeighingTerms(label_holder="bank", woe=Woe(bins=8), world=world)
    weighed = weigh_all(terms, data())
    for party, each in with_evidence(data(), weighed).items():
        X = each.prepare().train.X
        for j, column in enumerate(weighed[party].columns):
            joined = column.joined(each.train).tolist()
            expected = oracle.woe(oracle.counts(joined, (Y > 0).tolist()))[0]
            np.testing.assert_allclose(X[:, j], [expected[k] for k in joined], atol=1e-12)
    assert set(weighed["bank"].counts) == {"bank", "post", "shop"}
    assert weighed["shop"].counts == {}
    assert weighed["shop"].bytes_sent < weighed["bank"].bytes_sent


def test_a_label_holder_without_labels_is_refused() -> None:
    with pytest.raises(DataError, match="shop is to weigh columns by its label and holds none"):
        weigh_all(WeighingTerms(label_holder="shop"), data())


def test_a_job_trains_on_weighed_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    words = np.where(rng.random(ROWS) < 0.3, "", np.where(Y > 0, "often", "rarely"))
    words = np.where(rng.random(ROWS) < 0.3, "rarely", words)
    lines = [f"{x[i] ** 2 - (Y[i] > 0):.3f},{words[i]},{int(Y[i])}" for i in range(ROWS)]
    (tmp_path / "all.csv").write_text("square,word,bad\n" + "\n".join(lines) + "\n")
    plain = {
        "algorithm": "vfb2-svrg",
        "data": {
            "train": str(tmp_path / "all.csv"),
            "label": "bad",
            "columns": {"bank": ["square"], "shop": ["word"]},
            "woe": True,
        },
        "train": {"epochs": 30},
    }
    result = federate(job_from(plain)).result
    assert result.metrics["test_auc"] == pytest.approx(result.pooled["test_auc"], abs=0.01)
    assert result.metrics["test_auc"] > 0.75


def test_weight_of_evidence_needs_two_classes(tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_text("a,b,y\n" + "".join(f"{k},{k % 7},{k}\n" for k in range(100)))
    plain = {
        "algorithm": "vfb2-svrg",
        "data": {"train": str(tmp_path / "all.csv"), "label": "y", "parties": 2, "woe": True},
        "train": {"loss": "squared"},
    }
    with pytest.raises(DataError, match="needs two classes"):
        federate(job_from(plain))
