"""Scores of new rows by models below and one on top: all outputs go to the server, which applies F0.

For a request every party with columns sends its outputs for the rows that are asked for; the server puts them
side by side in the order of training, and the score goes to the asker.

What each side learns: the server learns every party's outputs of the rows, in clear, and the score, also
where somebody else asks; the asker learns the score. Where F0 is the sum of all outputs nobody needs a
server: the outputs go through the secure sum like the parts of a linear model (`predict.LinearPart`), and
only the asker learns the total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.compress.protocol import Plain
from colonnade.conversations.cascade.client import receive_rows, send_rows
from colonnade.errors import MalformedMessage
from colonnade.messages import Announce
from colonnade.optim.replies import Head

if TYPE_CHECKING:
    from colonnade.conversations.predict import Session


@dataclass(frozen=True, eq=False)
class CascadePart:
    """This party's outputs for the common rows, computed once; at the server also what is on top of them."""

    outputs: Numbers  # [rows, outputs]; no columns at a server that is only a server
    server: str
    widths: dict[str, int]  # of every party with columns, in the order in which F0 takes them
    head: Head | None  # at the server
    scores: int  # numbers a row that F0 gives
    precision: Literal["float32", "float64"]

    @property
    def rows(self) -> int:
        return len(self.outputs)

    async def score(self, session: Session, rows: Rows) -> Numbers | None:
        net, tag, plain = session.net, session.next_tag(), Plain(self.precision)
        if net.me != self.server:
            await send_rows(net, self.server, plain, tag, 0, self.outputs[rows])
            return await self._told(session, tag, len(rows)) if session.asker == net.me else None
        assert self.head is not None  # noqa: S101  this is the server
        C = [
            self.outputs[rows]
            if party == net.me
            else await receive_rows(net, party, plain, tag, 0, (len(rows), width))
            for party, width in self.widths.items()
        ]
        z: Numbers = self.head.scores(self.head.w[None], np.concatenate(C, axis=1))[0].astype(np.float64)
        if session.asker == net.me:
            return z
        await net.send(session.asker, Announce(tag, z))
        return None

    async def _told(self, session: Session, tag: int, rows: int) -> Numbers:
        z = (await session.net.recv(Announce, self.server, tag)).values
        if z.dtype != np.float64 or z.shape not in ((rows,), (rows, self.scores)):
            raise MalformedMessage(f"{self.server} sent scores of shape {z.shape} for {rows} rows")
        return z
