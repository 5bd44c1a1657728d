"""Figures and pages are whole files that others can read."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from colonnade.errors import DataError
from colonnade.job import job_from
from colonnade.report.figures import loss_figure, save
from colonnade.report.page import page, write_report
from colonnade.report.summary import cost_rows, headline, metric_rows
from colonnade.report.words import KINDS
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


SVG = "{http://www.w3.org/2000/svg}"


def parts(figure: str, name: str, class_: str = "") -> list[ElementTree.Element]:
    """The elements of a figure of this name whose class begins so."""
    found = ElementTree.fromstring(figure).iter(SVG + name)  # noqa: S314  made here
    return [each for each in found if each.get("class", "").startswith(class_)]


def heights(figure: str) -> list[list[float]]:
    """The heights of the points of every line, in pixels from above."""
    lines = parts(figure, "polyline", "line")
    return [[float(point.split(",")[1]) for point in str(each.get("points")).split()] for each in lines]


def test_a_figure_is_a_whole_file_with_labelled_axes(result: Result, tmp_path: Path) -> None:
    svg = save(loss_figure(result), tmp_path / "loss.svg")
    words = {each.text for each in parts(svg.read_text(encoding="utf-8"), "text")}
    labels = {
        "simulated time [ms]",
        "rounds",
        "sent by all parties [kB]",
        "objective above the pooled optimum",
    }
    assert {*labels, headline(result)} <= words
    assert [path.name for path in tmp_path.iterdir()] == ["loss.svg"]
    assert "var(" not in svg.read_text(encoding="utf-8")  # colours that any viewer knows


def test_another_format_is_refused_with_the_name_to_give(result: Result, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"loss\.png: figures are written as SVG; name it loss\.svg"):
        save(loss_figure(result), tmp_path / "loss.png")
    with pytest.raises(DataError, match=r"loss\.png: cannot write \.png; use \.html or \.svg"):
        write_report(result, tmp_path / "loss.png")
    assert not any(tmp_path.iterdir())


def test_the_same_result_gives_the_same_svg(result: Result) -> None:
    assert loss_figure(result) == loss_figure(result)


def test_the_scale_is_logarithmic_only_where_it_can_be(result: Result) -> None:
    def fits(y: list[float], values: list[float]) -> bool:
        """Whether the heights are a straight line of the values."""
        slope, at_zero = np.polyfit(values, y, 1)
        return bool(np.allclose(slope * np.array(values) + at_zero, y, atol=0.2))

    losses = [moment.loss for moment in result.history]
    logarithms = [float(np.log10(loss - result.pooled["objective"])) for loss in losses]
    drawn = heights(loss_figure(result))
    assert len(drawn) == 3
    assert all(fits(each, logarithms) and not fits(each, losses) for each in drawn)
    # a model below the pooled loss (it happens where the penalty is not convex) has no logarithm
    lower = {**result.pooled, "objective": max(losses)}
    figure = loss_figure(msgspec.structs.replace(result, pooled=lower))
    assert all(fits(each, losses) for each in heights(figure))
    words = {each.text for each in parts(figure, "text")}
    assert {"objective: training loss with penalty", "pooled optimum"} <= words
    assert len(parts(figure, "line", "rule")) == 4  # one in every chart, and in the legend


def test_several_runs_are_several_lines(result: Result) -> None:
    figure = loss_figure({"one": result, "two": result}, "both")
    assert len(heights(figure)) == 6
    assert {"one", "two", "both"} <= {each.text for each in parts(figure, "text")}


def test_a_run_whose_loss_nobody_here_knows_has_no_figure(result: Result) -> None:
    with pytest.raises(DataError, match="no loss to draw"):
        loss_figure(msgspec.structs.replace(result, history=[]))


def test_every_kind_of_message_is_explained(result: Result) -> None:
    assert all(len(words) > 20 and "`" not in words for words in KINDS.values())
    text = page(result)
    assert result.cost.bytes_by_kind
    assert all(f"<dt>{kind} (message)</dt>" in text for kind in result.cost.bytes_by_kind)


def test_a_loss_that_was_measured_once_has_no_curves_on_the_page(result: Result) -> None:
    once = msgspec.structs.replace(result, history=result.history[-1:])
    said = "The loss was measured once, at the end"
    assert said in page(once)
    assert said not in page(result)
    together = page({"only": once})
    assert "<h1>1 run</h1>" in together
    assert said in together


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
    assert write_report(result, tmp_path / "a.SVG").stat().st_size > 3_000
    with pytest.raises(DataError, match=r"use \.html or \.svg"):
        write_report(result, tmp_path / "a.docx")


def test_words(result: Result) -> None:
    assert headline(result) == "vfb2-sgd on breast-cancer: 3 parties, 2 hold the label, simulated world"
    assert [name for name, _, _ in metric_rows(result)][:3] == [
        "training loss",
        "objective (with penalty)",
        "objective above the pooled optimum",
    ]
    assert [name for name, _ in cost_rows(result)][:3] == ["training", "simulated time", "real time"]
