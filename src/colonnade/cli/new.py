"""`colonnade new`: look at files, and write the job that trains a model on them."""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from colonnade.cli.machine import JSON, print_json
from colonnade.cli.sources import SOURCE
from colonnade.job.source import Address

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
    help="The column by which rows of several files belong together; where they call it differently once for "
    "each FILE, in their order. Not needed where only one can be meant.",
)
@click.option("--parties", type=click.IntRange(min=1), help="One FILE: split its columns over this many.")
@click.option(
    "--blind/--clear",
    default=None,
    help="Whether nobody but its holder learns the label. Without it blind for two parties, clear for more.",
)
@click.option("--woe", is_flag=True, help="Train on every column's weight of evidence, as scorecards do.")
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("job.toml"),
    show_default=True,
    help="The job.",
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

    A FILE may also be a table of a database or an object in a store. Says what is in every file, which of
    them holds the label, and what to run next. The job has a comment for every key; change what you like. A
    job that is there already is never overwritten.

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
    if parties is not None and len(files) > 1:
        raise DataError("--parties: splits the columns of one file; with several each is a party's")
    if blind and (parties or max(len(files), 2)) < 2:
        raise DataError("--blind: one party has nobody to hide the label from")
    if len(ids) not in (0, 1, len(files)):
        raise DataError(f"--id: {len(ids)} columns for {len(files)} files; give one, or one for each file")
    surveys = [Survey.of(path) for path in files]
    evident = Joining.evident(surveys) if not ids else None
    joined_by = ids * len(files) if len(ids) == 1 else tuple(evident.columns) if evident else ids
    found = {
        str(survey.path): survey.found(joined_by[k] if joined_by else None)
        for k, survey in enumerate(surveys)
    }
    if not as_json:
        for path, said in found.items():
            click.echo("\n  ".join([path, *said]))
    holder = _holder(surveys, label, joined_by)
    if label is not None and not as_json:
        click.echo(f"\nlabel:   '{label}' is in {holder.path} ({base_rate(holder, label)})")
    _check_ids(surveys, joined_by)
    if parties is not None:
        _check_parties(parties, holder, label, joined_by)
    names = _names(files) if len(files) > 1 else {}
    joining = evident or Joining.of(surveys, joined_by)
    if len(surveys) > 1 and not joining.common:
        which = ", ".join(
            f"'{column}' of {each.path} ({_some_ids(each.ids(column))})"
            for each, column in zip(surveys, joined_by, strict=True)
        )
        raise DataError(f"--id: no id is in all files: {which}; name the columns that have the same ids")
    if joining.said and not as_json:
        click.echo(f"ids:     {joining.said}" if ids else f"ids:     '{joined_by[0]}': {joining.said}")
    split = len(files) if len(files) > 1 else parties or 2
    several = _several_classes(holder, label)
    if woe and several:
        raise DataError("--woe: weight of evidence needs a label of two classes")
    secrecy = Secrecy.of(blind, split, several=several)
    text = _job(surveys, names, holder, label, joining, parties or 2, secrecy, out, woe=woe)
    with drafted(out) as draft:
        draft.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"written": str(out), "label_at": str(holder.path), "found": found})
        return
    named = shlex.quote(str(out))
    click.echo(
        f"\nwritten: {out}\nnext:    colonnade run {named} --check\n         colonnade run {named} --report"
    )


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


def _check_ids(surveys: Sequence[Survey], ids: Sequence[str]) -> None:
    """Refuse files that cannot be joined, with the columns that may be their id."""
    from colonnade.data.prepare.survey import id_candidates, joining_columns
    from colonnade.errors import DataError, suggest

    if not ids and len(surveys) > 1:
        if len(same := id_candidates(surveys)[:8]) == 1:
            common = Joining.of(surveys, same * len(surveys)).said
            raise DataError(
                f"--id: say which column joins the files; all have '{same[0]}', of which {common}"
            )
        if same:
            raise DataError(f"--id: say which column joins the files; all of them have {', '.join(same)}")
        options = " ".join(f"--id {shlex.quote(column)}" for column in joining_columns(surveys))
        if options:
            raise DataError(f"--id: say which columns join the files; by their values it may be {options}")
        raise DataError(
            "--id: say which column joins the files, once for each file where they call it differently; no "
            "column that differs from row to row has values in common with the other files"
        )
    for survey, column in zip(surveys, ids, strict=False):
        if not survey.has(column):
            hint = suggest(column, survey.raw.columns)
            more = "; give --id once for each file where they call it differently" if len(surveys) > 1 else ""
            raise DataError(f"--id: {survey.path} has no column '{column}'; {hint}{more}")


