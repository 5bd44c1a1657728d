"""What `colonnade party --check` says a party offers: entries, rows, columns, gaps, models, budget."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from colonnade.data.table import RawTable
from colonnade.deploy.ledger import Ledger
from colonnade.deploy.rows import read_with_ids
from colonnade.deploy.settings import Settings
from colonnade.errors import DataError
from colonnade.job import Key


def survey(settings: Settings) -> Iterator[str]:
    """Lines about what this party offers, one per entry of the catalogue; raises if a file cannot be used."""
    yield f"{settings.name} listens on {settings.listen} and knows {', '.join(settings.peers) or 'nobody'}"
    key = settings.path(settings.certificates) / f"{settings.name}.key"
    if key.stat().st_mode & 0o077:
        yield f"{key} can be read by other users of this machine; `chmod 600` it"
    for name, entry in settings.data.items():
        path = settings.path(entry.file)
        # as a run reads it, so that a misspelt id is not offered as a column
        raw, ids = read_with_ids(path, entry, [Key()] * len(entry.keys), (), label=True, bare=True)
        if twice := raw.rows - len(np.unique(ids, axis=0)):
            raise DataError(f"{path}: {twice} rows have the id of an earlier one; keep one row per id")
        never = {*settings.policy.never, *entry.keys}
        offered = entry.columns or [c for c in raw.columns if c not in never]
        kept = raw.select(list(offered))
        yield (
            f"{name}: {raw.rows} rows, id {' + '.join(entry.keys)}, "
            f"{'label ' + entry.label if entry.label else 'no label'}, offers {len(offered)} columns: "
            f"{', '.join(offered)}{_gaps(kept)}"
        )

    for name, code in settings.models.items():
        words = code.path or " ".join(code.command or ())
        yield f"model {name}: {code.kind}, {words}, for jobs that ask for it by name"
    ledger = Ledger(settings.state)
    for label in sorted({entry.label for entry in settings.data.values() if entry.label is not None}):
        if (left := ledger.balance(settings.policy, label).left) is not None:
            yield f"labels {label}: epsilon {left:g} of {settings.policy.epsilon:g} is left"


def _gaps(raw: RawTable) -> str:
    """How many values each column lacks, in words; empty if none does."""
    found = []
    for name in raw.columns:
        values = raw.column(name)
        empty = int((values == "").sum()) if values.dtype == object else int((values != values).sum())
        if empty:
            found.append(f"{name} lacks {empty}")
    return f" ({', '.join(found)})" if found else ""
