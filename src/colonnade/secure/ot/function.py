"""F of ids, at the side that asks and at the side that holds the key.

The asker's ids of a lot are a table D that gives H1(x) for each of them: 76 bits of the digest on which
neither the lot nor the places in the table depend. With any table that an asker sends, it knows F only where
reading D gives H1.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Digests, Words
from colonnade.secure.hashes import hashes
from colonnade.secure.hints import read_table, size_for, write_table
from colonnade.secure.ot import extension
from colonnade.secure.ot.base import Seeds
from colonnade.secure.ot.code import encoded, message


@dataclass(frozen=True, eq=False)
class IdTable:
    """What an asker's ids of a lot have become: where they lie, and a message for every place."""

    seed: int
    messages: Words

    def rows(self) -> Words:
        """Return the messages of all rows for one peer: the table, and new random ones for the check.

        Two peers that compared their checks would read sums of the table if they had the same.
        """
        more = extension.rows_for(len(self.messages)) - len(self.messages)
        spare = np.frombuffer(os.urandom(16 * more), dtype=np.uint64).reshape(-1, 2)
        return np.concatenate([self.messages, message(spare)])


@dataclass(frozen=True, eq=False)
class TransferKey:
    """What F depends on: the choices of the transfers and the seeds that they gave, for one asker."""

    choices: Words
    seeds: Seeds
    context: bytes


def write(ids: Digests, room: int) -> IdTable:
    """Return the table of an asker's ids, filled up with noise as if there were as many as there is room
    for."""
    noise = np.frombuffer(os.urandom(32 * (room - len(ids))), dtype=np.uint64).reshape(-1, 4)
    seed, table = write_table(
        np.concatenate([_keys(ids), noise[:, :2]]), np.concatenate([_messages(ids), noise[:, 2:]])
    )
    return IdTable(seed, message(table))


def rows_for(room: int) -> int:
    """Return how many rows a lot with room for this many ids has."""
    return extension.rows_for(size_for(room))


def learn(ids: Digests, room: int, seed: int, rows: Words, context: bytes) -> Words:
    """Return F of the asker's ids, from its rows."""
    return hashes(context, ids, read_table(rows[: size_for(room)], seed, _keys(ids)))


def compute(ids: Digests, room: int, seed: int, rows: Words, key: TransferKey) -> Words:
    """Return F of ids of the same lot, by the key holder, from its rows and the seed of the asker's table."""
    read = read_table(rows[: size_for(room)], seed, _keys(ids))
    read ^= encoded(_messages(ids)) & key.choices
    return hashes(key.context, ids, read)


def _keys(ids: Digests) -> Words:
    return np.ascontiguousarray(ids[:, :16]).view(np.uint64)


def _messages(ids: Digests) -> Words:
    """Return H1 of ids: of the second half of the digest, what a message has bits for."""
    return message(np.ascontiguousarray(ids[:, 16:]).view(np.uint64))
