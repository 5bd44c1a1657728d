"""Gives every party of a job its data where that is too large to be held (`large`).

The outcome is that of `assign`: every party's columns and, at label holders, the label. But the columns are
prepared already, party by party, and lie in files: those of `data.store`, where they are found again by the
next run that prepares the same columns in the same way, or those of a folder that goes with this process.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from colonnade.arrays import Floats, Numbers
from colonnade.data.large.big_file import BigFile, TestRows, Writer, open_columns, opened, release
from colonnade.data.prepare.labels import Labels, Task, guessed_task
from colonnade.data.prepare.party_data import PartyData, Recipe, RowLengths
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.prepare.scaling import Tails
from colonnade.data.read.dialect import described
from colonnade.data.split.split import split_by_count, split_by_name
from colonnade.data.table import RawTable, Table, count
from colonnade.errors import DataError
from colonnade.job import Data
from colonnade.job.source import source_of


@dataclass(frozen=True)
class SplitRequest:
    """What `assign` is asked for, beside the files."""

    label_holders: tuple[str, ...]
    task: Task | None
    intercept: bool
    seed: int
    recipe: Recipe


@dataclass(frozen=True)
class FileColumns:
    """The columns of one party: which, and of which file; the file of its test rows, where there is one."""

    file: BigFile
    columns: tuple[str, ...]
    test: BigFile | None


def deal(
    data: Data, asked: SplitRequest, tails: Callable[[Task], Tails], fits: Callable[[RowLengths], None]
) -> tuple[dict[str, PartyData], Labels, dict[str, str]]:
    """Return every party's columns, prepared and stored, how the label became numbers, and digests of files.

    `tails` says what becomes of outliers with such labels. `fits` raises if rows of these lengths cannot be
    trained on: it is asked before all of them are prepared.
    """
    _refuse(data)
    root = _root(data)
    party_columns = _columns_of(data, asked, root)
    dealer = _Dealer(data, asked, party_columns, TestRows(data.test_fraction, asked.seed))
    labels = dealer.labels()
    asked = replace(asked, recipe=replace(asked.recipe, tails=tails(labels.task)))
    dealer = replace(dealer, asked=asked)
    folder = _folder(root, data, asked, party_columns)
    known = folder / "done.json"
    if not known.exists():
        _check_ids(data, party_columns)
        learnt_by = {party: dealer.learn(party) for party in party_columns}
        fits(dealer.lengths(labels, {party: sizes for party, (_, sizes) in learnt_by.items()}))
        made = {party: how for party, (how, _) in learnt_by.items()}
        for party, how in made.items():
            dealer.store(folder, party, how)
        dealer.store_labels(folder, labels)
        release()
        known.write_bytes(msgspec.json.encode({party: each.to_dict() for party, each in made.items()}))
    learnt = msgspec.json.decode(known.read_bytes())
    parties = {
        party: _opened(folder, party, Preparation.from_dict(learnt[party]), party in asked.label_holders)
        for party in party_columns
    }
    return parties, labels, {party: held.file.digest for party, held in party_columns.items()}


@dataclass(frozen=True)
class _Dealer:
    """Reads every file a stretch at a time, and writes what becomes of it."""

    data: Data
    asked: SplitRequest
    party_columns: Mapping[str, FileColumns]
    tests: TestRows

    @property
    def _labelled(self) -> FileColumns:
        return self.party_columns[self.asked.label_holders[0]]

    def labels(self) -> Labels:
        """Return how labels become numbers, learnt from a sample of the training rows."""
        data, held = self.data, self._labelled
        if data.label is None:
            raise DataError("data.label: name the label column")
        raw = held.file.sample(held.file.wanted(data.label), (), self._tests(held))
        y = _label(raw)
        task = self.asked.task or ("binary" if data.positive is not None else guessed_task(y, raw.name))
        return Labels.fit(y, task, positive=data.positive, name=raw.name)

    def store(self, folder: Path, party: str, how: Preparation) -> None:
        """Write a party's columns, prepared."""
        held = self.party_columns[party]
        single = not held.file.fine & set(held.columns)
        dtype, width = np.float32 if single else np.float64, len(how.outputs)

        def columns(raw: RawTable) -> Numbers:
            X = how.transform(raw).X
            return X if isinstance(X, np.ndarray) else X.toarray()

        self._write(held, None, columns, lambda n, rows: Writer(folder / party / n, (rows, width), dtype))

    def store_labels(self, folder: Path, labels: Labels) -> None:
        """Write the labels as numbers: single precision, which a class is exact in, unless they are finer."""
        held, label = self._labelled, self.data.label
        fine = labels.task == "regression" and label in held.file.fine
        dtype = np.float64 if fine else np.float32

        def coded(raw: RawTable) -> Floats:
            return labels.transform(_label(raw), name=raw.name, origin=raw.origin)

        only = replace(held, columns=())
        self._write(only, label, coded, lambda n, rows: Writer(folder / "labels" / n, (rows,), dtype))

    def learn(self, party: str) -> tuple[Preparation, Floats]:
        """Return a party's preparation, and squared lengths of some of its rows so prepared."""
        recipe, held = self.asked.recipe, self.party_columns[party]
        raw = held.file.sample(held.file.wanted(), held.columns, self._tests(held))
        learnt = Preparation.fit(
            raw,
            scale=recipe.scale,
            tails=recipe.tails,
            categorical=[c for c in recipe.categorical if c in held.columns],
            missing=recipe.missing,
            rare=recipe.rare,
            intercept=self.asked.intercept and party == self.asked.label_holders[0],
        )
        said = f"learnt from {count(raw.rows, 'row')} of {held.file.rows:,}, from all over the file"
        sentences = {**learnt.sentences, "done": (said, *learnt.sentences["done"])}
        return replace(learnt, sentences=sentences), _squares(learnt.transform(raw))

    def lengths(self, labels: Labels, sizes: Mapping[str, Floats]) -> RowLengths:
        """Return how long rows are at the parties without the label, from squared lengths of some at each."""
        held, first = self._labelled, self.asked.label_holders[0]
        tests, others = self._tests(held), [each for party, each in sizes.items() if party != first]
        return RowLengths(
            rows=held.file.rows - (0 if tests is None else tests.count(held.file.rows)),
            scores=len(labels.classes) if labels.task == "multiclass" else 1,
            longest=float(sum(each.max() for each in others)),
            mean=float(sum(each.mean() for each in others)),
        )

    def _tests(self, held: FileColumns) -> TestRows | None:
        return self.tests if held.test is None else None

    def _write(
        self,
        held: FileColumns,
        label: str | None,
        make: Callable[[RawTable], Numbers],
        writer: Callable[[str, int], Writer],
    ) -> None:
        """Write what is made of every stretch, training and test rows apart."""
        tests, files = self._tests(held), {"train.npy": held.file}
        if held.test is not None:
            files["test.npy"] = held.test
        tested = 0 if tests is None else tests.count(held.file.rows)
        out = {name: writer(name, file.rows - tested) for name, file in files.items()}
        if tests is not None:
            out["test.npy"] = writer("test.npy", tested)
        for name, file in files.items():
            for start, raw in file.stretches(file.wanted(label), held.columns):
                values = make(raw)
                if tests is None:
                    out[name].write(values)
                    continue
                test = tests.mask(start, start + raw.rows)
                out["train.npy"].write(values[~test])
                out["test.npy"].write(values[test])
        for each in out.values():
            each.close()


