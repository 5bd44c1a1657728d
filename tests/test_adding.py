"""The guide to adding an algorithm is followed to the letter: its code is read from the page and run."""

from __future__ import annotations

import gzip
import json
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.svm import LinearSVC
from tests.net.worlds import WORLDS, teach, world
from tests.oracles.tables import pooled, random_tables, run, weights

from colonnade import VerticalClassifier
from colonnade.arrays import Numbers
from colonnade.data.read import files
from colonnade.data.read.formats import raw_table
from colonnade.data.read.unpacked import open_bytes
from colonnade.errors import DataError, JobError, MalformedMessage
from colonnade.job import PrivacyTerms
from colonnade.job.presets import PRESETS, Preset
from colonnade.losses import LOSSES, Loss, UsualLoss
from colonnade.messages import Announce, Message, decode, encode
from colonnade.net.endpoint import Endpoint
from colonnade.net.expect import Number
from colonnade.openings import wire
from colonnade.optim.estimators import ESTIMATORS, Coefficients, Estimator
from colonnade.run.notes import leaks
from colonnade.run.registry import CONVERSATIONS
from colonnade.secure.masked import MaskedSum
from colonnade.secure.neighbours import circle
from colonnade.secure.protocol import SumKind
from colonnade.secure.sums import SUMS

PAGE = Path(__file__).parents[1] / "docs" / "adding-an-algorithm.md"


def shown(name: str) -> Any:
    """What the page's code block that defines `name` makes of it."""
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", PAGE.read_text("utf-8"), re.MULTILINE)
    (block,) = [block for block in blocks if re.search(rf"^    (?:class |def )?{name}\b", block, re.M)]
    space: dict[str, Any] = {
        "__name__": __name__,  # where types of fields are looked up
        "np": np,
        "Coefficients": Coefficients,
        "Estimator": Estimator,
        "UsualLoss": UsualLoss,
        "dataclass": dataclass,
        "MaskedSum": MaskedSum,
        "circle": circle,
        "DataError": DataError,
        "open_bytes": open_bytes,
        "raw_table": raw_table,
        "Message": Message,
        "Numbers": Numbers,
    }
    exec(textwrap.dedent(block), space)  # noqa: S102  our own documentation
    return space[name]


def test_a_new_row_is_an_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Preset("mine", "a new row", "none", "backward", "sync", "saga")
    monkeypatch.setitem(PRESETS, "mine", row)
    setting = random_tables()
    np.testing.assert_array_equal(weights(run(setting, "mine")), weights(run(setting, "vfb-saga")))


@pytest.fixture
def squared_hinge(monkeypatch: pytest.MonkeyPatch) -> Loss:
    """The page's loss, in the table."""
    loss: Loss = shown("SquaredHinge")()
    monkeypatch.setitem(LOSSES, loss.name, loss)
    return loss


@pytest.mark.parametrize(
    ("algorithm", "labels", "train", "within"),
    [
        ("lbfgs", None, {"epochs": 200}, 1e-4),
        ("vfb2-svrg", "clear", {"epochs": 60, "step": "auto"}, 1e-3),
        ("vfb2-svrg", "blind", {"epochs": 60, "step": "auto"}, 1e-3),
    ],
)
def test_a_new_loss_is_one_class(
    squared_hinge: Loss, algorithm: str, labels: str | None, train: dict[str, Any], within: float
) -> None:
    setting, l2 = random_tables(parties=3, active=1, rows=240, test_rows=60), 0.1
    secure = {} if labels is None else {"labels": labels}
    given = {**train, "loss": squared_hinge.name, "l2": l2, "tolerance": 0.0}
    done = run(setting, algorithm, train=given, secure=secure)
    X, y = pooled(setting)
    svc = LinearSVC(loss="squared_hinge", C=1 / (l2 * len(y)), fit_intercept=False, tol=1e-9, max_iter=10**5)
    np.testing.assert_allclose(weights(done), svc.fit(X, y).coef_[0], atol=within)
    assert {"test_accuracy", "test_auc"} <= done.result.metrics.keys()
    assert labels == "blind" or any(squared_hinge.theta_tells in note for note in done.result.privacy.notes)


