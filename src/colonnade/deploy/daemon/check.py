"""What `colonnade party --check` finds: what a party offers, and everything that would fail later.

All problems are found at once: certificates, files of data, extras that the settings need and that are not
installed, tokens, code that is missing.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import msgspec
import numpy as np

from colonnade.data.prepare.suspects import before_a_job
from colonnade.data.read.facts import facts_of
from colonnade.data.read.ids import shown
from colonnade.data.table import RawTable
from colonnade.deploy.books.ledger import Ledger
from colonnade.deploy.books.opened import UNITS, OpenedBooks
from colonnade.deploy.expiry import SOON_DAYS, ends, left_s
from colonnade.deploy.models.serving import Serving
from colonnade.deploy.rows.rows import offered_columns, read_with_ids
from colonnade.deploy.settings import Code, Entry, Serve, Settings, address
from colonnade.deploy.tokens import read_token
from colonnade.errors import ColonnadeError, DataError, JobError, ShareError, suggest
from colonnade.job import Key

Found = Iterator[str | ColonnadeError]
"""Lines about what there is, and errors about what has to be put right."""


class PartyCheck(msgspec.Struct):
    """What a party offers and what else there is to know, and what has to be put right; a line each."""

    party: str
    offers: list[str] = []
    problems: list[str] = []


def survey(settings: Settings) -> PartyCheck:
    """Return all that can be said about a party's settings without its peers."""
    found = PartyCheck(settings.name)
    for part in (_identity, _data, _models, _budget, _page, _people, _service):
        for line in _whole(part, settings):
            (found.problems if isinstance(line, ColonnadeError) else found.offers).append(str(line))
    return found


def _whole(part: Callable[[Settings], Found], settings: Settings) -> Found:
    """Return what one part finds; an error that it raises is its last line."""
    try:
        yield from part(settings)
    except ColonnadeError as error:
        yield error


