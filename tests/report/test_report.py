"""Figures and pages are whole files that others can read."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from colonnade.errors import DataError
from colonnade.job import job_from
from colonnade.report.figures import drawn, loss_figure, save
from colonnade.report.page import page, write_report
from colonnade.report.summary import cost_rows, headline, metric_rows
from colonnade.result import Result
from colonnade.run.federate import federate


@pytest.fixture(scope="module")
def result() -> Result:
    plain = {
        "algorithm": "vfb2-sgd",
        "world": "simulated",
        "data": {"train": "breast-cancer", "parties": 3, "active": 2},
        "train": {"epochs": 3, "batch": 64},
    }
    return federate(job_from(plain)).result


def test_figure_files(result: Result, tmp_path: Path) -> None:
    figure = loss_figure(result)
    png, svg = save(figure, tmp_path / "loss.png"), save(figure, tmp_path / "loss.svg")
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert png.stat().st_size > 10_000
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")  # noqa: S314  written above
    text = svg.read_text()
    for label in ("simulated time [ms]", "rounds", "sent by all parties [kB]", "loss above the optimum"):
        assert label in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loss.png", "loss.svg"]


def test_the_same_result_gives_the_same_svg(result: Result) -> None:
    assert drawn(loss_figure(result), "svg") == drawn(loss_figure(result), "svg")


def test_the_scale_is_logarithmic_only_where_it_can_be(result: Result) -> None:
    axes = loss_figure(result).axes
    assert [axis.get_yscale() for axis in axes] == ["log"] * 3
    # a model below the pooled loss (it happens where the penalty is not convex) has no logarithm
    lower = {**result.pooled, "train_loss": max(moment.loss for moment in result.history)}
    axes = loss_figure(msgspec.structs.replace(result, pooled=lower)).axes
    assert [axis.get_yscale() for axis in axes] == ["linear"] * 3
    assert axes[0].get_ylabel() == "training loss"


def test_several_runs_are_several_lines(result: Result) -> None:
    figure = loss_figure({"one": result, "two": result}, "both")
    assert [len(axis.lines) for axis in figure.axes] == [2, 2, 2]
    assert figure.get_suptitle() == "both"


def test_the_page_needs_nothing_else(result: Result, tmp_path: Path) -> None:
    risky = msgspec.structs.replace(result, dataset="<script>alert(1)</script>")
    text = write_report(risky, tmp_path / "run.html").read_text()
    assert "<script" not in text
    assert "src=" not in text
    assert "<svg" in text
    for note in result.privacy.notes:
        assert note in text

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag not in {"script", "link", "img", "iframe"}

    Links().feed(page(risky))


def test_several_runs_are_side_by_side_on_one_page(result: Result, tmp_path: Path) -> None:
    noisy = msgspec.structs.replace(
        result, algorithm="other", privacy=msgspec.structs.replace(result.privacy, epsilon=1.5, delta=1e-5)
    )
    text = write_report({"<one>": result, "two": noisy}, tmp_path / "both.html").read_text()
    assert text.count("<svg") == 9  # three against time, rounds and bytes: both together, then each
    assert '<th scope="row">&lt;one&gt;</th><td>vfb2-sgd</td><td>breast-cancer</td>' in text
    assert '<th scope="row">two</th><td>other</td>' in text
    assert "<td>1.5</td>" in text


def test_the_ending_decides_and_an_unknown_one_is_refused(result: Result, tmp_path: Path) -> None:
    assert write_report(result, tmp_path / "a.PNG").stat().st_size > 10_000
    with pytest.raises(DataError, match=r"use \.html, \.png or \.svg"):
        write_report(result, tmp_path / "a.docx")


def test_words(result: Result) -> None:
    assert headline(result) == "vfb2-sgd on breast-cancer: 3 parties, 2 hold the label, simulated world"
    assert [name for name, _, _ in metric_rows(result)][:2] == ["training loss", "above the optimum"]
    assert [name for name, _ in cost_rows(result)][:3] == ["training", "simulated time", "real time"]
