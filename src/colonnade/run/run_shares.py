"""What a run keeps: every party's share of the model, to score new rows where one machine holds all shares.

    DIR/models/PARTY/manifest.json    the share's preparation, labels and columns, and the run's plan
    DIR/models/PARTY/weights.npz      its arrays

The format is that of all shares (`colonnade.shares`). Between companies nobody has another's share, and rows
are scored together (`deploy.scoring`); this is for experiments, and for shares that their owners brought
together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from colonnade import shares
from colonnade.arrays import Arrays, Floats
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.cascade.tensors import HEAD, OWN
from colonnade.conversations.predict import Holding
from colonnade.data.prepare.labels import Labels
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.read.dialect import Dialect, described
from colonnade.data.read.files import AS_FOUND
from colonnade.data.table import RawTable
from colonnade.errors import ShareError
from colonnade.job import Key, ModelSpec, ServerSpec
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES, Loss
from colonnade.models import build
from colonnade.run.federate import Finished
from colonnade.run.registry import CONVERSATIONS
from colonnade.shares import MANIFEST, ShareManifest

MODELS = "models"


class RunManifest(ShareManifest, frozen=True, kw_only=True):
    """All about a share that a run on one machine kept, but its arrays."""

    conversation: str
    plan: dict[str, Any]
    id: tuple[str, ...] = ()  # the columns that are an id together, if the files had some
    keys: tuple[Key, ...] = ()  # how each of them is brought into one form
    written: Dialect = AS_FOUND  # what the job says of how its files are written


def keep(folder: Path, done: Finished) -> bool:
    """Write every party's share into a folder that is not there yet; False if the run has no shares.

    There are none where the algorithm keeps none, and where columns or models were Python objects.
    """
    conversation = CONVERSATIONS[done.plan.conversation]
    prepared = all(share.preparation is not None for share in done.shares.values())
    if "no-share" in conversation.traits or not prepared or done.labels is None:
        return False
    folder.mkdir(mode=0o700)
    for party, share in done.shares.items():
        shares.save(folder / party, _manifest(done, party), share.weights)
    return True


def _manifest(done: Finished, party: str) -> RunManifest:
    """Return the manifest of one party's share; the labels and metrics are their holders' alone."""
    plan, share, result, data = done.plan, done.shares[party], done.result, done.job.data
    holds_label = party in plan.label_holders
    preparation = share.preparation or {}
    return RunManifest(
        model=result.dataset,
        party=party,
        kind=CONVERSATIONS[plan.conversation].share.name,
        columns=list(preparation["columns"]),
        preparation=preparation,
        labels=done.labels.to_dict() if done.labels is not None and holds_label else None,
        rows={"train": done.rows, "test": 0 if done.test is None else len(done.test.y)},
        metrics=share.metrics,
        created=shares.now(),
        versions=shares.versions(),
        code=fingerprints(plan, party),
        tensors=share.tensors,
        epsilon=share.epsilon,
        conversation=plan.conversation,
        plan=msgspec.to_builtins(plan),
        id=data.id_at(party),
        keys=data.keys or (),
        written=described(data),
    )


def fingerprints(plan: Plan[Any], party: str) -> dict[str, str]:
    """Return a SHA-256 over the files of every model of this party that is code."""
    if not isinstance(plan.settings, CascadeSettings):
        return {}
    specs = plan.settings.model
    models: dict[str, ModelSpec | ServerSpec] = {OWN: specs.of(party)}
    if party == plan.evaluator:
        models[HEAD] = specs.server
    coded = {part: model for part, model in models.items() if model.path or model.command}
    return {
        part: shares.fingerprint(build.files_of(model.path, model.command)) for part, model in coded.items()
    }


@dataclass(frozen=True, eq=False)
class KeptShare:
    """One party's share, as it was kept."""

    manifest: RunManifest
    arrays: Arrays
    preparation: Preparation


@dataclass(frozen=True, eq=False)
class KeptModel:
    """All shares of a model."""

    plan: Plan[Any]
    shares: dict[str, KeptShare]
    labels: Labels

    @staticmethod
    def read(run: Path) -> KeptModel:
        """Return the model that a run kept in its folder; ShareError if it kept none, or a share is
        missing."""
        folder = run / MODELS
        if not folder.is_dir():
            raise ShareError(
                f"{run}: there is no model; `colonnade run JOB.toml --out {run}` keeps one, unless its "
                "algorithm (pp-svmv) has none"
            )
        found = {}
        for path in sorted(folder.glob(f"*/{MANIFEST}")):
            manifest = shares.read_manifest(path, RunManifest)
            arrays = shares.read_arrays(path.parent, manifest)
            preparation = Preparation.from_dict(manifest.preparation)
            found[manifest.party] = KeptShare(manifest, arrays, preparation)
        if not found:
            raise ShareError(f"{folder}: holds no shares")
        plan = _plan(next(iter(found.values())).manifest)
        if missing := [party for party in plan.parties if party not in found]:
            raise ShareError(f"{folder}: no share of {', '.join(missing)}; all are needed to score")
        coded = found[plan.evaluator].manifest.labels
        if coded is None:
            raise ShareError(f"{folder / plan.evaluator}: the labels are missing; train again")
        return KeptModel(plan, {party: found[party] for party in plan.parties}, Labels.from_dict(coded))

    @property
    def loss(self) -> Loss:
        return LOSSES[self.plan.objective.loss]

    def scores(self, tables: Mapping[str, RawTable]) -> Floats:
        """Return the scores of rows from every party's raw columns, prepared as in training."""
        holdings = {}
        for party, share in self.shares.items():
            if fingerprints(self.plan, party) != share.manifest.code:
                raise ShareError(
                    f"{party}: the files of its model are not what they were when it was trained; "
                    "restore them, or train again"
                )
            X = share.preparation.transform(tables[party]).X
            holdings[party] = Holding(self.plan, party, share.arrays, X)
        return CONVERSATIONS[self.plan.conversation].share.together(holdings)

    def predicted(self, z: Floats) -> list[str] | Floats:
        """Return the most likely label of every row in the words of the training file, or the predicted
        number."""
        y = self.loss.predict(z)
        if self.labels.task == "regression":
            return y
        classes = self.labels.classes
        if self.labels.task == "multiclass":
            return [classes[int(k)] for k in y]
        names = {
            sign: [name for name in classes if (name in self.labels.positive) == (sign > 0)]
            for sign in (-1.0, 1.0)
        }
        words = {
            sign: held[0] if len(held) == 1 else ("positive" if sign > 0 else "negative")
            for sign, held in names.items()
        }
        return [words[sign] for sign in np.where(y > 0, 1.0, -1.0).tolist()]


def _plan(manifest: RunManifest) -> Plan[Any]:
    """Return the plan of the run that a share is from."""
    try:
        conversation = CONVERSATIONS[manifest.conversation]
    except KeyError:
        raise ShareError(f"{manifest.party}: no conversation is called {manifest.conversation!r}") from None
    try:
        plan: Plan[Any] = msgspec.convert(manifest.plan, Plan[conversation.settings])  # type: ignore[name-defined]
    except msgspec.ValidationError as error:
        raise ShareError(f"{manifest.party}: a plan of another version of Colonnade: {error}") from error
    return plan
