"""Named data sets: found on this machine, checked, and loaded ready to be split.

Nothing is downloaded. Files are looked for in the folder that COLONNADE_DATA names, then in
~/.cache/colonnade; a file that is not there is an error that says where to get it and where to put it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from colonnade.data import cifar, formats
from colonnade.data.catalogue import DATASETS, SHA256, Dataset, Defaults
from colonnade.data.table import RawTable, load
from colonnade.errors import DataError

IMAGES = ("mnist", "fashion-mnist")


@dataclass(frozen=True, eq=False)
class DatasetFiles:
    """Training rows, test rows if a file of them exists, and how best to prepare them (None: not known)."""

    name: str
    train: RawTable
    test: RawTable | None
    defaults: Defaults | None


def read(
    train: str | Path,
    test: str | Path | None = None,
    *,
    label: str | None = None,
    id: str | None = None,  # noqa: A002
    categorical: tuple[str, ...] = (),
) -> DatasetFiles:
    """What a job's [data] names: a file, or a name from the catalogue where there is no such file."""
    if str(train) in DATASETS and not Path(train).is_file():
        named, dataset = load_dataset(str(train)), DATASETS[str(train)]
        if test is None:
            return named
        # another test file of a known set has the same columns as the known ones
        columns = label or dataset.label, dataset.id if id is None else id
        return replace(
            named, test=_test(named.train, test, *columns, categorical or dataset.defaults.categorical)
        )
    path = Path(train)
    if not path.exists() and path.parent == Path() and "." not in path.name:
        raise DataError(f"{train}: no such file or data set; {formats.suggest(str(train), DATASETS)}")
    raw = load(path, label=label, id=id, categorical=categorical)
    checked = None if test is None else _test(raw, test, label, id, categorical)
    return DatasetFiles(formats.plain_name(path), raw, checked, None)


def load_dataset(name: str) -> DatasetFiles:
    """A data set by its name in the catalogue."""
    dataset = _dataset(name)
    if dataset.bundled:
        return DatasetFiles(name, _bundled(dataset), None, dataset.defaults)
    train = _finish(dataset, _load(dataset, dataset.train))
    test = None if dataset.test is None else _finish(dataset, _load(dataset, dataset.test))
    return DatasetFiles(name, train, test, dataset.defaults)


def available(name: str) -> bool:
    """Whether every file of the data set is on this machine."""
    return all(_search(_dataset(name), file) is not None for file in _files(_dataset(name)))


def verify(name: str) -> dict[str, str]:
    """Each file's state: "ok", or "unknown" where no checksum is recorded. A wrong file is an error."""
    dataset = _dataset(name)
    states = {}
    for file in _files(dataset):
        path = find(dataset, file)
        expected = SHA256.get(dataset.folder, {}).get(file)
        states[file] = "unknown" if expected is None else "ok"
        if expected is not None and _sha256(path) != expected:
            raise DataError(
                f"{path}: its sha256 is not the recorded one, so it is damaged or another edition; "
                f"compare it with {dataset.source}"
            )
    return states


def find(dataset: Dataset, file: str) -> Path:
    """Where a file of the data set is on this machine."""
    path = _search(dataset, file)
    if path is None:
        home = _folders()[0] / dataset.folder
        raise DataError(
            f"{dataset.name}: {file} is not on this machine; get it from {dataset.source} "
            f"and put it in {home}"
        )
    return path


def _dataset(name: str) -> Dataset:
    if name not in DATASETS:
        raise DataError(f"no data set '{name}'; {formats.suggest(name, DATASETS)}")
    return DATASETS[name]


def _files(dataset: Dataset) -> list[str]:
    if dataset.folder == "cifar10":
        editions = [cifar.files(binary=True), cifar.files(binary=False)]
        return next((files for files in editions if _search(dataset, files[0])), editions[0])
    files = [file for file in (dataset.train, dataset.test) if file]
    if dataset.folder in IMAGES:
        files += [file.replace("-images-idx3", "-labels-idx1") for file in files]
    return files


def _folders() -> list[Path]:
    named = os.environ.get("COLONNADE_DATA")
    cache = Path.home() / ".cache" / "colonnade"
    return [Path(named).expanduser(), cache] if named else [cache]


def _search(dataset: Dataset, file: str) -> Path | None:
    # the two image sets use the same file names, so only their own folder tells them apart
    places = [dataset.folder] if dataset.folder in IMAGES else [dataset.folder, ""]
    for folder in _folders():
        for place in places:
            for packed in ("", *formats.COMPRESSED):
                path = folder / place / (file + packed)
                if path.is_file():
                    return path
    return None


def _load(dataset: Dataset, file: str) -> RawTable:
    if dataset.folder == "cifar10":
        paths = {Path(name).stem: find(dataset, name) for name in _files(dataset)}
        return cifar.read(file, [paths[batch] for batch in cifar.BATCHES[file]])
    path = find(dataset, file)
    if dataset.folder in IMAGES:
        find(dataset, file.replace("-images-idx3", "-labels-idx1"))
    raw = load(
        path,
        label=dataset.label,
        id=dataset.id,
        n_features=dataset.columns,
        categorical=dataset.defaults.categorical,
    )
    return replace(raw, name=dataset.name)


def _finish(dataset: Dataset, raw: RawTable) -> RawTable:
    if dataset.keep:
        raw = raw.take(np.flatnonzero(np.isin(np.asarray(raw.y), dataset.keep)))
    if dataset.unit_rows:
        raw = replace(raw, values=_unit_rows(raw.values))
    if dataset.shuffle:
        raw = raw.take(np.random.default_rng(0).permutation(raw.rows))
    return raw


def _unit_rows(X: csr_array) -> csr_array:
    length = np.sqrt(X.multiply(X).sum(axis=1))
    scale = 1.0 / np.where(length > 0, length, 1.0)
    return csr_array((X.data * np.repeat(scale, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)


def _bundled(dataset: Dataset) -> RawTable:
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{dataset.bundled}")()
    columns = tuple(str(c) for c in bunch.feature_names)
    return RawTable(
        dataset.name, columns, np.ascontiguousarray(bunch.data), y=bunch.target.astype(np.float64)
    )


def _test(
    train: RawTable, test: str | Path, label: str | None, id_column: str | None, categorical: tuple[str, ...]
) -> RawTable:
    return load(test, label=label, id=id_column, n_features=len(train.columns), categorical=categorical)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with formats.open_bytes(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
