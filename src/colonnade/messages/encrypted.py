"""What two parties say to each other whose products are encrypted."""

from __future__ import annotations

from typing import ClassVar

from colonnade.arrays import Numbers
from colonnade.messages.base import Message


class Sealed(Message, frozen=True, tag=84):
    """Public keys and ciphertexts, answers, or parts of inner products (`secure.lattice`)."""

    personal: ClassVar[bool] = True
    tag: int
    body: Numbers
