"""Named data sets: the bundled ones load as described, the others are found where they are put."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from colonnade.data.datasets.catalogue import DATASETS, SHA256, Files
from colonnade.data.datasets.loading import available, known_dataset, load_dataset, read, verify
from colonnade.data.prepare.labels import Labels
from colonnade.data.prepare.prepare import Preparation
from colonnade.errors import DataError

BUNDLED = [name for name, dataset in DATASETS.items() if dataset.bundled]
FILES = {name: dataset.stored for name, dataset in DATASETS.items() if isinstance(dataset.stored, Files)}
RECORDED = [name for name, files in FILES.items() if files.train in SHA256.get(files.folder, {})]


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without data files; returns the folder COLONNADE_DATA names."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("COLONNADE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "data"


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Path(__file__).parents[4] / "shared" / "data"
    folder = os.environ.get("COLONNADE_DATA", str(beside))
    if not Path(folder).is_dir():
        pytest.skip(f"no real data in {folder}; set COLONNADE_DATA to the folder that holds it")
    monkeypatch.setenv("COLONNADE_DATA", folder)


def check(name: str) -> None:
    """The files have the rows and columns the catalogue says, and its defaults prepare them."""
    dataset, files = DATASETS[name], load_dataset(name)
    assert (files.train.rows, len(files.train.columns)) == (dataset.rows, dataset.columns)
    assert (files.test.rows if files.test else 0) == dataset.test_rows
    assert files.train.y is not None
    defaults = dataset.defaults
    labels = Labels.fit(files.train.y, dataset.task, positive=defaults.positive)
    prep = Preparation.fit(
        files.train, scale=defaults.scale, categorical=defaults.categorical, missing=defaults.missing
    )
    table = prep.transform(files.train, labels.transform(files.train.y))
    assert table.y is not None
    if dataset.task == "binary":
        assert set(table.y) == {-1.0, 1.0}
    if files.test:
        assert files.test.y is not None
        assert prep.transform(files.test).width == table.width
        assert set(labels.transform(files.test.y)) <= set(table.y)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_load_as_described(name: str) -> None:
    assert available(name)
    assert verify(name) == {}
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.usefixtures("real")
def test_real_files_are_as_described(name: str) -> None:
    if not available(name):
        pytest.skip(f"{name} is not in COLONNADE_DATA")
    check(name)


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.usefixtures("real")
def test_real_files_have_their_checksums(name: str) -> None:
    if not available(name):
        pytest.skip(f"{name} is not in COLONNADE_DATA")
    assert set(verify(name).values()) == {"ok"}


def found(name: str) -> None:
    if not available(name):
        pytest.skip(f"{name} is not in COLONNADE_DATA")


@pytest.mark.usefixtures("real")
def test_uci_credit_is_91_columns_after_one_hot() -> None:
    found("uci-credit")
    files, defaults = load_dataset("uci-credit"), DATASETS["uci-credit"].defaults
    prep = Preparation.fit(files.train, scale="zscore", categorical=defaults.categorical, rare=defaults.rare)
    assert len(prep.outputs) == 91
    X = prep.transform(files.train).X
    assert "ID" not in prep.columns
    codes = [k for k, c in enumerate(prep.outputs) if "=" in c]
    np.testing.assert_array_equal(X[:, codes].sum(axis=1), 9.0)  # nine categorical columns, one category each


@pytest.mark.usefixtures("real")
def test_news20_binary_has_rows_of_length_one_and_stays_sparse() -> None:
    found("news20-binary")
    train = load_dataset("news20-binary").train
    assert isinstance(train.values, csr_array)
    np.testing.assert_allclose(train.values.multiply(train.values).sum(axis=1), 1.0)


@pytest.mark.usefixtures("real")
def test_cod_rna_is_shuffled() -> None:
    found("cod-rna")
    train = load_dataset("cod-rna").train
    assert train.y is not None
    assert 0.3 < (train.y[:3000] > 0).mean() < 0.37
    # always in the same order, so that a prefix is the same rows in every run
    np.testing.assert_array_equal(train.origin, np.random.default_rng(0).permutation(59_535))


# --- finding files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["", "libsvm"])
@pytest.mark.parametrize("packed", [False, True])
def test_files_are_found_plain_or_packed_in_the_folder_or_below(
    empty: Path, place: str, packed: bool
) -> None:
    assert not available("phishing")
    path = empty / place / ("phishing.gz" if packed else "phishing")
    path.parent.mkdir(exist_ok=True)
    content = b"1 1:1\n0 68:2\n"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert available("phishing")
    values = load_dataset("phishing").train.values
    assert isinstance(values, csr_array)
    assert values.shape == (2, 68)


def test_the_cache_is_searched_after_the_named_folder(empty: Path) -> None:
    cache = empty.parent / "home" / ".cache" / "colonnade"
    cache.mkdir(parents=True)
    (cache / "phishing").write_text("1 1:1\n")
    assert load_dataset("phishing").train.rows == 1
    (empty / "phishing").write_text("1 1:1\n0 2:1\n")
    assert load_dataset("phishing").train.rows == 2


@pytest.mark.parametrize("name", [name for name in DATASETS if name not in BUNDLED])
def test_an_absent_file_says_where_to_get_it_and_where_to_put_it(empty: Path, name: str) -> None:
    assert not available(name)
    with pytest.raises(DataError) as caught:
        load_dataset(name)
    text = str(caught.value)
    assert "\n" not in text
    for part in (FILES[name].train, DATASETS[name].source, str(empty / FILES[name].folder)):
        assert part in text


def test_the_two_image_sets_are_never_mixed_up(empty: Path) -> None:
    (empty / "fashion-mnist").mkdir()
    for folder in (empty, empty / "fashion-mnist"):
        (folder / "train-images-idx3-ubyte.gz").write_bytes(b"")
    with pytest.raises(DataError, match="mnist: train-images-idx3-ubyte is not on this machine"):
        load_dataset("mnist")


def test_verify_tells_a_changed_file(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty / "phishing").write_text("1 1:1\n")
    with pytest.raises(DataError, match="its sha256 is not the recorded one"):
        verify("phishing")
    monkeypatch.setitem(SHA256["libsvm"], "phishing", hashlib.sha256(b"1 1:1\n").hexdigest())
    assert verify("phishing") == {"phishing": "ok"}
    (empty / "real-sim").write_text("1 1:1\n")
    assert verify("real-sim") == {"real-sim": "unknown"}


def test_an_unknown_name_suggests_a_known_one() -> None:
    with pytest.raises(DataError, match="no data set 'breast_cancer'; did you mean 'breast-cancer'"):
        load_dataset("breast_cancer")
    with pytest.raises(DataError, match="a9aa: no such file or data set; did you mean 'a9a'"):
        read("a9aa")


def test_read_takes_files_or_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("iris").write_text("1 3:1\n-1 1:1\n")
    Path("t.svm").write_text("1 1:1\n")
    files = read("iris", "t.svm")  # a file of that name comes first
    assert isinstance(files.train.values, csr_array)
    assert files.train.values.shape == (2, 3)
    assert files.test is not None
    assert isinstance(files.test.values, csr_array)
    assert files.test.values.shape == (1, 3)  # as wide as the training file
    assert known_dataset("iris") is None
    named = read("wine")
    assert named.train.rows == 178
    assert known_dataset("wine") == DATASETS["wine"]
    Path("a.csv").write_text("k,town,y\n1,01,2\n")
    raw = read("a.csv", label="y", id="k", categorical=("town",)).train
    assert raw.column("town").tolist() == ["01"]


def test_another_test_file_of_a_named_set_is_read_like_its_own(empty: Path) -> None:
    header = "ID,SEX,default.payment.next.month\n"
    (empty / "UCI_Credit_Card.csv").write_text(header + "1,1,0\n2,2,1\n")
    (empty / "later.csv").write_text(header + "3,2,1\n")
    test = read("uci-credit", empty / "later.csv").test
    assert test is not None
    assert test.columns == ("SEX",)
    assert test.column("SEX").tolist() == ["2"]
    assert test.ids is not None
    assert test.ids.tolist() == ["3"]
    assert test.y is not None
    assert test.y.tolist() == [1.0]
