"""Counts rows of an entry that the last model was trained on and that are gone, by hashes of their ids.

Two models that differ by a few rows tell about these rows. So a party that takes people out of its file may
demand that it takes out several before it trains again (`limits.forgotten_ids`). The hashes are under a key
of this party's and replace those of the model before; nothing is kept where there is no such limit.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Digests
from colonnade.data.table import count
from colonnade.deploy.policy.membership import secret_for
from colonnade.deploy.settings import Settings
from colonnade.disk import replace_file
from colonnade.errors import DataError


def remember_rows(settings: Settings, entry: str, ids: Digests) -> None:
    """Keep which rows a model was trained on, for nobody else to read."""
    if settings.limits.forgotten_ids is None:
        return
    path = _file(settings, entry)
    replace_file(path, _hashes(settings, ids).tobytes())
    path.chmod(0o600)


def forgotten_rows(settings: Settings, entry: str, ids: Digests) -> int:
    """Return how many rows of the last model are gone; DataError if some are, but too few."""
    least, path = settings.limits.forgotten_ids, _file(settings, entry)
    if least is None or not path.is_file():
        return 0
    before = np.frombuffer(path.read_bytes(), dtype=np.uint64)
    gone = int(np.isin(before, _hashes(settings, ids), invert=True).sum())
    if 0 < gone < least:
        raise DataError(
            f"data.{entry}: {count(gone, 'row')} of the last model left the table, limits.forgotten_ids = "
            f"{least}; models before and after tell about so few. Put back what was taken out until "
            f"{least} or more leave at once"
        )
    return gone


def _hashes(settings: Settings, ids: Digests) -> NDArray[np.uint64]:
    """Return eight bytes for every id, under this party's own key."""
    key = secret_for(settings, "rows of models")
    found = b"".join(hashlib.blake2b(each.tobytes(), key=key, digest_size=8).digest() for each in ids)
    return np.frombuffer(found, dtype=np.uint64)


def _file(settings: Settings, entry: str) -> Path:
    return settings.state / "memory" / f"{entry}.rows"
