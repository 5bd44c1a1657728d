"""From a TOML file to a job, with every mistake named: where it is and how to put it right."""

from __future__ import annotations

import difflib
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from colonnade.errors import JobError
from colonnade.job.data_section import Data
from colonnade.job.limits import check
from colonnade.job.presets import PRESETS, defaults_of
from colonnade.job.section import Section
from colonnade.job.sections import Job, ModelSpec, ModelSpecs, ServerSpec
from colonnade.job.source import Address, checked_text, source_of
from colonnade.job.vocabulary import Tell, for_run, untold

M = TypeVar("M", bound=ModelSpec | ServerSpec)


def read_toml(path: Path, absent: str) -> dict[str, Any]:
    """Return the tables of a TOML file; `absent` is the error text if the file is missing."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise JobError(f"{path}: {absent}") from None
    except OSError as error:
        raise JobError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise JobError(f"{path}: cannot be read: it is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise JobError(f"{path}: not valid TOML: {error}") from error


def read_job(path: Path, tell: Tell = untold) -> Job:
    """Return the job in a TOML file; relative data paths are taken from the file's own folder.

    `tell` is told of old words for keys, and of keys that are for `colonnade train` alone.
    """
    plain = read_toml(path, "there is no such job file")
    data = plain.get("data", {})
    if "parties" in plain and isinstance(data, dict) and not data.keys() & {"train", "files"}:
        raise JobError(
            f"{path}: this is a job between companies; `colonnade train` proposes it to them, and to run it "
            "here it needs data.files"
        )
    job = job_from(plain, where=str(path), tell=tell)
    folder = path.resolve().parent
    return msgspec.structs.replace(
        job, data=_rooted(job.data, folder), model=_rooted_models(job.model, folder)
    )


def job_from(plain: dict[str, Any], where: str = "job", tell: Tell = untold) -> Job:
    """Return a job from plain dictionaries; the first mistake is refused, with its place and a remedy.

    `tell` is told of old words for keys, and of keys that are for `colonnade train` alone.
    """
    tables = _with_sources(for_run(plain, where, tell), where)
    refuse_unknown(tables, Job, where)
    try:
        job = msgspec.convert(with_defaults(tables), Job)
    except msgspec.ValidationError as error:
        raise JobError(f"{where}: {readable(str(error), Job)}") from error
    check(job, where)
    return job


def _with_sources(tables: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a job's tables with every source as a text; what is no source, or has a password, is refused."""
    if not isinstance(data := tables.get("data"), dict):
        return tables
    data = dict(data)
    for key in ("train", "test"):
        if key in data:
            data[key] = checked_text(data[key], f"{where}: data.{key}")
    for key in ("files", "test_files"):
        if isinstance(files := data.get(key), dict):
            data[key] = {p: checked_text(each, f"{where}: data.{key}.{p}") for p, each in files.items()}
    return {**tables, "data": data}


