"""Ids: brought into one form before they are compared, and one row for each.

Companies write the same person's id in different ways. A job's `keys` say how each column of an id is brought
into its normal form; the same rules hold for files that are joined here and for those that daemons align.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from colonnade.data.read.formats import ID_MARK
from colonnade.data.table import RawTable, array_of, count, is_ascii
from colonnade.errors import DataError
from colonnade.job import Key

PIECE = 2**16  # ids that are Python texts at once
LONGEST = 1000  # digits of an id, and characters of one that is asked for
WHOLE = re.compile(rf"[+-]?\d{{1,{LONGEST}}}")  # in any script; longer ones are no ids, and slow to read
SHORTENED = re.compile(r"\d(?:[.,]\d+)?[eE]\+?\d+")  # what a spreadsheet makes of a long number
RULES = {  # for ids that look different, as a job writes them
    "": Key(),
    '{ kind = "integer" }': Key(kind="integer"),
    '{ case = "lower" }': Key(case="lower"),
}
HAS_YEAR = re.compile("%[cGxyY]")
NO_ID, TWICE = "no id", "the same row twice"


def normaliser(key: Key, name: str) -> Callable[[str, int], str]:
    """Return the function that brings a value of an id column (and its row, for errors) into its normal form.

    >>> normaliser(Key(case="lower"), "mail")("  Ada@Example.ORG ", 0)
    'ada@example.org'
    >>> normaliser(Key(kind="date", formats=("%d.%m.%Y", "%Y-%m-%d")), "born")("07.05.1999", 0)
    '1999-05-07'
    >>> normaliser(Key(kind="date", formats=("%d.%m",)), "birthday")("07.05", 0)
    '1900-05-07'
    >>> normaliser(Key(kind="integer"), "ID")("0042", 0)
    '42'
    """

    def form(text: str, row: int) -> str:
        text = unicodedata.normalize("NFC", text)
        text = text.strip() if key.trim else text
        if not text:
            raise DataError(f"id column '{name}', row {row + 1} is empty")
        match key.kind:
            case "text":
                return text.casefold() if key.case == "lower" else text
            case "integer":
                digits = text.removesuffix(".0")
                if WHOLE.fullmatch(digits) is None:
                    raise DataError(f"id column '{name}', row {row + 1}: {text!r} is not a whole number")
                return str(int(digits))
            case "date":
                for pattern in key.formats:
                    try:
                        return _date(text, pattern)
                    except (ValueError, re.error):  # or the format itself makes no sense
                        continue
        formats = ", ".join(key.formats)
        raise DataError(f"id column '{name}', row {row + 1}: {text!r} is not a date like {formats}")

    return form


def _date(text: str, pattern: str) -> str:
    """Return a date in its normal form; without a year it is of 1900, as in Python before 3.15."""
    if HAS_YEAR.search(pattern) is None:
        text, pattern = f"1900 {text}", f"%Y {pattern}"
    return datetime.strptime(text, pattern).date().isoformat()


def common(ids: Sequence[Sequence[str] | NDArray[np.str_]], rule: Key) -> int:
    """Return how many ids are in all of some files after a rule; none where an id has no such form.

    >>> common([["007", "008"], ["7", "9"]], Key(kind="integer"))
    1
    """
    try:
        return len(set.intersection(*(set(_forms(np.asarray(each), rule)) for each in ids)))
    except DataError:
        return 0


def _forms(ids: NDArray[np.str_], rule: Key) -> list[str]:
    """Return the normal form of every id."""
    plain = _at_once(ids, rule)
    if plain is not None:
        return list(map(str, plain.tolist()))
    form = normaliser(rule, "id")
    return [form(one, 0) for one in ids.tolist()]


def best_rule(ids: Sequence[NDArray[np.str_]]) -> tuple[str, int]:
    """Return the one of `RULES` after which most ids are in all files, and how many; the plainest of
    equals."""
    counted = {written: common(ids, rule) for written, rule in RULES.items()}
    return max(counted.items(), key=lambda each: each[1])


def identified(raw: RawTable, keys: Sequence[Key], names: Sequence[str]) -> RawTable:
    """Return the table with its ids in normal form, and with one row for each.

    Rows without an id are left out, and so is a row that is there twice. Two different rows with one id are
    an error: nobody but their owner knows which one is right.
    """
    if raw.ids is None:
        return raw
    if len(keys) != len(names):
        raise DataError(
            f"{raw.name}: the id has {count(len(names), 'column')} ({', '.join(names)}) and there are "
            f"rules (keys) for {len(keys)}; give one for each"
        )
    kept = np.flatnonzero(raw.ids != "")
    if not len(kept):
        raise DataError(f"{raw.name}: no row has an id in {' + '.join(names)}")
    lost = raw.rows - len(kept)
    raw = raw.take(kept) if lost else raw
    raw = replace(raw, reading=raw.reading.and_left_out(lost, NO_ID))
    return _once(replace(raw, ids=normal(raw, keys, names)))


def parts_of(ids: NDArray[np.str_], columns: int) -> list[NDArray[np.str_]]:
    """Return the columns of ids that were joined to one text each."""
    if columns == 1:
        return [ids]
    return [np.array(part) for part in zip(*(text.split(ID_MARK) for text in ids.tolist()), strict=True)]


def shown(id_text: str) -> str:
    """Return an id for an error text."""
    return id_text.replace(ID_MARK, " + ")


def normal(raw: RawTable, keys: Sequence[Key], names: Sequence[str]) -> NDArray[np.str_]:
    """Return every id in its normal form; an error counts those that have none."""
    forms = [normaliser(key, name) for key, name in zip(keys, names, strict=True)]
    ids = np.empty(0, dtype=np.str_) if raw.ids is None else raw.ids
    pieces, faults = [ids[:0]], []
    for start in range(0, len(ids), PIECE):
        piece = ids[start : start + PIECE]
        if len(keys) == 1 and (plain := _at_once(piece, keys[0])) is not None:
            pieces.append(plain)
            continue
        normal = []
        for row, text in enumerate(piece.tolist(), start):
            try:
                normal.append(_form_of(text, raw.row_number(row), forms))
            except DataError as fault:
                faults.append(str(fault))
        pieces.append(np.array(normal, dtype=np.str_))
    if faults:
        more = f" ({len(faults) - 1:,} more rows have such ids)" if len(faults) > 1 else ""
        raise DataError(f"{raw.name}: {faults[0]}{more}; correct them, or see keys")
    return np.concatenate(pieces)


def _form_of(text: str, number: int, forms: Sequence[Callable[[str, int], str]]) -> str:
    """Return the normal form of the id in a row of the file; DataError if it has none."""
    parts = text.split(ID_MARK) if len(forms) > 1 else [text]
    if len(parts) != len(forms):
        raise DataError(f"id of row {number} has the character {ID_MARK!r}, which joins columns")
    return ID_MARK.join(form(part, number - 1) for form, part in zip(forms, parts, strict=True))


def _at_once(ids: NDArray[np.str_], key: Key) -> NDArray[np.str_] | None:
    """Return the normal form of many ids by a few calls; None where each has to be looked at.

    In ASCII there is one way to write a letter, and a capital has one small one.
    """
    if not is_ascii(ids) or ids.dtype.itemsize > 4 * LONGEST:
        return None
    ids = np.strings.strip(ids) if key.trim else ids
    match key.kind:
        case "text" if (ids != "").all():
            return np.strings.lower(ids) if key.case == "lower" else ids
        case "integer" if np.strings.isdigit(ids).all():
            digits = np.strings.lstrip(ids, "0")
            return np.where(digits == "", "0", digits)
        case _:
            return None


def _once(raw: RawTable) -> RawTable:
    """Return the table with every id once; DataError if rows of one id differ."""
    ids = np.empty(0, dtype=np.str_) if raw.ids is None else raw.ids
    if len(array_of(ids).unique()) == len(ids):
        return raw
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if not len(again):
        return raw
    earlier, later = order[again], order[again + 1]
    differ = [k for k in range(len(again)) if not _same(raw, int(earlier[k]), int(later[k]))]
    if differ:
        one, other = int(earlier[differ[0]]), int(later[differ[0]])
        first, second = sorted((raw.row_number(one), raw.row_number(other)))
        remedy = "keep one row per id"
        if SHORTENED.fullmatch(str(ids[one])):
            remedy = "a spreadsheet cut off its last digits: export the file again, with this column as text"
        raise DataError(
            f"{raw.name}: {count(len(differ), 'row')} with the id of another row but other values: id "
            f"'{shown(str(ids[one]))}' is in row {first} and again in row {second}; {remedy}"
        )
    kept = np.setdiff1d(np.arange(raw.rows), later)
    once = raw.take(kept)
    return replace(once, reading=once.reading.and_left_out(len(later), TWICE))


def _same(raw: RawTable, one: int, other: int) -> bool:
    """Return whether two rows have the same values, and labels where there are some."""
    rows = raw.take(np.array([one, other]))
    columns = [] if rows.y is None else [rows.y]
    columns += [rows.column(c) for c in rows.columns]
    return all(c[0] == c[1] or (c[0] != c[0] and c[1] != c[1]) for c in columns)
