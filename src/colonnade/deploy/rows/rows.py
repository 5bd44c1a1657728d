"""A party's rows for a run: read its file, hash its ids, and say which rows are for training and which not.

Ids are brought into the form that the job describes and hashed at once, so that a million of them are 32 MB
and no list of names is kept. Errors here are about the party's own data: they name rows and values for its
operator, and are never sent to a peer as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from colonnade.arrays import Digests, Rows
from colonnade.data.large.big_file import is_large, opened
from colonnade.data.prepare.weights import take_exposure, take_weights
from colonnade.data.read.dialect import described
from colonnade.data.read.files import load
from colonnade.data.read.ids import normaliser, parts_of
from colonnade.data.table import RawTable
from colonnade.deploy.rows.id_digests import hashed
from colonnade.deploy.rows.large_rows import LargeRows
from colonnade.deploy.settings import Entry, Settings
from colonnade.deploy.terms.terms import Split
from colonnade.errors import DataError, suggest
from colonnade.job import Key
from colonnade.job.source import Source

Usual = tuple[str | None, dict[str, str] | None]  # the decimal mark, and dates by pattern, of training

COLUMNS = "columns"  # the folder of columns that are too large to be held, among a party's runs


@dataclass(frozen=True, eq=False)
class PartyRows:
    """One party's rows for a run: its raw columns, with labels where it holds them, and digests of ids.

    Where they are too many to be held, `table` has some of them and `large` reads them all in stretches.
    """

    table: RawTable
    ids: Digests
    large: LargeRows | None = None


def load_rows(
    settings: Settings,
    name: str,
    keys: Sequence[Key],
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    label: bool = False,
    weight: bool = False,
    exposure: bool = False,
    bare: bool = False,
    memory: int | None = None,
    usual: Usual = (None, None),
) -> PartyRows:
    """Read an entry of the catalogue, and keep the columns asked for, or all that are offered.

    With `memory` it is read in stretches where its columns are too large for that. A file without columns
    that are asked for is an error unless it may be `bare`, as that of a server which holds the label alone,
    or of a neutral helper. `usual` is how its numbers and dates were written in training.
    """
    entry = settings.data[name]
    if len(entry.keys) != len(keys):
        raise DataError(
            f"data.{name}: the id has {len(entry.keys)} columns ({', '.join(entry.keys)}), the job compares "
            f"{len(keys)}; see data.keys of the job"
        )
    path, dialect = settings.source(name), described(entry)
    if memory is not None and not bare and is_large([path], memory, dialect):
        if weight or exposure:
            raise DataError(
                f"data.{name}: is read in stretches, which a weight or exposure column cannot be; leave it "
                "out of the job, or give more memory in this party's settings"
            )
        file = opened(path, settings.state / COLUMNS, dialect, (*entry.keys, *categorical))
        offered = offered_columns(settings, name, file.columns, columns, bare=bare)
        own = LargeRows.open(file, entry.label if label else None, offered, entry.keys, tuple(keys))
        return PartyRows(own[0].sample().hashed(file.digest), own[1], own[0])
    raw, ids = read_with_ids(path, entry, keys, categorical, label=label, bare=bare, usual=usual)
    if weight:
        raw = take_weights(raw, _named(entry.weight, "weight", "weighs rows", name))
    if exposure:
        raw = take_exposure(raw, _named(entry.exposure, "exposure", "counts over time", name))
    return PartyRows(raw.select(offered_columns(settings, name, raw.columns, columns, bare=bare)), ids)


def offered_columns(
    settings: Settings, name: str, there: Sequence[str], asked: Sequence[str] | None, *, bare: bool
) -> tuple[str, ...]:
    """Return the columns of an entry that a job gets: those it asks for, or all that are offered."""
    entry = settings.data[name]
    apart = (entry.label, entry.weight, entry.exposure)
    never = {*settings.policy.never, *entry.keys, *(column for column in apart if column)}
    named = asked if asked is not None else entry.columns
    wanted = named if named is not None else [c for c in there if c not in never]
    missing = [c for c in wanted if c not in there or c in never]
    if missing:
        raise DataError(f"data.{name}: no column '{missing[0]}' is offered; {suggest(missing[0], there)}")
    if not wanted and not bare:
        raise DataError(
            f"data.{name}: no columns; only the server of a cascade (tig, vafl, ...) needs none, or "
            "a secure.helper with columns = [] in the job"
        )
    return tuple(wanted)


def _named(column: str | None, key: str, does: str, name: str) -> str:
    """Return a column that an entry of the catalogue must name, because the job does something with it."""
    if column is None:
        raise DataError(f"data.{name}: the job {does}, and no {key} column is named; add {key} = '...'")
    return column


def read_with_ids(
    path: Source,
    entry: Entry,
    keys: Sequence[Key],
    categorical: Sequence[str],
    *,
    label: bool,
    bare: bool = False,
    usual: Usual = (None, None),
) -> tuple[RawTable, Digests]:
    """Return the file of a catalogue entry, and the digest of every row's id."""
    raw = load(
        path,
        label=entry.label if label else None,
        id=entry.keys,
        keys=keys,
        categorical=categorical,
        bare=bare,
        dialect=replace(described(entry), usual=usual[0], dates=usual[1]),
    )
    if raw.ids is None:
        raise DataError(f"{path}: no id column '{entry.keys[0]}' was read")
    return raw, hashed(parts_of(raw.ids, len(keys)))


def digests(parts: Sequence[Iterable[str]], keys: Sequence[Key], names: Sequence[str]) -> Digests:
    """Return one SHA-256 per row over its id in normal form.

    The columns of an id are hashed with their lengths, so that (ab, c) is not (a, bc).
    """
    forms = [normaliser(key, name) for key, name in zip(keys, names, strict=True)]
    columns = zip(forms, parts, strict=True)
    return hashed([[form(str(text), row) for row, text in enumerate(part)] for form, part in columns])


def rules_of(keys: Sequence[Key]) -> str:
    """Return a digest of how ids are normalised: equal at two parties if they compare ids alike."""
    return hashlib.sha256("".join(key.digest() for key in keys).encode()).hexdigest()[:32]


def commitment(ids: Digests, salt: bytes) -> bytes:
    """Return a keyed hash of the set of ids: it changes when the set does, and tells nothing without the
    salt."""
    ordered = np.sort(np.ascontiguousarray(ids).view("S32").ravel())
    return hashlib.blake2b(ordered.tobytes(), key=salt, digest_size=32).digest()


def split_rows(ids: Digests, split: Split, seed: int) -> tuple[Rows, Rows, Rows]:
    """Return which of these rows are for training, validation and test; that depends on id and seed alone."""
    key = seed.to_bytes(8, "big")
    drawn, packed = bytearray(), ids.tobytes()
    for start in range(0, len(packed), 32):
        drawn += hashlib.blake2b(packed[start : start + 32], key=key, digest_size=8).digest()
    at = np.frombuffer(drawn, dtype=">u8") / 2.0**64
    test = at < split.test
    validation = ~test & (at < split.test + split.validation)
    return np.flatnonzero(~test & ~validation), np.flatnonzero(validation), np.flatnonzero(test)
