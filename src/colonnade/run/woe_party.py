"""One party's part in weighing columns: join the others, converse, leave with weighed columns.

It takes place before training (`conversations.woe`). What a party hears is plain data that goes into its
recipe: from then on weight of evidence is a preparation like any other, which the party does alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from colonnade.conversations.woe import Binned, weigh_as_label_holder, weigh_as_party
from colonnade.data.prepare.woe import Counts, Weighed, codes_of, make_bins
from colonnade.data.table import RawTable
from colonnade.errors import DataError
from colonnade.job import Net, Section, Woe, World
from colonnade.net.endpoint import Endpoint
from colonnade.openings.opening import Declare, undisputed
from colonnade.privacy.counts import USUAL, CountNoise
from colonnade.run.party import Party, held_to


class WeighingTerms(Section, frozen=True):
    """What all parties agree on before they weigh columns."""

    label_holder: str
    woe: Woe = Woe()
    network: Net = Net()
    world: World = "local"
    seed: int = 0
    blind: bool = False  # nobody is told a count, but of its own bins with noise

    @property
    def noise(self) -> float:
        """The noise on counts that a party is told, where its label holder demands none."""
        return (USUAL if self.blind else 0.0) if self.woe.noise is None else self.woe.noise


class Weighing(msgspec.Struct, frozen=True, kw_only=True):
    """What one party has in the end, and what it sent; the label holder has everybody's counts as well."""

    party: str
    columns: list[Weighed]
    counts: dict[str, list[Counts]] = {}
    bytes_sent: int = 0
    seconds: float = 0.0


async def weigh(
    party: Party,
    net: Endpoint,
    train: RawTable,
    categorical: Sequence[str],
    terms: WeighingTerms,
    noise: CountNoise | None = None,
    book: Declare = undisputed,
    secret: bytes | None = None,
) -> Weighing:
    """Take part in weighing to its end; returns this party's columns with their weight of evidence.

    `train` are its rows to train on, whose labels are +1 and -1 at the label holder. The label holder tells
    counts with this `noise`, or with what the terms say. What is told is booked before, and nothing else is.
    A party hashes its bins with `secret`, where labels are blind.
    """
    declare = held_to(net, book)
    await party.join(net, terms.digest())
    began = net.clock.now()
    bins = make_bins(train, categorical, terms.woe)
    own = Binned(bins, [codes_of(train, each) for each in bins])
    if net.me == terms.label_holder:
        if train.y is None:
            raise DataError(f"{net.me} is to weigh columns by its label and holds none")
        y, noise = train.y.astype(float), noise or CountNoise(terms.noise)
        if terms.blind:
            from colonnade.conversations.woe_encrypted import weigh_masked_as_label_holder

            done = await weigh_masked_as_label_holder(net, y, own, terms.woe, noise, declare)
        else:
            done = await weigh_as_label_holder(net, y, own, terms.woe, noise, declare)
    elif terms.blind:
        from colonnade.conversations.woe_encrypted import weigh_masked_as_party

        done = await weigh_masked_as_party(net, terms.label_holder, own, terms.woe, declare, secret)
    else:
        done = await weigh_as_party(net, terms.label_holder, own, terms.woe, declare)
    seconds = net.clock.now() - began
    await party.leave(net)
    return Weighing(
        party=net.me,
        columns=done.columns,
        counts=done.counts,
        bytes_sent=sum(net.meter.bytes_by_kind().values()),
        seconds=seconds,
    )
