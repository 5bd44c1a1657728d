"""Named data sets: found on this machine, checked, and loaded ready to be split.

Nothing is downloaded unless it is asked for (`fetch`). Files are looked for in the folder that COLONNADE_DATA
names, then in ~/.cache/colonnade; a file that is not there is an error that says where to get it and where to
put it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from colonnade.data.datasets import cifar
from colonnade.data.datasets.catalogue import DATASETS, LIBSVM, SHA256, Bundled, Dataset, Files, RowChanges
from colonnade.data.read.dialect import Dialect
from colonnade.data.read.files import AS_FOUND, load
from colonnade.data.read.unpacked import COMPRESSED, open_bytes
from colonnade.data.table import RawTable
from colonnade.errors import DataError, suggest
from colonnade.job import Key
from colonnade.job.source import Source, source_of

IMAGES = ("mnist", "fashion-mnist")


class TrainTest(NamedTuple):
    """Training rows, and test rows where there is a file of them."""

    train: RawTable
    test: RawTable | None


def known_dataset(train: str | Path) -> Dataset | None:
    """Return the data set that `train` names, or None where it names a file. A file of that name comes
    first."""
    return DATASETS.get(str(train)) if str(train) in DATASETS and not Path(train).is_file() else None


def read(
    train: str | Path,
    test: str | Path | None = None,
    *,
    label: str | None = None,
    id: str | Sequence[str] | None = None,  # noqa: A002
    keys: Sequence[Key] | None = None,
    categorical: tuple[str, ...] = (),
    dialect: Dialect = AS_FOUND,
) -> TrainTest:
    """Read what a job's [data] names: files, or a data set from the catalogue where there is no such file."""

    def open_file(path: str | Source, like: RawTable | None = None) -> RawTable:
        """Return a file of the job; a test file is as wide as the training file and writes dates alike."""
        return load(
            path,
            label=label,
            id=id,
            keys=keys,
            categorical=categorical,
            n_features=None if like is None else len(like.columns),
            dialect=dialect if like is None else replace(dialect, dates=like.reading.dates),
        )

    dataset = known_dataset(train)
    if dataset is not None:
        named = load_dataset(dataset.name)
        if test is None:
            return named
        # another test file of a known set has the same columns as the known ones
        if isinstance(dataset.stored, Files):
            label, id = label or dataset.stored.label, dataset.stored.id if id is None else id  # noqa: A001
        categorical = categorical or dataset.defaults.categorical
        return TrainTest(named.train, open_file(test, named.train))
    path = source_of(train)
    if isinstance(path, Path) and not path.exists() and path.parent == Path() and "." not in path.name:
        raise DataError(f"{train}: no such file or data set; {suggest(str(train), DATASETS)}")
    raw = open_file(path)
    return TrainTest(raw, None if test is None else open_file(test, raw))


def load_dataset(name: str) -> TrainTest:
    """Read a data set by its name in the catalogue."""
    dataset = _dataset(name)
    stored = dataset.stored
    if isinstance(stored, Bundled):
        return TrainTest(_bundled(name, stored), None)
    train = _changed(_load(dataset, stored, stored.train), dataset.changes)
    test = None if stored.test is None else _changed(_load(dataset, stored, stored.test), dataset.changes)
    return TrainTest(train, test)


def available(name: str) -> bool:
    """Return whether every file of the data set is on this machine."""
    stored = _dataset(name).stored
    return isinstance(stored, Bundled) or all(found_file(stored, file) is not None for file in _names(stored))


def verify(name: str) -> dict[str, str]:
    """Return each file's state: "ok", or "unknown" where no checksum is recorded. A wrong file is an
    error."""
    dataset = _dataset(name)
    if isinstance(dataset.stored, Bundled):
        return {}
    states = {}
    for file in _names(dataset.stored):
        path = _find(dataset, dataset.stored, file)
        expected = SHA256.get(dataset.stored.folder, {}).get(file)
        states[file] = "unknown" if expected is None else "ok"
        if expected is not None and sha256(path) != expected:
            raise DataError(
                f"{path}: its sha256 is not the recorded one, so it is damaged or another edition; "
                f"compare it with {dataset.source}"
            )
    return states


