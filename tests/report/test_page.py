"""The page of a run: what is on it, for every kind of label, and that names cannot become markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import pytest
from tests.browser import browser

from colonnade.errors import DataError, ShareError
from colonnade.findings import Finding, read_findings
from colonnade.job import job_from
from colonnade.openings.leaks import LEAKS, Leak
from colonnade.report.facts import Part, ReportFacts, read_run
from colonnade.report.page import page, write_report
from colonnade.report.privacy import learnt
from colonnade.result import Described, Result
from colonnade.run.federate import federate
from colonnade.test_scores import TestScores
from colonnade.timeline import Timeline, read_timeline

EVIL = "<script>alert(1)</script>\"'&"


def recorded(algorithm: str = "vfb2-sgd", parties: int = 3) -> tuple[Result, Timeline]:
    plain = {
        "algorithm": algorithm,
        "world": "simulated",
        "data": {"train": "breast-cancer", "parties": parties, "active": 1},
        "train": {"epochs": 2, "batch": 64},
        "network": {"latency_ms": 1.0},
    }
    done = federate(job_from(plain), timeline=True)
    assert done.timeline is not None
    return done.result, done.timeline


@pytest.fixture(scope="module")
def run() -> tuple[Result, Timeline]:
    return recorded()


@pytest.fixture(scope="module")
def whole(run: tuple[Result, Timeline]) -> ReportFacts:
    """Everything that a report can show, with hostile names wherever somebody else chooses them."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(500) < 0.3, 1.0, -1.0)
    data = Described(
        rows={"train": 400, "test": 500, f"left out: {EVIL}": 3},
        columns={EVIL: 4},
        task="binary",
        classes=["no", EVIL],
        positive=[EVIL],
        base_rate=0.31,
        done={EVIL: [EVIL]},
        warnings=[EVIL],
    )
    cost = msgspec.structs.replace(
        run[0].cost, bytes_by_pair={EVIL: {"b": 10}, "b": {EVIL: 5}}, bytes_by_kind={EVIL: 15}
    )
    result = msgspec.structs.replace(
        run[0], dataset=EVIL, parties=[EVIL, "b"], active=["b"], data=data, cost=cost, converged=False
    )
    return ReportFacts(
        result,
        scores=TestScores(y, y + rng.normal(size=500), with_probabilities=True),
        parts=(Part(EVIL, "linear", (EVIL, "(intercept)"), np.array([1.5, -0.5]), 2),),
        timeline=Timeline(virtual=True, parties={EVIL: run[1].parties["party-0"]}),
        job=f'name = "{EVIL}"',
        findings=(Finding(attack=EVIL, by=EVIL, success=EVIL, guessing=EVIL, note=EVIL),),
        made="2026-01-02",
        command=EVIL,
        further=((EVIL, EVIL),),
        versions=EVIL,
    )


