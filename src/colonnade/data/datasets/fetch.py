"""Data sets that are published file by file: fetched from where the catalogue says, and checked.

What has no such address (a page with a form, an archive) is refused with the page's address. A file whose
checksum is not the recorded one is not kept.
"""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from colonnade.data.datasets import loading
from colonnade.data.datasets.catalogue import DATASETS, LIBSVM, SHA256, Files
from colonnade.disk import drafted
from colonnade.errors import DataError, suggest

ENDINGS = ("", ".bz2", ".xz")
TIMEOUT_S = 30.0


def fetch(name: str, tell: Callable[[str], None] = lambda words: None, base: str | None = None) -> list[Path]:
    """Fetch the files of a data set that are not here; returns where they are. `base` is another
    address."""
    if name not in DATASETS:
        raise DataError(f"--get: there is no data set {name!r}; {suggest(name, DATASETS)}")
    known, stored = DATASETS[name], DATASETS[name].stored
    if not isinstance(stored, Files):
        raise DataError(f"--get: {name} comes with scikit-learn; it is here already")
    if base is None and not known.source.startswith(LIBSVM):
        raise DataError(f"--get: {name} is published at {known.source}, not file by file; fetch it by hand")
    base = base or known.source.removesuffix(".html")
    folder = loading.data_folders()[0] / stored.folder
    found = []
    for file in (stored.train, *([stored.test] if stored.test else [])):
        path = loading.found_file(stored, file) or _one(f"{base}/{file}", folder / file, tell)
        expected = SHA256.get(stored.folder, {}).get(file)
        digest = loading.sha256(path)
        if expected is None:
            tell(f"{path}: no checksum is recorded for it; its sha256 is {digest}")
        elif digest != expected:
            path.unlink()
            raise DataError(f"{base}/{file}: its sha256 is {digest}, not the recorded one; it was not kept")
        found.append(path)
    return found


def _one(address: str, to: Path, tell: Callable[[str], None]) -> Path:
    """Fetch one file, plain or packed, whole or not at all."""
    to.parent.mkdir(parents=True, exist_ok=True)
    for ending in ENDINGS:
        path = to.with_name(to.name + ending)
        request = urllib.request.Request(address + ending)  # noqa: S310  the catalogue's own addresses
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
                tell(f"fetching {address + ending}")
                with drafted(path) as draft, draft.open("wb") as file:
                    shutil.copyfileobj(answer, file)
                return path
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 404:
                raise DataError(f"{address + ending}: {error}; fetch it by hand") from None
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            raise DataError(f"{address}: cannot be reached ({error}); fetch it by hand") from None
    raise DataError(f"{address}: is not there any more; fetch it by hand")
