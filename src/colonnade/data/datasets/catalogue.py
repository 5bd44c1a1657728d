"""The data sets that a job may name: what they are, which files hold them, and where to get those.

A plain table. `datasets.py` finds and loads what is written here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from colonnade.data.prepare.labels import Task
from colonnade.data.prepare.prepare import Rare
from colonnade.data.prepare.scaling import Scale
from colonnade.job import MissingName

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UCI_CREDIT = "https://www.kaggle.com/datasets/uciml/default-of-credit-card-clients-dataset"
KAGGLE_CREDIT = "https://www.kaggle.com/c/GiveMeSomeCredit/data"
TICK = "https://github.com/X-DataInitiative/tick-datasets (binary/reuters)"
MNIST = "http://yann.lecun.com/exdb/mnist/"
CIFAR = "https://www.cs.toronto.edu/~kriz/cifar.html (binary version)"
FASHION = "https://github.com/zalandoresearch/fashion-mnist"
CODES = ("SEX", "EDUCATION", "MARRIAGE", "PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")


@dataclass(frozen=True)
class Defaults:
    """How a data set is best prepared, unless a job says otherwise."""

    task: Task
    scale: Scale | float = "none"
    categorical: tuple[str, ...] = ()
    missing: MissingName = "error"
    rare: Rare = 0
    positive: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Bundled:
    """A data set that comes with scikit-learn: `loader` is what follows `load_` there."""

    loader: str


@dataclass(frozen=True)
class Files:
    """A data set in files of one folder. `label` and `id` name columns, where the format has names."""

    folder: str
    train: str
    test: str | None = None
    label: str | None = None
    id: str | None = None


@dataclass(frozen=True)
class RowChanges:
    """What is done to the rows of a file once they are read."""

    keep: tuple[int, ...] = ()  # only rows with these labels
    unit_rows: bool = False  # every row scaled to length 1
    shuffle: bool = False  # the file is sorted by class


TWO_CLASSES = Defaults("binary")
UNCHANGED = RowChanges()


@dataclass(frozen=True)
class Dataset:
    """One data set. `rows` and `columns` are those of the training rows before preparation."""

    name: str
    summary: str
    rows: int
    columns: int
    defaults: Defaults
    stored: Bundled | Files
    source: str = "scikit-learn"  # where to get the files
    test_rows: int = 0
    changes: RowChanges = UNCHANGED

    @property
    def task(self) -> Task:
        """What the label is."""
        return self.defaults.task

    @property
    def bundled(self) -> bool:
        """Whether the data set comes with scikit-learn, so that no file is needed."""
        return isinstance(self.stored, Bundled)


def _svm(
    name: str,
    summary: str,
    rows: int,
    columns: int,
    train: str,
    test: tuple[str, int] | None = None,
    *,
    defaults: Defaults = TWO_CLASSES,
    source: str = f"{LIBSVM}/binary.html",
    changes: RowChanges = UNCHANGED,
) -> Dataset:
    """Return a data set of LIBSVM's collection, or in its format. `test` is a file and its number of rows."""
    test_file, test_rows = test or (None, 0)
    stored = Files("libsvm", train, test_file)
    return Dataset(name, summary, rows, columns, defaults, stored, source, test_rows, changes)


def _sk(name: str, summary: str, rows: int, columns: int, defaults: Defaults, loader: str) -> Dataset:
    """Return a data set that comes with scikit-learn."""
    return Dataset(name, summary, rows, columns, defaults, Bundled(loader))


def _images(name: str, summary: str, source: str) -> Dataset:
    """Return a data set published like MNIST: as many images, of the same size, in files of the same
    names."""
    stored = Files(name, "train-images-idx3-ubyte", "t10k-images-idx3-ubyte")
    return Dataset(name, summary, 60_000, 784, Defaults("multiclass", 255.0), stored, source, 10_000)


_NEWS20 = _svm(
    "news20", "20 Newsgroups, word counts, 20 classes", 15_935, 62_061, "news20",
    defaults=Defaults("multiclass", "maxabs"), source=f"{LIBSVM}/multiclass.html",
)  # fmt: skip
_MNIST = _images("mnist", "handwritten digits, 28 x 28 pixels", MNIST)
_ODD = (1, 3, 5, 7, 9)

