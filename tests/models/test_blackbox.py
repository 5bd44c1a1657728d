"""Models behind one forward call: batched equals one by one, and what has a gradient has the right one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from colonnade.arrays import Numbers
from colonnade.errors import DataError, JobError, ModelError
from colonnade.job import ModelSpec, ServerSpec
from colonnade.models.blackbox import Differentiable, Function, Linear, Model, Replacing, Sum
from colonnade.models.build import load, party_model, server_model
from colonnade.models.network import mlp
from colonnade.models.program import Program

EXAMPLE = Path(__file__).parents[2] / "examples" / "black_box"

# the protocol in ten lines: f(w, x) = w0 + w1 * sum(x), twice
PYTHON_MODEL = """
import sys
line = sys.stdin.readline
columns = int(line().split()[1])
print(2, 2, flush=True)
while (head := line().split()):
    vectors = [list(map(float, line().split())) for _ in range(int(head[1]))]
    rows = [list(map(float, line().split())) for _ in range(int(head[2]))]
    for w in vectors:
        for x in rows:
            print(w[0] + w[1] * sum(x), w[0])
    sys.stdout.flush()
"""


def program(text: str, columns: int = 3, patience: float = 30.0) -> Program:
    return Program([sys.executable, "-c", text], columns, patience=patience)


def models() -> dict[str, Model]:
    return {
        "linear": Linear(6),
        "linear-3-bias": Linear(6, 3, bias=True),
        "sum": Sum(6, 2),
        "function": Function(lambda w, X: np.tanh(X @ w), 6),
        "mlp": mlp(6, [5], 2),
    }


@pytest.mark.parametrize("name", models())
def test_many_parameter_vectors_in_one_call_are_the_calls_one_by_one(name: str) -> None:
    model, rng = models()[name], np.random.default_rng(0)
    W = rng.standard_normal((4, model.parameters)).astype(np.float32)
    X = rng.standard_normal((7, 6))
    together = model.forward(W, X)
    assert together.shape[:2] == (4, 7)
    for w, outputs in zip(W, together, strict=True):
        np.testing.assert_allclose(model.forward(w[None], X)[0], outputs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["linear", "linear-3-bias", "sum", "mlp"])
def test_gradients_are_those_of_the_forward_call(name: str) -> None:
    model, rng = models()[name], np.random.default_rng(1)
    assert isinstance(model, Differentiable)
    w = rng.standard_normal(model.parameters).astype(np.float32 if name == "mlp" else np.float64)
    X = rng.standard_normal((5, 6))
    d_out = rng.standard_normal(model.forward(w[None], X)[0].shape)
    small = 1e-2 if name == "mlp" else 1e-6

    def value(v: Numbers, rows: Numbers) -> float:
        return float((model.forward(v[None], rows)[0] * d_out).sum())

    checks: tuple[tuple[Numbers, Callable[[Numbers], float], Numbers], ...] = (
        (model.gradient(w, X, d_out), lambda v: value(v, X), w),
        (model.input_gradient(w, X, d_out), lambda rows: value(w, rows), X),
    )
    for gradient, at, point in checks:
        for direction in rng.standard_normal((3, *point.shape)):
            step = (small * direction).astype(point.dtype)
            slope = (at(point + step) - at(point - step)) / (2 * small)
            assert slope == pytest.approx(float((gradient * direction).sum()), rel=0.05, abs=0.05)


@pytest.mark.parametrize("model", [Linear(6, 3, bias=True, start=1.0), Sum(6, 2)], ids=["linear", "sum"])
def test_replacing_one_slice_is_starting_again(model: Linear | Sum) -> None:
    assert issubclass(type(model), Replacing)
    rng = np.random.default_rng(2)
    w, C, own = model.initial(rng), rng.standard_normal((5, 6)), slice(2, 4)
    outputs = rng.standard_normal((3, 5, 2))
    for one, found in zip(outputs, model.forward_replaced(w, C, own, outputs), strict=True):
        whole = C.copy()
        whole[:, own] = one
        np.testing.assert_allclose(found, model.forward(w[None], whole)[0], atol=1e-12)


def test_a_linear_model_takes_sparse_rows() -> None:
    rng = np.random.default_rng(3)
    X = np.where(rng.random((9, 6)) < 0.3, 1.0, 0.0)
    model, W = Linear(6, 2, bias=True), rng.standard_normal((3, 14))
    np.testing.assert_allclose(model.forward(W, csr_array(X)), model.forward(W, X))
    d_out = rng.standard_normal((9, 2))
    np.testing.assert_allclose(model.gradient(W[0], csr_array(X), d_out), model.gradient(W[0], X, d_out))


def test_a_function_that_answers_nonsense_is_refused_by_name() -> None:
    w, X = np.zeros((1, 2)), np.ones((4, 3))
    with pytest.raises(DataError, match=r"model mine: gave an array of shape \(3, 1\) for 4 rows"):
        Function(lambda w, X: X.sum(axis=0), 2, "mine").forward(w, X)
    with pytest.raises(DataError, match="NaN or infinite"):
        Function(lambda w, X: X[:, 0] * np.nan, 2, "mine").forward(w, X)


def test_a_program_is_a_model() -> None:
    model = program(PYTHON_MODEL)
    assert (model.parameters, model.outputs) == (2, 2)
    W, X = np.array([[1.0, 0.5], [-0.1, 1 / 3]]), np.random.default_rng(4).standard_normal((600, 3))
    for _ in range(2):  # it stays for the next call
        found = model.forward(W, X)
        expected = W[:, :1] + W[:, 1:] * X.sum(axis=1)
        np.testing.assert_allclose(found[:, :, 0], expected, rtol=1e-15, atol=1e-15)
        np.testing.assert_array_equal(found[:, :, 1], np.broadcast_to(W[:, :1], (2, 600)))
    model.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys; sys.exit(4)", "ended with status 4"),
        ("print('hello', flush=True); input()", "where PARAMETERS OUTPUTS was due"),
        ("import time; time.sleep(60)", "wrote nothing for 0.3 s"),
        (PYTHON_MODEL.replace("w[0])", "'x')"), "not numbers"),
        (PYTHON_MODEL.replace(", w[0])", ")"), "must write 2 finite numbers a line"),
        (PYTHON_MODEL.replace("w[0] +", "float('nan') +"), "must write 2 finite numbers a line"),
    ],
)
def test_a_program_that_does_not_keep_to_the_protocol_is_named(text: str, said: str) -> None:
    slow = "sleep" in text
    with pytest.raises(ModelError, match=said):
        program(text, patience=0.3 if slow else 30.0).forward(np.zeros((1, 2)), np.ones((2, 3)))


def test_a_program_that_is_not_there_is_an_error_of_the_job() -> None:
    with pytest.raises(DataError, match="cannot start '/no/such/program'"):
        Program(["/no/such/program"], 3)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_example_in_c_computes_what_it_says(tmp_path: Path) -> None:
    binary = tmp_path / "scorecard"
    compiler = shutil.which("cc") or ""
    subprocess.run([compiler, "-O2", "-o", binary, EXAMPLE / "scorecard.c", "-lm"], check=True)
    model = Program([str(binary)], 4)
    rng = np.random.default_rng(5)
    W, X = rng.standard_normal((3, 5)), rng.standard_normal((50, 4))
    expected = 8 * np.tanh((X @ W[:, :4].T + W[:, 4]) / 8).T
    np.testing.assert_allclose(model.forward(W, X)[:, :, 0], expected, rtol=1e-14, atol=1e-14)
    model.close()


def test_models_by_name() -> None:
    assert party_model(ModelSpec(outputs=2), 5).parameters == 10
    assert party_model(ModelSpec(kind="mlp", hidden=(4,)), 5).parameters == 5 * 4 + 4 + 4 + 1
    assert server_model(ServerSpec(kind="linear"), [5, 3], 10).parameters == 90
    assert server_model(ServerSpec(), [10, 10], 10).parameters == 0
    # as many numbers in all as there are scores is not enough: whose number is whose score?
    for widths in ([1] * 10, [10, 20], [4, 4]):
        with pytest.raises(JobError, match="cannot be added up to 10 scores; set"):
            server_model(ServerSpec(), widths, 10)
    path = f"{EXAMPLE / 'function.py'}:steps"
    function = party_model(ModelSpec(kind="function", path=path, parameters=4), 3)
    rows = np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 0.0]])
    assert function.forward(np.array([[1.0, 1.0, 1.0, 10.0]]), rows).ravel().tolist() == [16.0, -11.0]
    for wrong in ("no.such.module:f", "numpy:nothing_here", str(EXAMPLE / "missing.py") + ":f", "nameless"):
        with pytest.raises(JobError, match="cannot load"):
            load(wrong)


def test_the_page_s_example_in_python_trains() -> None:
    page = Path(__file__).parents[2] / "docs" / "black-box-models.md"
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", page.read_text("utf-8"), re.MULTILINE)
    (block,) = [block for block in blocks if "run_tables(job, tables)" in block]
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.where(X @ np.array([1.0, -1.0, 0.5]) > 0, 1.0, -1.0)
    space: dict[str, Any] = {"X": X, "y": y, "scores": lambda w, X: X @ w}
    exec(textwrap.dedent(block), space)  # noqa: S102  our own documentation
    assert space["done"].result.metrics["objective"] < 0.4
