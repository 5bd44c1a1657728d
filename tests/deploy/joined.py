"""What alignment and training must equal: the join, and the model of the joined table."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from colonnade.baselines.pooled import fit_pooled, pool
from colonnade.conversations.pooling import free_columns
from colonnade.data.prepare.labels import Labels
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.read.files import load
from colonnade.data.table import Table
from colonnade.deploy.rows.rows import digests, split_rows
from colonnade.deploy.terms.terms import Terms
from colonnade.losses import LOSSES
from colonnade.regularizers import REGULARIZERS, Penalty


def ids_of(path: Path, column: str) -> list[str]:
    with path.open(newline="") as file:
        return [row[column] for row in csv.DictReader(file)]


@dataclass
class Joined:
    """The inner join of the parties' files, in the order that alignment gives it."""

    ids: list[str]
    digests: NDArray[np.uint8]
    digest: str


def join(files: dict[str, Path], column: str, terms: Terms) -> Joined:
    common = sorted(set.intersection(*(set(ids_of(path, column)) for path in files.values())))
    hashed = digests([np.array(common)], terms.align.keys, [column])
    key = bytes.fromhex(terms.digest())
    secret = hashlib.blake2b(b"colonnade order", key=key, digest_size=32).digest()
    names = [_enciphered(row.tobytes()[:16], secret) for row in hashed]
    order = np.argsort(np.array(names, dtype="S16"), kind="stable")
    ordered = hashed[order]
    digest = hashlib.sha256(b"colonnade rows" + key + ordered.tobytes()).hexdigest()
    return Joined([common[k] for k in order], ordered, digest)


def pooled(
    files: dict[str, Path], column: str, label: tuple[str, str], terms: Terms, joined: Joined
) -> tuple[dict[str, float], NDArray[np.float64]]:
    """Metrics of the pooled model on the same split, and the scores of its test rows."""
    train, _, test = split_rows(joined.digests, terms.split, terms.seed)
    parts: dict[str, list[Any]] = {"train": [], "test": []}
    y: dict[str, Any] = {}
    tables: list[Table] = []
    holder, name = label
    for party, path in sorted(files.items()):
        raw = load(
            path, id=column, label=name if party == holder else None, categorical=terms.prepare.categorical
        )
        assert raw.ids is not None
        place = {each: k for k, each in enumerate(raw.ids)}
        raw = raw.take(np.array([place[each] for each in joined.ids]))
        preparation = Preparation.fit(
            raw.take(train),
            scale=terms.prepare.scale,
            categorical=[c for c in terms.prepare.categorical if c in raw.columns],
            intercept=party == holder,
        )
        tables.append(preparation.transform(raw.take(train)))
        parts["train"].append(tables[-1].X)
        parts["test"].append(preparation.transform(raw.take(test)).X)
        if party == holder:
            assert raw.y is not None
            labels = Labels.fit(raw.y[train], "binary")
            y = {"train": labels.transform(raw.y[train]), "test": labels.transform(raw.y[test])}
    penalty = Penalty(REGULARIZERS["l2"], terms.train.l2_for(tables[0].rows), free=free_columns(tables))
    fit = fit_pooled(pool(parts["train"]), y["train"], LOSSES["logistic"], penalty)
    X_test = pool(parts["test"])
    return fit.metrics(LOSSES["logistic"], X_test, y["test"]), X_test @ fit.w


def _enciphered(block: bytes, key: bytes) -> bytes:
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)  # noqa: S305