_ALL = (
    # with scikit-learn
    _sk("breast-cancer", "tumours, benign or not", 569, 30, Defaults("binary", "zscore"), "breast_cancer"),
    _sk("digits", "handwritten digits, 8 x 8 pixels", 1797, 64, Defaults("multiclass", 16.0), "digits"),
    _sk("digits-odd", "odd against even", 1797, 64, Defaults("binary", 16.0, positive=_ODD), "digits"),
    _sk("wine", "wines of three growers", 178, 13, Defaults("multiclass", "zscore"), "wine"),
    _sk("iris", "three species of iris", 150, 4, Defaults("multiclass", "zscore"), "iris"),
    _sk("diabetes", "progress of diabetes", 442, 10, Defaults("regression", "zscore"), "diabetes"),
    # tables
    Dataset(
        "uci-credit", "credit card clients of a bank, default or not", 30_000, 23,
        Defaults("binary", "zscore", CODES),
        Files("tabular", "UCI_Credit_Card.csv", label="default.payment.next.month", id="ID"), UCI_CREDIT,
    ),
    Dataset(
        "givemesomecredit", "borrowers, in trouble within two years or not", 150_000, 10,
        Defaults("binary", "zscore", missing="mean"),
        Files("tabular", "cs-training.csv", label="SeriousDlqin2yrs", id=""), KAGGLE_CREDIT,
    ),
    # images
    _MNIST,
    _images("fashion-mnist", "pieces of clothing, 28 x 28 pixels", FASHION),
    replace(
        _MNIST, name="mnist-4v9", summary="handwritten 9 against 4", rows=11_791, test_rows=1_991,
        changes=RowChanges(keep=(4, 9)), defaults=Defaults("binary", 255.0),
    ),
    Dataset(
        "cifar10", "photographs of ten kinds of things, 32 x 32 pixels in colour", 50_000, 3072,
        Defaults("multiclass", 255.0), Files("cifar10", "data_batch", "test_batch"), CIFAR, 10_000,
    ),
    # LIBSVM
    _svm("a9a", "Adult: income above 50,000 or not", 32_561, 123, "a9a", ("a9a.t", 16_281)),
    _svm(
        "cod-rna", "non-coding RNA or not", 59_535, 8, "cod-rna", ("cod-rna.t", 271_617),
        defaults=Defaults("binary", "zscore"), changes=RowChanges(shuffle=True),
    ),
    _svm("phishing", "phishing web sites or not", 11_055, 68, "phishing"),
    _NEWS20,
    replace(
        _NEWS20, name="news20-binary", summary="20 Newsgroups, classes 11-20 against 1-10, rows of length 1",
        defaults=Defaults("binary", positive=tuple(range(11, 21))), changes=RowChanges(unit_rows=True),
    ),
    _svm(
        "reuters-moneyfx", "Reuters news, on money and foreign exchange or not", 7_770, 8_315,
        "reuters-moneyfx.trn", ("reuters-moneyfx.tst", 3_299), source=TICK,
    ),
    _svm("w8a", "web pages of one category or not", 49_749, 300, "w8a", ("w8a.t", 14_951)),
    _svm("ijcnn1", "engine misfires or not", 49_990, 22, "ijcnn1", ("ijcnn1.t", 91_701)),
    _svm(
        "rcv1", "Reuters news, two groups of topics", 20_242, 47_236,
        "rcv1_train.binary", ("rcv1_test.binary", 677_399),
    ),
    _svm("real-sim", "Usenet: real against simulated", 72_309, 20_958, "real-sim"),
    _svm(
        "epsilon", "Pascal challenge 2008, dense", 400_000, 2_000,
        "epsilon_normalized", ("epsilon_normalized.t", 100_000),
    ),
    _svm("gisette", "handwritten 4 against 9", 6_000, 5_000, "gisette_scale", ("gisette_scale.t", 1_000)),
    _svm("webspam", "spam web pages, trigrams", 350_000, 16_609_143, "webspam_wc_normalized_trigram.svm"),
    _svm("news20.binary", "20 Newsgroups in two groups, words and pairs", 19_996, 1_355_191, "news20.binary"),
    _svm("covtype", "forest cover, one type or not", 581_012, 54, "covtype.libsvm.binary.scale"),
)  # fmt: skip

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}

# sha256 of the unpacked file, so that it holds whichever way a copy is compressed
SHA256: dict[str, dict[str, str]] = {
    "libsvm": {
        "a9a": "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
        "a9a.t": "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
        "cod-rna": "65b7cc0689fc29bba5db8b50fab0b6446d985f4bf8f6f5dd474f7df8b2f1ab6c",
        "cod-rna.t": "58cff16df896436b06343df78ccaef37a6979d819abbcadbec3cb16b93938df6",
        "news20": "1d6eb77c42e1c78e86f36af834268de933da3607f38e3703aef15f7a9f11e506",
        "phishing": "0cf66ef36604c393da9359b2e5d894a2df8aee31fd184633cefa138add2ef08a",
        "reuters-moneyfx.trn": "caacd2baf041b15b51ab65c0ec2ac834a439a561fb6708427c1c002c10ac7215",
        "reuters-moneyfx.tst": "6e267dcb1f83c68bcb1c3f30d7a70dd9fe059e1da39b9c191456ff827507539f",
    },
    "tabular": {
        "UCI_Credit_Card.csv": "a0f0ab49d6326671d6cd83be5c88dcf18007025fe9a53ecd699119c871176ca1",
        "cs-training.csv": "1bd46da486a5708c58c7b01a034fae2a13b327f6f7b62ea7ba4fe3b5824b24ac",
    },
    "mnist": {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    "fashion-mnist": {
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    "cifar10": {
        "data_batch_1.webp": "530a1c2d9b14fab6585d2ee46c755b8e08d7bae5773e23dca7f454e447ac0855",
        "data_batch_2.webp": "058d48cdb04dbe2868e13b83cbbdc42ba0c6a052fa0d1f43c01015caf5a840aa",
        "data_batch_3.webp": "f03af875c5ee7dda3f95efdf8197f671264ad47e9d95e51233d27a86614b9870",
        "data_batch_4.webp": "cae5e4801eb07c69662d90e8b224ae90030fddf74cca4412f127704c1166feff",
        "data_batch_5.webp": "839ac56854be501707c6ff0db4e287f495ad79274bb7c1b477be4e7cd0708647",
        "test_batch.webp": "b264578890f637cb3f3ba6477df91ee513baeab42bf47152af96a0d7afb465d0",
        "test_labels.json": "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
        "train_labels.json": "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
    },
}
