"""A journal for others: its lines as plain data, and everything about it that can be checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from colonnade.deploy.books.hash_chain import START, hashes_of, read_chain
from colonnade.deploy.books.journal import read_journal
from colonnade.deploy.books.statements import Statement
from colonnade.errors import ShareError


class Verified(TypedDict):
    """What was found of a journal in which nothing is wrong."""

    records: int
    head: str
    signed: dict[str, int]  # statements by peer
    witnessed: int  # heads of this journal that peers have written down
    odd: list[str]  # what peers' heads contradict


def exported(party: str, path: Path) -> Iterator[dict[str, Any]]:
    """Yield every record with the party, its number and its hash; ShareError if lines were changed."""
    records, _ = read_chain(path)
    for number, (record, digest) in enumerate(zip(records, hashes_of(records), strict=True), start=1):
        yield {"party": party, "number": number, "hash": digest, **msgspec.json.decode(record)}


def verified(party: str, path: Path, witnesses: Iterable[Mapping[str, Any]] = ()) -> Verified:
    """Return what was checked; ShareError where a line, a signature or a head that a peer saw is wrong."""
    written, end = read_journal(path)
    signed: Counter[str] = Counter()
    statements = [each for each in written if isinstance(each, Statement)]
    for each in statements:
        if each.to != party or not each.fits():
            raise ShareError(
                f"{path}: a statement of {each.peer} about run {each.run} is not signed by its key"
            )
        signed[each.peer] += 1
    return Verified(
        records=end.count,
        head=end.last,
        signed=dict(sorted(signed.items())),
        witnessed=_witnessed(party, path, witnesses),
        odd=[each.odd for each in statements if each.odd],
    )


def _witnessed(party: str, path: Path, witnesses: Iterable[Mapping[str, Any]]) -> int:
    """Return how many heads of this journal peers have seen; ShareError for one that is not in it."""
    heads = [START, *hashes_of(read_chain(path)[0])]
    seen = 0
    for line in witnesses:
        if line.get("type") != "statement" or line.get("peer") != party:
            continue
        count, head = line["count"], line["head"]
        if count >= len(heads) or heads[count] != head:
            raise ShareError(
                f"{path}: {line['party']} has a signature of {party}, of {line['said']}, that record "
                f"{count} was {head[:16]}..., which it is not; this is another journal than {party} had then"
            )
        seen += 1
    return seen
