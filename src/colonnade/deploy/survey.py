"""What a party offers, as `colonnade party --check` prints it: entries, rows, columns, gaps."""

from __future__ import annotations

from collections.abc import Iterator

from colonnade.data.table import RawTable, load
from colonnade.deploy.settings import Settings


def survey(settings: Settings) -> Iterator[str]:
    """One line per entry of the catalogue; raises what is wrong with a file."""
    yield f"{settings.name} listens on {settings.listen} and knows {', '.join(settings.peers) or 'nobody'}"
    for name, entry in settings.data.items():
        raw = load(settings.path(entry.file), label=entry.label, categorical=entry.keys)
        never = {*settings.policy.never, *entry.keys}
        offered = entry.columns or [c for c in raw.columns if c not in never]
        kept = raw.select(list(offered))
        yield (
            f"{name}: {raw.rows} rows, id {' + '.join(entry.keys)}, "
            f"{'label ' + entry.label if entry.label else 'no label'}, offers {len(offered)} columns: "
            f"{', '.join(offered)}{_gaps(kept)}"
        )


def _gaps(raw: RawTable) -> str:
    found = []
    for name in raw.columns:
        values = raw.column(name)
        empty = int((values == "").sum()) if values.dtype == object else int((values != values).sum())
        if empty:
            found.append(f"{name} lacks {empty}")
    return f" ({', '.join(found)})" if found else ""
