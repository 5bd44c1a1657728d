"""`colonnade new`: look at files, and write the job that trains a model on them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.joining import Joining, check_ids
from colonnade.cli.machine import JSON, print_json
from colonnade.cli.new_job import Secrecy, job_text, party_names
from colonnade.cli.sources import SOURCE

if TYPE_CHECKING:
    from colonnade.data.prepare.survey import Survey
    from colonnade.job.source import Source


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=SOURCE)
@click.option("--label", help="The column to predict.")
@click.option(
    "--id",
    "ids",
    multiple=True,
    help="The column that joins the files; where names differ, give one for each FILE, in their order. "
    "Not needed where only one column can be meant.",
)
@click.option(
    "--parties", type=click.IntRange(min=1), help="One FILE: split its columns over this many parties."
)
@click.option(
    "--blind/--clear",
    default=None,
    help="Hide the label from all but its holder, or not. Default: hide it where possible.",
)
@click.option("--woe", is_flag=True, help="Train on every column's weight of evidence, as scorecards do.")
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("job.toml"),
    show_default=True,
    help="Where the job goes.",
)
@JSON
def new(
    files: tuple[Source, ...],
    label: str | None,
    ids: tuple[str, ...],
    parties: int | None,
    blind: bool | None,
    woe: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Look at FILEs, one for each party, and write a job that trains a model on them.

    A FILE may also be a table of a database or an object in a store. The command says what is in every file,
    which of them holds the label, and what to run next. The job has a comment for every key; change what you
    like. An existing job is never overwritten.

    \b
    Example:
      colonnade new bank.csv shop.csv --label default --id customer
      colonnade new bank.csv shop.csv --label default --id customer --id buyer
      colonnade new people.csv --label buys --parties 3 --blind
      colonnade new bank.csv shop.csv --label default --id customer --woe
      colonnade new postgresql://db.bank/risk#customers s3://shop/buyers.parquet --label default
    """
    from colonnade.cli.folder import check_file
    from colonnade.data.prepare.survey import Survey, base_rate
    from colonnade.disk import drafted
    from colonnade.errors import DataError

    if out.exists():
        raise DataError(f"{out}: exists and is not overwritten; choose another with --out")
    check_file(out)
    _check_options(len(files), len(ids), parties, blind)
    say: Callable[[str], None] = _nothing if as_json else click.echo
    surveys = [Survey.of(path) for path in files]
    evident = Joining.evident(surveys) if not ids else None
    joined_by = ids * len(files) if len(ids) == 1 else tuple(evident.columns) if evident else ids
    columns = joined_by or (None,) * len(files)
    found = {str(each.path): each.found(by) for each, by in zip(surveys, columns, strict=True)}
    for path, said in found.items():
        say("\n  ".join([path, *said]))
    holder = _holder(surveys, label, joined_by)
    if label is not None:
        say(f"\nlabel:   '{label}' is in {holder.path} ({base_rate(holder, label)})")
    check_ids(surveys, joined_by)
    hints = [hint for each in surveys for hint in _hints(each, label, joined_by)]
    for hint in hints:
        say(f"look at: {hint}")
    if parties is not None:
        _check_parties(parties, holder, label, joined_by)
    joining = evident or Joining.of(surveys, joined_by)
    joining.refuse_none(surveys)
    if joining.said:
        say("ids:     " + joining.said if ids else f"ids:     '{joined_by[0]}': {joining.said}")
    several = _several_classes(holder, label)
    if woe and several:
        raise DataError("--woe: weight of evidence needs a label of two classes")
    secrecy = Secrecy.of(blind, len(files) if len(files) > 1 else parties or 2, several=several)
    names = party_names(files) if len(files) > 1 else {}
    text = job_text(surveys, names, holder, label, joining, parties or 2, secrecy, out, woe=woe)
    with drafted(out) as draft:
        draft.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"written": str(out), "label_at": str(holder.path), "found": found, "look_at": hints})
    named = shlex.quote(str(out))
    say(f"\nwritten: {out}\nnext:    colonnade run {named} --check\n         colonnade run {named} --report")


def _nothing(text: str) -> None:
    """Say nothing: with --json all is in one object."""


def _check_options(files: int, ids: int, parties: int | None, blind: bool | None) -> None:
    """Refuse options that do not go together."""
    from colonnade.errors import DataError

    if parties is not None and files > 1:
        raise DataError("--parties: splits the columns of one file; with several each is a party's")
    if blind and (parties or max(files, 2)) < 2:
        raise DataError("--blind: one party has nobody to hide the label from")
    if ids not in (0, 1, files):
        raise DataError(f"--id: {ids} columns for {files} files; give one, or one for each file")


def _holder(surveys: Sequence[Survey], label: str | None, ids: Sequence[str]) -> Survey:
    """Return the file that holds the label; DataError with the columns that may be it."""
    from colonnade.data.prepare.survey import label_candidates, with_labels
    from colonnade.errors import DataError, suggest

    if label is None and with_labels(surveys):
        return surveys[0]  # its format has a place for labels
    if label is None:
        found = ", ".join(label_candidates(surveys)[:8]) or "none has few different values"
        raise DataError(f"--label: say which column to predict; it may be one of: {found}")
    holders = [survey for survey in surveys if survey.has(label)]
    if not holders:
        known = [column for survey in surveys for column in survey.raw.columns]
        raise DataError(f"--label: no file has a column '{label}'; {suggest(label, known)}")
    if len(holders) > 1:
        if label in ids:
            raise DataError(
                f"--label: '{label}' is the id by which the files are joined; name another column"
            )
        which = " and ".join(str(survey.path) for survey in holders)
        raise DataError(f"--label: {which} have '{label}'; remove it from all files but one")
    return holders[0]


def _check_parties(parties: int, survey: Survey, label: str | None, ids: Sequence[str]) -> None:
    """Refuse to split a file over more parties than it has columns to learn from."""
    from colonnade.errors import DataError

    columns = len(set(survey.raw.columns) - {label, *ids})
    if parties > columns:
        raise DataError(
            f"--parties: {survey.path} has {columns} columns for {parties} parties; each needs one"
        )


def _hints(survey: Survey, label: str | None, ids: Sequence[str]) -> list[str]:
    """Return what the job should say of a file's columns and label, a sentence each."""
    from colonnade.data.prepare.suspects import before_a_job

    raw = survey.raw
    y = raw.column(label) if label is not None and survey.has(label) else None
    return list(before_a_job(raw, [c for c in raw.columns if c not in {label, *ids}], y))


def _several_classes(holder: Survey, label: str | None) -> bool:
    """Return whether the label is one of more than two classes, as a run would take it."""
    from colonnade.data.prepare.labels import guessed_task

    y = holder.raw.y if label is None else holder.raw.column(label)
    return y is not None and guessed_task(y, str(holder.path)) == "multiclass"
