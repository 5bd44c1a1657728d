"""docs/job-file.md has every key of every section, each with the default that the code has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from colonnade.job import Job, Section
from colonnade.job.sections import (
    Cascade,
    Data,
    Direction,
    FaultPlan,
    Kernel,
    ModelSpecs,
    Net,
    PrivacyTerms,
    Secure,
    Train,
    Tune,
    Woe,
)

PAGE = (Path(__file__).parents[2] / "docs/job-file.md").read_text("utf-8")
SECTIONS: dict[str, type[Section]] = {
    "[data]": Data,
    "[train]": Train,
    "[direction]": Direction,
    "[secure]": Secure,
    "[cascade]": Cascade,
    "[model]": ModelSpecs,
    "[woe]": Woe,
    "[privacy]": PrivacyTerms,
    "[tune]": Tune,
    "[kernel]": Kernel,
    "[network]": Net,
    "[network.faults]": FaultPlan,
}


def rows(heading: str) -> dict[str, str]:
    """The keys and defaults of the first table after a heading."""
    table = PAGE[PAGE.index(heading) :]
    table = table[table.index("|---|") :].split("\n\n", 1)[0]
    return dict(re.findall(r"^\| `(\w+)` \|(.*?)\|", table, re.M))


def plain(field: msgspec.structs.FieldInfo) -> Any:
    """A default as TOML would have it."""
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return json.loads(msgspec.json.encode(value))


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_key_is_there_with_its_default(heading: str) -> None:
    told = rows(f"\n`{heading}`" if "." in heading else f"## `{heading}`")
    fields = {field.name: field for field in msgspec.structs.fields(SECTIONS[heading])}
    assert set(told) == set(fields)
    for name, field in fields.items():
        default = plain(field)
        if default is None:
            assert not told[name].strip(), name
        elif not isinstance(default, dict) or not default:  # a table has a table of its own
            assert json.loads(told[name].strip("` ").replace("1e-3", "0.001")) == default, name


def test_the_top_has_the_other_keys() -> None:
    assert set(rows("| key |")) == {f.name for f in msgspec.structs.fields(Job)} - {
        heading.strip("[]") for heading in SECTIONS
    }
