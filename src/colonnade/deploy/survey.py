"""What `colonnade party --check` says a party offers: entries, rows, columns, gaps, models, budget."""

from __future__ import annotations

from collections.abc import Iterator

from colonnade.data.table import RawTable, load
from colonnade.deploy.ledger import Ledger
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

    for name, code in settings.models.items():
        words = code.path or " ".join(code.command or ())
        yield f"model {name}: {code.kind}, {words}, for jobs that ask for it by name"
    ledger = Ledger(settings.state)
    for label in sorted({entry.label for entry in settings.data.values() if entry.label is not None}):
        if (left := ledger.balance(settings.policy, label).left) is not None:
            yield f"labels {label}: epsilon {left:g} of {settings.policy.epsilon:g} is left"


def _gaps(raw: RawTable) -> str:
    found = []
    for name in raw.columns:
        values = raw.column(name)
        empty = int((values == "").sum()) if values.dtype == object else int((values != values).sum())
        if empty:
            found.append(f"{name} lacks {empty}")
    return f" ({', '.join(found)})" if found else ""