class Elements(HTMLParser):
    """The elements of a page; refuses what would load or run something, and what is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "link", "img", "iframe", "object"}
        for name, value in attrs:
            assert name not in {"src", "srcset"}
            assert not name.startswith("on")
            assert name != "href" or (value or "").startswith("#")
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_hostile_names_stay_text(whole: ReportFacts) -> None:
    for text in (page(whole), page({EVIL: whole, "b": whole})):
        assert "<script" not in text
        assert "@import" not in text
        assert "url(" not in text
        Elements(text)


def test_what_an_officer_signs_is_there(whole: ReportFacts) -> None:
    text = page(whole)
    for words in (
        "ROC curve", "Precision and recall", "Kolmogorov-Smirnov", "Gain", "Calibration", "Lift by tenths",
        "Confusion at two thresholds", "Loss against time", "Bytes sent", "Timeline",
        "Who can read what", "Signed knowing that", "above the pooled optimum", "Attacks that were tried",
        "The job", "Signatures", "base rate", "31.00%", "did not converge",
    ):  # fmt: skip
        assert words in text, words
    elements = Elements(text).seen
    assert elements.count("svg") == elements.count("figure") >= 10
    assert elements.count("caption") == elements.count("table")
    assert text.count('role="img"') == elements.count("svg")
    assert len(text) < 300_000


def test_several_classes_and_numbers(run: tuple[Result, Timeline]) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200).astype(float)
    named = msgspec.structs.replace(run[0], data=Described(task="multiclass", classes=["a", "b", "c"]))
    text = page(ReportFacts(named, scores=TestScores(y, rng.normal(size=(200, 3)))))
    assert "Every class against all others" in text
    assert "true class down" in text
    number = msgspec.structs.replace(run[0], data=Described(task="regression"))
    text = page(ReportFacts(number, scores=TestScores(y * 1.7, y + rng.normal(size=200))))
    for title in ("Predicted and actual", "Errors by prediction", "How large errors are"):
        assert title in text


@pytest.mark.parametrize(
    "scores",
    [
        TestScores(np.ones(5), np.arange(5.0), with_probabilities=True),  # one class alone
        TestScores(np.array([-1.0, 1.0]), np.zeros(2), with_probabilities=True),  # one score alone
        TestScores(np.array([-1.0, 1.0, 1.0]), np.array([0.0, 1e9, -1e9])),
        TestScores(np.zeros(0), np.zeros(0)),
        TestScores(np.full(4, 2.5), np.full(4, 2.5)),  # a number that never varies
    ],
)
def test_odd_scores_still_make_a_page(run: tuple[Result, Timeline], scores: TestScores) -> None:
    text = page(ReportFacts(run[0], scores=scores))
    Elements(text)
    assert 'd="nan' not in text
    assert "nan," not in text


def test_who_learns_what(run: tuple[Result, Timeline]) -> None:
    found = learnt(run[0])
    assert run[0].privacy.leaks == ["scores", "labels"]
    assert found["party-0"] == ["sees the others' joint score of every training row"]
    assert found["party-1"] == ["can work out the label of every training row"]
    text = page(run[0])
    assert "<b>party-1</b> can work out the label of every training row." in text
    assert text.index("Who can read what") < text.index("training loss")  # privacy first
    assert "Signed knowing that" in text
    two, _ = recorded("asysqn-sgd", parties=2)
    assert two.privacy.leaks == ["scores", "two-parties"]


def test_bars_of_weights_have_a_direction(run: tuple[Result, Timeline]) -> None:
    part = Part("a", "linear", ("up", "down"), np.array([1.0, -0.5]), 2)
    text = page(ReportFacts(run[0], parts=(part,)))
    assert '<span class="signed"><span style="left:50.0%;width:50.0%"></span></span>' in text
    assert '<span class="signed"><span class="down" style="left:25.0%;width:25.0%"></span></span>' in text


def test_a_folder_is_read_whole(run: tuple[Result, Timeline], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no result\.json"):
        read_run(tmp_path)
    run[0].write(tmp_path / "result.json")
    run[1].write(tmp_path / "timeline.json")
    (tmp_path / "audit.json").write_text('[{"attack": "labels", "by": "b", "success": "62%"}]')
    (tmp_path / "job.toml").write_text('[train]\nloss = "squared"\n')
    found = read_run(tmp_path)
    assert found.timeline == run[1]
    assert found.loss is not None
    assert found.loss.task == "regression"
    assert found.findings[0].success == "62%"
    assert "colonnade run" in found.command
    assert write_report(found, tmp_path / "report.html").is_file()
    for name, read in (("timeline.json", read_timeline), ("audit.json", read_findings)):
        (tmp_path / name).write_text("[1, 2")
        with pytest.raises(DataError, match=name):
            read(tmp_path / name)
    (tmp_path / "timeline.json").unlink()
    (tmp_path / "audit.json").unlink()
    (tmp_path / "models" / "a").mkdir(parents=True)
    with pytest.raises(ShareError, match="manifest"):
        read_run(tmp_path)


MEASURE = """<script>
const ink = getComputedStyle(document.body), svg = document.querySelectorAll("svg");
document.title = [document.documentElement.scrollWidth, ink.color, ink.backgroundColor, svg.length,
  [...svg].filter(s => s.getBoundingClientRect().height > 40).length].join("|");
</script>"""


@pytest.mark.parametrize("width", [500, 1200])
@pytest.mark.parametrize("dark", [False, True])
def test_in_a_browser(whole: ReportFacts, tmp_path: Path, width: int, dark: bool) -> None:
    path = write_report(whole, tmp_path / "report.html")
    path.write_text(path.read_text().replace("</body>", MEASURE + "</body>"))
    with browser() as chromium:
        dom = chromium.dom(path, dark=dark, size=(width, 900))
    title = dom.split("<title>")[1].split("</title>")[0]
    wide, ink, paper, figures, drawn = title.split("|")
    assert int(wide) <= width  # nothing pushes the page wider than its window
    assert contrast(ink, paper) > 7
    assert (luminance(paper) < luminance(ink)) is dark
    assert figures == drawn != "0"


def test_on_paper(whole: ReportFacts, tmp_path: Path) -> None:
    path = write_report(whole, tmp_path / "report.html")
    with browser() as chromium:
        printed = chromium.pdf(path, tmp_path / "report.pdf").read_bytes()
    pages = printed.count(b"/Type /Page\n") or printed.count(b"/Type /Page")
    assert printed.startswith(b"%PDF")
    assert 2 <= pages <= 12


def luminance(colour: str) -> float:
    """The relative luminance of a colour such as rgb(1, 2, 3)."""
    parts = np.array([float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_leak_says_who_learns_what() -> None:
    assert set(LEAKS) == set(get_args(Leak))