class Joining(NamedTuple):
    """By which columns the files are joined, and by which rule ids that look different are the same."""

    columns: Sequence[str]
    rule: str = ""
    said: str = ""
    common: int = 0

    @staticmethod
    def evident(surveys: Sequence[Survey]) -> Joining | None:
        """Return the id of every file where nobody need be asked: one column can be it, most ids are
        common."""
        from colonnade.data.prepare.survey import id_candidates

        if len(surveys) < 2 or len(same := id_candidates(surveys)) != 1:
            return None
        found = Joining.of(surveys, same * len(surveys))
        return found if 2 * found.common > min(len(each.ids(same[0])) for each in surveys) else None

    @staticmethod
    def of(surveys: Sequence[Survey], columns: Sequence[str]) -> Joining:
        """Return the rule after which most ids are in all files, and how many."""
        from colonnade.data.read.ids import best_rule

        if len(surveys) < 2:
            return Joining(columns)
        rule, common = best_rule([each.ids(column) for each, column in zip(surveys, columns, strict=True)])
        if not common:
            return Joining(columns, said="none is in all files; are these the right columns?")
        by_rule = f" with keys = [{rule}]" if rule else ""
        said = f"{common:,} {'is' if common == 1 else 'are'} in all files{by_rule}"
        return Joining(columns, rule, said, common)


def _some_ids(ids: Iterable[object]) -> str:
    """Return the first few ids of a file, to compare with another's."""
    return ", ".join(map(str, islice(ids, 2))) + ", ..."


def _names(files: Sequence[Source]) -> dict[str, Source]:
    """Return a name for every file's party: that of the file, where they differ."""
    names: dict[str, Source] = {}
    for path in files:
        plain = unicodedata.normalize("NFKD", _called(path)).encode("ascii", "ignore").decode()
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-") or "party"
        number = 2
        while name in names:
            name, number = f"{name.rstrip('0123456789').rstrip('-')}-{number}", number + 1
        names[name] = path
    return names


def _called(source: Source) -> str:
    """Return what a source is called: a file without its ending, a table without its schema."""
    if isinstance(source, Address) and source.part:
        return source.name.rpartition(".")[2]
    return source.name.split(".")[0]


def _job(
    surveys: Sequence[Survey],
    names: dict[str, Source],
    holder: Survey,
    label: str | None,
    joining: Joining,
    parties: int,
    secrecy: Secrecy,
    out: Path,
    *,
    woe: bool,
) -> str:
    """Return the text of the job."""
    from colonnade.job.writing import text, value_text

    def beside(path: Source) -> str:
        folder = out.absolute().parent
        if isinstance(path, Address):
            return text(str(path.beside(Path.cwd())))
        return text(os.path.relpath(path.absolute(), folder).replace(os.sep, "/"))

    lines = [
        "# Written by `colonnade new`. `colonnade run --check` says what is wrong after a change.",
        "# With a name and [parties] it can be proposed to companies: `colonnade train`, docs/job-file.md.",
        "",
        _key(f'algorithm = "{secrecy.algorithm}"', "how to train; `colonnade algorithms` lists all"),
        _key('world = "local"', 'in one process; "network": a process each, mutual TLS; "simulated"'),
        _key("seed = 0", "the split into training and test rows, the order of rows"),
        _key("# compare = false", "do not fit the same model on all columns together, to compare with"),
        "",
        "[data]",
    ]
    if names:
        active = next(name for name, path in names.items() if path == holder.path)
        lines += [f"files.{name} = {beside(path)}" for name, path in names.items()]
        lines += [_key(f"active = {value_text([active])}", "who holds the label")]
    else:
        lines += [f"train = {beside(surveys[0].path)}"]
        lines += [_key(f"parties = {parties}", "split the columns over this many, at random")]
    lines += [_key(f"label = {text(label)}", "the column to predict")] if label is not None else []
    if len(set(joining.columns)) == 1:
        lines += [_key(f"id = {text(joining.columns[0])}", "rows with the same belong together")]
    else:
        lines += [f"id.{name} = {text(column)}" for name, column in zip(names, joining.columns, strict=False)]
    if joining.rule:
        lines += [_key(f"keys = [{joining.rule}]", "ids that look different are the same in this form")]
    if woe:
        lines += [_key("woe = true", "columns as weight of evidence; [woe] says of which bins")]
    return "\n".join([*lines, *_open_keys(), secrecy.line]) + "\n"


