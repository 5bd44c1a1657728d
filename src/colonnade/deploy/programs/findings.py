"""What a run finds out where nothing is trained: kept beside the models by every party, read again by name.

It scores nothing. All parties keep it, or none.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np

from colonnade import shares
from colonnade.deploy.models.stored_shares import Manifest, now, versions
from colonnade.deploy.programs.training import store
from colonnade.deploy.session.prepared import Aligned
from colonnade.deploy.session.session import RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract
from colonnade.errors import ShareError

T = TypeVar("T")


async def keep(
    session: RunSession, contract: Contract, rows: Aligned, alignment: str, kind: str, found: msgspec.Struct
) -> Manifest:
    """Store what was found once every party has; `kind` is also the folder beside `models`."""
    terms, run = contract.terms, f"{session.run:08x}"
    manifest = Manifest(
        model=f"{terms.name}-{run}",
        run=run,
        party=session.me,
        kind=kind,
        terms=terms,
        digest=terms.digest(),
        columns=list(rows.columns),
        preparation={},
        rows=rows.counts,
        alignment=alignment,
        created=now(),
        versions=versions(),
    )
    await session.party.join(session.close, terms.digest())
    content = np.frombuffer(msgspec.json.encode(found), dtype=np.uint8)
    await store(session, manifest, {kind: content}, kind)
    return manifest


def kept(settings: Settings, kind: str, name: str, type_: type[T]) -> T:
    """Return what was found under this name, or the latest of the job of this name; ShareError if there is
    none."""
    folder = settings.state / kind
    known = sorted(
        (shares.read_manifest(path, Manifest) for path in folder.glob(f"*/{shares.MANIFEST}")),
        key=lambda manifest: manifest.created,
    )
    of_name = [each for each in known if name in (each.model, each.terms.name)]
    if not of_name:
        there = ", ".join(sorted({each.terms.name for each in known})) or "none"
        raise ShareError(f"no {kind} {name} are stored here; there are: {there}")
    place, manifest = folder / of_name[-1].model, of_name[-1]
    content = shares.read_arrays(place, manifest)[kind].tobytes()
    try:
        return msgspec.json.decode(content, type=type_)
    except msgspec.MsgspecError as error:
        raise ShareError(f"{place}: cannot be read: {error}") from error
