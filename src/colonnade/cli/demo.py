"""`colonnade demo`: the demonstration on one machine, explained as it happens."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from colonnade.cli.machine import JSON, print_json
from colonnade.cli.show import console, table
from colonnade.cli.train import followed

if TYPE_CHECKING:
    from rich.console import Console

    from colonnade.demo.story import Demo


@click.command()
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("runs/demo"),
    show_default=True,
    help="Where the files, certificates and results go.",
)
@JSON
def demo(out: Path, as_json: bool) -> None:
    """Train one model over four parties on this machine, in under a minute.

    Writes four CSV files about partly the same real patients, finds the common ones privately, trains one
    model over mutual TLS, scores new patients, compares with pooled training, and says what each party
    learnt.

    \b
    Example:
      colonnade demo --out runs/demo
    """
    from colonnade.cli.folder import claimed, store
    from colonnade.demo.departments import JOB
    from colonnade.demo.story import run_demo
    from colonnade.report.page import write_report

    job = out / "job.toml"
    unfinished = job.is_file() and job.read_text(encoding="utf-8", errors="replace") == JOB
    terminal = console()
    with claimed(out, also=("job.toml",) if unfinished else ()):
        if not as_json:
            _introduce(terminal)
        with followed(quiet=as_json) as tell:
            done = run_demo(out, tell)
        store(out, done.run.result, plot=True)
        write_report(done.facts, out / "report.html")
    if as_json:
        print_json(_plain(done))
        return
    _show_model(terminal, done)
    _show_parties(terminal, done)
    _show_scores(terminal, done)
    _show_files(terminal, out)


def _plain(done: Demo) -> dict[str, object]:
    """Return all that the demonstration shows, for programs."""
    return {
        "result": done.run.result,
        "common": done.common,
        "held": done.held,
        "columns": done.columns,
        "alone": done.alone,
        "scores": [{"patient": name, "chance": chance, "predicted": y} for name, chance, y in done.scores],
    }


def _introduce(terminal: Console) -> None:
    """Print what the departments want, and what each of them holds."""
    from colonnade.demo.departments import HOLDER, MEASURES

    terminal.print(
        "Four departments of a hospital know different things about partly the same patients. They find out\n"
        "which patients they share, train one model for the diagnosis, and score new patients; each is a\n"
        "daemon of its own, and no column, no list of patients leaves its department.\n",
        soft_wrap=True,
    )
    rows = [
        (
            party,
            ", ".join(measures) + (" and the diagnosis" if party == HOLDER else ""),
            f"{party}/patients.csv",
        )
        for party, measures in MEASURES.items()
    ]
    terminal.print(table(["department", "holds", "file"], rows))
    terminal.print()


def _show_model(terminal: Console, done: Demo) -> None:
    """Print how many patients are common, how good the model is, and what it cost."""
    from colonnade.report.summary import duration, metric_rows, size

    result = done.run.result
    terminal.print(
        f"\n{done.common} patients are common to all four files; finding them took {size(done.align_bytes)}. "
        "Who the others were, nobody learnt.\n",
        soft_wrap=True,
    )
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


def _show_parties(terminal: Console, done: Demo) -> None:
    """Print what every department held, sent and learnt."""
    from colonnade.demo.story import learnt
    from colonnade.report.summary import size

    parties = [
        (
            party,
            str(done.held[party]),
            str(done.columns[party]),
            size(sum(share.traffic.bytes_by_kind.values()) + share.traffic.evaluation_bytes),
            learnt(party),
        )
        for party, share in done.run.shares.items()
    ]
    head = ["department", "patients", "columns", "sent", "learnt of the others"]
    terminal.print(table(head, parties, right=(1, 2, 3)))
    terminal.print(
        "\nNobody could read another department's columns, nor its part of a score: scores leave it masked,\n"
        "and only their total can be opened. Three that work together could open the fourth's.",
        soft_wrap=True,
    )
    for note in done.run.result.privacy.notes:
        terminal.print(Text.assemble(("note  ", "bold yellow"), note), soft_wrap=True)


def _show_scores(terminal: Console, done: Demo) -> None:
    """Print the first scores of new patients."""
    terminal.print(f"\n{len(done.scores)} new patients were scored together; the first three:\n")
    first = [(name, f"{probability:.3f}", label) for name, probability, label in done.scores[:3]]
    terminal.print(table(["patient", "chance of malignant", "predicted"], first, right=(1,)))


def _show_files(terminal: Console, out: Path) -> None:
    """Print where the files are, and what to try next."""
    parties = out / "parties"
    files = [
        ("report", out / "report.html"),
        ("result", out / "result.json"),
        ("figure", out / "loss.svg"),
        ("the job", out / "job.toml"),
        ("each department", f"{parties}: its files, settings, key, log, and share of the model"),
    ]
    terminal.print()
    terminal.print(table(["where things are", ""], [(name, str(path)) for name, path in files]))
    terminal.print()
    clinic = parties / "clinic" / "party.toml"
    # as it was called, where its name alone would not be found (`make demo`, `python -m colonnade`)
    called = sys.argv[0] if not sys.argv[0].endswith("__main__.py") else f"{sys.executable} -m colonnade"
    colonnade = "colonnade" if shutil.which("colonnade") else called
    ideas = [
        (f"{colonnade} models show diagnosis --config {clinic}", "the clinic's share of the model"),
        (f"{colonnade} party --check --config {clinic}", "what the clinic offers"),
        (f"{colonnade} run --help", "your own files on one machine, any algorithm"),
    ]
    terminal.print(table(["try next", ""], ideas))