def train_file(name: str) -> Path:
    """Return where the file with a data set's training rows is on this machine."""
    dataset = _dataset(name)
    if isinstance(dataset.stored, Bundled):
        raise DataError(f"{name} comes with scikit-learn; there is no file of it")
    return _find(dataset, dataset.stored, dataset.stored.train)


def _dataset(name: str) -> Dataset:
    """Return the catalogue's entry of that name."""
    if name not in DATASETS:
        raise DataError(f"no data set '{name}'; {suggest(name, DATASETS)}")
    return DATASETS[name]


def _names(stored: Files) -> list[str]:
    """Return the names of all files of a data set; of several editions, those of the one that is here."""
    if stored.folder == "cifar10":
        editions = [cifar.files(binary=True), cifar.files(binary=False)]
        return next((files for files in editions if found_file(stored, files[0])), editions[0])
    files = [file for file in (stored.train, stored.test) if file]
    if stored.folder in IMAGES:
        files += [file.replace("-images-idx3", "-labels-idx1") for file in files]
    return files


def _find(dataset: Dataset, stored: Files, file: str) -> Path:
    """Return where a file of the data set is on this machine; if it is not, an error says where to get it."""
    path = found_file(stored, file)
    if path is None:
        home = data_folders()[0] / stored.folder
        raise DataError(
            f"{dataset.name}: {file} is not on this machine; get it from {dataset.source} "
            f"and put it in {home}{_by_command(dataset)}"
        )
    return path


def _by_command(dataset: Dataset) -> str:
    """Return the command that fetches a data set, where its files are published one by one."""
    return f", or run colonnade datasets --get {dataset.name}" if dataset.source.startswith(LIBSVM) else ""


def data_folders() -> list[Path]:
    """Return the folders in which data sets are looked for."""
    named = os.environ.get("COLONNADE_DATA")
    cache = Path.home() / ".cache" / "colonnade"
    return [Path(named).expanduser(), cache] if named else [cache]


def found_file(stored: Files, file: str) -> Path | None:
    """Return where a file is on this machine, plain or packed, or None if it is not."""
    # the two image sets use the same file names, so only their own folder tells them apart
    places = [stored.folder] if stored.folder in IMAGES else [stored.folder, ""]
    for folder in data_folders():
        for place in places:
            for packed in ("", *COMPRESSED):
                path = folder / place / (file + packed)
                if path.is_file():
                    return path
    return None


def _load(dataset: Dataset, stored: Files, file: str) -> RawTable:
    """Return the rows of the data set's training or test file."""
    if stored.folder == "cifar10":
        paths = {Path(name).stem: _find(dataset, stored, name) for name in _names(stored)}
        return cifar.read(file, [paths[batch] for batch in cifar.BATCHES[file]])
    path = _find(dataset, stored, file)
    if stored.folder in IMAGES:
        _find(dataset, stored, file.replace("-images-idx3", "-labels-idx1"))
    raw = load(
        path,
        label=stored.label,
        id=stored.id,
        n_features=dataset.columns,
        categorical=dataset.defaults.categorical,
    )
    return replace(raw, name=dataset.name)


def _changed(raw: RawTable, changes: RowChanges) -> RawTable:
    """Return the rows with the catalogue's changes made to them."""
    if changes.keep:
        raw = raw.take(np.flatnonzero(np.isin(np.asarray(raw.y), changes.keep)))
    if changes.unit_rows:
        raw = replace(raw, values=_unit_rows(raw.values))
    if changes.shuffle:
        raw = raw.take(np.random.default_rng(0).permutation(raw.rows))
    return raw


def _unit_rows(X: csr_array) -> csr_array:
    """Return every row scaled to length 1; an empty row stays."""
    length = np.sqrt(X.multiply(X).sum(axis=1))
    scale = 1.0 / np.where(length > 0, length, 1.0)
    return csr_array((X.data * np.repeat(scale, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)


def _bundled(name: str, stored: Bundled) -> RawTable:
    """Return the rows of a data set that comes with scikit-learn."""
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{stored.loader}")()
    columns = tuple(str(c) for c in bunch.feature_names)
    return RawTable(name, columns, np.ascontiguousarray(bunch.data), y=bunch.target.astype(np.float64))


def sha256(path: Path) -> str:
    """Return the checksum of a file's content, decompressed."""
    digest = hashlib.sha256()
    with open_bytes(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
