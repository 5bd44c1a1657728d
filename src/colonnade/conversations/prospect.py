"""The prospect conversation: columns were weighed, and every party tells how much its own say of the label.

    every party -> all others:  how many columns it has, their information value, and that of the best of them

Numbers are rounded up to steps of about the standard error (`describe.prospects`). They follow from counts of
labels with the noise of weight of evidence (`privacy.counts`), at the label holder as well: it puts the noise
that it tells others on the counts of its own bins. So nobody learns more of a label than the epsilon of that
noise allows, for the counts of each party. Of columns two numbers a party are told.

That is for parties that follow the protocol. One that tells another number is believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from colonnade.conversations.peer_line import PeerLine
from colonnade.describe.prospects import Prospect, Prospects, in_steps, most_steps, step_of
from colonnade.messages import Announce, Topic
from colonnade.net.network import Network
from colonnade.openings.opening import DOUBLE, Channel, Declare, Opening, sent
from colonnade.privacy.counts import CountNoise
from colonnade.result import About

MOST_COLUMNS = 2**20
TOLD = 2  # numbers of each party: the information value of all columns, and of the best


@dataclass(frozen=True)
class ProspectTerms:
    """What all have agreed on: who is asked for what, on how many rows, and whose label it is."""

    job: str
    parties: tuple[str, ...]
    label_holder: str
    rows: int

    @property
    def bits(self) -> float:
        """Bits of a number as it is told."""
        return log2(1 + most_steps(self.rows))


async def told_prospects(
    net: Network, own: Prospect, terms: ProspectTerms, noise: CountNoise, declare: Declare
) -> Prospects:
    """Tell all others what the own columns may be worth; returns what all parties' may be.

    `own` follows from counts with noise; at the label holder that is `noise`.
    """
    rows = terms.rows
    await declare(told_of_prospects(net.me, terms, noise))
    lines = {peer: PeerLine(net, peer) for peer in net.peers}
    steps = (in_steps(own.iv, rows), in_steps(own.best_iv, rows))
    for line in lines.values():
        await line.tell(own.columns)
        await line.tell(*steps)
    found = [_of(net.me, own.columns, *steps, rows, own.best)]
    for peer, line in lines.items():
        (columns,) = (await line.told(1, 0, MOST_COLUMNS)).tolist()
        iv, best_iv = (await line.told(TOLD, 0, most_steps(rows))).tolist()
        found.append(_of(peer, columns, iv, best_iv, rows))
    return Prospects.among(terms.job, found, step_of(rows))


def told_of_prospects(me: str, terms: ProspectTerms, noise: CountNoise) -> list[Opening]:
    """Return what a party tells of its columns; at the label holder also what all these tell of labels."""
    through, others = sent(Announce, Topic.BLIND), len(terms.parties) - 1
    told = [
        _opening("nothing", terms, me, 1, DOUBLE, channel=through),
        _opening("columns", terms, me, TOLD, terms.bits, channel=through),
    ]
    if me == terms.label_holder:
        # each hears what follows from the counts of all parties but itself, whose noise is not the same
        epsilon = None if noise.epsilon is None else others * noise.epsilon
        told.append(_opening("labels", terms, me, TOLD * others, terms.bits, epsilon=epsilon))
    return told


def _opening(
    about: About,
    terms: ProspectTerms,
    me: str,
    numbers: int,
    bits: float,
    *,
    channel: Channel | None = None,
    epsilon: float | None = None,
) -> Opening:
    return Opening(
        kind="sizes" if about == "nothing" else "IV",
        about=about,
        of=(me,),
        to=tuple(each for each in terms.parties if each != me),
        numbers=numbers,
        bits=bits,
        carried=DOUBLE,
        rows=0 if about == "nothing" else terms.rows,
        when="when columns are weighed",
        by=me,
        channel=channel,
        epsilon=epsilon,
    )


def _of(party: str, columns: int, iv: int, best_iv: int, rows: int, best: str = "") -> Prospect:
    """Return a party's columns from what it told, in steps."""
    return Prospect.of(party, columns, iv * step_of(rows), best_iv * step_of(rows), best)
