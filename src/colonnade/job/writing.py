"""A job as TOML text: only what differs from the defaults, so that it reads like a file that a person wrote.

Reading the text gives the same job again (`job_from`, `terms_from`).
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from colonnade.job.presets import PRESETS
from colonnade.job.section import Section
from colonnade.job.sections import Training
from colonnade.job.vocabulary import in_file_words

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def as_toml(job: Training) -> str:
    """Return the text of a job file for this job, on one machine or between daemons."""
    plain, preset = in_file_words(_given(job)), PRESETS.get(job.algorithm)
    for section, defaults in preset.defaults.items() if preset is not None else ():
        # an algorithm has defaults of its own: what equals the usual one must be said there
        said = {key: getattr(getattr(job, section), key) for key in defaults}
        plain[section] = {**said, **plain.get(section, {})}
    if preset is not None and preset.networks:
        # what equals the default of a section is left out, and would be read as networks
        plain["model"] = {"kind": "linear", **plain.get("model", {})}
    tables = {key: value for key, value in plain.items() if isinstance(value, dict)}
    lines = [f"{key} = {value_text(value)}" for key, value in plain.items() if key not in tables]
    for name, table in tables.items():
        lines += [
            "",
            f"[{name}]",
            *(f"{key_text(key)} = {value_text(value)}" for key, value in table.items()),
        ]
    return "\n".join(lines) + "\n"


def value_text(value: object) -> str:
    """Return a value as TOML has it.

    >>> value_text({"bank": ["age", 'the "id"'], "x y": True})
    '{bank = ["age", "the \\\\"id\\\\""], "x y" = true}'
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)  # 1e-05, inf and nan are TOML, too
        case str():
            return text(value)
        case list() | tuple():
            return f"[{', '.join(value_text(each) for each in value)}]"
        case dict():
            return f"{{{', '.join(f'{key_text(k)} = {value_text(v)}' for k, v in value.items())}}}"
        case _:
            raise TypeError(f"TOML has no {type(value).__name__}")


def key_text(key: str) -> str:
    """Return a key as TOML has it: as it is if it is one word, else in quotes."""
    return key if _BARE.fullmatch(key) else text(key)


def text(value: str) -> str:
    """Return a string in quotes; what JSON escapes, TOML reads alike, and it allows no DEL on top."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _given(section: Section) -> dict[str, Any]:
    """Return the keys of a section that are not at their default, as plain values; gaps are left out."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(section):
        value = getattr(section, field.name)
        if isinstance(value, Section):
            if inner := _given(value):
                found[field.name] = inner
            continue
        usual = field.default_factory() if callable(field.default_factory) else field.default
        if value is not None and (field.required or value != usual):
            found[field.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    """Return a value whose sections are plain tables."""
    match value:
        case Section():
            return _given(value)
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value
