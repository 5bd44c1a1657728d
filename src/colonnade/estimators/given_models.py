"""Models of a cascade from Python: descriptions as in a job, torch modules, factories and black boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from colonnade.errors import JobError
from colonnade.models.blackbox import Model


@dataclass(frozen=True)
class Chosen:
    """The models that a user chose: the job's section, and what is a Python object and not described there.

    An object is a torch module, a `Model` (`models.blackbox`), or a function of (columns, outputs) that
    makes one.
    """

    section: dict[str, Any] = field(default_factory=dict)
    own: Mapping[str, object] = field(default_factory=dict)
    head: object = None

    def __bool__(self) -> bool:
        return bool(self.section or self.own) or self.head is not None


def chosen(model: object, server: object, parties: Sequence[str]) -> Chosen:
    """Tell descriptions from objects; `model` may be one for all parties or one for each, by name."""
    section: dict[str, Any] = {}
    own: dict[str, object] = {}
    if isinstance(model, Mapping) and model and set(model) <= set(parties):
        section["parties"] = {party: dict(each) for party, each in model.items() if isinstance(each, Mapping)}
        own = {party: each for party, each in model.items() if not isinstance(each, Mapping)}
    elif isinstance(model, Mapping):
        section = dict(model)
    elif model is not None:
        own = dict.fromkeys(parties, model)
    head = None
    if isinstance(server, str | Mapping):
        section["server"] = {"kind": server} if isinstance(server, str) else dict(server)
    else:
        head = server
    return Chosen(section, own, head)


def built(given: object, columns: int, outputs: int) -> object:
    """Return a torch module or `Model` of its own for this number of columns, from what was given."""
    if is_module(given) or _is_model(given):
        return deepcopy(given)  # parties share no weights, and a parameter of an estimator stays as it is
    if not callable(given):
        raise JobError(
            f"model: a {type(given).__name__} is not a model; give a description ({{'kind': 'mlp'}}), a "
            "torch module, colonnade.Function, or a function of (columns, outputs) that makes one"
        )
    made = given(columns, outputs)
    if not is_module(made) and not _is_model(made):
        raise JobError(
            f"model: {given!r} made a {type(made).__name__}, which is neither a torch module nor a model"
        )
    return made


def model_of(made: object) -> Model:
    """Return what a conversation trains: the model itself, or that of a torch module."""
    if not is_module(made):
        return made  # type: ignore[return-value]
    from colonnade.models.network import network_of

    return network_of(made)  # type: ignore[arg-type]


def is_module(given: object) -> bool:
    """Return whether this is a torch module, found out without importing torch."""
    return hasattr(given, "state_dict") and hasattr(given, "named_parameters")


def _is_model(given: object) -> bool:
    return all(hasattr(given, name) for name in ("parameters", "initial", "forward"))
