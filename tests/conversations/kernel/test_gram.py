"""PP-SVMV equals the same machine on pooled columns, and refuses a matrix that cannot be held."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from tests.oracles.tables import pooled, random_tables, run

from colonnade import VerticalClassifier
from colonnade.baselines.svc import trade_off
from colonnade.conversations.kernel.gram import check_memory
from colonnade.errors import JobError


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_summed_kernel_trains_the_machine_of_pooled_columns(sparse: bool) -> None:
    setting = random_tables(parties=4, active=2, rows=150, test_rows=60, sparse=sparse)
    done = run(setting, "pp-svmv", train={"loss": "smooth_hinge", "l2": 1e-4}, kernel={"sigma": 3.0})
    X, y = pooled(setting)
    expected = SVC(C=trade_off(150, 1e-4), kernel="precomputed").fit(rbf_kernel(X, gamma=1 / 18), y)
    share = done.shares["party0"].weights
    np.testing.assert_array_equal(share["support"], expected.support_)
    np.testing.assert_allclose(share["dual"], expected.dual_coef_, atol=0.05)
    assert set(done.shares["party1"].weights) == set()
    assert done.result.metrics["test_accuracy"] == pytest.approx(
        done.result.pooled["test_accuracy"], abs=0.02
    )


def test_every_party_sends_the_whole_matrix() -> None:
    done = run(random_tables(parties=3, active=1, rows=100), "pp-svmv", train={"loss": "smooth_hinge"})
    assert done.result.cost.bytes_by_kind["piece"] == pytest.approx(2 * 100 * 100 * 8, rel=0.01)


def test_others_see_signs_of_life_while_the_machine_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fit = SVC.fit

    def slow(machine: SVC, *given: Any, **options: Any) -> SVC:
        time.sleep(4.5)
        return fit(machine, *given, **options)

    monkeypatch.setattr(SVC, "fit", slow)
    setting = random_tables(parties=3, active=1, rows=60, test_rows=20)
    done = run(
        setting,
        "pp-svmv",
        world="local",
        compare=False,
        train={"loss": "smooth_hinge"},
        network={"deadline_s": 2.0},
    )
    assert done.result.metrics["test_accuracy"] > 0
    assert done.result.cost.bytes_by_kind["alive"] > 0  # a loop that is blocked says nothing


def test_a_matrix_that_does_not_fit_is_refused_with_what_would_fit() -> None:
    check_memory(40_000, available=64 * 2.0**30)
    with pytest.raises(JobError, match=r"60000 rows needs 67 GiB .* at most 58617 rows fit.* Use fdskl"):
        check_memory(60_000, available=64 * 2.0**30)


@pytest.mark.parametrize(
    ("kind", "label"), [({"regression": True}, "a number"), ({"classes": 3}, "one of 3 classes")]
)
def test_other_labels_than_two_classes_are_refused(kind: dict[str, Any], label: str) -> None:
    setting = random_tables(parties=3, active=1, rows=60, **kind)
    loss = "softmax" if "classes" in kind else "squared"
    with pytest.raises(JobError, match=f"two classes apart, and this label is {label}; use fdskl"):
        run(setting, "pp-svmv", train={"loss": loss})


def test_an_estimator_of_what_keeps_no_model_is_refused_before_it_is_trained() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.raises(
        JobError, match="pp-svmv is a comparator that keeps nothing to predict with; use fdskl"
    ):
        VerticalClassifier("pp-svmv").fit(X, X[:, 0] > 0)