def test_results_of_a_new_loss_know_what_is_predicted(squared_hinge: Loss) -> None:
    X, y = pooled(random_tables())
    classifier = VerticalClassifier(loss=squared_hinge.name).fit(X, y)
    assert classifier.result_.data.task == "binary"
    assert classifier.score(X, y) > 0.9
    assert not hasattr(classifier, "predict_proba")


def test_who_cannot_train_a_new_loss_says_why(squared_hinge: Loss) -> None:
    setting, train = random_tables(parties=3, active=1), {"loss": squared_hinge.name}
    with pytest.raises(JobError, match="its second derivative is 0 on most rows"):
        run(setting, "secureboost", train=train)
    with pytest.raises(JobError, match=r"train\.loss = 'squared_hinge': use 'logistic' or 'squared'"):
        run(setting, "vfb-sgd", train=train, secure={"labels": "blind", "scores": "hidden"})
    with pytest.raises(JobError, match=r"is not one of 'logistic', .*, 'squared_hinge'$"):
        run(setting, "lbfgs", train={"loss": "cubed_hinge"})


def test_networks_train_a_new_loss_and_no_other(squared_hinge: Loss) -> None:
    torch = pytest.importorskip("torch")
    from colonnade.models.backend import losses_of

    z, y = np.linspace(-3, 3, 14).reshape(2, 7, 1), np.where(np.arange(7) % 2, 1.0, -1.0)
    found = losses_of(squared_hinge, torch.from_numpy(z), torch.from_numpy(y))
    np.testing.assert_allclose(found.numpy(), np.maximum(0, 1 - y * z[..., 0]) ** 2)
    models = {"kind": "mlp", "hidden": [8], "outputs": 4, "server": {"kind": "mlp", "hidden": [8]}}
    done = run(
        random_tables(active=1), "czofo", model=models, train={"loss": squared_hinge.name, "epochs": 3}
    )
    assert done.result.history[-1].loss < done.result.history[0].loss


@pytest.mark.parametrize("secure", [{"labels": "clear"}, {"labels": "blind"}], ids=["clear", "blind"])
def test_a_new_estimator_is_one_method_and_one_row(
    monkeypatch: pytest.MonkeyPatch, secure: dict[str, str]
) -> None:
    assert '`"clipped": Clipped`' in PAGE.read_text("utf-8")
    setting = random_tables(parties=3, regression=True)
    train = {"batch": 120, "epochs": 4, "step": 0.5, "l2": 0.0, "loss": "squared", "estimator": "clipped"}
    with pytest.raises(JobError, match=r"train\.estimator: there is no 'clipped'"):
        run(setting, "vfb-sgd", train=train, secure=secure)
    monkeypatch.setitem(ESTIMATORS, "clipped", shown("Clipped"))
    X, y = pooled(setting)
    w = np.zeros(X.shape[1])
    for _ in range(4):
        theta = X @ w - y
        assert np.abs(theta).max() > 0.5
        w -= 0.5 * X.T @ np.clip(theta, -0.5, 0.5) / len(y)
    np.testing.assert_allclose(weights(run(setting, "vfb-sgd", train=train, secure=secure)), w, atol=1e-5)


@pytest.fixture
def circle_sum(monkeypatch: pytest.MonkeyPatch) -> type[SumKind]:
    """The page's sum, in the table."""
    kind: type[SumKind] = shown("CircleSum")
    monkeypatch.setitem(SUMS, kind.name, kind)
    return kind


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("parties", [3, 5])
def test_a_new_sum_is_one_class_and_one_row(circle_sum: type[SumKind], world: str, parties: int) -> None:
    setting, train = random_tables(parties=parties, active=1), {"epochs": 20}
    due = weights(run(setting, "lbfgs", train=train))
    done = run(setting, "lbfgs", world=world, train=train, secure={"sum": "circle", "accept_leak": True})
    np.testing.assert_allclose(weights(done), due, atol=1e-6)
    told = circle_sum.gives_away(parties)
    assert (f"circle sum: {told}" in done.result.privacy.notes) == (parties > 3)


