"""C-VFL: with one step it is split learning, with several its paper's algorithm; what it sends and tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.oracles import split
from tests.oracles.tables import pooled, random_job, random_tables, run
from tests.oracles.zeroth import batches

from colonnade.attacks.transcript import Transcript
from colonnade.compress.bundle import Part, joined, parted
from colonnade.compress.protocol import Plain
from colonnade.compress.quantize import Quantizer
from colonnade.conversations.cascade.record import EXCHANGE
from colonnade.conversations.pooling import Pooled
from colonnade.data.table import Table
from colonnade.errors import MalformedMessage
from colonnade.messages import Embeddings, Reply, Upload
from colonnade.run.federate import Tables, run_tables
from colonnade.run.registry import CONVERSATIONS

EXACT: dict[str, Any] = {"precision": "float64", "decay": "none", "forward_bits": 32, "backward_bits": 32}


@pytest.fixture(autouse=True)
def without_pooled_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the pooled comparison, which these tests do not look at."""
    unpooled = replace(EXCHANGE, pooled=lambda plan, columns: Pooled(0.0, {}))
    monkeypatch.setitem(CONVERSATIONS, "exchange", unpooled)


def weighted(setting: Tables) -> tuple[Tables, np.ndarray[Any, Any]]:
    """The same tables, whose rows have weights of mean 1."""
    weight = np.random.default_rng(7).uniform(0.2, 3.0, setting.train["party0"].rows)
    weight /= weight.mean()
    train = {name: replace(t, weight=weight) if t.y is not None else t for name, t in setting.train.items()}
    return replace(setting, train=train), weight


def test_one_step_on_exact_outputs_is_split_learning() -> None:
    setting = split.networks()
    train = {"epochs": 4, "batch": 16, "step": 0.3, "l2": 1e-3}
    c_vfl = run(setting, "c-vfl", train=train, cascade={**EXACT, "server_step": 0.2, "local_steps": 1})
    learnt = run(setting, "split", train=train, cascade={**EXACT, "server_step": 0.2})
    for party, share in learnt.shares.items():
        for name, w in share.weights.items():
            np.testing.assert_allclose(c_vfl.shares[party].weights[name], w, atol=1e-12)


@pytest.mark.parametrize("heavy", [False, True], ids=["plain", "weighted rows"])
def test_several_local_steps_are_the_papers_algorithm(heavy: bool) -> None:
    setting, weight = weighted(split.networks()) if heavy else (split.networks(), None)
    done = run(
        setting, "c-vfl", train={"epochs": 3, "batch": 16, "step": 0.2, "l2": 0.0},
        cascade={**EXACT, "server_step": 0.1},
    )  # fmt: skip
    bottoms, head = split.whole(setting)
    _, y = pooled(setting)
    blocks = [setting.train[party].X for party in sorted(setting.train)]
    split.local_steps(
        bottoms, head, blocks, y, batches(160, 16, 3, 0), steps=(0.2, 0.1), local=5, weight=weight
    )
    for party, module in zip(sorted(setting.train), bottoms, strict=True):
        np.testing.assert_allclose(done.shares[party].weights["w"], split.flat(module), atol=1e-10)
    np.testing.assert_allclose(done.shares["party0"].weights["w0"], split.flat(head), atol=1e-10)


@pytest.mark.parametrize("kind", ["linear", "sum"])
def test_every_client_is_told_the_others_outputs_as_they_came_the_labels_and_the_head(kind: str) -> None:
    setting = random_tables(parties=2, active=1, rows=64)
    hub = Table("hub", (), np.zeros((64, 0)), setting.train["party0"].y)
    clients = {party: replace(table, y=None) for party, table in setting.train.items()}
    setting = Tables("apart", {"hub": hub, **clients}, None, ("hub",))
    heard = Transcript("party0")
    model = {"outputs": 3 if kind == "linear" else 1, "server": {"kind": kind}}
    job = random_job(setting, "c-vfl", train={"epochs": 1, "batch": 16}, model=model)
    done = run_tables(job, setting, tap=heard.tap)
    labels = np.concatenate([m.outputs for _, m in heard.heard if isinstance(m, Embeddings)])
    np.testing.assert_array_equal(labels[:, 0], hub.y)
    replies = [m.values for _, m in heard.heard if isinstance(m, Reply) and m.values.size]
    uploads = [m.outputs for _, m in heard.said if isinstance(m, Upload)]
    head = 8 + (2 * 3 + 1) if kind == "linear" else 0  # a range and a byte for every parameter
    assert {reply.size for reply in replies} == {uploads[0].size + head}
    assert done.result.privacy.leaks == ["scores", "labels", "outputs", "embeddings"]
    assert any("label of every training row" in note for note in done.result.privacy.notes)


def test_a_bundle_of_another_size_is_refused() -> None:
    rng = np.random.default_rng(0)
    few, plain = Quantizer(4, rng), Plain("float32")
    x, w = rng.standard_normal((1, 5, 3)), rng.standard_normal(7).astype(np.float32)
    message = joined([few.encode(None, x)[0], plain.encode(None, w)[0]])
    parts: list[Part] = [(few, x.shape), (plain, w.shape)]
    found = parted(message, parts)
    np.testing.assert_allclose(found[0], x, atol=(x.max() - x.min()) / 15 + 1e-6)
    np.testing.assert_array_equal(found[1], w)
    with pytest.raises(MalformedMessage, match="several arrays"):
        parted(message[:-1], parts)
