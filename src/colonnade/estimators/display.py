"""What a notebook shows of a trained model: parties, metrics, cost, and what the run gave away."""

from __future__ import annotations

from html import escape

from colonnade.report.summary import cost_rows, headline, metric_rows
from colonnade.result import Result

STYLE = "border-collapse:collapse;margin:.5em 0;font-size:90%"
CELL = "padding:.15em .8em .15em 0;text-align:left;vertical-align:top"
COSTS = ("time", "simulated time", "epochs, rounds", "messages", "bytes sent")


def summary_html(result: Result) -> str:
    """Return a short table about a run."""
    rows = [("parties", f"{', '.join(result.parties)} (label: {', '.join(result.active)})")]
    rows += [(name, value) for name, value, _ in metric_rows(result)]
    rows += [(name, value) for name, value in cost_rows(result) if name in COSTS]
    if result.converged is not None:
        rows.append(("converged", "yes" if result.converged else "no: allow more epochs"))
    rows += [("note", note) for note in result.privacy.notes]
    body = "".join(
        f'<tr><th style="{CELL}">{escape(name)}</th><td style="{CELL}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table style="{STYLE}"><caption>{escape(headline(result))}</caption>{body}</table>'
