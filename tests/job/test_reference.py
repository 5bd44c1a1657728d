"""docs/job-file.md and docs/party-file.md have every key of every section, each with the code's default."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from colonnade.conversations.conversation import Leak
from colonnade.deploy import settings, terms
from colonnade.job import Job, Key, Section
from colonnade.job import sections as job
from colonnade.run.resolve import TOLERANCE

DOCS = Path(__file__).parents[2] / "docs"
JOB, PARTY = ((DOCS / f"{name}.md").read_text("utf-8") for name in ("job-file", "party-file"))
# the sections of a job between companies and on one machine, whose [model] says more, as the code has them
SECTIONS = {
    field.name: field.type
    for field in (*msgspec.structs.fields(terms.Terms), *msgspec.structs.fields(Job))
    if isinstance(field.type, type) and issubclass(field.type, Section)
}
TABLES: dict[str, tuple[str, type[Section]]] = {
    **{f"## `[{name}]`": (JOB, kind) for name, kind in SECTIONS.items()},
    "\n`[network.faults]`": (JOB, job.FaultPlan),
    "## `[parties]`": (JOB, terms.Member),
    "### `[checkpoint]`": (JOB, terms.Lasting),
    "\n`[[align.keys]]`": (JOB, Key),
    "## `[data.NAME]`": (PARTY, settings.Entry),
    "## `[models.NAME]`": (PARTY, settings.Code),
    "## `[policy]`": (PARTY, settings.Policy),
    "## `[limits]`": (PARTY, settings.Limits),
    "## `[serve]`": (PARTY, settings.Serve),
    "## `[engine]`: who computes here": (PARTY, job.EngineTerms),
}
# keys whose default is decided where the data or the algorithm is known
DECIDED = {"scale": "auto", "rare": "auto", "missing": "auto", "tolerance": TOLERANCE, "folds": 5}


def rows(page: str, heading: str) -> dict[str, str]:
    """The keys and defaults of the first table after a heading."""
    table = page[page.index(heading) :]
    table = table[table.index("|---|") :].split("\n\n", 1)[0]
    return dict(re.findall(r"^\| `(\w+)` \|(.*?)\|", table, re.M))


def check(told: dict[str, str], fields: dict[str, msgspec.structs.FieldInfo]) -> None:
    assert set(told) == set(fields)
    for name, field in fields.items():
        cell = told[name].strip("` ")
        if field.required:
            assert cell == "needed", name
            continue
        value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        default: Any = json.loads(msgspec.json.encode(value))  # as TOML would have it
        if default is None:
            assert not cell or json.loads(cell) == DECIDED[name], name
        elif not is_table(default):  # a table has a table of its own
            assert json.loads(cell) == default, name


def is_table(default: Any) -> bool:
    inner = default[0] if isinstance(default, list) and default else default
    return isinstance(inner, dict) and bool(inner)


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_is_there_with_its_default(heading: str) -> None:
    page, kind = TABLES[heading]
    check(rows(page, heading), {field.name: field for field in msgspec.structs.fields(kind)})


def test_the_top_of_a_job_has_the_other_keys() -> None:
    check(rows(JOB, "| key |"), {f.name: f for f in msgspec.structs.fields(Job) if f.name not in SECTIONS})


def test_the_top_of_a_job_between_companies_has_what_other_jobs_have_not() -> None:
    fields = {f.name: f for f in msgspec.structs.fields(terms.Terms) if f.name not in SECTIONS}
    check(
        rows(JOB, "## Between companies"), {n: f for n, f in fields.items() if n not in Job.__struct_fields__}
    )


def test_what_a_job_between_companies_has_not_is_told() -> None:
    (sentence,) = re.findall(r"In place of (.*?) such a job has", " ".join(JOB.split()))
    only_here = set(Job.__struct_fields__) - set(terms.Terms.__struct_fields__)
    assert set(re.findall(r"`\[?(\w+)\]?`", sentence)) == only_here


def test_the_top_of_a_party_s_settings_has_the_other_keys() -> None:
    # the last is set when the file is read
    apart = {"data", "models", "policy", "limits", "engine", "serve", "folder"}
    fields = {f.name: f for f in msgspec.structs.fields(settings.Settings) if f.name not in apart}
    check(rows(PARTY, "| key |"), fields)


def test_all_that_a_job_may_give_away_is_told() -> None:
    (row,) = re.findall(r"^\| `accept` \|.*$", PARTY, re.M)
    assert set(get_args(Leak)) <= set(re.findall(r"`([\w-]+)`", row))
