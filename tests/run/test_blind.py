"""Which jobs can be blind, and who helps whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import random_tables, run

from colonnade.errors import JobError
from colonnade.job import Data, Job, Secure, job_from
from colonnade.job.plan import Facts
from colonnade.run.blind import blind_of, dealers_of, labels_of
from colonnade.run.federate import federate
from colonnade.run.notes import notes
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import compose


def job(**secure: Any) -> Job:
    return Job(
        algorithm="vfb-sgd", data=Data(train="x.csv", parties=3), secure=Secure(labels="blind", **secure)
    )


def facts(**columns: int) -> Facts:
    return Facts(columns=columns, label_holders=("bank",), rows=100, task="binary")


@pytest.mark.parametrize("owners", [["b"], ["b", "c"], ["b", "c", "d", "e"]])
@pytest.mark.parametrize("helper", [None, "b", "notary"])
def test_nobody_helps_itself(owners: list[str], helper: str | None) -> None:
    dealers = dealers_of(owners, [*owners, "notary"], helper)
    assert list(dealers) == owners
    assert all(owner != dealer for owner, dealer in dealers.items())


def test_the_label_holder_helps_nobody() -> None:
    found = blind_of(job(), CONVERSATIONS["backward"], facts(bank=3, shop=2, telco=4))
    assert found is not None
    assert found.dealers == {"shop": "telco", "telco": "shop"}
    with pytest.raises(JobError, match="holds the label"):
        blind_of(job(helper="bank"), CONVERSATIONS["backward"], facts(bank=3, shop=2, telco=4))


def test_a_neutral_party_may_help_one_owner() -> None:
    found = blind_of(job(helper="notary"), CONVERSATIONS["backward"], facts(bank=3, shop=2, notary=0))
    assert found is not None
    assert found.dealers == {"shop": "notary"}


def test_two_parties_are_told_the_ways_out() -> None:
    with pytest.raises(JobError, match=r"secure.helper, or set secure.labels = 'clear'"):
        blind_of(job(), CONVERSATIONS["backward"], facts(bank=3, shop=2))


def test_labels_are_blind_where_a_job_does_not_say(usual_labels: None) -> None:
    three = job_from({"algorithm": "vfb2-saga", "data": {"train": "x.csv", "parties": 3}})
    assert compose(three).job.secure.labels == "blind"
    alone = job_from({"algorithm": "vfb2-saga", "data": {"train": "x.csv", "parties": 1}})
    assert compose(alone).job.secure.labels == "clear"
    other = job_from({"algorithm": "lbfgs", "data": {"train": "x.csv", "parties": 2}})
    assert compose(other).job.secure.labels == "clear"
    pulls = job_from({"algorithm": "asysqn-svrg", "data": {"train": "x.csv", "parties": 3}})
    assert compose(pulls).job.secure.labels is None


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"data": {"train": "x.csv", "parties": 2}}, "two parties have no third one"),
        ({"train": {"l1": 0.1}}, "in a blind run nobody knows one"),
        ({"train": {"direction": "lbfgs"}}, "quasi-Newton"),
        ({"secure": {"sum": "tree"}}, "use sum = 'masked'"),
    ],
)
def test_where_that_does_not_work_a_job_must_say_clear(
    sections: dict[str, Any], words: str, usual_labels: None
) -> None:
    plain = {"algorithm": "vfb2-saga", "data": {"train": "x.csv", "parties": 3}, **sections}
    with pytest.raises(JobError, match=words):
        compose(job_from(plain))
    secure = {**plain.get("secure", {}), "labels": "clear"}
    assert compose(job_from({**plain, "secure": secure})).job.secure.labels == "clear"


def test_a_helper_must_be_there() -> None:
    with pytest.raises(JobError, match="no party 'telko'; did you mean 'telco'"):
        blind_of(job(helper="telko"), CONVERSATIONS["backward"], facts(bank=3, shop=2, telco=4))


@pytest.mark.parametrize(
    ("conversation", "said", "mechanism", "parties", "labels"),
    [
        ("boost", None, "none", 3, "blind"),
        ("boost", None, "none", 2, "blind"),
        ("boost", None, "none", 1, "clear"),
        ("boost", None, "labels", 3, "clear"),
        ("boost", "clear", "none", 3, "clear"),
        ("boost", "blind", "labels", 3, "blind"),
        ("backward", None, "none", 3, "clear"),
    ],
)
def test_trees_are_blind_unless_the_job_says_no(
    conversation: str, said: str | None, mechanism: str, parties: int, labels: str
) -> None:
    secure = {} if said is None else {"labels": said}
    privacy = {} if mechanism == "none" else {"mechanism": mechanism, "epsilon": 1.0}
    terms = job_from(
        {"algorithm": "x", "data": {"train": "x", "parties": parties}, "secure": secure, "privacy": privacy}
    )
    assert labels_of(terms, CONVERSATIONS[conversation], parties) == labels


@pytest.mark.parametrize("world", ["local", "network"])
def test_a_neutral_party_without_columns_deals_for_two_companies(tmp_path: Path, world: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = (X.sum(axis=1) > 0).astype(int)
    rows = [",".join([*(f"{value:.3f}" for value in x), str(label)]) for x, label in zip(X, y, strict=True)]
    (tmp_path / "all.csv").write_text("\n".join(["a,b,c,d,y", *rows]))
    columns = {"bank": ["a", "b"], "shop": ["c", "d"], "notary": []}
    plain: dict[str, Any] = {
        "algorithm": "vfb-svrg",
        "world": world,
        "data": {"train": str(tmp_path / "all.csv"), "label": "y", "columns": columns},
        "train": {"epochs": 6},
        "secure": {"labels": "blind", "helper": "notary"},
    }
    done = federate(job_from(plain))
    assert done.plan.blind is not None
    assert done.plan.blind.dealers == {"shop": "notary"}
    assert done.result.metrics["test_accuracy"] > 0.9


@pytest.mark.parametrize("algorithm", ["vfb2-sgd", "lbfgs"])
def test_notes_of_randomised_labels_do_not_say_that_true_ones_are_given_away(algorithm: str) -> None:
    tables = random_tables(parties=3, active=1, rows=60)
    privacy = {"mechanism": "labels", "epsilon": 1.0}
    done = run(tables, algorithm, train={"epochs": 2}, privacy=privacy, compare=False)
    assert any("of randomised labels, not of true ones" in note for note in notes(done.plan))
    clear = run(tables, algorithm, train={"epochs": 2}, secure={"labels": "clear"}, compare=False)
    assert not any("randomised" in note for note in notes(clear.plan))
