"""One party's part in the products of a blind run: all parties call the same verbs in the same order.

`scores` and `add` are the verbs of `secure.product`, for all owners' blocks at once. What is added to a
vector travels with the next question for scores, so that a round has as many messages as one in clear: a Veil
from the label holder to every owner, and a piece of the sum back. Dealers deal for a whole lot at once.

All blocks are scored at one version of the weights: every part of a vector has counted its changes, the
label holder says with its part how many are in it, and an owner that has made another number of them, as the
public order of verbs tells it, refuses. At mixed versions a total would tell one owner's score from others'.

A party may be owner of one block and dealer of others; the label holder is the asker of all.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from colonnade.arrays import Rows, Words
from colonnade.conversations.context import Context, Measuring
from colonnade.messages import Announce, Dealt, Topic, Unveil, Veil, Veiled, tag_of
from colonnade.net.endpoint import Endpoint
from colonnade.net.expect import MOST, Array, Number, out_of_turn, whole, words
from colonnade.secure.product import Asker, AskerLot, Columns, Dealer, Lot, Owner, OwnerLot, cuts_of
from colonnade.secure.protocol import SecureSum
from colonnade.secure.streams import Roles
from colonnade.state import Declared

ROOM = 2**33  # words of the veiled columns of one owner, at most
HELD = 2**23  # words of all owners' veiled columns that are held in memory; more are in a file
STRETCH = 4096  # rows of a message that veils columns
NOTHING = np.zeros((0, 0), dtype=np.uint64)
_SIDE = 2**40  # no run has that many rounds


@dataclass(eq=False)
class OpenLot:
    """A lot as one party holds it: as asker, as owner, as dealer."""

    lot: Lot
    number: int
    asked: AskerLot | None = None
    owned: OwnerLot | None = None
    dealt_scores: list[list[Words]] = field(default_factory=list)
    dealt: Words | None = None  # what dealers sent, side by side


@dataclass(frozen=True)
class UnsentAddition:
    """An addition that owners have not heard of yet."""

    lot: OpenLot
    batch: int
    vectors: slice
    moved: dict[str, Words]


@dataclass(frozen=True, eq=False)
class PendingScores:
    """A question for scores whose answer the label holder has not collected yet."""

    secure: SecureSum
    piece: Words
    tag: int


class BlindProducts:
    """One party's products. `part` is its part of all shared vectors, [vectors, columns].

    An owner has its own columns there, and the label holder those of all owners, side by side.
    """

    STATE = Declared(kept=("part", "versions", "_counts"), remade=("_unsent",))

    def __init__(self, context: Context[Any], sizes: dict[str, int]) -> None:
        """Make the products; `sizes` are the rows of all tables."""
        blind = context.plan.blind
        if blind is None:
            raise RuntimeError("the plan is not blind")
        self.context, self.net, self.asker = context, context.net, context.evaluator
        self.roles = [Roles(self.asker, owner, dealer) for owner, dealer in blind.dealers.items()]
        self.part: Words = NOTHING
        self.sizes = sizes
        self._asker: Asker | None = None
        self._owner: Owner | None = None
        self._dealers: dict[str, Dealer] = {}
        self.versions = Counter[str]()  # how many changes are in a part, by owner
        self._counts = Counter[str]()
        self._unsent: UnsentAddition | None = None

    @property
    def asks(self) -> bool:
        """Whether this party is the label holder."""
        return self.net.me == self.asker

    # -- set-up -------------------------------------------------------------------------------------

    async def set_up(self, tables: Mapping[str, Columns], vectors: int) -> None:
        """Veil all columns, once; every shared vector begins as zero.

        `tables` are the own columns by table, where this party is an owner.
        """
        me, streams = self.net.me, self.context.streams
        for roles in self.roles:
            if me == roles.owner:
                self._owner = Owner(streams, roles, tables)
                width = Announce(tag_of(Topic.BLIND, 0), np.array([self._owner.width]))
                await self.net.send(self.asker, width)
                await self.net.send(roles.dealer, width)
                self.part = np.zeros((vectors, self._owner.width), dtype=np.uint64)
        widths: dict[Roles, int] = {}
        for roles in self.roles:
            if me in (roles.dealer, self.asker):
                due = whole(1, high=max(1, ROOM // max(1, *self.sizes.values())))
                announced = await self.net.recv(Announce, roles.owner, tag_of(Topic.BLIND, 0), values=due)
                widths[roles] = int(announced.values[0])
                if me == roles.dealer:
                    self._dealers[roles.owner] = Dealer(streams, roles, widths[roles])
        if self._owner is not None:
            await self._veil(self._owner)
        if self.asks:
            self._asker = Asker(streams, widths, await self._received(widths))
            self.part = np.zeros((vectors, self._asker.width), dtype=np.uint64)

    async def _veil(self, owner: Owner) -> None:
        """Send the veiled columns to the label holder."""
        number = 0
        for table, rows in self.sizes.items():
            for start, values in owner.veiled(table, STRETCH):
                tag = tag_of(Topic.BLIND, number + start // STRETCH)
                await self.net.send(self.asker, Veiled(tag, values))
            number += -(-rows // STRETCH)

    async def _received(self, widths: dict[Roles, int]) -> dict[str, Words]:
        """Return every table's veiled columns of all owners, side by side; at the label holder."""
        veiled, number = {}, 0
        by_owner = {roles.owner: width for roles, width in widths.items()}
        for table, rows in self.sizes.items():
            veiled[table] = await received(self.net, by_owner, tag_of(Topic.BLIND, number), rows)
            number += -(-rows // STRETCH)
        return veiled

    @property
    def parts(self) -> dict[str, Words]:
        """The part of the shared vectors by the owner of their columns."""
        if self._asker is not None:
            owners = [roles.owner for roles in self.roles]
            return {owner: self.part[:, cut] for owner, cut in zip(owners, self._asker.cuts, strict=True)}
        return {} if self._owner is None else {self.net.me: self.part}

    # -- verbs --------------------------------------------------------------------------------------

    async def open(self, table: str, batches: Sequence[Rows], *, scored: int, added: int) -> OpenLot:
        """Begin a lot: the asker and the dealers do their part of its products now, and deal."""
        number = self._counts["lots"]
        self._counts["lots"] += 1
        lot = Lot(tag_of(Topic.BLIND, number), table, tuple(batches), scored, added)
        mine = OpenLot(lot, number)
        for k, roles in enumerate(self.roles):
            if roles.owner in self._dealers:
                scores, values = self._dealers[roles.owner].deal(lot)
                mine.dealt_scores.append(scores)
                await self._charge(lot, self._dealers[roles.owner].width)
                if added:
                    await self.net.send(self.asker, Dealt(self._dealt_tag(number, k), values))
        if self._asker is not None:
            mine.asked = self._asker.take(lot)
            await self._charge(lot, self._asker.width)
        if self._owner is not None:
            mine.owned = self._owner.take(lot)
            await self._charge(lot, self._owner.width)
        return mine

    async def scores(
        self, lot: OpenLot, batch: int, vectors: slice, measuring: Measuring | None = None
    ) -> Words | None:
        """Return the scores of a batch, [vectors, rows], summed over all blocks: at the label holder."""
        return await self.answer(await self.ask(lot, batch, vectors, measuring))

    async def ask(
        self, lot: OpenLot, batch: int, vectors: slice, measuring: Measuring | None = None
    ) -> PendingScores | None:
        """Ask every block for the scores of a batch, at the same weights; the label holder may go on."""
        if measuring is not None:
            await self.flush()  # what trains travels on the network for training
        net, secure = (self.net, self.context.sum) if measuring is None else (measuring.net, measuring.sum)
        tag = self.next_tag(measuring=measuring is not None)
        if lot.asked is not None and self._asker is not None:
            due, self._unsent = self._unsent, None
            mine = lot.asked.veil(batch, self.part[vectors])
            for roles, columns in zip(self.roles, self._asker.cuts, strict=True):
                moved = NOTHING if due is None else due.moved[roles.owner]
                veil = Veil(tag, moved, mine[:, columns], self.versions[roles.owner])
                await net.send(roles.owner, veil)
            return PendingScores(secure, lot.asked.scores[batch], tag)
        pieces = [dealt[batch] for dealt in lot.dealt_scores]
        if lot.owned is not None:
            part = self.part[vectors]
            veil = await net.recv(Veil, self.asker, tag, moved=self._moved, weights=words(*part.shape))
            self._apply(veil)
            pieces.append(lot.owned.scores(batch, part + veil.weights))
        self._unsent = None
        if not pieces:
            pieces.append(np.zeros((lot.lot.scored, len(lot.lot.batches[batch])), dtype=np.uint64))
        await secure.give(reduce(add, pieces), root=self.asker, tag=tag)
        return None

    async def answer(self, asked: PendingScores | None) -> Words | None:
        """Return the answer to a question for scores, at the label holder."""
        return None if asked is None else await asked.secure.collect(asked.piece, tag=asked.tag)

    async def add(self, lot: OpenLot, batch: int, vectors: slice, t: Words | None = None) -> None:
        """Add X't to shared vectors; `t` is [vectors, rows], at the label holder."""
        await self.flush()
        moved: dict[str, Words] = {}
        if t is not None and lot.asked is not None:
            if lot.dealt is None:
                lot.dealt = await self._hear_dealers(lot)
            shown = lot.asked.moved(batch, t)
            self.part[vectors] += lot.asked.sums[batch] + lot.dealt[batch]
            for roles, each in zip(self.roles, shown, strict=True):
                moved[roles.owner] = each
                self.versions[roles.owner] += 1
        self._unsent = UnsentAddition(lot, batch, vectors, moved)

    async def _hear_dealers(self, lot: OpenLot) -> Words:
        """Return what all dealers dealt for a lot, [batches, added, columns], side by side."""
        found, shape = [], (len(lot.lot.batches), lot.lot.added)
        for k, (roles, part) in enumerate(zip(self.roles, self.parts.values(), strict=True)):
            due, tag = words(*shape, part.shape[1]), self._dealt_tag(lot.number, k)
            found.append((await self.net.recv(Dealt, roles.dealer, tag, values=due)).values)
        return np.concatenate(found, axis=2)

    async def flush(self) -> None:
        """Tell owners of an addition that no question for scores has told them of."""
        if self._unsent is None:
            return
        tag = self._side_tag()
        if self.asks:
            for owner, moved in self._unsent.moved.items():
                await self.net.send(owner, Veil(tag, moved, NOTHING, self.versions[owner]))
        elif self._owner is not None:
            self._apply(await self.net.recv(Veil, self.asker, tag, moved=self._moved, weights=words(0, 0)))
        self._unsent = None

    def clear(self, vectors: slice) -> None:
        """Set shared vectors to zero."""
        self.part[vectors] = 0
        self.versions.update(list(self.parts))

    async def unveil(self, vectors: slice, told: Sequence[Words], unit: float) -> tuple[Words, float] | None:
        """Give every owner the label holder's part of its vectors: the whole vectors, and their unit.

        At the label holder `told` are its parts as they may be told, in the order of `parts`.
        """
        await self.flush()
        tag = self._side_tag()
        if self.asks:
            for owner, part in zip(self.parts, told, strict=True):
                await self.net.send(owner, Unveil(tag, part, unit))
        if self._owner is None:
            return None
        due = words(*self.part[vectors].shape)
        message = await self.net.recv(Unveil, self.asker, tag, values=due, unit=Number(0, MOST))
        return self.part[vectors] + message.values, message.unit

    # -- within -------------------------------------------------------------------------------------

    @property
    def _moved(self) -> Array:
        """What the next Veil has to bring an owner: words for every row of a batch that is added, or none."""
        due = self._unsent
        return words(0, 0) if due is None else words(due.lot.lot.added, len(due.lot.lot.batches[due.batch]))

    def _apply(self, veil: Veil) -> None:
        """Apply, at an owner, what the label holder has added since the last message."""
        due = self._unsent
        if due is not None and due.lot.owned is not None:
            self.part[due.vectors] += due.lot.owned.add(due.batch, veil.moved)
            self.versions[self.net.me] += 1
        of_version(self.asker, veil, self.versions[self.net.me])

    def next_tag(self, *, measuring: bool = False) -> int:
        """Return a tag for a sum that has not been used yet; all parties count alike."""
        topic, name = (Topic.EVALUATE, "measured") if measuring else (Topic.BLIND, "asked")
        self._counts[name] += 1
        return tag_of(topic, self._counts[name] - 1)

    def _side_tag(self) -> int:
        """Return a tag for a message that comes with no sum."""
        self._counts["side"] += 1
        return tag_of(Topic.BLIND, _SIDE + self._counts["side"])

    def _dealt_tag(self, number: int, block: int) -> int:
        return tag_of(Topic.BLIND, number * len(self.roles) + block)

    async def _charge(self, lot: Lot, width: int) -> None:
        await self.context.charge(lot.rows * width * (lot.scored + lot.added))


def of_version(sender: str, veil: Veil, due: int) -> None:
    """Refuse, by its sender's name, what is about weights of another version than all blocks are at."""
    if veil.version != due:
        why = f"it is about weights of version {veil.version}, and all blocks are at version {due}"
        raise out_of_turn(sender, veil, why)


async def received(net: Endpoint, widths: Mapping[str, int], tag: int, rows: int, held: int = HELD) -> Words:
    """Return the owners' veiled columns, side by side, in messages from a tag on.

    More than `held` words are in a file that is mapped into memory.
    """
    shape, cuts = (rows, sum(widths.values())), cuts_of(widths.values())
    small = math.prod(shape) <= held
    whole: Words = np.empty(shape if small else (min(STRETCH, rows), shape[1]), dtype=np.uint64)
    with tempfile.TemporaryFile() as file:  # the map keeps it, and it is gone with the run
        for start in range(0, rows, STRETCH):
            part = whole[start : start + STRETCH] if small else whole[: rows - start]
            for (owner, width), cut in zip(widths.items(), cuts, strict=True):
                due = words(len(part), width)
                message = await net.recv(Veiled, owner, tag + start // STRETCH, values=due)
                part[:, cut] = message.values
            if not small:
                file.write(part.data)  # quicker than into the map, page by page
        if small:
            return whole
        file.flush()
        return np.asarray(np.memmap(file, dtype=np.uint64, mode="r", shape=shape))
