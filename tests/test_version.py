"""One version, wherever it is written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import colonnade

ROOT = Path(__file__).parents[1]


def test_the_version_is_the_same_everywhere() -> None:
    projects = [ROOT / "pyproject.toml", ROOT / "bench" / "pyproject.toml"]
    found = {str(path): tomllib.loads(path.read_text("utf-8"))["project"]["version"] for path in projects}
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    found["CITATION.cff"] = cited[1] if cited else ""
    assert set(found.values()) == {colonnade.__version__}, found
