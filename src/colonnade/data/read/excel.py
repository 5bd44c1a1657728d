"""Excel files: the sheet with the table, read as if it had been saved as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import datetime, time
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from colonnade.data.read.dialect import Dialect
from colonnade.data.read.formats import Wanted, parsed
from colonnade.data.read.titles import titles
from colonnade.data.table import RawTable
from colonnade.errors import DataError

WRITTEN = Dialect(separator=",", decimal=".", encoding="utf-8", sure=True)


def read_excel(path: Path, wanted: Wanted, given: Dialect) -> RawTable:
    """Read the sheet with the wanted columns, or else the longest; its header has the names."""
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            f"{path}: Excel files need the extra 'excel' (pip install 'colonnade[excel]'); "
            "or save the sheet as CSV (UTF-8)"
        ) from None
    unreadable = (OSError, KeyError, ValueError, BadZipFile, openpyxl.utils.exceptions.InvalidFileException)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except unreadable as problem:
        raise DataError(f"{path}: not a readable Excel file ({problem}); save it as CSV (UTF-8)") from None
    names, sheets = book.sheetnames, [_rows(sheet) for sheet in book.worksheets]
    book.close()
    above = [titles(rows) for rows in sheets]
    sheets = [rows[k:] for rows, k in zip(sheets, above, strict=True)]
    columns = {*wanted.ids, *([] if wanted.label is None else [wanted.label])}
    tables = [k for k, rows in enumerate(sheets) if len(rows) > 1 and len(rows[0]) > 1]
    fitting = [k for k in tables if columns <= {str(cell).strip() for cell in sheets[k][0]}]
    chosen = max(fitting or tables, key=lambda k: len(sheets[k]), default=0)
    plain = io.StringIO(newline="")
    csv.writer(plain).writerows(sheets[chosen] if sheets else [])
    said = (f"read the sheet '{names[chosen]}' of {len(names)}",) if len(names) > 1 else ()
    dialect = replace(WRITTEN, gaps=given.gaps, above=above[chosen] if sheets else 0)
    return parsed(path, plain.getvalue().encode(), wanted, dialect, (*said, *dialect.said()))


def _rows(sheet: Any) -> list[list[Any]]:
    """Return the rows of a sheet that are not empty, without the empty columns at its right."""
    rows = [list(row) for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    width = max((k + 1 for row in rows for k, cell in enumerate(row) if cell is not None), default=0)
    return [[_text(cell) for cell in row[:width]] for row in rows]


def _text(cell: Any) -> Any:
    """Return a cell as CSV has it: whole days, which Excel keeps with a time of midnight, are dates."""
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date()
    return "" if cell is None else cell
