"""Scores of new rows with weights that nobody knows (`secure.reveal = "never"`).

Owners keep their part of the weights and the key of their rotation, the label holder its parts of all. A
request is one question for scores (`secure.product`): owners veil the rows that are asked for, and the total
goes to the asker. What each side learns: the asker learns the total scores of the rows it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np

from colonnade.arrays import Arrays, Floats, Matrix, Rows, Words
from colonnade.conversations.blind.columns import COARSEST, Turn, fixed, lengths
from colonnade.conversations.blind.products import ROOM
from colonnade.conversations.predict import Holding, Session
from colonnade.errors import DataError, FixedPointOverflow
from colonnade.job.plan import Blind
from colonnade.messages import Announce, Unveil, Veil, Veiled
from colonnade.models.linear import rows_of
from colonnade.net.expect import MOST, NOTHING, PACKED, Number, whole, words
from colonnade.openings.opening import Opening
from colonnade.openings.scoring import ScoringRequest
from colonnade.secure.product import Asker, Columns, Dealer, Lot, Owner
from colonnade.secure.streams import Roles

LONGER = 16.0  # times the longest row of training: the longest that can be scored
TABLE = "rows"


def owner_arrays(part: Words, key: bytes, X: Matrix, bits: int) -> Arrays:
    """Return what an owner keeps."""
    longest, turn = np.sqrt(lengths(X)[:1]), np.frombuffer(key, dtype=np.uint8)
    return {"part": part, "turn": turn, "longest": longest, "bits": np.array([bits])}


def label_holder_arrays(w: Floats, parts: Mapping[str, Words], unit: float, bits: int) -> Arrays:
    """Return what the label holder keeps."""
    own = {"w": w, "unit": np.array([unit]), "bits": np.array([bits])}
    return own | {f"part {owner}": part for owner, part in parts.items()}


class BlindScorer:
    """One party's share of weights that nobody knows, applied to its part of the common rows."""

    overlaps: ClassVar[bool] = True

    def __init__(self, holding: Holding, blind: Blind) -> None:
        self.holding, self.me, self.asks = holding, holding.me, holding.plan.evaluator
        self.roles = [Roles(self.asks, owner, dealer) for owner, dealer in blind.dealers.items()]
        self.shape = holding.plan.objective.shape
        self.count = max(1, holding.plan.objective.classes)

    @property
    def rows(self) -> int:
        return int(self.holding.X.shape[0])

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        tag = session.next_tag()
        piece: Words = np.zeros((self.count, len(rows)), dtype=np.uint64)
        lot = Lot(tag, TABLE, (rows,), self.count, 0)
        for roles in self.roles:
            if self.me == roles.owner:
                await self._veil(session, roles, lot)
        for roles in self.roles:
            if self.me == roles.dealer:
                due = whole(1, high=max(1, ROOM // max(1, len(rows))))
                width = int((await session.net.recv(Announce, roles.owner, tag, values=due)).values[0])
                piece += Dealer(session.streams, roles, width).deal(lot)[0][0]
        if self.me == self.asks:
            piece += await self._ask(session, lot)
        for roles in self.roles:
            if self.me == roles.owner:
                part = words(*self.holding.arrays["part"].shape)
                veil = await session.net.recv(Veil, self.asks, tag, moved=PACKED, weights=part)
                owned = Owner(session.streams, roles, {TABLE: self.columns}).take(lot)
                piece += owned.scores(0, self.holding.arrays["part"] + veil.weights)
        return await self._total(session, piece, tag)

    def opens(self, request: ScoringRequest) -> list[Opening]:
        """Return the totals; what is said beside them is how wide blocks are, and what a word stands for."""
        own = [roles.dealer for roles in self.roles if roles.owner == self.me]
        sizes = [request.told("sizes", 1, dealer, Announce, about="nothing") for dealer in own]
        return [request.total(request.rows * self.count), *sizes]

    async def _veil(self, session: Session, roles: Roles, lot: Lot) -> None:
        """Send the label holder the veiled rows, and the dealer how wide they are; at an owner."""
        owner = Owner(session.streams, roles, {TABLE: self.columns})
        await session.net.send(self.asks, Veiled(lot.tag, owner.veiled_rows(TABLE, lot.batches[0])))
        await session.net.send(roles.dealer, Announce(lot.tag, np.array([owner.width])))

    async def _ask(self, session: Session, lot: Lot) -> Words:
        """Return what the label holder adds: its own block's scores, and those of veiled rows."""
        unit = _score_unit(self.holding)
        X, rows = rows_of(self.holding.X, lot.batches[0]), lot.rows
        own = X.scores(0, rows, np.asarray(self.holding.arrays["w"])) / unit
        if not float(np.abs(own).max(initial=0.0)) < 2.0**62:
            raise FixedPointOverflow("a row's score does not fit the range of the model; is a column off?")
        piece = np.atleast_2d(np.rint(own).astype(np.int64).view(np.uint64).T).copy()
        parts = {roles: self.holding.arrays[f"part {roles.owner}"] for roles in self.roles}
        veiled = []
        for roles, part in parts.items():
            wide = words(rows, part.shape[1])
            veiled.append((await session.net.recv(Veiled, roles.owner, lot.tag, values=wide)).values)
        widths = {roles: part.shape[1] for roles, part in parts.items()}
        asker = Asker(session.streams, widths, {TABLE: np.hstack(veiled)})
        asked = asker.take(Lot(lot.tag, TABLE, (np.arange(rows),), self.count, 0))
        hidden = asked.veil(0, np.hstack(list(parts.values())))
        for roles, cut in zip(self.roles, asker.cuts, strict=True):
            await session.net.send(roles.owner, Veil(lot.tag, np.zeros((0, 0)), hidden[:, cut]))
        piece += asked.scores[0]
        if session.asker != self.me:
            await session.net.send(session.asker, Unveil(lot.tag, np.zeros(0), unit))
        return piece

    async def _total(self, session: Session, piece: Words, tag: int) -> Floats | None:
        if self.me != session.asker:
            await session.secure.give(piece, root=session.asker, tag=tag)
            return None
        unit = _score_unit(self.holding) if self.me == self.asks else 0.0
        if self.me != self.asks:
            due = Number(0, MOST)
            unit = (await session.net.recv(Unveil, self.asks, tag, values=NOTHING, unit=due)).unit
        total = await session.secure.collect(piece, tag=tag)
        z: Floats = total.view(np.int64).T.astype(np.float64) * unit
        return z if self.shape else z[:, 0]

    @cached_property
    def columns(self) -> Columns:
        """The own columns, turned and rounded as in training; at an owner."""
        held = self.holding
        if np.sqrt(lengths(held.X)[0]) > LONGER * float(held.arrays["longest"][0]):
            raise DataError(f"{self.me}: a row is much longer than any of training; its score would not fit")
        return fixed(held.X, _turn(held), _bits(held))


def together(holdings: Mapping[str, Holding]) -> Floats:
    """Return the scores where one process holds all shares, as in an experiment: the parts are added up."""
    plan = next(iter(holdings.values())).plan
    desk = holdings[plan.evaluator]
    z: Floats = np.asarray(desk.X @ desk.arrays["w"])
    for party, held in holdings.items():
        if "part" in held.arrays:
            words = held.arrays["part"] + desk.arrays[f"part {party}"]
            w = words.view(np.int64).T.astype(np.float64) * float(desk.arrays["unit"][0])
            z = z + np.asarray(held.X @ _turn(held).back(w)).reshape(z.shape)
    return z


def _turn(held: Holding) -> Turn:
    return Turn.secret(int(held.X.shape[1]), held.arrays["turn"].tobytes())


def _bits(held: Holding) -> int:
    """Return bits of a column's fraction; models of before they were chosen have the fewest."""
    return int(held.arrays["bits"][0]) if "bits" in held.arrays else COARSEST


def _score_unit(held: Holding) -> float:
    """Return what a word of a score stands for; at the label holder."""
    return float(held.arrays["unit"][0]) * 2.0 ** -_bits(held)