def _squares(table: Table) -> Floats:
    """Return the squared length of every row; a gap counts nothing."""
    X = table.X if isinstance(table.X, np.ndarray) else table.X.toarray()
    squared: Floats = np.nansum(np.square(X, dtype=np.float64), axis=1)
    return squared


def _refuse(data: Data) -> None:
    """Refuse what is only done with data that fits the memory."""
    beyond = {"weight": data.weight, "exposure": data.exposure, "woe": data.woe, "keys": data.keys}
    for key, value in (beyond | {"server": data.server}).items():
        if value:
            raise DataError(
                f"data.{key}: cannot be had with columns that are read in stretches; leave it out, or give "
                "more memory (data.memory)"
            )


def _columns_of(data: Data, asked: SplitRequest, root: Path) -> dict[str, FileColumns]:
    """Return who holds which columns of which file."""
    apart, seed = {data.label, *(data.drop or ())}, asked.seed
    dialect = described(data)

    def big(path: str, party: str | None = None) -> BigFile:
        return opened(source_of(path), root, dialect, (*data.id_at(party), *asked.recipe.categorical))

    def tested(path: str | None, party: str | None = None) -> BigFile | None:
        return None if path is None else big(path, party)

    def columns(file: BigFile, party: str | None = None) -> tuple[str, ...]:
        return tuple(c for c in file.columns if c not in apart.union(data.id_at(party)))

    if data.files is not None:
        tests = data.test_files or {}
        files = {party: big(path, party) for party, path in data.files.items()}
        party_columns = {
            p: FileColumns(file, columns(file, p), tested(tests.get(p), p)) for p, file in files.items()
        }
    elif data.train is not None:
        file, test = big(data.train), tested(data.test)
        names = columns(file)
        split = (
            split_by_count(names, data.parties or 1, seed)
            if data.columns is None
            else split_by_name(names, data.columns)
        )
        party_columns = {
            p: FileColumns(file, tuple(names[j] for j in places), test) for p, places in split.items()
        }
    else:
        raise DataError("data.train: name a file, or give every party its file in data.files")
    for party, each in party_columns.items():
        if not each.columns:
            raise DataError(f"party '{party}' has no columns; of data read in stretches each must have some")
    return party_columns


