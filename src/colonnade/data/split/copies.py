"""Columns of parties without the label that are copies of it: seen only where one machine has all files.

Between companies nobody can see this: a party without the label has nothing to compare with, and its columns
are not shown to those that have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from colonnade.data.prepare.party_data import PartyData
from colonnade.data.prepare.suspects import like_labels


def copies_of_the_label(parties: Mapping[str, PartyData], holder: str) -> Iterator[str]:
    """Yield a sentence for every column of a party without the label that tells it almost by itself."""
    y = parties[holder].train.y
    for party, data in parties.items():
        raw = data.train
        if raw.y is not None or raw.sparse or data.recipe.ready:
            continue
        texts = [c for c in raw.columns if raw.column(c).dtype == object]
        numbers = [c for c in raw.columns if c not in texts]
        for sentence in like_labels(replace(raw, y=y), numbers, texts):
            yield f"{party}: {sentence}"
