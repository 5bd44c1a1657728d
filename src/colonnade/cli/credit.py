"""`colonnade credit`: weight of evidence of a job's columns; measures of a run's scores and its card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.credit_model import FOLDER, coefficients, export, importance, scorecard
from colonnade.cli.machine import JSON, note, print_json

if TYPE_CHECKING:
    from colonnade.test_scores import TestScores


@click.group()
def credit() -> None:
    """Compute weight of evidence, scorecards, KS, stability and model cards.

    \b
    Example:
      colonnade credit woe job.toml
      colonnade credit scorecard runs/job
    """


@credit.command()
@click.argument("job_file", metavar="JOB.toml", type=click.Path(path_type=Path))
@click.option("--bins", is_flag=True, help="Also show every bin.")
@JSON
def woe(job_file: Path, bins: bool, as_json: bool) -> None:
    """Weigh every party's columns as JOB.toml says, and show their information value.

    \b
    Example:
      colonnade credit woe job.toml --bins
    """
    from colonnade.cli.show import console, table
    from colonnade.job import read_job
    from colonnade.run.federate import weigh_columns_of

    weighed = weigh_columns_of(read_job(job_file, note))
    columns = [(party, each) for party, done in weighed.items() for each in done.columns]
    if as_json:
        print_json(
            [
                {"party": party, "column": each.bins.column, "iv": each.iv}
                | {"bins": [{"bin": b, "woe": w} for b, w in zip(each.names(), each.woe, strict=True)]}
                for party, each in columns
            ]
        )
        return
    columns.sort(key=lambda each: -each[1].iv)
    rows = [(party, each.bins.column, f"{each.iv:.4f}", str(len(each.woe))) for party, each in columns]
    console().print(table(["party", "column", "IV", "bins"], rows, right=(2, 3)))
    if bins:
        lines = [
            (party, each.bins.column, name, f"{value:+.4f}")
            for party, each in columns
            for name, value in zip(each.names(), each.woe, strict=True)
        ]
        console().print()
        console().print(table(["party", "column", "bin", "WOE"], lines, right=(3,)))


@credit.command()
@FOLDER
@JSON
def measure(folder: Path, as_json: bool) -> None:
    """Show KS, Gini, Brier, Hosmer-Lemeshow and the lift table of the test rows of the run in DIR.

    \b
    Example:
      colonnade credit measure runs/job
    """
    from scipy.special import expit

    from colonnade.cli.show import console, table
    from colonnade.credit.calibration import reliability
    from colonnade.credit.card import measures_of
    from colonnade.credit.measures import gains
    from colonnade.errors import DataError

    scores = _test_scores(folder)
    found, bad = measures_of(scores), scores.y > 0
    if not found:
        raise DataError(f"{folder}: these measures are of models with two classes")
    lift = gains(scores.z, bad)
    curve = reliability(expit(scores.z), bad) if scores.with_probabilities else []
    if as_json:
        print_json({"measures": found, "gains": lift, "reliability": [each._asdict() for each in curve]})
        return
    terminal = console()
    terminal.print(table(["measure", "value"], [(k, f"{v:.4f}") for k, v in found.items()], right=(1,)))
    rows = [
        (str(each.rows), str(each.bads), f"{each.rate:.2%}", f"{each.lift:.2f}", f"{each.captured:.1%}")
        for each in lift
    ]
    names = ["rows", "bads", "bad rate", "lift", "bads so far"]
    terminal.print()
    terminal.print(table(names, rows, right=range(5), title="highest scores first"))
    if curve:
        rows2 = [(str(each.rows), f"{each.predicted:.2%}", f"{each.observed:.2%}") for each in curve]
        terminal.print()
        terminal.print(table(["rows", "predicted", "observed"], rows2, right=range(3), title="calibration"))


@credit.command()
@FOLDER
@click.argument("scores", metavar="SCORES.csv", type=click.Path(path_type=Path))
@JSON
def stability(folder: Path, scores: Path, as_json: bool) -> None:
    """Show the PSI of the scores in SCORES.csv against the test rows of the run in DIR.

    \b
    Example:
      colonnade credit stability runs/job scores.csv
    """
    from colonnade.credit.measures import psi
    from colonnade.data.read.files import load

    now = load(scores).column("score").astype(float)
    value = psi(_test_scores(folder).z, now)
    if as_json:
        print_json({"psi": value, "rows": len(now)})
        return
    word = "stable" if value < 0.1 else "a shift: look into it" if value > 0.25 else "some change"
    click.echo(f"PSI {value:.4f} over {len(now)} scores: {word}")


@credit.command()
@FOLDER
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Write it there instead of printing it.")
@JSON
def card(folder: Path, out: Path | None, as_json: bool) -> None:
    """Write a model card of the run in DIR, in Markdown.

    \b
    Example:
      colonnade credit card runs/job --out card.md
    """
    import msgspec

    from colonnade.cli.folder import RESULT, check_file
    from colonnade.credit.card import as_markdown, model_card
    from colonnade.disk import drafted
    from colonnade.result import read_result
    from colonnade.test_scores import FILE

    if out is not None:
        check_file(out)
    scores = _test_scores(folder) if (folder / FILE).is_file() else None
    made = model_card(read_result(folder / RESULT), scores)
    text = msgspec.json.format(msgspec.json.encode(made), indent=2).decode() if as_json else as_markdown(made)
    if out is None:
        click.echo(text)
        return
    with drafted(out) as draft:
        draft.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"written": str(out)})
    else:
        click.echo(f"written: {out}")


def _test_scores(folder: Path) -> TestScores:
    """Return the test scores of a run."""
    from colonnade.errors import DataError
    from colonnade.test_scores import FILE, TestScores

    if not (folder / FILE).is_file():
        raise DataError(f"{folder}: there is no {FILE}; `colonnade run JOB.toml --out {folder}` writes one")
    return TestScores.read(folder / FILE)


for inside in (scorecard, coefficients, importance, export):
    credit.add_command(inside)