def _check_ids(data: Data, party_columns: Mapping[str, FileColumns]) -> None:
    """Refuse files whose rows are not the same in the same order: nobody holds all ids to join them."""
    if data.files is None:
        return
    if data.id is None:
        raise DataError("data.files: name the id column (data.id)")
    (one, first), *others = [(party, held.file) for party, held in party_columns.items()]
    rule = (
        "files that are read in stretches must have the same rows in the same order; sort them, or give more "
        "memory (data.memory)"
    )
    for party, file in others:
        if file.rows != first.rows:
            raise DataError(
                f"{file.path}: {count(file.rows, 'row')}, {first.path} has {first.rows:,}; {rule}"
            )
        both = [
            each.stretches(each.wanted(ids=data.id_at(who)), ())
            for who, each in ((one, first), (party, file))
        ]
        for (start, known), (_, other) in zip(*both, strict=True):
            if known.rows != other.rows or not np.array_equal(known.ids, other.ids):
                raise DataError(
                    f"{file.path}: other ids than {first.path} among the {count(known.rows, 'row')} from row "
                    f"{start + 1} on; {rule}"
                )


def _root(data: Data) -> Path:
    """Return the folder of files that are made here: that of the job, or one that goes with this process."""
    if data.store is not None:
        return Path(data.store)
    root = Path(tempfile.mkdtemp(prefix="colonnade-columns-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


def _folder(root: Path, data: Data, asked: SplitRequest, party_columns: Mapping[str, FileColumns]) -> Path:
    """Return where the prepared columns lie, by what they are made of."""
    files = [each for held in party_columns.values() for each in (held.file, held.test) if each is not None]
    state = sorted({(str(each.path), each.digest) for each in files})
    held = {party: each.columns for party, each in party_columns.items()}
    plain = [state, held, data.label, data.positive, data.test_fraction, asdict(asked)]
    folder = root / hashlib.sha256(msgspec.json.encode(plain)).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _opened(folder: Path, party: str, how: Preparation, holds_label: bool) -> PartyData:
    """Return a party's stored columns, with the label if it holds it."""
    tables = {}
    for name in ("train", "test"):
        path = folder / party / f"{name}.npy"
        if path.exists():
            y = open_columns(folder / "labels" / f"{name}.npy") if holds_label else None
            tables[name] = Table(party, how.outputs, open_columns(path), y, categories=how.numbered)
    return PartyData.of(party, tables["train"], tables.get("test"), how)


def _label(raw: RawTable) -> Numbers:
    if raw.y is None:
        raise DataError(f"{raw.name}: no label; name its column with data.label")
    return raw.y
