"""Builds the model that a job describes: one of our classes, a Python file, or a program."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

from colonnade.errors import JobError
from colonnade.job import Device, ModelSpec, ServerSpec
from colonnade.models.blackbox import Function, Linear, Model, Sum


def party_model(spec: ModelSpec, columns: int, device: Device = "cpu") -> Model:
    """Return a party's model F_m of this many columns."""
    match spec.kind:
        case "linear":
            return Linear(columns, spec.width)
        case "cnn":
            from colonnade.models.network import cnn

            shape = spec.shape or (1, 1, columns)
            if prod(shape) != columns:
                raise JobError(
                    f"model.shape: images of {list(shape)} have {prod(shape)} numbers, "
                    f"and there are {columns} columns"
                )
            return cnn(shape, spec.channels, spec.width, device=device)
        case "mlp" | "torch" | "function" | "program":
            return _named(spec, columns, spec.width, device)


def server_model(
    spec: ServerSpec,
    widths: Iterable[int],
    outputs: int,
    device: Device = "cpu",
    *,
    unit: float = 1.0,
    offset: float = 0.0,
) -> Model:
    """Return F0, from the embeddings of all parties side by side to `outputs` scores a row.

    Where it is a sum it may be in a unit, with an offset.
    """
    given = list(widths)
    columns = sum(given)
    match spec.kind:
        case "sum":
            if set(given) != {outputs}:
                raise JobError(
                    f"model.server: the models of the parties give {', '.join(map(str, given))} numbers a "
                    f"row, which cannot be added up to {outputs} score{'s' * (outputs > 1)}; "
                    f"set model.outputs = {outputs}, or model.server.kind = 'linear'"
                )
            return Sum(columns, outputs, unit=unit, offset=offset)
        case "linear":
            return Linear(columns, outputs, bias=True, start=1.0)
        case "mlp" | "torch" | "function" | "program":
            return _named(spec, columns, outputs, device)


def _named(spec: ModelSpec | ServerSpec, columns: int, outputs: int, device: Device) -> Model:
    """Return a model of a kind that parties and server share."""
    match spec.kind:
        case "program":
            from colonnade.models.program import Program

            return Program(spec.command or [], columns)
        case "function":
            return Function(load(spec.path or ""), spec.parameters or 0, spec.path or "")
        case "mlp" if device != "cuda" and importlib.util.find_spec("torch") is None:
            from colonnade.models.dense_layers import DenseLayers

            return DenseLayers((columns, *spec.hidden, outputs))
        case "mlp":
            from colonnade.models.network import mlp

            return mlp(columns, spec.hidden, outputs, device=device)
        case "torch":
            from colonnade.models.network import network_of

            return network_of(load(spec.path or "")(columns, outputs), device=device)
        case "linear" | "cnn" | "sum":
            raise RuntimeError(f"a {spec.kind} model is not one that parties and server share")


def load(path: str) -> Any:
    """Return the object that `package.module:name` or `file.py:name` names."""
    where, _, name = path.rpartition(":")
    try:
        return getattr(_module(where), name)
    except (ImportError, OSError, AttributeError, ValueError) as error:
        raise JobError(f"model: cannot load {path!r} ({error}); write module:name or file.py:name") from error


def files_of(path: str | None, command: Sequence[str] | None) -> list[Path]:
    """Return the files that a model's code is made of, as far as `path` or `command` name them."""
    if path is None:
        return [file for word in command or () if (file := Path(word)).is_file()]
    where = path.rpartition(":")[0]
    if where.endswith(".py"):
        return [Path(where)]
    found = importlib.util.find_spec(where)
    return [Path(found.origin)] if found is not None and found.origin is not None else []


def _module(where: str) -> ModuleType:
    if not where.endswith(".py"):
        return importlib.import_module(where)
    spec = importlib.util.spec_from_file_location(Path(where).stem, where)
    if spec is None or spec.loader is None:
        raise ImportError(f"{where} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
