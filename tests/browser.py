"""A real browser for tests of pages: headless Chromium, driven by its command line alone.

    with browser() as chromium:
        chromium.screenshot(page, tmp_path / "dark.png", dark=True)
        assert "<h1>" in chromium.dom(page)

`apt-get install chromium-headless-shell` (or chromium) is all it takes; where there is none, the test is
skipped. COLONNADE_BROWSER names another executable.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60


@dataclass(frozen=True)
class Chromium:
    """A browser with an empty profile of its own; every call opens one page and closes it again."""

    program: str
    profile: Path

    def dom(self, page: Path | str, *, dark: bool = False, size: tuple[int, int] = (1200, 1600)) -> str:
        """The page as it stands in the browser once it is loaded and its scripts, if any, have run."""
        return self._run(page, "--dump-dom", dark=dark, size=size)

    def screenshot(
        self, page: Path | str, to: Path, *, dark: bool = False, size: tuple[int, int] = (1200, 1600)
    ) -> Path:
        """A PNG of the page in a window of this size."""
        self._run(page, f"--screenshot={to}", "--hide-scrollbars", dark=dark, size=size)
        return to

    def pdf(self, page: Path | str, to: Path) -> Path:
        """The page as it is printed."""
        self._run(page, f"--print-to-pdf={to}", "--no-pdf-header-footer")
        return to

    def _run(
        self, page: Path | str, *what: str, dark: bool = False, size: tuple[int, int] = (1200, 1600)
    ) -> str:
        address = page.absolute().as_uri() if isinstance(page, Path) else page
        command = [
            self.program,
            "--headless",
            "--no-sandbox",  # in a container there is none to have; the pages are our own
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={self.profile}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={size[0]},{size[1]}",
            *what,
            address,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            raise RuntimeError(f"{self.program} failed on {address}: {done.stderr[-2000:]}")
        return done.stdout


@contextmanager
def browser() -> Iterator[Chromium]:
    """A headless browser; the test that asks for one is skipped where none is installed."""
    named = os.environ.get("COLONNADE_BROWSER")
    program = named or next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no browser: apt-get install chromium-headless-shell, or name one with COLONNADE_BROWSER")
    with tempfile.TemporaryDirectory(prefix="colonnade-browser-", ignore_cleanup_errors=True) as profile:
        yield Chromium(program, Path(profile))
