"""The bench's own arithmetic, its line, and that its private part finds what it is there to show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from colonnade.data.table import Table
from colonnade.run.federate import Tables
from colonnade_bench.asyrevel.asyrevel import TABLE_3, panels_of
from colonnade_bench.asyrevel.line import line_times
from colonnade_bench.asyrevel.literal import Networks
from colonnade_bench.asyrevel.lossless import TABLE_4
from colonnade_bench.asyrevel.pace import time_to
from colonnade_bench.asyrevel.privacy import CLIENT, privacy
from colonnade_bench.asyrevel.setting import job_for
from colonnade_bench.common import Bench, Grid


def test_the_time_to_a_loss_lies_between_two_measurements() -> None:
    points = [(0.0, 1.0), (2.0, 0.6), (4.0, 0.5), (5.0, 0.7), (6.0, 0.2)]
    assert time_to(points, 0.8) == pytest.approx(1.0)
    assert time_to(points, 0.55) == pytest.approx(3.0)
    assert time_to(points, 0.1) is None


def test_images_have_the_networks_of_section_5_1() -> None:
    """784 -> 128 -> 1 in the parties, whatever a network has by default, and q -> 10 in the server."""
    X, y = np.zeros((4, 3)), np.arange(4.0)
    tables = {f"party-{m}": Table("m", ("a", "b", "c"), X, y if m == 0 else None) for m in range(2)}
    model = job_for(Tables("mnist", tables, None, ("party-0",)), "asyrevel-gau").model
    assert (model.kind, model.hidden, model.outputs) == ("mlp", (128,), 1)
    assert model.server is not None
    assert model.server.kind == "linear"


def test_an_exchange_over_tls_takes_time_and_a_long_answer_more() -> None:
    values, _, whole = line_times(200_000, 10)
    assert 0 < values < whole


def test_the_private_part_of_the_bench_shows_leak_and_protection() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 9))
    y = np.where(X @ rng.standard_normal(9) > 0, 1.0, -1.0)
    parts = {f"party-{m}": np.ascontiguousarray(X[:, 3 * m : 3 * m + 3]) for m in range(3)}

    def of_rows(rows: slice) -> dict[str, Table]:
        return {
            name: Table(name, ("a", "b", "c"), part[rows], y[rows] if name == "party-0" else None)
            for name, part in parts.items()
        }

    bench = Bench("asyrevel", "test", quick=True)
    said: list[str] = []
    tables = Tables("made", of_rows(slice(160)), of_rows(slice(160, 200)), ("party-0",))
    assert CLIENT in tables.train
    privacy(bench, said.append, tables=tables, quick=True)
    accuracy, attacks = bench.grids
    assert [row[0] for row in accuracy.rows] == [None, 8.0, 1.0]
    assert accuracy.rows[2][1] <= 1.0 + 1e-3  # epsilon spent
    found = {(row[0], row[1]): row[2] for row in attacks.rows}
    assert found["probing, batch 2048", None] == 1.0
    assert found["passive, batch 1, 160 rows", None] == 1.0
    assert said


def test_tables_become_figures_with_every_number_in_them() -> None:
    times = Grid(TABLE_3, (), [["D1", 12, 1.1, 1.0, 0.9, 70.0], ["D7", 98, 1.7, 1.2, 1.0, 71.0]])
    rows: list[list[Any]] = [
        ["b", "gau", 91.0, 80.0, 79.0, None, None, 1],
        ["b", "white box", None, None, 95.0, None, None, 1],
        ["a", "gau", 85.0, 70.0, 71.0, 0.1, 0.2, 10],
        ["a", "uni", 85.0, 72.0, 72.5, 0.1, 0.2, 10],
    ]
    exchange, lossless = panels_of([times, Grid("another", (), []), Grid(TABLE_4, (), rows)])
    assert exchange.lines["paper"] == [(12.0, 1.1), (98.0, 1.7)]
    assert exchange.lines["one derivative"] == [(12.0, 0.9), (98.0, 1.0)]
    assert lossless.lines["gau"] == [(70.0, 71.0), (80.0, 79.0)]
    assert lossless.lines["uni"] == [(72.0, 72.5)]
    assert lossless.lines["the same"] == [(70.0, 70.0), (80.0, 80.0)]
    assert "white box" not in lossless.lines


def test_the_papers_own_rule_estimates_the_gradient_of_its_networks() -> None:
    """Many steps from the same place move the parameters on average as the derivative says."""
    torch = pytest.importorskip("torch")
    x = torch.randn((8, 3, 5), generator=torch.Generator().manual_seed(1))
    y = torch.tensor([1, 7, 7])
    start, networks = Networks(5, 0, "cpu"), Networks(5, 0, "cpu")
    w = start.w.clone().requires_grad_()
    networks.w = w
    z = networks.scores(start.w0, networks.outputs(x)[0].T)
    (derivative,) = torch.autograd.grad(torch.nn.functional.cross_entropy(z, y), w)
    moved = torch.zeros_like(start.w)
    with torch.no_grad():
        for _ in range(500):
            networks.w, networks.w0 = start.w.clone(), start.w0.clone()
            networks.step(x, y)
            moved -= (networks.w - start.w) / 0.002 / 500
    # the part of the mean that lies along the derivative; the rest is noise
    assert float((moved * derivative).sum() / (derivative**2).sum()) == pytest.approx(1, abs=0.2)
