"""What clients and the server of a cascade say to each other."""

from __future__ import annotations

from typing import ClassVar

from colonnade.arrays import Numbers
from colonnade.messages.base import Message


class Upload(Message, frozen=True, tag=20):
    """A client's outputs for a batch: [vectors, rows, outputs], its own parameters first.

    `tag` is the number of the client's round; everybody derives its rows from that.
    """

    queued: ClassVar[bool] = True
    tag: int
    outputs: Numbers


class Reply(Message, frozen=True, tag=21):
    """The server's answer to an upload; nothing in `values` says that the run is over.

    `answered` counts the answers of the run so far, from which every client knows how far it has come.
    """

    tag: int
    answered: int
    values: Numbers


class Embeddings(Message, frozen=True, tag=22):
    """A client's outputs for a stretch of its rows: the first pass, and what evaluation asks for."""

    tag: int
    outputs: Numbers


class Measure(Message, frozen=True, tag=23):
    """The server asks a client for its outputs, to measure the model: of all training rows, in the end of
    test rows."""

    queued: ClassVar[bool] = True
    tag: int
    final: bool


OfCascades = Upload | Reply | Embeddings | Measure
