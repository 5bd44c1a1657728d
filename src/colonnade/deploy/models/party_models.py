"""The models of a cascade at this party: built in, or code that its own settings put under a name.

What is loaded or started here is what `[models.NAME]` in the party's own settings says, never what a job
says. A share keeps a fingerprint of that code, because its parameters mean nothing to other code: when the
file has changed since training, the share is refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from colonnade import job
from colonnade.arrays import Arrays, Matrix
from colonnade.conversations.cascade.predict import widths
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.cascade.tensors import HEAD, OWN, restored
from colonnade.conversations.context import GivenModels
from colonnade.deploy.settings import Code, Settings
from colonnade.deploy.terms import model_terms
from colonnade.deploy.terms.model_terms import CODE, HeadModel, OwnModel
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import ModelError, Refused, ShareError
from colonnade.job.plan import Plan
from colonnade.models import blackbox, build
from colonnade.shares import fingerprint

T = TypeVar("T")
Spec = TypeVar("Spec", job.ModelSpec, job.ServerSpec)


def asked_of(party: str, terms: Terms) -> dict[str, OwnModel | HeadModel]:
    """Return the models that a job asks of one party: its own, and at the server the one on top (F0)."""
    asked: dict[str, OwnModel | HeadModel] = {OWN: terms.model_of(party)}
    return asked | {HEAD: terms.model.server} if party == terms.server else asked


def is_own_code(settings: Settings, terms: Terms) -> bool:
    """Return whether a model that a job asks of this party is code that its settings name."""
    return any(model.kind in CODE for model in asked_of(settings.name, terms).values())


def code_of(settings: Settings, model: OwnModel | HeadModel) -> Code | None:
    """Return the code that a model's name stands for here; None for a model that comes with Colonnade.

    Raises Refused if the settings have no such name.
    """
    if model.kind not in CODE:
        return None
    code = settings.models.get(model.name or "")
    if code is None or code.kind != model.kind:
        offered = ", ".join(f"{name} ({each.kind})" for name, each in settings.models.items())
        raise Refused(f"no {model.kind} named {model.name} may be run here; offered: {offered or 'none'}")
    return code


def check_code(settings: Settings, terms: Terms) -> None:
    """Raise unless all models that a job asks of this party can be loaded, before anybody waits for it."""
    for model in asked_of(settings.name, terms).values():
        code = code_of(settings, model)
        if code is not None and code.path is not None:
            _guarded(model, partial(build.load, _path(settings, code)))
        elif model.kind == "cnn":
            importlib.import_module("colonnade.models.network")  # says which extra is missing


def fingerprints(settings: Settings, terms: Terms) -> dict[str, str]:
    """Return a SHA-256 over the files of every model that is code."""
    found = {}
    for part, model in asked_of(settings.name, terms).items():
        if (code := code_of(settings, model)) is not None:
            path = _path(settings, code) if code.path is not None else None
            found[part] = fingerprint(build.files_of(path, _command(settings, code)))
    return found


def check_unchanged(settings: Settings, terms: Terms, trained: dict[str, str]) -> None:
    """Raise ShareError unless the code is here and is what the share was trained with."""
    asked = asked_of(settings.name, terms)
    try:
        now = fingerprints(settings, terms)
    except (Refused, OSError) as error:
        raise ShareError(f"the model of this share cannot be had any more: {error}") from error
    for part, then in trained.items():
        if now.get(part) != then:
            raise ShareError(
                f"models.{asked[part].name} is not what it was when this share was trained; "
                "restore its files, or train again"
            )


def own_model(settings: Settings, terms: Terms, columns: int) -> blackbox.Model:
    """Return this party's own model (F_m) for this number of columns."""
    asked = terms.model_of(settings.name)
    spec = _spec(settings, asked, job.ModelSpec)
    return _guarded(asked, lambda: build.party_model(spec, columns, settings.device))


def head_model(settings: Settings, terms: Terms, plan: Plan[CascadeSettings], columns: int) -> blackbox.Model:
    """Return the model on top (F0), at the server; `columns` is how many it holds itself, which may be
    none."""
    spec = _spec(settings, terms.model.server, job.ServerSpec)
    parts = widths(plan, columns).values()
    return _guarded(
        terms.model.server, lambda: build.server_model(spec, parts, terms.scores, settings.device)
    )


def models_for(settings: Settings, terms: Terms, plan: Plan[CascadeSettings], X: Matrix) -> GivenModels:
    """Return the models that this party trains; ModelError if its own fails on its first rows."""
    columns, me, own, head = int(X.shape[1]), settings.name, None, None
    if columns:
        asked, own = terms.model_of(me), own_model(settings, terms, columns)
        w, forward = own.initial(np.random.default_rng(0)), own.forward
        given = _guarded(asked, lambda: forward(w[None], X[:2])).shape[2]
        if given != asked.outputs:
            raise ModelError(f"model of {me}: gives {given} numbers a row, the job says {asked.outputs}")
    if me == terms.server:
        head = head_model(settings, terms, plan, columns)
    return GivenModels(own, head)


def restored_models(
    settings: Settings, terms: Terms, plan: Plan[CascadeSettings], arrays: Arrays, columns: int
) -> GivenModels:
    """Return the models of a stored share, as they were trained."""
    own, head = None, None
    if columns:
        own = restored(own_model(settings, terms, columns), OWN, arrays)
    if settings.name == terms.server and terms.model.server.kind != "sum":
        head = restored(head_model(settings, terms, plan, columns), HEAD, arrays)
    return GivenModels(own, head)


def _spec(settings: Settings, asked: OwnModel | HeadModel, kind: type[Spec]) -> Spec:
    """Return the model as the builders take it; code comes from this party's own settings."""
    described, code = model_terms.described(asked), code_of(settings, asked)
    if code is None:
        return kind(**described)
    return kind(
        **described,
        path=_path(settings, code),
        command=_command(settings, code) or None,
        parameters=code.parameters,
    )


def _path(settings: Settings, code: Code) -> str:
    """Return FILE:NAME of a model, with the file's whole path if it lies beside the settings."""
    file, _, name = (code.path or "").rpartition(":")
    return f"{_beside(settings, file)}:{name}"


def _command(settings: Settings, code: Code) -> list[str]:
    """Return the command of a model, with the whole paths of files that lie beside the settings."""
    return [_beside(settings, word) for word in code.command or ()]


def _beside(settings: Settings, word: str) -> str:
    """Return the whole path of a file beside the settings; any other word as it is."""
    file = settings.path(word)
    return str(file.absolute()) if word and file.is_file() else word


def _guarded(asked: OwnModel | HeadModel, act: Callable[[], T]) -> T:
    """Return the result of `act`; ModelError if this party's own code fails in any way.

    The operator reads how it failed, the peers only that it did.
    """
    if asked.kind not in CODE:
        return act()
    try:
        return act()
    except Exception as error:
        raise ModelError(f"models.{asked.name}: {type(error).__name__}: {error}") from error
