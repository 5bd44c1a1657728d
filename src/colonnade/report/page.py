"""One HTML page about a run, or several, that needs nothing else: figures inside it, no script, no link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from colonnade.errors import DataError
from colonnade.report import summary
from colonnade.report.figures import drawn, loss_figure, save
from colonnade.result import Result

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222 }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse } td, th { padding: .25rem 1.5rem .25rem 0; text-align: left }
th { border-bottom: 1px solid #bbb } td + td { font-variant-numeric: tabular-nums }
.note { background: #fff6df; border-left: 4px solid #e0a800; padding: .5rem 1rem; margin: .5rem 0 }
svg { max-width: 100%; height: auto } footer { color: #777; margin-top: 2rem; font-size: .9rem }
"""


def write_report(runs: Result | Mapping[str, Result], path: Path) -> Path:
    """A figure (.png, .svg) or a page (.html) of a run, or several by name, written whole or not at all."""
    match path.suffix.lower():
        case ".html":
            draft = path.with_name(path.name + ".part")
            draft.write_text(page(runs), encoding="utf-8")
            return draft.replace(path)
        case ".png" | ".svg":
            return save(loss_figure(runs), path)
        case other:
            raise DataError(
                f"{path}: cannot write {other or 'a file without an ending'}; use .html, .png or .svg"
            )


def page(runs: Result | Mapping[str, Result]) -> str:
    """The page's text: a run, or several side by side and then one by one."""
    if isinstance(runs, Result):
        title, body, results = summary.headline(runs), _about(runs), [runs]
    else:
        title, results = f"{len(runs)} runs", list(runs.values())
        each = [
            f"<h1>{escape(name)}: {escape(summary.headline(run))}</h1>\n{_about(run)}"
            for name, run in runs.items()
        ]
        body = "\n".join([_drawn(loss_figure(runs, title)), _side_by_side(runs), *each])
    versions = ", ".join(sorted({result.version for result in results}))
    seeds = ", ".join(str(seed) for seed in sorted({result.seed for result in results}))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{escape(title)}</h1>
{body}
<footer>Colonnade {escape(versions)}, seed {seeds}</footer>
</body></html>
"""


def _side_by_side(runs: Mapping[str, Result]) -> str:
    rows = [
        (name, result.algorithm, result.dataset, *summary.overview(result)) for name, result in runs.items()
    ]
    return _table(("run", "algorithm", "data", *summary.OVERVIEW), rows)


def _about(result: Result) -> str:
    """The part of the page about one run: metrics, loss, cost, parties and privacy."""
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in result.privacy.notes)
    parties = [
        (party, "yes" if party in result.active else "", summary.size(sent), f"{result.step[party]:.3g}")
        for party, sent in result.cost.bytes_by_party.items()
    ]
    return f"""{_table(*summary.metric_table(result))}
<h2>Loss</h2>
{_drawn(loss_figure(result))}
<h2>Cost</h2>
{_table((), summary.cost_rows(result))}
<h2>Parties</h2>
{_table(("party", "holds the label", "sent", "step"), parties)}
<h2>Privacy</h2>
{_table((), summary.privacy_rows(result))}
{notes}"""


def _drawn(figure: Figure) -> str:
    text = drawn(figure, "svg").decode()
    return text[text.index("<svg") :]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{f'<tr>{top}</tr>' if head else ''}{body}</table>"
