"""The job that `colonnade new` writes, with a comment for every key."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from colonnade.job.source import Address

if TYPE_CHECKING:
    from colonnade.cli.joining import Joining
    from colonnade.data.prepare.survey import Survey
    from colonnade.job.source import Source


def party_names(files: Sequence[Source]) -> dict[str, Source]:
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


def job_text(
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
    """How a job is trained, and its lines that say who learns labels and scores."""

    algorithm: str
    line: str

    @staticmethod
    def of(blind: bool | None, parties: int, *, several: bool) -> Secrecy:
        """Return what was asked for or, where nothing was, what hides most between these companies."""
        from colonnade.errors import DataError
        from colonnade.job.presets import DEFAULT_ALGORITHM

        def clear(why: str) -> Secrecy:
            return Secrecy(DEFAULT_ALGORITHM, _key('labels = "clear"', why))

        if parties == 2 and several:
            if blind:
                raise DataError(
                    "--blind: a label of several classes cannot be hidden between two parties; train one "
                    "class against the rest (`positive` in the job), or add a third party"
                )
            return clear("several classes: two cannot hide them, but one of them, by `positive`")
        if parties == 1:
            return clear("there is nobody to hide them from")
        if blind is False:
            return clear('parties are sent what tells them labels; "blind" hides it')
        if parties == 2:
            words = 'neither learns a label, column or score of the other; "clear" is exact'
            return Secrecy(DEFAULT_ALGORITHM, _key('labels = "blind"', words))
        labels = _key('labels = "blind"', "nobody but its holder learns the label, or what it follows from")
        if several:
            return Secrecy("vfb2-saga", labels)
        hidden = _key('scores = "hidden"', "nor does the holder learn a score before the end")
        return Secrecy(DEFAULT_ALGORITHM, f"{labels}\n{hidden}")


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
    _key("# na_values = [-999]", "values that stand for a gap; of a column: na_values.income = [99999999]"),
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
