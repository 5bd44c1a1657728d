"""`colonnade describe`: statistics of all parties' columns, on one machine or between companies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.machine import JSON, note, print_json
from colonnade.cli.party import CONFIG

if TYPE_CHECKING:
    from colonnade.describe.columns import ColumnSummary
    from colonnade.describe.description import Description
    from colonnade.describe.joint import Statistics

WIDE = 12  # columns of which all correlations are printed
STRONGEST = 20  # pairs of more columns


@click.command()
@click.argument("job", metavar="JOB.toml|NAME")
@CONFIG
@click.option("--as-told", is_flag=True, help="One machine: with noise and rounding, as between companies.")
@JSON
def describe(job: str, config: Path, as_told: bool, as_json: bool) -> None:
    """Describe every column, and how the columns of all parties are related.

    Mean, deviation and quantiles; Pearson correlations over all parties; variance inflation (VIF); and a
    linear model of the label with standard errors and p-values. On one machine all figures are exact. A
    job with [parties] is proposed to them: this party's daemon must run, and all policies must accept
    `statistics`. NAME shows the result of an earlier description.

    \b
    Example:
      colonnade describe job.toml
      colonnade describe credit.toml --config party.toml
      colonnade describe credit --config party.toml
    """
    found = _found(job, config, as_told, quiet=as_json)
    if as_json:
        print_json(found)
    else:
        _show(found)


def _found(job: str, config: Path, as_told: bool, *, quiet: bool) -> Description:
    """Return what the job file, or the name, asks for."""
    from colonnade.errors import JobError
    from colonnade.job import read_job, read_toml

    path = Path(job)
    if not path.is_file():
        if path.suffix == ".toml":
            raise JobError(f"{path}: there is no such job file")
        from colonnade.deploy.programs.describing import stored
        from colonnade.deploy.settings import read_settings

        return stored(read_settings(config), job)
    if "parties" not in read_toml(path, "there is no such job file"):
        from colonnade.describe.joint import NOISE
        from colonnade.run.describe import describe_job

        return describe_job(read_job(path, note), NOISE if as_told else None)
    if as_told:
        raise JobError("--as-told: between companies everybody is told with noise anyway; drop it")
    return _asked(path, config, quiet=quiet)


def _asked(path: Path, config: Path, *, quiet: bool) -> Description:
    """Propose the statistics to the parties of a job, and return what came of it."""
    from colonnade.cli.daemon import ask_to_train
    from colonnade.cli.train import followed
    from colonnade.deploy.daemon.commands import TrainRequest
    from colonnade.deploy.programs.describing import described, stored
    from colonnade.deploy.settings import read_settings
    from colonnade.deploy.terms.contract import read_terms

    settings = read_settings(config)
    terms = described(read_terms(path, note))
    with followed(quiet=quiet) as tell:
        found = ask_to_train(settings, TrainRequest(terms), tell)
    return stored(settings, found["model"])


def _show(found: Description) -> None:
    """Print everything as tables."""
    for party, columns in found.parties.items():
        _show_columns(party, columns)
    joint = found.joint
    how = f"noise of {joint.noise:.2g} in every correlation between parties" if joint.noise else "exact"
    click.echo(f"\n{joint.rows:,} training rows; {how}; standard error of a correlation {joint.error:.2g}\n")
    _show_correlations(joint)
    _show_joint(joint)
    for party, names in found.repeated.items():
        click.echo(f"{party}: left out, as its other columns give them: {', '.join(names)}")
    for party, names in found.rare.items():
        click.echo(f"{party}: left out, as they would tell of single rows: {', '.join(names)}")


def _show_columns(party: str, columns: list[ColumnSummary]) -> None:
    from colonnade.cli.show import console, table

    heads = ["column", "rows", "gaps", "distinct", "mean", "sd", "min", "25%", "50%", "75%", "max", "top"]
    rows = [
        (x.column, *_counts(x.rows, x.gaps, x.distinct), *_values(x, x.mean), *_figures(".4g", x.deviation),
         *_values(x, x.least, x.lower, x.median, x.upper, x.most),
         "" if x.top is None else f"{x.top} ({x.top_rows})")
        for x in columns
    ]  # fmt: skip
    console().print(table(heads, rows, right=range(1, 11), title=party))


def _show_correlations(joint: Statistics) -> None:
    """Print all correlations where they are few, and the strongest of many."""
    from colonnade.cli.show import console, table

    names = [f"{party}.{column}" for party, column in joint.names]
    R = joint.correlations
    if len(names) <= WIDE:
        rows = [(name, *(f"{r:+.3f}" for r in R[k][: k + 1])) for k, name in enumerate(names)]
        filled = [row + ("",) * (len(names) + 1 - len(row)) for row in rows]
        heads = ["", *(str(k + 1) for k in range(len(names)))]
        numbered = [(f"{k + 1} {row[0]}", *row[1:]) for k, row in enumerate(filled)]
        console().print(table(heads, numbered, right=range(1, len(heads)), title="correlations"))
        return
    pairs = sorted(((abs(R[a][b]), a, b) for a in range(len(R)) for b in range(a)), reverse=True)[:STRONGEST]
    rows = [(names[b], names[a], f"{R[a][b]:+.3f}") for _, a, b in pairs]
    console().print(table(["column", "column", "r"], rows, right=(2,), title="strongest correlations"))


def _show_joint(joint: Statistics) -> None:
    from colonnade.cli.show import console, table

    more = ">" if joint.crowded else ""
    rows = [
        (x.party, x.column, f"{more}{x.vif:.2f}", *_figures("+.4f", x.beta), *_figures(".4f", x.error),
         *_figures("+.2f", x.statistic), *_figures(".2g", x.p))
        for x in joint.columns
    ]  # fmt: skip
    heads = ["party", "column", "VIF", "beta", "error", "t or z", "p"]
    title = "variance inflation" if joint.fit is None else f"{joint.fit.model}, columns in deviations"
    if joint.fit is not None and joint.fit.r2 is not None:
        title += f"; R2 {joint.fit.r2:.4f}"
    console().print(table(heads, rows, right=range(2, 7), title=title))
    if joint.crowded:
        seen = ", as far as noise lets see" if joint.noise else ""
        words = "VIF is a lower bound and there are no coefficients; drop one of them"
        click.echo(f"columns repeat each other{seen}: {words}")
    elif joint.fit is None and joint.label_at is not None:
        why = "there are no more rows than columns; drop some"
        if joint.rows > len(joint.columns) + 1:
            why = (
                "some columns tell the label of all rows that have them, as a category without a positive "
                "row does; drop them, or join rare values (data.rare)"
            )
        click.echo(f"there are no coefficients: {why}")


def _values(column: ColumnSummary, *values: float | None) -> list[str]:
    """Return values of a column as text: days since 1970 as dates."""
    if not column.dates:
        return _figures(".4g", *values)
    from colonnade.data.read.dates import date_words

    return ["" if value is None else date_words(round(value)) for value in values]


def _figures(how: str, *values: float | None) -> list[str]:
    """Return numbers as text, what is not known as nothing."""
    return ["" if value is None else format(value, how) for value in values]


def _counts(*values: int) -> list[str]:
    return [f"{value:,}" for value in values]
