"""What is stored of a cascade's models beside their parameter vectors, and how it is put back."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from colonnade.arrays import Arrays
from colonnade.conversations.context import GivenModels
from colonnade.errors import ShareError
from colonnade.models.blackbox import Model
from colonnade.shares import Layout

OWN, HEAD = "w", "w0"  # the two parameter vectors that a share may hold


@runtime_checkable
class NamedTensors(Protocol):
    """A model whose parameter vector is made of named tensors; it may keep others that are not trained."""

    @property
    def layout(self) -> Layout:
        """The tensors in the parameter vector."""
        ...

    def buffers(self) -> Arrays:
        """Return the tensors that are not trained, by name."""
        ...

    def restore(self, buffers: Arrays) -> None:
        """Put those tensors back."""
        ...


def described(models: GivenModels) -> tuple[dict[str, Layout], Arrays]:
    """Return the tensors in every parameter vector, and the arrays that are stored beside the vectors."""
    named: list[tuple[str, NamedTensors]] = []
    if isinstance(models.own, NamedTensors):
        named.append((OWN, models.own))
    if isinstance(models.head, NamedTensors):
        named.append((HEAD, models.head))
    beside = {f"{part}.{name}": v for part, model in named for name, v in model.buffers().items()}
    return {part: model.layout for part, model in named}, beside


def restored(model: Model, part: str, arrays: Arrays) -> Model:
    """Return the model with what a share stores beside its parameters; ShareError if it takes another
    number."""
    if isinstance(model, NamedTensors):
        prefix = f"{part}."
        beside = {name.removeprefix(prefix): v for name, v in arrays.items() if name.startswith(prefix)}
        model.restore(beside)
    if model.parameters != len(arrays[part]):
        raise ShareError(
            f"this share has {len(arrays[part])} parameters, its model takes {model.parameters}; train again"
        )
    return model
