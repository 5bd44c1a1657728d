"""Known data sets as problems: those that come with scikit-learn, and those whose files are here."""

from __future__ import annotations

import io
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

from colonnade_bench.defaults.problem import Frames, Problem, Sparse, folds, parted

ADULT = ["age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"]
ADULT += ["relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"]
ADULT += ["income"]


def _bundled(name: str, loader: Callable[..., Any], **more: Any) -> Iterator[Problem]:
    bunch = loader(as_frame=True)
    return folds(name, bunch.data.assign(y=bunch.target), **more)


def _text(path: Path) -> str:
    """A file's text, packed or not; FileNotFoundError if it is not there."""
    if path.is_file():
        return path.read_text(encoding="utf-8")
    with lzma.open(path.with_name(path.name + ".xz"), "rt", encoding="utf-8") as file:
        return file.read()


def _table(path: Path, **more: Any) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(_text(path)), **more)


def _adult(root: Path) -> Iterator[Problem]:
    """Text with gaps ("?"); the test file ends its labels with a point and has a line before its rows."""
    read: dict[str, Any] = {"names": ADULT, "skipinitialspace": True, "na_values": "?"}
    train = _table(root / "tabular" / "adult.data", **read)
    test = _table(root / "tabular" / "adult.test", skiprows=1, **read)
    test["income"] = test["income"].str.rstrip(".")
    yield Frames("Adult", train, test, label="income", companies=4)


def _uci_credit(root: Path) -> Iterator[Problem]:
    frame = _table(root / "tabular" / "UCI_Credit_Card.csv").drop(columns="ID")
    return parted("UCI credit", frame, label="default.payment.next.month", companies=4)


def _give_me_some_credit(root: Path) -> Iterator[Problem]:
    frame = _table(root / "tabular" / "cs-training.csv", index_col=0)
    return parted("GiveMeSomeCredit", frame, label="SeriousDlqin2yrs")


def _fate(root: Path, stem: str, name: str, maker: Callable[..., Iterator[Frames]]) -> Iterator[Problem]:
    """A table that another project deals to a guest, who has the label, and a host."""
    guest = _table(root / "fate" / f"{stem}_hetero_guest.csv", index_col="id")
    host = _table(root / "fate" / f"{stem}_hetero_host.csv", index_col="id")
    host = host.add_prefix("h")
    given = {"bank": [c for c in guest.columns if c != "y"], "shop": list(host.columns)}
    return maker(name, guest.join(host, how="inner"), given=given)


def _libsvm(root: Path, name: str, *, test: bool) -> Iterator[Problem]:
    lines = _text(root / "libsvm" / name).splitlines(keepends=True)
    if test:
        yield Sparse(name, lines, _text(root / "libsvm" / f"{name}.t").splitlines(keepends=True))
        return
    order = np.random.default_rng(0).permutation(len(lines))
    cut = len(lines) // 5
    yield Sparse(name, [lines[row] for row in order[cut:]], [lines[row] for row in order[:cut]])


KNOWN: dict[str, Callable[[Path], Iterator[Problem]]] = {
    "UCI credit": _uci_credit,
    "GiveMeSomeCredit": _give_me_some_credit,
    "Adult": _adult,
    "a9a": lambda root: _libsvm(root, "a9a", test=True),
    "phishing": lambda root: _libsvm(root, "phishing", test=False),
    "cod-rna": lambda root: _libsvm(root, "cod-rna", test=True),
    "FATE default credit": lambda root: _fate(root, "default_credit", "FATE default credit", parted),
    "FATE breast": lambda root: _fate(root, "breast", "FATE breast", folds),
    "breast cancer": lambda root: _bundled("breast cancer", datasets.load_breast_cancer),
    "wine": lambda root: _bundled("wine", datasets.load_wine),
    "digits": lambda root: _bundled("digits", datasets.load_digits, companies=4),
    "diabetes": lambda root: _bundled("diabetes", datasets.load_diabetes, kind="number"),
}
