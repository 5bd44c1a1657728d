"""Compiled files that one wheel brings to every Python from 3.11 on."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import colonnade

PACKAGE = Path(colonnade.__file__).parent
SOURCES = sorted(PACKAGE.glob("**/_*.c"))


def test_no_format_has_a_length_of_its_own() -> None:
    """Compiled with the headers of 3.13, `#` in a format is an error where 3.11 or 3.12 calls it."""
    calls = [
        found
        for path in SOURCES
        for found in re.findall(
            r"\bPy(?:Arg_Parse|_BuildValue|Object_Call)\w*\([^;]*;", path.read_text("utf-8")
        )
    ]
    assert len(calls) >= 5
    assert not [call for call in calls if re.search(r'"[^"]*#[^"]*"', call)]


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a lock")
def test_no_compiled_file_switches_the_lock_on() -> None:
    """A Python without interpreter lock switches it on for a module that does not say that it needs none."""
    names = [
        ".".join(["colonnade", *path.relative_to(PACKAGE).with_suffix("").parts])
        for path in SOURCES
        if list(path.parent.glob(f"{path.stem}.*.so"))
    ]
    if not names:
        pytest.skip("nothing is compiled")
    program = f"import sys, {', '.join(names)}; sys.exit(sys._is_gil_enabled())"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
