"""docs/job-file.md and docs/party-file.md have every key of every section, each with the code's default."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import msgspec
import pytest

from colonnade.deploy import people_settings, settings
from colonnade.deploy.telemetry_settings import Telemetry
from colonnade.deploy.terms import terms
from colonnade.job import Job, Key, Section
from colonnade.job import sections as job
from colonnade.job.files import GONE
from colonnade.job.presets import TREES
from colonnade.job.vocabulary import IN_TERMS
from colonnade.losses import LOSSES
from colonnade.openings.leaks import Leak
from colonnade.run.resolve import TOLERANCE
from colonnade.secure.sums import SUMS

DOCS = Path(__file__).parents[2] / "docs"
JOB, PARTY = ((DOCS / f"{name}.md").read_text("utf-8") for name in ("job-file", "party-file"))
# the sections of a job between companies and on one machine, whose [model] says more, as the code has them
SECTIONS = {
    field.name: field.type
    for field in (*msgspec.structs.fields(terms.Terms), *msgspec.structs.fields(Job))
    if isinstance(field.type, type) and issubclass(field.type, Section)
}
# [data] of files has what the terms between daemons call otherwise
SECTIONS["data"] = terms.FileData
SECTIONS = {name: kind for name, kind in SECTIONS.items() if name not in ("split", "prepare")}
BENCH = "## Keys for simulations and benches"
TABLES: dict[str, tuple[str, type[Section]]] = {
    **{f"## `[{name}]`": (JOB, kind) for name, kind in SECTIONS.items()},
    "\n`[network.faults]`": (JOB, job.FaultPlan),
    "## `[parties]`": (JOB, terms.Member),
    "### `[checkpoint]`": (JOB, terms.CheckpointTerms),
    "\n`[[data.keys]]`": (JOB, Key),
    "## `[data.NAME]`": (PARTY, settings.Entry),
    "## `[models.NAME]`": (PARTY, settings.Code),
    "## `[policy]`": (PARTY, settings.Policy),
    "## `[limits]`": (PARTY, settings.Limits),
    "## `[serve]`": (PARTY, settings.Serve),
    "## `[telemetry]`": (PARTY, Telemetry),
    "## `[people.NAME]`": (PARTY, people_settings.Known),
    "## `[sign_in]`": (PARTY, people_settings.SignIn),
    "## `[control]`": (PARTY, people_settings.Control),
    "## `[engine]`: who computes here": (PARTY, job.EngineTerms),
}
# keys whose default is decided where the data or the algorithm is known
BY_ALGORITHM = {"## `[trees]`": TREES["trees"]}
DECIDED = {"scale": "auto", "rare": "auto", "missing": "auto", "tolerance": TOLERANCE, "folds": 5}


def rows(page: str, heading: str) -> dict[str, str]:
    """The keys and defaults of the first table after a heading."""
    table = page[page.index(heading) :]
    table = table[table.index("|---|") :].split("\n\n", 1)[0]
    return dict(re.findall(r"^\| `([\w.]+)` \|(.*?)\|", table, re.M))


def check(
    told: dict[str, str],
    fields: dict[str, msgspec.structs.FieldInfo],
    by_algorithm: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    assert set(told) == set(fields)
    for name, field in fields.items():
        cell = told[name].strip("` ")
        if field.required:
            assert cell == "needed", name
            continue
        value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        value = by_algorithm.get(name, value)
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
    section = heading.strip("# `[]") if page == JOB else ""
    rarely = {key: told for key, told in rows(JOB, BENCH).items() if key.startswith(f"{section}.")}
    told = rows(page, heading) | {key.partition(".")[2]: default for key, default in rarely.items()}
    elsewhere = {word for word in IN_TERMS.values() if word.startswith(f"{section}.")}
    there = [f for f in msgspec.structs.fields(kind) if f.default is not msgspec.UNSET]
    check(
        told,
        {f.name: f for f in there if f"{section}.{f.name}" not in elsewhere},
        BY_ALGORITHM.get(heading, {}),
    )


def test_keys_that_are_gone_are_named() -> None:
    table = JOB[JOB.index("## Keys that are gone") :]
    assert set(re.findall(r"^\| `([\w.]+)` \|", table, re.M)) == set(GONE)


def test_keys_for_benches_are_keys_of_their_sections() -> None:
    for key in rows(JOB, BENCH):
        section, name = key.split(".")
        assert name in SECTIONS[section].__struct_fields__, key
        assert name not in rows(JOB, f"## `[{section}]`"), key


def test_the_top_of_a_job_has_the_other_keys() -> None:
    check(rows(JOB, "| key |"), {f.name: f for f in msgspec.structs.fields(Job) if f.name not in SECTIONS})


def test_the_top_of_a_job_between_companies_has_what_other_jobs_have_not() -> None:
    sections = {*SECTIONS, "split", "prepare"}
    fields = {f.name: f for f in msgspec.structs.fields(terms.Terms) if f.name not in sections}
    check(
        rows(JOB, "## Between companies"), {n: f for n, f in fields.items() if n not in Job.__struct_fields__}
    )


def test_what_a_job_between_companies_has_not_is_told() -> None:
    between = " ".join(JOB.partition("## Between companies")[2].split())
    (sentence,) = re.findall(r"wanted\. (.*?) are for `colonnade run` alone", between)
    only_here = set(Job.__struct_fields__) - set(terms.Terms.__struct_fields__) - {"data"}
    assert set(re.findall(r"`\[?(\w+)\]?`", sentence)) == only_here


def test_the_top_of_a_party_s_settings_has_the_other_keys() -> None:
    # the last is set when the file is read
    apart = {"data", "models", "policy", "limits", "engine", "serve", "telemetry", "people", "sign_in"}
    apart |= {"control", "folder"}
    fields = {f.name: f for f in msgspec.structs.fields(settings.Settings) if f.name not in apart}
    check(rows(PARTY, "| key |"), fields)


def test_all_that_a_job_may_give_away_is_told() -> None:
    (row,) = re.findall(r"^\| `accept` \|.*$", PARTY, re.M)
    assert set(get_args(Leak)) <= set(re.findall(r"`([\w-]+)`", row))


def test_the_reference_has_every_loss() -> None:
    (row,) = re.findall(r"^\| `loss` \|.*$", JOB, re.M)
    assert set(re.findall(r"`(\w+)`", row)) == {"loss", *LOSSES}


def test_the_reference_has_every_sum() -> None:
    (row,) = re.findall(r"^\| `sum` \|.*$", JOB, re.M)
    assert re.findall(r"`(\w+)`", row) == ["sum", *SUMS]
    assert job.Secure().sum == next(iter(SUMS))
