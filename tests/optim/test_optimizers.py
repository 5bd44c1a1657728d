"""Optimisers: those of torch, number for number, on parameters that stay the caller's."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from colonnade.errors import JobError
from colonnade.optim.optimizers import Descent, optimizer_of

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"betas": [0.8, 0.99], "amsgrad": True}),
    "adamw": ("AdamW", {"weight_decay": 0.1}),
    "rmsprop": ("RMSprop", {"momentum": 0.5, "centered": True}),
    "adagrad": ("Adagrad", {}),
}


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_torchs_own(kind: str, precision: Any) -> None:
    """A least-squares problem with a step that falls."""
    name, options = KINDS[kind]
    rng = np.random.default_rng(0)
    A, b, w = rng.standard_normal((20, 5)), rng.standard_normal(20), rng.standard_normal(5).astype(precision)
    parameter = torch.nn.Parameter(torch.from_numpy(w.copy()))
    theirs = getattr(torch.optim, name)([parameter], lr=1.0, **options)
    ours = optimizer_of(name.lower(), options)
    state = ours.init(w)
    for number in range(30):
        rate = 0.02 / (1 + number)
        before = w.copy()
        moved = ours.step(state, w, A.T @ (A @ w - b) / 20, rate)
        np.testing.assert_array_equal(w, before)  # questions under way still refer to it
        w = moved
        theirs.param_groups[0]["lr"] = rate
        at = parameter.detach().numpy()
        parameter.grad = torch.from_numpy((A.T @ (A @ at - b) / 20).astype(precision))
        theirs.step()
        np.testing.assert_allclose(
            w, parameter.detach().numpy(), rtol=1e-6 if precision is np.float32 else 1e-13
        )
    assert w.dtype == precision


def test_two_parties_have_two_states() -> None:
    adam = optimizer_of("adam", {})
    w = np.zeros(3)
    one, other = adam.init(w), adam.init(w)
    for _ in range(5):
        adam.step(one, w, np.ones(3), 0.1)
    np.testing.assert_allclose(adam.step(other, w, -np.ones(3), 0.1), 0.1)


def test_the_step_is_found_for_sgd_and_torchs_own_for_the_others() -> None:
    assert isinstance(optimizer_of("sgd", {}), Descent)
    assert Descent().rate is None
    assert optimizer_of("Adam", {}).rate == 1e-3
    assert optimizer_of("adagrad", {}).rate == 1e-2


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("adma", {}, r"torch has no 'adma'; choose from .*adam, "),
        ("lbfgs", {}, "torch has no 'lbfgs'"),
        ("adam", {"beta": 0.9}, "adam says: .*unexpected keyword"),
        ("adam", {"betas": [2.0, 0.9]}, "adam says: Invalid beta"),
        ("adam", {"lr": 0.1}, "the step is train.step"),
    ],
)
def test_what_torch_does_not_have_is_an_error_of_the_job(name: str, options: Any, said: str) -> None:
    with pytest.raises(JobError, match=said):
        optimizer_of(name, options)


def test_without_torch_there_are_sgd_and_adam_and_a_word_about_the_rest() -> None:
    """In a process of its own, where torch cannot be imported."""
    program = """
import sys
sys.modules["torch"] = None
from colonnade.errors import JobError
from colonnade.optim.optimizers import optimizer_of
optimizer_of("sgd", {})
optimizer_of("adam", {})
try:
    optimizer_of("rmsprop", {})
except JobError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "optimisers other than plain sgd and adam, need torch, which is not installed" in done.stdout
