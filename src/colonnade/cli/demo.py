"""`colonnade demo`: the whole story on one machine, told as it happens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from colonnade.cli.progress import progress
from colonnade.cli.show import console, table

if TYPE_CHECKING:
    from rich.console import Console

    from colonnade.demo import Demo


@click.command()
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("runs/demo"),
    show_default=True,
    help="Where the files, certificates and results go.",
)
def demo(out: Path) -> None:
    """Four departments, four processes, one model: see it work in under a minute.

    Writes four CSV files of real patients, trains one model over mutual TLS without joining the columns,
    compares it with pooled training, and says what every department learnt of the others.

    \b
    Example:
      colonnade demo --out runs/demo
    """
    from colonnade.cli.folder import claim, store
    from colonnade.demo import EPOCHS, HOLDER, JOB, MEASURES, run_demo
    from colonnade.report.page import write_report

    job = out / "job.toml"
    unfinished = job.is_file() and job.read_text(encoding="utf-8", errors="replace") == JOB
    claim(out, also=("data", "job.toml") if unfinished else ())
    terminal = console()
    terminal.print(
        "Four departments of a hospital know different things about the same 569 patients. They train one\n"
        "model for the diagnosis, each in a process of its own, and no column leaves its department.\n",
        soft_wrap=True,
    )
    rows = [
        (party, ", ".join(measures) + (" and the diagnosis" if party == HOLDER else ""), f"{party}.csv")
        for party, measures in MEASURES.items()
    ]
    terminal.print(table(["department", "holds", "file"], rows))
    terminal.print()
    with progress(EPOCHS) as report:
        done = run_demo(out, report)
    store(out, done.run.result, plot=True)
    write_report(done.run.result, out / "report.html")
    _tell(terminal, done)
    _show_files(terminal, out)


def _tell(terminal: Console, done: Demo) -> None:
    from colonnade.demo import learnt
    from colonnade.report.summary import duration, metric_rows, size

    result, shares = done.run.result, done.run.shares
    rows = [
        (name, federated, pooled, f"{done.alone[key]:.4f}" if key in done.alone else "")
        for key, (name, federated, pooled) in zip(result.metrics, metric_rows(result), strict=True)
    ]
    terminal.print(table(["", "together", "pooled", "clinic alone"], rows, right=(1, 2, 3)))
    cost = result.cost
    terminal.print(
        f"\n{cost.rounds:,} rounds in {duration(cost.seconds)}, {cost.messages:,} messages, "
        f"{size(cost.bytes_sent)} for training and {size(cost.evaluation_bytes)} to measure it\n"
    )
    parties = [
        (
            party,
            str(done.columns[party]),
            size(sum(share.bytes_by_kind.values()) + share.evaluation_bytes),
            size(share.received_bytes),
            f"{share.messages:,}",
            learnt(party),
        )
        for party, share in shares.items()
    ]
    head = ["department", "columns", "sent", "received", "messages", "learnt of the others"]
    terminal.print(table(head, parties, right=(1, 2, 3, 4)))
    terminal.print(
        "\nNobody could read another department's columns, nor its part of a score: scores leave it masked,\n"
        "and only their total can be opened. Three that work together could open the fourth's.",
        soft_wrap=True,
    )
    joined = "patient ids were compared in clear; all four files hold the same patients"
    for note in (*result.privacy.notes, joined):
        terminal.print(Text.assemble(("note  ", "bold yellow"), note), soft_wrap=True)


def _show_files(terminal: Console, out: Path) -> None:
    files = [
        ("report", out / "report.html"),
        ("result", out / "result.json"),
        ("figure", f"{out / 'loss.png'}, loss.svg"),
        ("the four files", out / "data"),
        ("the job", out / "job.toml"),
        ("each department", f"{out / 'parties'}: its data, key, certificates and share of the model"),
    ]
    terminal.print()
    terminal.print(table(["where things are", ""], [(name, str(path)) for name, path in files]))
    terminal.print()
    ideas = [
        (f"colonnade run {out / 'job.toml'} --world simulated --plot", "the same on a virtual clock"),
        ("colonnade algorithms", "what else can train it"),
        ("colonnade run --help", "your own files, your own job"),
    ]
    terminal.print(table(["try next", ""], ideas))
