"""A stored share comes back exactly, says what it is, and is refused when it is not what it says."""

from __future__ import annotations

import json
import pickle
import stat
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.deploy.companies import job

from colonnade.data.prepare.prepare import Preparation
from colonnade.data.table import RawTable
from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.export import as_json
from colonnade.errors import ShareError


def stored(
    models: Path, run: str = "00000010", created: str = "2026-01-01T00:00:00+00:00"
) -> stored_shares.Manifest:
    raw = RawTable("customers.csv", ("age", "income"), np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]]))
    manifest = stored_shares.Manifest(
        model=f"repaid-{run}",
        run=run,
        party="bank",
        kind="linear",
        terms=job(),
        digest=job().digest(),
        columns=["age", "income"],
        preparation=Preparation.fit(raw, scale="zscore", intercept=True).to_dict(),
        rows={"common": 3, "train": 3, "validation": 0, "test": 0},
        alignment="00",
        created=created,
        versions=stored_shares.versions(),
        weights="",
    )
    stored_shares.save(models, manifest, {"w": np.array([0.5, -0.25, 1.0])})
    return manifest


def test_a_share_comes_back_as_it_was(tmp_path: Path) -> None:
    manifest = stored(tmp_path)
    share = stored_shares.load(tmp_path, "repaid-00000010")
    assert share.arrays["w"].tolist() == [0.5, -0.25, 1.0]
    assert share.manifest.terms == manifest.terms
    assert share.manifest.terms.digest() == share.manifest.digest
    raw = RawTable("new.csv", ("income", "age"), np.array([[5.0, 3.0]]))
    assert share.preparation.transform(raw).X.shape == (1, 3)
    assert stat.S_IMODE((tmp_path / "repaid-00000010").stat().st_mode) == 0o700


def test_a_name_means_the_newest(tmp_path: Path) -> None:
    stored(tmp_path, "000000f0", "2026-01-01T00:00:00+00:00")
    stored(tmp_path, "00000020", "2026-02-01T00:00:00+00:00")
    assert stored_shares.find(tmp_path, "repaid").run == "00000020"
    assert stored_shares.find(tmp_path, "repaid-000000f0").run == "000000f0"
    assert [each.run for each in stored_shares.listing(tmp_path)] == ["000000f0", "00000020"]
    with pytest.raises(ShareError, match=r"there is no model churn in .* there is repaid-00000020, repaid-0"):
        stored_shares.find(tmp_path, "churn")


def test_a_draft_does_not_count_before_it_is_kept(tmp_path: Path) -> None:
    """While all parties store theirs, scores go on with the model before."""
    first = stored(tmp_path, "000000f0")
    later = msgspec.structs.replace(first, model="repaid-00000020", created="2026-02-01T00:00:00+00:00")
    draft = stored_shares.draft(tmp_path, later, {"w": np.zeros(3)})
    assert stored_shares.load(tmp_path, "repaid").manifest.model == "repaid-000000f0"
    draft.keep()
    assert stored_shares.load(tmp_path, "repaid").manifest.model == "repaid-00000020"


def test_a_share_is_never_overwritten(tmp_path: Path) -> None:
    stored(tmp_path)
    with pytest.raises(ShareError, match="is not overwritten"):
        stored(tmp_path)


def test_damage_is_found(tmp_path: Path) -> None:
    stored(tmp_path)
    weights = tmp_path / "repaid-00000010" / "weights.npz"
    content = bytearray(weights.read_bytes())
    content[60] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ShareError, match="is not the file its manifest describes"):
        stored_shares.load(tmp_path, "repaid")


def test_another_format_is_refused(tmp_path: Path) -> None:
    stored(tmp_path)
    path = tmp_path / "repaid-00000010" / "manifest.json"
    plain = json.loads(path.read_text())
    path.write_text(json.dumps({**plain, "format": 9}))
    with pytest.raises(ShareError, match="format 9, this version of Colonnade reads 2"):
        stored_shares.load(tmp_path, "repaid")
    path.write_text("{")
    with pytest.raises(ShareError, match="not a readable manifest"):
        stored_shares.load(tmp_path, "repaid")
    assert stored_shares.listing(tmp_path) == []


class Malice:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("code in a share was run",))


def test_a_share_cannot_carry_code(tmp_path: Path) -> None:
    stored(tmp_path)
    folder = tmp_path / "repaid-00000010"
    np.savez(folder / "weights.npz", w=np.array([Malice()], dtype=object))
    content = (folder / "weights.npz").read_bytes()
    assert pickle.PROTO in content  # it is a pickle
    import hashlib

    plain = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(
        json.dumps({**plain, "weights": hashlib.sha256(content).hexdigest()})
    )
    with pytest.raises((ShareError, ValueError)):
        stored_shares.load(tmp_path, "repaid")


def test_export_is_plain(tmp_path: Path) -> None:
    stored(tmp_path)
    plain = json.loads(as_json(stored_shares.load(tmp_path, "repaid")))
    assert dict(zip(plain["columns"], plain["arrays"]["w"], strict=True)) == {
        "age": 0.5,
        "income": -0.25,
        "(intercept)": 1.0,
    }
