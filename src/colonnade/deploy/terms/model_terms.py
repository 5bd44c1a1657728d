"""Which models a job between companies asks for: those that come with Colonnade, or a party's own by name.

A job that another party wrote never says which code is to be run here: there is no place in it for a path or
a command. A model that is code (a torch module, a Python function, a program) has a name in the job, and each
party's own settings say what that name means there (`[models.NAME]`), or nothing runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal

import msgspec

from colonnade import job
from colonnade.errors import JobError

CODE = ("torch", "function", "program")
WIDEST, DEEPEST = 2**12, 16  # a proposal must not make a party set aside any amount of memory


class OwnModel(job.Section, frozen=True):
    """A party's own model (F_m). `outputs` is how many numbers a row becomes; None: one for every score."""

    kind: Literal["linear", "mlp", "cnn", "torch", "function", "program"] = "linear"
    outputs: int | None = None
    hidden: tuple[int, ...] = (128,)
    shape: tuple[int, int, int] | None = None
    channels: tuple[int, ...] = (32, 64)
    name: str | None = None


class HeadModel(job.Section, frozen=True):
    """The server's model on top of all parties' outputs (F0)."""

    kind: Literal["sum", "linear", "mlp", "torch", "function", "program"] = "sum"
    hidden: tuple[int, ...] = (128,)
    name: str | None = None


class ModelTerms(OwnModel, frozen=True):
    """The model of every party that has none of its own, those of single parties, and the server's."""

    parties: dict[str, OwnModel] = msgspec.field(default_factory=dict)
    server: HeadModel = HeadModel()

    def of(self, party: str) -> OwnModel:
        """Return the model of this party."""
        return self.parties.get(party, self)

    def for_job(self) -> job.ModelSpecs:
        """Return the same for the training conversations, which are handed code as an object and load
        none."""
        return job.ModelSpecs(
            **_nameless(self),
            parties={party: job.ModelSpec(**_nameless(each)) for party, each in self.parties.items()},
            server=job.ServerSpec(**_nameless(self.server)),
        )


def described(model: OwnModel | HeadModel) -> dict[str, Any]:
    """Return all fields of a model but its name."""
    named = {field.name for field in msgspec.structs.fields(model)} - {"name", "parties", "server"}
    return {name: getattr(model, name) for name in named}


def _nameless(model: OwnModel | HeadModel) -> dict[str, Any]:
    """Return the fields of a model as the training conversations take them."""
    if model.kind not in CODE:
        return described(model)
    # a name has no colon, so nothing could ever be loaded by it; a black box never has a gradient
    kind = "torch" if model.kind == "torch" else "function"
    return {**described(model), "kind": kind, "path": model.name, "parameters": 0}


def refuse_code(plain: object, where: str) -> None:
    """Raise JobError if a job file says which code to run and no name for it, with how it is done."""
    model = plain.get("model") if isinstance(plain, dict) else None
    if not isinstance(model, dict):
        return
    parties = model.get("parties")
    inner = parties.items() if isinstance(parties, dict) else ()
    named = {
        "model": model,
        "model.server": model.get("server"),
        **{f"model.parties.{p}": m for p, m in inner},
    }
    for place, each in named.items():
        for key in ("path", "command", "parameters"):
            if isinstance(each, dict) and key in each and "name" not in each:
                raise JobError(
                    f"{where}: {place}.{key}: a job between companies carries no code; say name = 'NAME', "
                    f"and put {key} under [models.NAME] in the settings of the party that runs it"
                )


def check_models(models: ModelTerms, parties: Collection[str], refuse: Callable[[str], None]) -> None:
    """Refuse models of unknown parties, without a name they need, or larger than a job may ask for."""
    for party in models.parties:
        if party not in parties:
            refuse(f"model.parties: there is no party {party}; the parties are {', '.join(sorted(parties))}")
    named: dict[str, OwnModel | HeadModel] = {
        "model": models,
        "model.server": models.server,
        **{f"model.parties.{party}": each for party, each in models.parties.items()},
    }
    for place, each in named.items():
        if each.kind in CODE and not _is_name(each.name):
            refuse(
                f"{place}: kind = '{each.kind}' needs name = 'NAME', an entry of [models] in the settings of "
                "the party that runs it"
            )
        if each.kind not in CODE and each.name is not None:
            refuse(f"{place}.name: kind = '{each.kind}' comes with Colonnade and has no name; drop it")
        for key in ("hidden", "channels", "shape"):
            widths = getattr(each, key, None) or ()
            if len(widths) > DEEPEST or not all(1 <= width <= WIDEST for width in widths):
                refuse(f"{place}.{key}: give up to {DEEPEST} numbers from 1 to {WIDEST}")
        if isinstance(each, OwnModel) and each.outputs is not None and not 1 <= each.outputs <= WIDEST:
            refuse(f"{place}.outputs: {each.outputs} is not a number from 1 to {WIDEST}")


def _is_name(name: str | None) -> bool:
    """Return whether this can be the name of a model: letters, digits, - and _."""
    return bool(name) and all(c.isalnum() or c in "-_" for c in name or "")
