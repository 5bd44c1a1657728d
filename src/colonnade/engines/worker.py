"""A worker of `processes`: `python -m colonnade.engines.worker`.

It reads tasks from its standard input, one after another, each behind its length, does them, and answers
every one with a byte. It ends when its input ends: no worker outlives its party.
"""

from __future__ import annotations

import sys
from collections import OrderedDict

import msgspec

from colonnade.arrays import Numbers
from colonnade.engines.shared import Place
from colonnade.engines.tasks import Task, perform

LENGTH = 4
DONE = b"."
KEPT = 12  # arrays that stay mapped; every task names a few


class Mapped:
    """The shared arrays that this worker has mapped, those used last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Place, Numbers] = OrderedDict()

    def find(self, place: Place) -> Numbers:
        """Return a shared array."""
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = place.open()
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(place)
        return known


def main() -> None:
    """Do tasks until there are no more."""
    source, sink, mapped = sys.stdin.buffer, sys.stdout.buffer, Mapped()
    decoder: msgspec.msgpack.Decoder[Task] = msgspec.msgpack.Decoder(Task)
    while length := source.read(LENGTH):
        perform(decoder.decode(source.read(int.from_bytes(length, "little"))), mapped.find)
        sink.write(DONE)
        sink.flush()


if __name__ == "__main__":
    main()
