"""A log that only grows, in which every line vouches for all lines before it.

A line is JSON: a record, and a hash over the record and the hash of the line before. A hand that changes,
drops or inserts a line breaks the chain from there on, and `read_chain` says where. It does not stop somebody
who rewrites the whole file: keep the last hash elsewhere (`colonnade party --status` shows it) to notice
that.

What is appended is on disk when the call returns. A line that a crash cut off is no record, and is left out.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from colonnade.disk import append_file
from colonnade.errors import ShareError

START = "0" * 64


class ChainEntry(msgspec.Struct, frozen=True):
    """One line: its place in the chain, and a record as it was written."""

    hash: str
    record: msgspec.Raw


def append(path: Path, last: str, record: bytes) -> str:
    """Add a record, which is JSON, behind the line with the hash `last`; returns the hash of the new line."""
    following = _hash(last, record)
    # a line of its own even after one that a crash cut off; empty lines are no records
    append_file(path, b"\n" + msgspec.json.encode(ChainEntry(following, msgspec.Raw(record))) + b"\n")
    return following


def read_chain(path: Path) -> tuple[list[bytes], str]:
    """Return all records, the oldest first, and the hash of the last line; ShareError if a line was
    changed."""
    records: list[bytes] = []
    last = START
    for number, text in enumerate(path.read_bytes().splitlines() if path.exists() else [], start=1):
        try:
            line = msgspec.json.decode(text, type=ChainEntry)
        except msgspec.MsgspecError:
            continue  # empty, or cut off by a crash; a dropped line shows in the next hash
        record = bytes(line.record)
        if line.hash != _hash(last, record):
            raise ShareError(
                f"{path}: line {number} does not follow from those before it; lines were changed, dropped or "
                "added. Keep the file as it is, and find out who did"
            )
        last = line.hash
        records.append(record)
    return records, last


def _hash(last: str, record: bytes) -> str:
    return hashlib.sha256(last.encode() + record).hexdigest()
