"""By which columns `colonnade new` joins files: as it is told, or by the one that can be meant."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from colonnade.data.prepare.survey import Survey


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

    def refuse_none(self, surveys: Sequence[Survey]) -> None:
        """Refuse several files that have no id in common."""
        from colonnade.errors import DataError

        if len(surveys) > 1 and not self.common:
            which = ", ".join(
                f"'{column}' of {each.path} ({_some_ids(each.ids(column))})"
                for each, column in zip(surveys, self.columns, strict=True)
            )
            raise DataError(f"--id: no id is in all files: {which}; name the columns that have the same ids")


def check_ids(surveys: Sequence[Survey], ids: Sequence[str]) -> None:
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


def _some_ids(ids: Iterable[object]) -> str:
    """Return the first few ids of a file, to compare with another's."""
    return ", ".join(map(str, islice(ids, 2))) + ", ..."
