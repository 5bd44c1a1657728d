"""The words of a job file: one for each thing, whether `colonnade run` or `colonnade train` reads the file.

A job that ran on one machine goes to other companies by adding a name and [parties]. Each command leaves
out the keys that are for the other, with a note. What daemons send each other and sign, the terms, has words
of its own for the keys of [data] that concern every party; they were the words of files up to 0.2, and are
still read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from colonnade.errors import JobError

Tables = dict[str, Any]
Tell = Callable[[str], None]

IN_TERMS = {
    "data.test_fraction": "split.test",
    "data.validation_fraction": "split.validation",
    "data.keys": "align.keys",
    "data.scale": "prepare.scale",
    "data.categorical": "prepare.categorical",
    "data.missing": "prepare.missing",
    "data.rare": "prepare.rare",
    "data.intercept": "prepare.intercept",
    "data.positive": "prepare.positive",
    "data.woe": "prepare.woe",
}
"""The keys of [data] that every party of a run needs, and what the terms between daemons call them."""

_MODELS = ("model", "model.parties.*", "model.server")
FOR_TRAIN = (
    "name",
    "purpose",
    "contract",
    "contact",
    "expires",
    "runs_of_a_job",
    "parties",
    "align",
    "use",
    "checkpoint.wait_s",
    "data.validation_fraction",
    *(f"{model}.name" for model in _MODELS),
)
"""Keys that `colonnade run` leaves out."""

FOR_RUN = {
    "each party's own file says where its columns come from, [parties] who takes part with which": (
        *("data.train", "data.test", "data.files", "data.test_files", "data.label", "data.id"),
        *("data.separator", "data.decimal", "data.thousands", "data.encoding", "data.na_values"),
        *(
            "data.weight",
            "data.exposure",
            "data.parties",
            "data.active",
            "data.server",
            "data.columns",
            "data.drop",
        ),
    ),
    "each party's own file says what it computes with": (
        *("data.memory", "data.store", "engine", "model.device"),
        *(f"{model}.{key}" for model in _MODELS for key in ("path", "command", "parameters")),
    ),
    "daemons train over their own network, and nobody has all columns": ("world", "compare", "tune"),
}
"""Keys that `colonnade train` leaves out, by the reason."""


def untold(note: str) -> None:
    """Tell nobody."""


def for_run(plain: Tables, where: str, tell: Tell = untold) -> Tables:
    """Return the tables of a job file as `Job` has them; JobError if two words for one key contradict."""
    tables = in_file_words(plain, where, tell)
    if left_out := _take_out(tables, FOR_TRAIN):
        tell(f"{', '.join(left_out)}: for `colonnade train` alone, without effect here")
    return tables


def for_train(plain: Tables, where: str, tell: Tell = untold) -> Tables:
    """Return the tables of a job file as the terms between daemons have them; JobError as `for_run`.

    Where [data] has keys that no job has it is still there.
    """
    tables = in_file_words(plain, where, tell)
    for why, keys in FOR_RUN.items():
        if left_out := _take_out(tables, keys):
            tell(f"{', '.join(left_out)}: for `colonnade run` alone, without effect here: {why}")
    for word, in_terms in IN_TERMS.items():
        _move(tables, word, in_terms, where)
    return tables


def in_file_words(plain: Tables, where: str = "job", tell: Tell = untold) -> Tables:
    """Return the tables with the present word for every key; JobError if an old word contradicts it."""
    tables = deepcopy(plain)
    for word, old in IN_TERMS.items():
        if _move(tables, old, word, where):
            tell(f"{old} is now called {word}; both are read")
    return tables


def in_file_word(text: str) -> str:
    """Return an error text that begins with a key of the terms with the word that files have for it.

    >>> in_file_word("align.keys[0].kind: 'x' is not one of 'text', 'integer', 'date'")
    "data.keys[0].kind: 'x' is not one of 'text', 'integer', 'date'"
    """
    for word, in_terms in IN_TERMS.items():
        if re.match(rf"{re.escape(in_terms)}\b", text):
            return word + text.removeprefix(in_terms)
    return text


def _move(tables: Tables, key: str, other: str, where: str) -> bool:
    """Give a key another word, and say whether it was there; JobError if that has another value already."""
    section, name = key.split(".")
    if not isinstance(table := tables.get(section), dict) or name not in table:
        return False
    value = table[name]
    _take_out(tables, [key])
    other_section, other_name = other.split(".")
    if not isinstance(there := tables.setdefault(other_section, {}), dict):
        raise JobError(f"{where}: {other_section}: expected a section")
    if there.setdefault(other_name, value) != value:
        raise JobError(
            f"{where}: {key} = {value!r} and {other} = {there[other_name]!r}: two words for one key differ; "
            f"drop {key}"
        )
    return True


def _take_out(tables: Tables, keys: Iterable[str]) -> list[str]:
    """Take keys out of the tables, and sections that have no others; returns those that were there."""
    taken = [path for key in keys for path in _paths(tables, key.split("."))]
    for path in taken:
        table = tables
        for name in path[:-1]:
            table = table[name]
        del table[path[-1]]
        if len(path) == 2 and not table:
            del tables[path[0]]
    return [".".join(path) for path in taken]


def _paths(tables: object, key: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the way to every key there is that a pattern such as `model.parties.*.name` means."""
    if not key:
        yield ()
    elif isinstance(tables, dict):
        for name in list(tables) if key[0] == "*" else [key[0]] if key[0] in tables else []:
            yield from ((name, *inner) for inner in _paths(tables[name], key[1:]))