def with_defaults(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a job's tables, completed with its algorithm's defaults for the keys that it leaves out."""
    full, preset = dict(plain), PRESETS.get(str(plain.get("algorithm")))
    for section, defaults in defaults_of(preset, plain).items() if preset is not None else ():
        if isinstance(given := plain.get(section, {}), dict):
            full[section] = {**defaults, **given}
    return full


def with_algorithm(job: Job, algorithm: str) -> Job:
    """Return a job with another algorithm: keys at the old one's defaults take those of the new one."""
    if algorithm == job.algorithm:
        return job
    plain, usual = msgspec.to_builtins(job), defaults_of(PRESETS[job.algorithm], {})
    for field in msgspec.structs.fields(Job):
        if isinstance(section := field.default, Section):
            default = msgspec.to_builtins(msgspec.convert(usual.get(field.name, {}), type(section)))
            table = plain[field.name]
            plain[field.name] = {key: each for key, each in table.items() if each != default.get(key)}
    return job_from(plain | {"algorithm": algorithm})


class Gone(NamedTuple):
    """A key that was there once: what to do now, and the value that says what is so without it, if any."""

    remedy: str
    as_now: str | None = None


GONE = {
    "train.threads": Gone(
        "threads within a party did not pay and are gone (docs/algorithms/vfb2.md says why); "
        "leave the key out"
    ),
    "network.transport": Gone("gRPC is gone, processes speak over TLS; leave the key out", as_now="tls"),
}


def refuse_unknown(plain: object, kind: type[Section], where: str, path: str = "") -> None:
    """Refuse keys that a section does not have, here or further in; name the nearest one that it has."""
    if not isinstance(plain, dict):
        return
    fields = _fields(kind)
    for key, value in plain.items():
        if (gone := GONE.get(f"{path}{key}")) is not None and value != gone.as_now:
            raise JobError(f"{where}: {path}{key} = {value!r}: {gone.remedy}")
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            hint = (
                f"; did you mean {path}{near[0]!s}?" if near else f"; known here: {', '.join(sorted(fields))}"
            )
            raise JobError(f"{where}: unknown key {path}{key}{hint}")
        inner = fields[key]
        if isinstance(inner, type) and issubclass(inner, Section):
            refuse_unknown(value, inner, where, f"{path}{key}.")


@cache
def _fields(kind: type[Section]) -> dict[str, Any]:
    """Return the keys of a section and their types; to find them out takes as long as to read a whole job."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a section",
    "datetime": "a date",
    "date": "a date",
}
"""What msgspec calls the types of TOML, in words."""


def readable(text: str, kind: type[Section]) -> str:
    """Return an error text of msgspec in a job's words: train.batch for `$.train.batch`, and which values
    there are.

    >>> readable("Invalid enum value 'moon' - at `$.world`", Job)
    "world: 'moon' is not one of 'simulated', 'local', 'network', 'mpi'"
    >>> readable("Object missing required field `data`", Job)
    'data: this key is missing'
    >>> readable("Invalid enum value 'fast' - at `$.train.step`", Job)
    "train.step: 'fast' is not one of a number, 'auto'"
    >>> readable("Expected `int | null`, got `str` - at `$.data.parties`", Job)
    'data.parties: expected a whole number, got text'
    """
    what, _, place = text.partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    if lacking := re.fullmatch(r"Object missing required field `(\w+)`", what):
        return f"{place}{'.' if place else ''}{lacking[1]}: this key is missing"
    if wrong := re.fullmatch(r"Expected `([\w| ]+)`, got `(\w+)`", what):
        expected = [WORDS.get(name, name) for name in wrong[1].split(" | ") if name != "null"]
        got = "a decimal number" if wrong[2] == "float" else WORDS.get(wrong[2], wrong[2])
        what = f"expected {' or '.join(expected)}, got {got}"
    if (wrong := re.fullmatch(r"Invalid enum value (.+)", what)) and (known := _choices(kind, place)):
        what = f"{wrong[1]} is not one of {', '.join(known)}"
    return f"{place}: {what[0].lower()}{what[1:]}" if place else what


def _choices(kind: object, place: str) -> list[str]:
    """Return the values that may stand at a place, e.g. `train.loss` or `data.keys[0].kind`."""
    for name in re.findall(r"\w+", re.sub(r"\[.*?\]", "", place)):
        sections = [part for part in _parts(kind) if isinstance(part, type) and issubclass(part, Section)]
        kind = {field.name: field.type for each in sections for field in msgspec.structs.fields(each)}[name]
    choices: list[str] = []
    for part in _parts(kind):
        choices += ["a number"] if part in (int, float) else []
        choices += map(repr, get_args(part)) if get_origin(part) is Literal else []
    return choices


def _parts(kind: object) -> list[object]:
    """Return a type and all the types that it is made of: `dict[str, float | None]` has five parts."""
    return [kind, *(inner for part in get_args(kind) for inner in _parts(part))]


def _rooted_models(models: ModelSpecs, folder: Path) -> ModelSpecs:
    """Return the models with the full paths of programs and Python files that lie beside the job."""

    def beside(word: str) -> str:
        return str(folder / word) if not Path(word).is_absolute() and (folder / word).is_file() else word

    def rooted(model: M) -> M:
        path, command = model.path, model.command
        if path and ":" in path:
            file, _, name = path.rpartition(":")
            path = f"{beside(file)}:{name}"
        return msgspec.structs.replace(model, path=path, command=command and [beside(c) for c in command])

    return msgspec.structs.replace(
        rooted(models),
        server=rooted(models.server),
        parties={party: rooted(model) for party, model in models.parties.items()},
    )


def _rooted(data: Data, folder: Path) -> Data:
    """Return the data section with full paths of files beside the job; names of data sets stay as they
    are."""

    def rooted(name: str) -> str:
        source = source_of(name)
        if isinstance(source, Address):
            return str(source.beside(folder))
        there = (folder / source).exists() or "*" in source.name
        return str(folder / source) if not source.is_absolute() and there else name

    return msgspec.structs.replace(
        data,
        train=rooted(data.train) if data.train else None,
        test=rooted(data.test) if data.test else None,
        files={party: rooted(name) for party, name in data.files.items()} if data.files else None,
        test_files={party: rooted(name) for party, name in data.test_files.items()}
        if data.test_files
        else None,
    )
