"""Compiled files that one wheel brings to every Python from 3.11 on."""

from __future__ import annotations

import re
from pathlib import Path

import colonnade

SOURCES = sorted(Path(colonnade.__file__).parent.glob("*/_*.c"))


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