def _identity(settings: Settings) -> Found:
    """Return who the party is; raises if its certificates cannot be used."""
    yield f"{settings.name} listens on {settings.listen} and knows {', '.join(settings.peers) or 'nobody'}"
    if (elsewhere := _elsewhere(settings)) is not None:
        yield elsewhere
    settings.credentials()
    for name, end in ends(settings).items():
        if (days := int(left_s(end) // 86400)) < SOON_DAYS:
            yield f"the certificate of {name} holds for {days} days more; renew it (docs/deploy.md)"
    key = settings.path(settings.certificates) / f"{settings.name}.key"
    if key.stat().st_mode & 0o077:
        yield f"{key} can be read by other users of this machine; `chmod 600` it"


def _elsewhere(settings: Settings) -> JobError | None:
    """Return an error if the address to listen on is not this machine's; its port may be the daemon's own."""
    host, _ = address(settings.listen, "listen")
    try:
        for family, kind, *_, where in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as tried:
                tried.bind(where)
    except OSError as error:
        return JobError(
            f"listen: {settings.listen} is not an address of this machine: {error.strerror}; write one that "
            "is, or 0.0.0.0 and the port for all of them"
        )
    return None


def _data(settings: Settings) -> Found:
    """Return a line per entry of the catalogue, or what is wrong with it."""
    there: set[str] = set()
    for name, entry in settings.data.items():
        try:
            yield from _entry(settings, name, entry, there)
        except ColonnadeError as error:
            yield error
    for column in settings.policy.never:
        if there and column not in there:  # misspelt, it would keep nobody from anything
            yield f"policy.never: no file has a column {column!r}; {suggest(column, sorted(there))}"


def _entry(settings: Settings, name: str, entry: Entry, there: set[str]) -> Iterator[str]:
    """Yield what an entry of the catalogue offers, and how its file was read; raises if it cannot be used.

    All columns of the file are added to `there`.
    """
    path = settings.source(name)
    # as a run reads it, so that a misspelt id is not offered as a column
    raw, ids = read_with_ids(path, entry, [Key()] * len(entry.keys), (), label=True, bare=True)
    if twice := raw.rows - len(np.unique(ids, axis=0)):
        raise DataError(f"{path}: {twice} rows have the id of an earlier one; keep one row per id")
    there |= {*raw.columns, *entry.keys, *filter(None, [entry.label])}
    offered = offered_columns(settings, name, raw.columns, None, bare=True)
    kept = raw.select(list(offered))
    columns = f"{len(offered)} columns: {', '.join(offered)}" if offered else "no columns"
    # peers must agree on how ids are written (data.keys)
    such = "" if raw.ids is None else f" (such as '{shown(str(raw.ids[0]))}')"
    yield (
        f"{name}: {raw.rows} rows, id {' + '.join(entry.keys)}{such}, "
        f"{'label ' + entry.label if entry.label else 'no label'}, offers {columns}{_gaps(kept)}"
    )
    yield from (f"{name}: {text}" for text in (*facts_of(path), *raw.reading.said, *raw.reading.warned))
    yield from (f"{name}: {text}" for text in before_a_job(raw, offered, raw.y))


def _gaps(raw: RawTable) -> str:
    """Return how many values each column lacks, in words; empty if none does."""
    found = []
    for name in raw.columns:
        values = raw.column(name)
        empty = int((values == "").sum()) if values.dtype == object else int((values != values).sum())
        if empty:
            found.append(f"{name} lacks {empty}")
    return f" ({', '.join(found)})" if found else ""


def _models(settings: Settings) -> Found:
    """Return the models that are code, and what they lack."""
    for name, code in settings.models.items():
        words = code.path or " ".join(code.command or ())
        yield f"model {name}: {code.kind}, {words}, for jobs that ask for it by name"
        if code.kind == "torch" and find_spec("torch") is None:
            yield _lacks(f"models.{name}", "torch", "torch")
        if (missing := _missing(settings, code)) is not None:
            yield JobError(f"models.{name}: there is no {missing}")


def _missing(settings: Settings, code: Code) -> str | None:
    """Return the file or program of a model that is not there."""
    if code.command:
        program = code.command[0]
        there = settings.path(program).exists() or shutil.which(program) is not None
        return None if there else program
    file, _, _ = (code.path or "").rpartition(":")
    return str(settings.path(file)) if file.endswith(".py") and not settings.path(file).is_file() else None


def _heard(settings: Settings) -> Found:
    """Return what peers have heard in all runs so far, by counting."""
    books = OpenedBooks(settings.state)
    for each in books.accounts():
        bits = each.per_cell if each.about == "columns" else each.per_row
        yield (
            f"{each.peer} has heard at most {bits:.3g} bits a {UNITS[each.about]} of {each.entry} "
            f"in {each.runs} run{'s' * (each.runs != 1)} since {books.since}"
        )


def _budget(settings: Settings) -> Found:
    """Return what is left of the privacy budget of every label."""
    yield from _heard(settings)
    ledger = Ledger(settings.state)
    for label in sorted({entry.label for entry in settings.data.values() if entry.label is not None}):
        if (left := ledger.balance(settings.policy, label).left) is not None:
            yield f"labels {label}: epsilon {left:g} of {settings.policy.epsilon:g} is left"


def _page(settings: Settings) -> Found:
    """Return whether the daemon's page can be opened."""
    if settings.monitor_token_file is None:
        return
    if find_spec("aiohttp") is None:
        yield _lacks("monitor_token_file", "aiohttp", "serve")
    read_token(settings.path(settings.monitor_token_file), "monitor_token_file")
    yield f"page: http://{settings.monitor}/"


def _people(settings: Settings) -> Found:
    """Return who may do what here, and whether their tokens and the files of [control] can be read."""
    for name, each in settings.people.items():
        yield f"{name}: {', '.join(each.roles)}"
        if each.token_file is not None:
            try:
                read_token(settings.path(each.token_file), f"people.{name}.token_file")
            except JobError as error:
                yield error
    if (control := settings.control) is None:
        return
    if find_spec("aiohttp") is None:
        yield _lacks("control", "aiohttp", "serve")
    for key in ("certificate", "key", "client_ca"):
        file: str | None = getattr(control, key)
        if file is not None and not settings.path(file).is_file():
            yield JobError(f"control.{key}: there is no {settings.path(file)}")
    yield f"control: {control.listen}"


def _service(settings: Settings) -> Found:
    """Return whether the prediction service can start, and which model it would answer with."""
    if (serve := settings.serve) is None:
        return
    if find_spec("aiohttp") is None:
        yield _lacks("serve", "aiohttp", "serve")
    if serve.data is not None and serve.data not in settings.data:
        yield JobError(f"serve.data: no entry {serve.data!r} in the catalogue")
    yield from _service_files(settings, serve)
    try:
        yield f"service: {serve.listen}, answers with {Serving(settings.state).find(serve.model).model}"
    except ShareError:
        yield f"service: {serve.listen}, waits for a first model {serve.model}"


def _service_files(settings: Settings, serve: Serve) -> Found:
    """Return what is wrong with the token and the certificates of the service."""
    if serve.token_file is not None:
        try:
            read_token(settings.path(serve.token_file), "serve.token_file")
        except JobError as error:
            yield error
    for name in ("client_ca", "certificate", "key"):
        file: str | None = getattr(serve, name)
        if file is not None and not settings.path(file).is_file():
            yield JobError(f"serve.{name}: there is no {settings.path(file)}")


def _lacks(where: str, package: str, extra: str) -> JobError:
    """Return that a setting needs a package, and how to install it."""
    return JobError(f"{where}: needs {package}; install it with `pip install 'colonnade[{extra}]'`")