class Secrecy(NamedTuple):
    """How a job is trained, and its line that says who learns labels."""

    algorithm: str
    line: str

    @staticmethod
    def of(blind: bool | None, parties: int, *, several: bool) -> Secrecy:
        """Return what was asked for or, where nothing was, what hides labels between two companies."""
        from colonnade.errors import DataError
        from colonnade.job.presets import DEFAULT_ALGORITHM

        if parties == 2 and several:
            if blind:
                raise DataError(
                    "--blind: a label of several classes cannot be hidden between two parties; make it one "
                    "class against the rest, or add a third party"
                )
            return Secrecy(
                DEFAULT_ALGORITHM, _key('labels = "clear"', "several classes: two cannot hide them")
            )
        if blind is None:
            blind = parties == 2
        if not blind:
            how = "`colonnade new --blind` hides it"
            return Secrecy(
                DEFAULT_ALGORITHM, _key('labels = "clear"', f"parties are sent what tells them labels; {how}")
            )
        if parties == 2:
            words = 'neither learns a label, column or score of the other; "clear" is exact'
            return Secrecy(DEFAULT_ALGORITHM, _key('labels = "blind"', words))
        words = "nobody but its holder learns the label, or what it follows from"
        return Secrecy("vfb2-saga" if several else DEFAULT_ALGORITHM, _key('labels = "blind"', words))


def _several_classes(holder: Survey, label: str | None) -> bool:
    """Return whether the label is one of more than two classes, as a run would take it."""
    from colonnade.data.prepare.labels import guessed_task

    y = holder.raw.y if label is None else holder.raw.column(label)
    return y is not None and guessed_task(y, str(holder.path)) == "multiclass"


def _key(text: str, comment: str) -> str:
    """Return a line of the job with its comment."""
    return f"{text:<27} # {comment}"


def _open_keys() -> list[str]:
    """Return the keys that a job may do without, with what they may be."""
    from colonnade.losses import LOSSES, USUAL

    usual = USUAL["binary"]
    others = ", ".join(name for name in LOSSES if name != usual)
    return [*DATA, *TRAIN, _key(f'# loss = "{usual}"', f"or {others}; else what suits the label"), *SECURE]


DATA = [
    _key("test_fraction = 0.2", "of the rows are kept to test the model on"),
    _key('# positive = ["yes"]', "the labels that count as +1; else the second of two"),
    _key('# drop = ["..."]', "columns to leave out"),
    _key('# categorical = ["..."]', "numbers that are codes; text is categorical by itself"),
    _key('# scale = "auto"', "or none, zscore, minmax, maxabs"),
    _key('# missing = "auto"', "gaps; or error, zero, mean"),
    _key("# na_values = [-999]", "values that stand for a gap; by column: {income = 99999999}"),
    _key('# separator = ";"', "also decimal, thousands, encoding: found out where they are not given"),
    "",
]
TRAIN = [
    "[train]",
    _key('l2 = "auto"', "1 / rows; the larger, the smaller the weights"),
    _key("# epochs = 300", "the most passes over the rows; training ends once the loss stops falling"),
]
SECURE = [
    "",
    "[secure]",
    _key('sum = "masked"', "how scores are summed: nobody sees another party's part"),
]
