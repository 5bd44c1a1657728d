"""One party's part in products of one owner's columns that one asker asks for: asker, owner or dealer.

Where two ask, such as the label holder and its mate, each has words of its own with every owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from colonnade.conversations.blind.products import ROOM, STRETCH, received
from colonnade.conversations.context import Context
from colonnade.messages import Announce, Topic, Veiled, tag_of
from colonnade.net.expect import whole
from colonnade.secure.product import Asker, Columns, Dealer, Owner
from colonnade.secure.streams import Roles


@dataclass(eq=False)
class ProductSide:
    """What this party is in these products, once they are set up; at most one of the three."""

    roles: Roles
    scored: int = 0  # whether this asker asks for the block's scores
    asker: Asker | None = None
    owner: Owner | None = None
    dealer: Dealer | None = None


async def set_up(context: Context[Any], sides: Sequence[ProductSide], X: Columns | None) -> None:
    """Set up the products: owners veil their columns for each asker, with words of their own."""
    me, net, streams, rows = context.me, context.net, context.streams, context.train.rows
    for tag, side in _tagged(sides):
        roles = side.roles
        if me == roles.owner and X is not None:
            side.owner = Owner(streams, roles, {"train": X})
            for peer in (roles.asker, roles.dealer):
                await net.send(peer, Announce(tag, np.array([side.owner.width])))
            for start, values in side.owner.veiled("train", STRETCH):
                await net.send(roles.asker, Veiled(tag + start // STRETCH, values))
    for tag, side in _tagged(sides):
        roles = side.roles
        if me not in (roles.asker, roles.dealer):
            continue
        due = whole(1, low=1, high=max(1, ROOM // rows))
        width = int((await net.recv(Announce, roles.owner, tag, values=due)).values[0])
        if me == roles.dealer:
            side.dealer = Dealer(streams, roles, width)
        else:
            veiled = await received(net, {roles.owner: width}, tag, rows)
            side.asker = Asker(streams, {roles: width}, {"train": veiled})


def _tagged(sides: Sequence[ProductSide]) -> Iterator[tuple[int, ProductSide]]:
    return ((tag_of(Topic.BLIND, number << 32), side) for number, side in enumerate(sides))
