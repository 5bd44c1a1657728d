"""A log that only grows, in which every line vouches for all lines before it.

A line is JSON: a record, and a hash over the record and the hash of the line before. A hand that changes,
drops or inserts a line breaks the chain from there on, and `read_chain` says where. How many lines there are
and the hash of the last stand in a second file beside the first (`.end`), so that a file whose last lines are
gone is not taken for a whole one. It does not stop somebody who rewrites both files: keep the last hash
elsewhere (`colonnade party --status` shows it) to notice that.

What is appended is on disk when the call returns. A line that a crash cut off is no record, and is left out;
one that a crash kept out of the second file is a record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from colonnade.disk import append_file, replace_file
from colonnade.errors import ShareError

START = "0" * 64


class ChainEntry(msgspec.Struct, frozen=True):
    """One line: its place in the chain, and a record as it was written."""

    hash: str
    record: msgspec.Raw


class ChainEnd(msgspec.Struct, frozen=True):
    """How many records a chain has, and the hash of the last."""

    count: int = 0
    last: str = START


def append(path: Path, end: ChainEnd, record: bytes) -> ChainEnd:
    """Add a record, which is JSON, behind the end of a chain; returns its new end."""
    following = ChainEnd(end.count + 1, _hash(end.last, record))
    # a line of its own even after one that a crash cut off; empty lines are no records
    append_file(path, b"\n" + msgspec.json.encode(ChainEntry(following.last, msgspec.Raw(record))) + b"\n")
    replace_file(_second(path), msgspec.json.encode(following))
    return following


def read_chain(path: Path) -> tuple[list[bytes], ChainEnd]:
    """Return all records, the oldest first, and where they end; ShareError if lines were changed or are
    gone."""
    records: list[bytes] = []
    hashes = [START]
    for number, text in enumerate(path.read_bytes().splitlines() if path.exists() else [], start=1):
        try:
            line = msgspec.json.decode(text, type=ChainEntry)
        except msgspec.MsgspecError:
            continue  # empty, or cut off by a crash; a dropped line shows in the next hash
        record = bytes(line.record)
        if line.hash != _hash(hashes[-1], record):
            raise ShareError(
                f"{path}: line {number} does not follow from those before it; lines were changed, dropped or "
                "added. Keep the file as it is, and find out who did"
            )
        hashes.append(line.hash)
        records.append(record)
    noted = _noted_end(path)
    if noted.count >= len(hashes) or hashes[noted.count] != noted.last:
        raise ShareError(
            f"{path}: has {len(records)} records, but {_second(path).name} beside it says that record "
            f"{noted.count} is {noted.last[:16]}...; its last lines are gone, or it is another file. Keep "
            "both as they are, and find out who did"
        )
    return records, ChainEnd(len(records), hashes[-1])


def hashes_of(records: Iterable[bytes]) -> list[str]:
    """Return the hash of every record and all before it."""
    found = [START]
    for record in records:
        found.append(_hash(found[-1], record))
    return found[1:]


def _noted_end(path: Path) -> ChainEnd:
    """Return the end that the second file has; version 0.2.0 wrote none."""
    second = _second(path)
    try:
        return msgspec.json.decode(second.read_bytes(), type=ChainEnd) if second.exists() else ChainEnd()
    except msgspec.MsgspecError as error:
        raise ShareError(f"{second}: does not say where {path.name} ends: {error}") from error


def _second(path: Path) -> Path:
    return path.with_suffix(".end")


def _hash(last: str, record: bytes) -> str:
    return hashlib.sha256(last.encode() + record).hexdigest()
