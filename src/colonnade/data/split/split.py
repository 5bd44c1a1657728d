"""Who holds which columns, and which rows are for training.

A vertical split gives every column to exactly one party. It comes from a number of parties (at random,
for experiments on one data set), from names in the job, or from one file per party joined by id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Rows
from colonnade.data.read.dialect import Dialect
from colonnade.data.read.files import AS_FOUND, load
from colonnade.data.read.formats import ID_MARK
from colonnade.data.read.ids import best_rule, shown
from colonnade.data.table import RawTable, array_of, whole_numbers_of
from colonnade.errors import DataError, suggest
from colonnade.job import Key, numbered_parties

Split = dict[str, tuple[int, ...]]
NOT_EVERYWHERE = "an id that not all parties have"


def split_by_count(
    columns: Sequence[str], parties: int, seed: int, widths: Sequence[int] | None = None
) -> Split:
    """Split the columns at random over party-0, party-1, ..., as evenly as possible.

    `widths` are how many columns each becomes when it is prepared: then it is these that are split evenly, as
    far as columns that stay whole allow.

    >>> split_by_count(["a", "b", "c", "d", "e"], parties=2, seed=0)
    {'party-0': (2, 3, 4), 'party-1': (0, 1)}
    >>> split_by_count(["a", "b", "c", "d", "e"], parties=2, seed=0, widths=[4, 1, 1, 1, 1])
    {'party-0': (0,), 'party-1': (1, 2, 3, 4)}
    """
    if not 1 <= parties <= len(columns):
        raise DataError(
            f"parties = {parties} with {len(columns)} columns; every party needs at least one column"
        )
    shuffled = np.random.default_rng(seed).permutation(len(columns))
    if widths is None or max(widths) == 1:
        parts: Sequence[Sequence[int] | Rows] = np.array_split(shuffled, parties)
    else:
        parts = _level(shuffled, widths, parties)
    return {
        party: tuple(sorted(int(j) for j in part))
        for party, part in zip(numbered_parties(parties), parts, strict=True)
    }


def _level(shuffled: Rows, widths: Sequence[int], parties: int) -> list[list[int]]:
    """Give every column, the widest first, to the party that has least so far."""
    parts: list[list[int]] = [[] for _ in range(parties)]
    held = [0] * parties
    for j in sorted(shuffled.tolist(), key=lambda j: -widths[j]):
        least = held.index(min(held))
        parts[least].append(j)
        held[least] += widths[j]
    return parts


def split_by_name(
    columns: Sequence[str], holders: Mapping[str, Sequence[str]], *, partly: bool = False
) -> Split:
    """Split the columns as `holders` names them; every column must be at exactly one party, or at one at most
    if some may be left out (`partly`).

    >>> split_by_name(["age", "income", "visits"], {"bank": ["income", "age"], "shop": ["visits"]})
    {'bank': (1, 0), 'shop': (2,)}
    """
    place = {c: j for j, c in enumerate(columns)}
    holder: dict[str, str] = {}
    for party, names in holders.items():
        for c in names:
            if c not in place:
                raise DataError(f"party '{party}': no column '{c}'; {suggest(c, columns)}")
            if c in holder:
                raise DataError(
                    f"column '{c}' is given to '{holder[c]}' and to '{party}'; one party holds a column"
                )
            holder[c] = party
    left = [c for c in columns if c not in holder]
    if left and not partly:
        which = f"column '{left[0]}' belongs" if len(left) == 1 else f"columns {_listed(left)} belong"
        raise DataError(f"{which} to no party; give every column to one")
    return {party: tuple(place[c] for c in names) for party, names in holders.items()}


def _listed(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many more there are.

    >>> _listed(["a", "b", "c", "d"], most=2)
    "'a', 'b' and 2 more"
    """
    first = ", ".join(f"'{name}'" for name in names[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most} more"


def check_holders(widths: Mapping[str, int], server: str, helper: str | None = None) -> None:
    """Refuse parties without columns, except the first label holder, which may be a server and no more.

    `helper` is the party that deals random words where labels are blind.
    """
    without = [party for party, width in widths.items() if not width]
    if len(without) == len(widths):
        raise DataError("no party has any columns; there is nothing to learn from")
    for party in without:
        if party not in (server, helper):
            raise DataError(
                f"party '{party}' has no columns; only the first active party ('{server}'), as the server of "
                "a cascade, may hold nothing but the label, and only secure.helper nothing at all"
            )


def train_test_rows(n: int, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Return training and test rows, picked at random, each in file order; `fraction` of all are for the
    test."""
    tested = round(n * fraction)
    if not 0 < fraction < 1 or not 0 < tested < n:
        raise DataError(f"test_fraction = {fraction} of {n} rows leaves no rows to train or none to test on")
    shuffled = np.random.default_rng(seed).permutation(n)
    return np.sort(shuffled[tested:]), np.sort(shuffled[:tested])


# --- one file per party -----------------------------------------------------------------------------


def load_party_files(
    files: Mapping[str, str | Path],
    *,
    id: str | Mapping[str, Sequence[str]],  # noqa: A002
    keys: Sequence[Key] | None = None,
    label: str | None = None,
    label_at: str | Sequence[str] = (),
    categorical: Sequence[str] = (),
    dialect: Dialect = AS_FOUND,
) -> dict[str, RawTable]:
    """Read one file per party; rows whose id not all of them have are left out, the others sorted by id.

    `id` is a column of every file, or for every party the columns that are an id together in its own. `label`
    is a column of the files of the parties in `label_at`, and of no others. A file need not have all
    `categorical` columns.
    """
    holders = (label_at,) if isinstance(label_at, str) else tuple(label_at)
    for party in holders:
        if party not in files:
            raise DataError(f"label_at names '{party}', which has no file; {suggest(party, files)}")
    tables = {
        p: load(
            f,
            label=label if p in holders else None,
            id=id if isinstance(id, str) else id[p],
            keys=keys,
            categorical=categorical,
            bare=True,
            dialect=dialect,
        )
        for p, f in files.items()
    }
    for party, raw in tables.items():
        if label is not None and label in raw.columns:
            raise DataError(
                f"{files[party]}: has the label column '{label}', but '{party}' is not in label_at; "
                "remove the column there, or name the party"
            )
    joined = _joined(tables)
    _check_same_labels({p: joined[p] for p in holders})
    return joined


def _ids(raw: RawTable) -> NDArray[np.str_]:
    """Return the ids of a table that was read with an id column."""
    if raw.ids is None:
        raise DataError(f"{raw.name}: no ids; files of several parties are joined by an id column")
    return raw.ids


def _joined(tables: Mapping[str, RawTable]) -> dict[str, RawTable]:
    """Return the rows whose ids all tables have, sorted by id; how many others there were is noted."""
    import pyarrow.compute as pc

    ids = {party: array_of(_ids(raw)) for party, raw in tables.items()}
    common = reduce(lambda some, others: some.filter(pc.is_in(some, value_set=others)), ids.values())
    if not len(common):
        first = ", ".join(f"'{shown(str(_ids(raw)[0]))}' in {raw.name}" for raw in tables.values())
        raise DataError(f"no id is in all files; ids are such as {first}: {_key_hint(list(tables.values()))}")
    common = common.take(pc.sort_indices(common))
    joined = {}
    for party, raw in tables.items():
        rows = whole_numbers_of(pc.index_in(common, value_set=ids[party]))
        reading = raw.reading.and_left_out(raw.rows - len(rows), NOT_EVERYWHERE, f" ({len(rows):,} stay)")
        joined[party] = replace(raw.take(rows), reading=reading)
    return joined


def _key_hint(tables: Sequence[RawTable]) -> str:
    """Return the rule for ids by which files would have rows in common, to paste into a job, if there is
    one."""
    if ID_MARK not in str(_ids(tables[0])[0]):  # of several columns, any may be the one
        rule, common = best_rule([_ids(raw) for raw in tables])
        if common:
            return f"with keys = [{rule}] in [data], {common:,} would be in all"
    return "if they are the same people, bring their ids into one form with data.keys"


def _check_same_labels(tables: Mapping[str, RawTable]) -> None:
    """Refuse label holders that disagree on the label of a row."""
    for (first, one), (second, other) in pairwise(tables.items()):
        differ = np.asarray(one.y != other.y)
        if differ.any():
            where = _ids(one)[int(differ.argmax())]
            raise DataError(f"{other.name}: '{second}' and '{first}' disagree on the label of id '{where}'")
