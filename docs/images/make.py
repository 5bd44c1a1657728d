"""The pictures of docs/gallery.md, made by the commands that the page names: python docs/images/make.py

It takes a minute and needs headless Chromium (`apt-get install chromium-headless-shell`).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser import Chromium, browser  # noqa: E402

COLOURS = 96  # of a screenshot: a third of the bytes, and the eye sees no difference
COLONNADE = ("-m", "colonnade")
EXAMPLES = ROOT / "examples"


def python(*words: str | Path, cwd: Path) -> None:
    """Run one command."""
    subprocess.run([sys.executable, *map(str, words)], cwd=cwd, check=True)  # noqa: S603


def parts_of(report: Path, *kept: str) -> Path:
    """A report with some of its sections alone."""
    others = "".join(f":not(#{name})" for name in kept)
    hidden = f"article > section{others}, article > :not(section), footer"
    sheet = f"<style>{hidden} {{ display: none !important }}</style>"
    short = report.with_name(f"{'-'.join(kept)}.html")
    short.write_text(report.read_text("utf-8").replace("</head>", f"{sheet}</head>"), "utf-8")
    return short


def shrink(picture: Path, to: Path) -> None:
    """The picture with few colours, and without what is empty at its foot."""
    image = Image.open(picture).convert("RGB")
    paper = Image.new("RGB", image.size, image.getpixel((0, image.height - 1)))
    box = ImageChops.difference(image, paper).getbbox() or (0, 0, 0, image.height)
    foot = min(box[3] + 20, image.height)
    image.crop((0, 0, image.width, foot)).quantize(COLOURS).save(to, optimize=True)


def shoot(chromium: Chromium, page: Path, name: str, height: int, *, dark: bool = False) -> None:
    raw = page.with_name(f"{name}.png")
    chromium.screenshot(page, raw, dark=dark, size=(1100, height))
    shrink(raw, HERE / f"{name}.png")


def reports(folder: Path) -> None:
    """The tutorial's run and a simulated one with a straggler, and parts of their reports."""
    python(*COLONNADE, "example", cwd=folder)
    python(*COLONNADE, "new", "bank.csv", "shop.csv", "--label", "default", "--id", "customer", cwd=folder)
    python(*COLONNADE, "run", "job.toml", "--report", cwd=folder)
    job = EXAMPLES / "straggler.toml"
    python(*COLONNADE, "run", job, "--timeline", "--report", "--out", "runs/straggler", cwd=folder)
    with browser() as chromium:
        first, slow = folder / "runs/job/report.html", folder / "runs/straggler/report.html"
        shoot(chromium, first, "report", 950)
        shoot(chromium, parts_of(first, "quality"), "quality", 1080)
        shoot(chromium, parts_of(first, "model"), "model-dark", 620, dark=True)
        shoot(chromium, parts_of(slow, "traffic", "timeline"), "timeline", 1300)


def topologies(folder: Path) -> None:
    """Stars and trees against the number of parties."""
    python("-m", "colonnade_bench.micro.topologies", "--out", folder / "topologies", cwd=ROOT)
    shrink(folder / "topologies" / "topologies.png", HERE / "topologies.png")


def peers(folder: Path) -> None:
    """Processor seconds beside other programs, which it installs into environments of their own."""
    python(*COLONNADE, "bench", "peers", "--out", folder / "peers", cwd=ROOT)
    shrink(folder / "peers" / "peers.png", HERE / "peers.png")


def daemon_page(folder: Path) -> None:
    """The page of a daemon with a proposal that waits, as its own test sees it."""
    test = "tests/deploy/test_pages.py::test_the_page_in_a_browser"
    python("-m", "pytest", test, "--basetemp", folder / "pages", cwd=ROOT)
    found = folder / "pages" / "test_the_page_in_a_browser0" / "light.png"
    shrink(found, HERE / "daemon.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reports(folder)
        topologies(folder)
        peers(folder)
        daemon_page(folder)
    python(EXAMPLES / "straggler.py", HERE / "straggler.svg", cwd=ROOT)


if __name__ == "__main__":
    main()
