"""`colonnade algorithms` and `colonnade datasets`: lists of both, with one line each."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from colonnade.cli.machine import JSON, note
from colonnade.cli.show import console, table


@click.command()
@JSON
@click.option("--long", is_flag=True, help="Also say what each algorithm is, and from which paper.")
def algorithms(as_json: bool, long: bool) -> None:
    """List the algorithms that a job may name, and when to use each; --long also says what each is.

    \b
    Example:
      colonnade algorithms
    """
    from colonnade.job.advice import FAMILIES, USE_IT_WHEN
    from colonnade.job.presets import PRESETS

    known = PRESETS.values()
    if as_json:
        found = [{**asdict(preset), "use_it_when": USE_IT_WHEN[preset.name]} for preset in known]
        click.echo(json.dumps(found, indent=2))
        return
    head = ["algorithm", "use it when", "schedule"]
    rows = [[preset.name, USE_IT_WHEN[preset.name], preset.schedule] for preset in known]
    if long:
        head += ["paper", "what it is"]
        rows = [[*row, each.paper, each.summary] for row, each in zip(rows, known, strict=True)]
    out = console()
    out.print(table(head, rows))
    names = ",".join(FAMILIES)
    out.print(f"colonnade compare JOB.toml --algorithms {names} tries several on one split", soft_wrap=True)


@click.command()
@JSON
@click.option("--verify", is_flag=True, help="Compare the files on this machine with their checksums.")
@click.option("--get", "wanted", metavar="NAME", help="Fetch this data set from where it is published.")
def datasets(as_json: bool, verify: bool, wanted: str | None) -> None:
    """List the data sets that a job may name, and which of them are on this machine.

    Those that come with scikit-learn are always here. The files of others are looked for in the folder
    that COLONNADE_DATA names, then in ~/.cache/colonnade. Nothing is downloaded without --get, which
    compares what it fetched with the recorded checksum.

    \b
    Example:
      COLONNADE_DATA=~/data colonnade datasets --verify
    """
    from colonnade.data.datasets.catalogue import DATASETS

    if wanted is not None:
        from colonnade.data.datasets.fetch import fetch

        found = [str(path) for path in fetch(wanted, note)]
        click.echo(json.dumps(found) if as_json else f"{wanted} is here: {', '.join(found)}")
        return
    states = {name: _state(name, verify=verify) for name in DATASETS}
    if as_json:
        listed = [
            {
                "name": name,
                "summary": known.summary,
                "task": known.task,
                "rows": known.rows,
                "test_rows": known.test_rows,
                "columns": known.columns,
                "source": known.source,
                "state": states[name],
            }
            for name, known in DATASETS.items()
        ]
        click.echo(json.dumps(listed, indent=2))
        return
    rows = [
        (name, known.task, f"{known.rows:,}", f"{known.columns:,}", states[name], known.summary)
        for name, known in DATASETS.items()
    ]
    out = console()
    out.print(table(["data set", "task", "rows", "columns", "here", "what it is"], rows, right=(2, 3)))
    missing = sum(state == "no" for state in states.values())
    if missing:
        out.print(f"{missing} are not on this machine; a job that names one says where to get it.")


def _state(name: str, *, verify: bool) -> str:
    """Return whether a data set is here: yes or no; with `verify` also whether its files are the recorded
    ones."""
    from colonnade.data.datasets import loading as store
    from colonnade.data.datasets.catalogue import DATASETS
    from colonnade.errors import DataError

    if not store.available(name):
        return "no"
    if not verify or DATASETS[name].bundled:
        return "yes"
    try:
        known = all(state == "ok" for state in store.verify(name).values())
    except DataError:
        return "damaged"
    return "checked" if known else "no checksum"