def test_who_cannot_use_a_new_sum_says_why(circle_sum: type[SumKind]) -> None:
    setting = random_tables(parties=5, active=1)
    with pytest.raises(JobError, match="can work out its partial scores; use sum = 'masked'"):
        run(setting, "lbfgs", secure={"sum": "circle"})
    with pytest.raises(JobError, match="a circle sum shows pieces of the masks; use sum = 'masked'"):
        run(setting, "vfb2-sgd", secure={"sum": "circle", "labels": "blind", "accept_leak": True})
    assert "shares" in leaks(CONVERSATIONS["full"], PrivacyTerms(), "circle", 5)


def test_a_new_file_format_is_one_reader_and_one_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert '`".jsonl": read_json_lines`' in PAGE.read_text("utf-8")
    rows = [{"id": f"c{i:03}", "age": 20 + i % 50, "town": "Ulm" if i % 3 else "Bonn"} for i in range(60)]
    plain, packed, table = (tmp_path / name for name in ("a.jsonl", "b.jsonl.gz", "c.csv"))
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    plain.write_text(lines, "utf-8")
    packed.write_bytes(gzip.compress(lines.encode()))
    text = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    table.write_text("\n".join(text), "utf-8")
    with pytest.raises(DataError, match=r"\.jsonl files are not read"):
        files.load(plain, id="id")
    monkeypatch.setitem(files.READERS, ".jsonl", shown("read_json_lines"))
    due = files.load(table, id="id")
    for path in (plain, packed):
        found = files.load(path, id="id")
        assert found.columns == due.columns
        np.testing.assert_array_equal(found.values, due.values)
        np.testing.assert_array_equal(found.ids, due.ids)
    plain.write_text("no JSON", "utf-8")
    with pytest.raises(DataError, match=r"a\.jsonl: not lines of JSON"):
        files.load(plain, id="id")


@pytest.mark.parametrize("name", WORLDS)
def test_a_new_field_of_a_message_is_two_lines(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    old, kind = Announce(1, np.arange(3.0)), shown("Announce")
    (row,) = re.findall(r"^    (_message\(.*\))$", PAGE.read_text("utf-8"), re.MULTILINE)
    with pytest.raises(MalformedMessage):  # by a version without the field
        decode(encode(kind(1, np.arange(3.0), 2.5)))
    teach(monkeypatch, kind, instead_of=Announce)
    monkeypatch.setattr(wire, "FIELDS", dict(wire.FIELDS))
    exec(row, {"_message": wire._message})  # noqa: S102  our own documentation
    assert getattr(decode(encode(old)), "unit", None) == 1.0

    async def program(net: Endpoint) -> list[float]:
        await net.broadcast(kind(1, np.arange(3.0), 2.5))
        heard = await net.gather(kind, 1, unit=Number(0.0, 1e6))
        await net.finish()
        return [message.unit for message in heard.values()]

    assert world(name)(program) == [[2.5, 2.5]] * 3


@pytest.mark.parametrize("world", ["simulated", "local"])
def test_a_new_conversation_is_one_file_and_two_rows(monkeypatch: pytest.MonkeyPatch, world: str) -> None:
    row = Preset("mine", "gradient descent", "none", "descent", "sync")
    assert 'Preset("mine", "gradient descent", "none", "descent", "sync")' in PAGE.read_text("utf-8")
    monkeypatch.setitem(PRESETS, "mine", row)
    monkeypatch.setitem(CONVERSATIONS, "descent", shown("DESCENT"))
    setting = random_tables(test_rows=60)
    with pytest.raises(JobError, match="mine finds no step of its own"):
        run(setting, "mine", world=world, train={"step": "auto"})
    done = run(setting, "mine", world=world, train={"epochs": 50, "step": 1.0, "l2": 0.01})
    X, y = pooled(setting)
    w = np.zeros(X.shape[1])
    for _ in range(50):
        w -= X.T @ LOSSES["logistic"].dz(X @ w, y) / len(y) + 0.01 * w
    np.testing.assert_allclose(weights(done), w, atol=1e-6)
    assert done.result.metrics["test_accuracy"] > 0.9
    assert done.result.cost.bytes_by_kind.keys() >= {"piece", "announce"}
