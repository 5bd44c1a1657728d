"""A run that opens nothing before its end (`secure.scores = "hidden"`): all parties run this program.

Scores are shared between the label holder A and its mate B, and so is theta: for the logistic loss
by a sum of sines (`secure.shared_logistic`), for the squared loss by a division (`secure.truncate`),
with words that a third party T deals. Products are those of `pairs`. A knows labels, B knows nothing;
A learns no score in training, so it has no equations in the others' columns. The penalty
shrinks shared weights by a division, some rounds at once. In the end every owner is told its weights,
and the model is measured once.

Weights have BITS + `bits` bits of fraction, scores BITS more; what is added has `bits`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from colonnade.arrays import Floats, Rows, Words
from colonnade.conversations.blind import columns
from colonnade.conversations.blind.low_bits import REVEALED, blurred
from colonnade.conversations.blind.pairs import Open, PairProducts
from colonnade.conversations.blind.products import NOTHING
from colonnade.conversations.blind.scale import BITS, Scale
from colonnade.conversations.blind.shared_theta import SharedSines, Sines
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import MEGA, Mark
from colonnade.conversations.linear.parties.blind_refusals import refuse_wide
from colonnade.conversations.linear.parties.in_lots import InLot, PartyInLots
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.schedule import Round, Schedule
from colonnade.errors import FixedPointOverflow, JobError, ProtocolError
from colonnade.job.plan import Hidden
from colonnade.messages import Announce, Dealt, Topic, Unveil, Veil, tag_of
from colonnade.models.linear import rows_of
from colonnade.net.endpoint import Endpoint
from colonnade.net.expect import PACKED, floats, like, words
from colonnade.secure import shared_logistic
from colonnade.secure.product import Columns
from colonnade.secure.ring import whole
from colonnade.secure.streams import Roles
from colonnade.secure.truncate import Truncation, opening

LOT = 4096  # rows whose products are prepared together
SHRUNK = 0.01  # the part of all weights that the penalty takes at once, at most
_LINE = 2**40  # tags of messages between two parties alone


@dataclass(frozen=True)
class HiddenLot:
    """A lot: its products, and what A and B need for the sines of its rows."""

    products: Open
    sines: Sines | None


class HiddenParty(PartyInLots[HiddenLot, Words | None]):
    """One party's side of a run that hides scores."""

    def __init__(self, context: Context[LinearSettings], hidden: Hidden) -> None:
        plan, rows = context.plan, context.train.rows
        self.context = context = replace(context, streams=columns.pair_streams(context))
        self.schedule = Schedule(
            rows, plan.pace.batch, plan.pace.epochs, plan.seed, (plan.evaluator,), plan.settings.reshuffle
        )
        self.step_size = float(plan.pace.step)
        if context.loss.shared_form is None:
            raise JobError(f"secure.scores = 'hidden': no form of the {context.loss.name} loss is known")
        self.form = context.loss.shared_form
        self.scale = Scale.of(self.form, plan.objective.l2, self.step_size / self.schedule.largest)
        self.pair = Roles(plan.evaluator, hidden.mate, hidden.dealer)
        self.sines = SharedSines(context, self.pair, self.scale.sines)
        self.turn = self._secret_turn()
        self.products = PairProducts(context, hidden, self._fixed())
        self.evaluation = context.evaluation()
        self.together = max(1, LOT // self.schedule.largest)
        self.done = 0  # rounds
        self.free: dict[str, Floats] = {}  # by owner, 1 where the penalty acts
        self._lines = 0

    @property
    def net(self) -> Endpoint:
        return self.context.net

    @property
    def me(self) -> str:
        return self.context.me

    def _secret_turn(self) -> columns.Turn:
        """Return an owner's secret rotation; the label holder's columns are in nobody's totals."""
        width = self.context.train.width
        if self.me == self.pair.asker or not width:
            return columns.Turn.none(width)
        return columns.Turn.secret(width, columns.own_key(self.context, "rotation"))

    def _fixed(self) -> Columns | None:
        if not self.context.train.width:
            return None
        return columns.fixed(self.context.train.X, self.turn, BITS)

    @cached_property
    def y(self) -> Floats:
        """A's labels: 0 and 1, or numbers that are not too large to be divided."""
        y = self.context.label_holder.labels
        if self.form == "sines":
            return (y > 0).astype(np.float64)
        largest, most = float(np.abs(y).max(initial=0.0)), self.scale.widest / 4
        if not largest < most:
            raise FixedPointOverflow(
                f"secure.scores = 'hidden': a label of size {largest:g} leaves no room, as labels must stay "
                f"below {most:g}; scale the label, or set secure.scores = 'open'"
            )
        return y

    # -- the run --------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Veil all columns, and say on which of them the penalty acts."""
        if self.me == self.pair.asker:
            _ = self.y  # labels that do not fit are refused before anything is sent
        await self.products.set_up()
        widths = {owner: part.shape[1] for owner, part in self.products.parts.items()}
        refuse_wide(self.context, widths, "bring fewer, or set secure.scores = 'open' and reveal = 'never'")
        self.free = await self._free()

    async def next_rounds(self) -> range:
        """Return the rounds of the next lot, all of one epoch."""
        per_epoch = self.schedule.per_epoch
        epoch_ends = self.done - self.done % per_epoch + per_epoch
        return range(self.done, min(self.done + self.together, epoch_ends, self.schedule.rounds))

    async def open(self, batches: Sequence[Round]) -> HiddenLot:
        """Prepare the products of some rounds, and the sines of their rows."""
        lot = await self.products.open([self.schedule.rows_of(each) for each in batches])
        return HiddenLot(lot, await self._dealt(lot))

    async def give(self, at: InLot[HiddenLot], behind: int) -> Words | None:
        """Give the share of a round's scores; A and B have a part of them."""
        self.done += 1
        return await self.products.scores(at.lot.products, at.place)

    async def step(self, at: InLot[HiddenLot], added: Words | None) -> None:
        """Add it to the own part of all weights; the penalty takes its part of some rounds at once."""
        await self.products.add(at.lot.products, at.place, added)
        if self.every and (at.batch.number + 1) % self.every == 0:
            await self._shrink(self.every)

    async def pause(self) -> None:
        """Go on: nothing is measured before the end."""

    # -- theta ----------------------------------------------------------------------------------------

    async def _dealt(self, lot: Open) -> Sines | None:
        """Return what A and B need for the sines of a lot's rows."""
        line = self._line()
        return None if self.form == "division" else await self.sines.dealt(line, lot.lot[0].rows)

    async def reply(self, at: InLot[HiddenLot], asked: Words | None) -> Words | None:
        """Return A's and B's part of what is added, -step theta / batch; T may have to deal for it."""
        lot = at.lot.products.lot[0]
        rows = lot.batches[at.place]
        rate = self.step_size / len(rows)
        if self.form == "division":
            return await self._squared(asked, rows, rate)
        line, unit = self._line(), 2.0**self.scale.bits
        if asked is None or at.lot.sines is None:
            return None
        sines = at.lot.sines.of(lot.cuts[at.place])
        t = await self.sines.combined(line, asked, self.scale.scores, sines, -rate * unit)
        if self.me == self.pair.asker:
            t += whole(rate * (self.y[rows] - 0.5) * unit)
        return t

    async def _squared(self, scores: Words | None, rows: Rows, rate: float) -> Words | None:
        """Return the same for the squared loss, whose theta is the score less the label."""
        scale = self.scale
        factor = np.uint64(round(rate * 2.0**scale.factor))
        part = None if scores is None else scores.copy()
        if part is not None and self.me == self.pair.asker:
            part -= whole(self.y[rows] * 2.0**scale.scores)
        if part is not None:
            part = np.uint64(0) - part * factor
        return await self._divided(self.pair, part, len(rows), 2 * BITS + scale.factor)

    async def _divided(self, roles: Roles, part: Words | None, count: int, bits: int) -> Words | None:
        """Return a shared number divided by 2^bits: the asker's and the owner's part of it."""
        line = self._line()
        if self.me not in roles:
            return None
        division = Truncation(self.context.streams, roles, bits)
        if self.me == roles.dealer:
            await self.net.send(roles.owner, Dealt(line, division.deal(line, count)))
            return None
        if part is None:
            raise RuntimeError(f"{self.me} has no part of what is divided")
        hidden = division.hidden(line, part)
        if self.me == roles.owner:
            await self.net.send(roles.asker, Veil(line, hidden, NOTHING))
            due = words(2, count)
            dealt = (await self.net.recv(Dealt, roles.dealer, line, values=due)).values
            said = await self.net.recv(Veil, roles.asker, line, moved=like(hidden), weights=PACKED)
            return division.finish(said.moved, dealt)
        said = await self.net.recv(Veil, roles.owner, line, moved=like(hidden), weights=PACKED)
        opened = opening(hidden, said.moved)
        await self.net.send(roles.owner, Veil(line, opened, NOTHING))
        return division.finish(opened, division.own(line, count))

    # -- the penalty ------------------------------------------------------------------------------------

    @property
    def every(self) -> int:
        """Rounds after which the penalty takes its part of all weights; 0: there is none."""
        shrink = self.step_size * self.context.plan.objective.l2
        return max(1, min(self.schedule.per_epoch, int(SHRUNK / shrink))) if shrink else 0

    async def _free(self) -> dict[str, Floats]:
        """Return, for every owner's columns, 1 where the penalty acts: not on the label holder's
        intercept."""
        found: dict[str, Floats] = {}
        for side in self.products.sides:
            if not side.scored or self.me not in side.roles:
                continue
            roles, line = side.roles, tag_of(Topic.BLIND, _LINE - 1)
            if self.me == roles.owner:
                acts = np.ones(self.context.train.width)
                if roles.owner == self.pair.asker:  # turned columns have no intercept among them
                    acts[list(self.context.train.free)] = 0.0
                for peer in (roles.asker, roles.dealer):
                    await self.net.send(peer, Announce(line, acts))
                found[roles.owner] = acts
        for side in self.products.sides:
            if side.scored and self.me in (side.roles.asker, side.roles.dealer):
                line = tag_of(Topic.BLIND, _LINE - 1)
                due = floats(None, low=0, high=1)
                owner = side.roles.owner
                found[owner] = (await self.net.recv(Announce, owner, line, values=due)).values
                width = side.dealer or side.asker
                if width is not None and len(found[owner]) != width.width:
                    raise ProtocolError(f"{owner} has {width.width} columns and says more or less of them")
        return found

    async def _shrink(self, rounds: int) -> None:
        """Let the penalty of some rounds act on all weights."""
        await self.products.flush()
        gone = 1 - (1 - self.step_size * self.context.plan.objective.l2) ** rounds
        bits = 16 - math.ceil(math.log2(gone))
        for side in self.products.sides:
            if not side.scored:
                continue
            owner, part = side.roles.owner, None
            if self.me == owner:
                part = self.products.own
            elif self.me == side.roles.asker:
                part = self.products.parts[owner]
            acts = self.free.get(owner, np.zeros(0))
            product = None if part is None else part * whole(acts * (gone * 2.0**bits))
            taken = await self._divided(side.roles, None if product is None else product[0], len(acts), bits)
            if part is not None and taken is not None:
                part -= taken

    # -- the end ----------------------------------------------------------------------------------------

    async def outcome(self) -> Outcome:
        """Learn the own weights, measure once, and return what this party has."""
        await self.products.flush()
        w, rounds = await self._weights(), self.schedule.rounds
        await self._measure(w)
        return Outcome(
            weights={"w": w},
            step=self.step_size,
            rounds=rounds,
            updates=rounds,
            launched=rounds if self.me == self.pair.asker else 0,
            evaluation=self.evaluation,
        )

    async def _weights(self) -> Floats:
        """Return the own weights, as finely as they may be told (`low_bits`)."""
        unit, line, parts = 2.0**-self.scale.weights, self._line(), self.products.parts
        fine = 2.0**-REVEALED
        if self.context.apart:
            fine = max(fine, self.schedule.rows**-0.5)
        told = blurred(self.context, parts.values(), max(1, int(2.0**self.scale.weights * fine)))
        for owner, part in zip(parts, told, strict=True):
            await self.net.send(owner, Unveil(line, part, unit))
        for side in self.products.sides:
            if side.scored and self.me == side.roles.owner:
                due = like(self.products.own)
                message = await self.net.recv(Unveil, side.roles.asker, line, values=due)
                words = (self.products.own + message.values)[0]
                return self.turn.back(words.view(np.int64).astype(np.float64) * unit)
        return np.zeros(self.context.train.width)

    async def _measure(self, w: Floats) -> None:
        """Measure the model, once: the label holder learns one total score of every row."""
        context, measuring = self.context, self.context.measuring
        tables = [context.train, *([context.test] if context.test is not None else [])]
        parts = [rows_of(each.X).scores(0, each.rows, w) for each in tables]
        numbers = [context.penalty.value(w), self.evaluation.sent_bytes() / MEGA]
        piece, tag = np.concatenate([*parts, numbers]), tag_of(Topic.EVALUATE, 0)
        scribe = self.evaluation.scribe
        if scribe is None:
            await measuring.sum.give(piece, root=context.evaluator, tag=tag)
            return
        total = await measuring.sum.collect(piece, tag=tag)
        z = np.split(total[:-2], np.cumsum([len(each) for each in parts]))[:-1]
        self._check_reach(z[0])
        mark = Mark(self.schedule.rounds // self.schedule.per_epoch, self.schedule.rounds, final=True)
        scribe.record(z, float(total[-2]), round(float(total[-1]) * MEGA), self.net.clock.now(), mark)

    def _check_reach(self, z: Floats) -> None:
        """Refuse scores that no run within its range ends with: steps went too far, or a word was wrong."""
        sines = self.form == "sines"
        reached = float(np.abs(z if sines else z - self.y).max(initial=0.0))
        most = shared_logistic.REACH if sines else self.scale.widest
        if not reached < most:
            what, loss = ("scores reach", "logistic") if sines else ("errors reach", "squared")
            raise FixedPointOverflow(
                f"secure.scores = 'hidden': {what} {reached:.3g}, and beyond {most:g} steps are no longer "
                f"those of the {loss} loss; raise train.l2, or use a smaller step or fewer epochs"
            )

    def _line(self) -> int:
        """Return a tag for a message between two parties alone; all parties count alike."""
        self._lines += 1
        return tag_of(Topic.BLIND, _LINE + self._lines)
