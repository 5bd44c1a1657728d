"""All that is known of a run, as a report needs it: its result, and all else that its folder holds.

DIR/result.json        the result; everything else may be missing
DIR/test_scores.csv    labels and scores of the test rows
DIR/models/*           shares of the model
DIR/timeline.json      who computed and sent when
DIR/job.toml           the job
DIR/audit.json         attacks that were tried on the run, and how far they came
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import numpy as np

from colonnade import shares, test_scores
from colonnade.arrays import Floats
from colonnade.credit.linear import LinearBlock
from colonnade.credit.scorecard import ScorecardRow, points_of
from colonnade.data.prepare.prepare import Preparation
from colonnade.findings import FILE as AUDIT
from colonnade.findings import Finding, read_findings
from colonnade.losses import LOSSES, Loss
from colonnade.result import Result, read_result
from colonnade.test_scores import TestScores
from colonnade.timeline import FILE as TIMELINE
from colonnade.timeline import Timeline, read_timeline
from colonnade.trees.importance import importance_of
from colonnade.trees.tree import LEAF, Forest, Splits

RESULT, MODELS, JOB = "result.json", "models", "job.toml"
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Part:
    """One party's part of a model: its numbers by prepared column, or how many parameters it has."""

    party: str
    kind: str
    columns: tuple[str, ...]
    weights: Floats | None  # a row for every column; a column for every class where there are several
    parameters: int
    constant: frozenset[str] = frozenset()  # columns that never varied: nothing was learnt of them
    points: tuple[ScorecardRow, ...] = ()  # of every bin, where columns are weighed and scores are log odds
    gains: Floats | None = None  # of trees: the part of all gain that every column has, where it is known


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """What a report is made from. `seen_by` is the party whose report it is; None: one machine held all."""

    result: Result
    scores: TestScores | None = None
    parts: tuple[Part, ...] = ()
    timeline: Timeline | None = None
    job: str = ""
    findings: tuple[Finding, ...] = ()
    made: str = ""
    seen_by: str | None = None
    command: str = ""
    further: tuple[tuple[str, str], ...] = ()  # more of the run that only its folder knows
    versions: str = ""

    @property
    def loss(self) -> Loss | None:
        """The loss that the job names; None where it names none."""
        named = _toml(self.job).get("train", {}).get("loss")
        return LOSSES.get(named) if isinstance(named, str) else None


def read_run(folder: Path) -> ReportFacts:
    """Return what the folder of a run holds; DataError if it has no result or a file in it is damaged."""
    path = folder / RESULT
    result = read_result(path)
    job = _if_there(folder / JOB, lambda path: path.read_text(encoding="utf-8")) or ""
    scores = _if_there(folder / test_scores.FILE, TestScores.read)
    log_odds = scores is not None and scores.with_probabilities
    folders = [each for each in sorted((folder / MODELS).glob("*")) if each.is_dir()]
    again = folder.with_name(f"{folder.name}-again")
    when = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return ReportFacts(
        result,
        scores=scores,
        parts=_with_gains(folders, [read_part(each, log_odds=log_odds) for each in folders], result.parties),
        timeline=_if_there(folder / TIMELINE, read_timeline),
        job=job,
        findings=tuple(_if_there(folder / AUDIT, read_findings) or ()),
        made=f"{when:%Y-%m-%d %H:%M} UTC",
        command=f"colonnade run {quote(str(folder / JOB))} --out {quote(str(again))}" if job else "",
    )


def read_part(folder: Path, *, log_odds: bool = False) -> Part:
    """Return one party's part of a model, from the folder of its share; ShareError if it is damaged.

    It has points if its columns are weighed and scores are `log_odds`.
    """
    manifest = shares.read_manifest(folder / shares.MANIFEST, shares.ShareManifest)
    arrays = shares.read_arrays(folder, manifest)
    preparation = Preparation.from_dict(manifest.preparation)
    columns, w = preparation.outputs, arrays.get("w")
    linear = manifest.kind == "linear" and w is not None and len(w) == len(columns)
    points: list[ScorecardRow] = []
    if w is not None and w.ndim == 1 and linear and log_odds:
        points = points_of(LinearBlock(manifest.party, preparation, np.asarray(w, dtype=np.float64)))
    return Part(
        party=manifest.party,
        kind=manifest.kind,
        columns=columns,
        weights=w if linear else None,
        parameters=sum(array.size for array in arrays.values()),
        constant=frozenset(preparation.constant),
        points=tuple(points),
    )


def _with_gains(folders: Sequence[Path], parts: Sequence[Part], parties: Sequence[str]) -> tuple[Part, ...]:
    """Return the same parts and, of trees, what every column gained: the label holder knows that of every
    split."""
    if not parts or any(part.kind != "trees" for part in parts):
        return tuple(parts)
    manifests = [shares.read_manifest(each / shares.MANIFEST, shares.ShareManifest) for each in folders]
    arrays = [shares.read_arrays(*each) for each in zip(folders, manifests, strict=True)]
    forest = max((Forest.from_arrays(each) for each in arrays if "tree.nodes" in each), key=_size)
    total = sum(float(tree.gain[tree.party != LEAF].sum()) for tree in forest.trees) or 1.0
    found = []
    for part, stored in zip(parts, arrays, strict=True):
        number, splits = parties.index(part.party), Splits.from_arrays(stored)
        gains = importance_of(forest, number, splits, len(part.columns)).gain / total
        found.append(replace(part, gains=gains))
    return tuple(found)


def _size(forest: Forest) -> int:
    """Return how many trees there are: where every party has trees of its own, the label holder has all of
    them."""
    return len(forest.trees)


def _if_there(path: Path, read: Callable[[Path], T]) -> T | None:
    return read(path) if path.is_file() else None


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
