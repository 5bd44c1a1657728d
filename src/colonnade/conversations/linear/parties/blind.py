"""The blind backward conversation: all parties run this program, and only the label holder learns numbers.

A round is one of the backward conversation: the scores of a batch are summed to the label holder,
which computes theta and adds to everybody's weights. But weights are shared between their owner and the label
holder, and an owner sees uniform words in place of theta (`secure.product`): no theta, no gradient, not even
its own weights before the end. Of several label holders the first acts as such, the others are owners. With
`ahead` batches in flight a batch is scored at the weights of `ahead` - 1 rounds before, the same for all.

What each side learns: the label holder learns the total score of every row, as in clear, and what follows
from totals (docs/blind.md). Owners and dealers learn sizes, the schedule, when coefficients are sent again,
and when the run ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from colonnade.arrays import Arrays, Words
from colonnade.conversations.blind import columns
from colonnade.conversations.blind.all_rows import add_all, all_scores
from colonnade.conversations.blind.fixed_point import Lengths
from colonnade.conversations.blind.predict import label_holder_arrays, owner_arrays
from colonnade.conversations.blind.products import BlindProducts, OpenLot, PendingScores
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Marks
from colonnade.conversations.linear.parties.blind_label_holder import BlindLabelHolder, ScoredAt
from colonnade.conversations.linear.parties.blind_measure import BlindMeasurement
from colonnade.conversations.linear.parties.blind_proofs import prove
from colonnade.conversations.linear.parties.blind_refusals import refuse_wide
from colonnade.conversations.linear.parties.blind_smoothness import BlindTuner
from colonnade.conversations.linear.parties.in_lots import InLot, PartyInLots
from colonnade.conversations.linear.parties.word_size import lasting
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.timetable import Timetable
from colonnade.conversations.pacing.delays import Lateness
from colonnade.conversations.pacing.schedule import Round, Schedule
from colonnade.messages import Announce, Topic, tag_of
from colonnade.net.expect import Array, whole
from colonnade.state import Declared

LOT = 12288  # rows, by vectors, whose products are prepared together
ONE = whole(1)
OVER, TIGHT = 1, 2  # what the label holder says after an epoch: the run ends, all coefficients come again
CALLED = "BlindTraining"  # in checkpoints: this and the names there are as 0.2 has them


@dataclass(frozen=True)
class AskedAt:
    """A question for scores and the weights that it was asked at, at the label holder."""

    scored_at: ScoredAt | None
    pending: PendingScores | None


class BlindParty(PartyInLots[OpenLot, AskedAt]):
    """One party's side of a blind run; `label_holder` is the label holder's."""

    STATE = Declared(kept=("key", "lengths", "done", "since", "lasts", "delays"), remade=("over",))

    def __init__(self, context: Context[LinearSettings]) -> None:
        plan, rows = context.plan, context.train.rows
        self.context = context
        self.timetable = Timetable.of(
            plan.pace.epochs,
            -(-rows // plan.pace.batch),
            svrg=plan.settings.kind.snapshots,
            tune=plan.pace.step == "auto",
            pair_every=None,
        )
        epochs, reshuffle = self.timetable.epochs, plan.settings.reshuffle
        self.schedule = Schedule(rows, plan.pace.batch, epochs, plan.seed, (plan.evaluator,), reshuffle)
        self.evaluation = context.evaluation()
        self.label_holder = BlindLabelHolder(context, self.schedule) if context.me == plan.evaluator else None
        self.key = columns.own_key(context, "rotation")
        # an owner's own secret: its weights are those of columns so turned
        context.gates.keep(self, "key", name=CALLED)
        self.owned = columns.OwnedColumns(context, self.key)
        self.products = BlindProducts(context, self._sizes())
        width = max(1, plan.objective.classes)
        self.p, self.q, self.probe = slice(0, width), slice(width, 2 * width), slice(2 * width, 2 * width + 1)
        self.both = slice(0, 2 * width)
        self.vectors = self.both if plan.settings.kind.remembers else self.p  # of every batch
        self.together = max(1, LOT // (self.schedule.largest * self.vectors.stop))
        self.whole = self.both if plan.settings.kind.has_mean() else self.p  # what weights are made of
        self.tuner = BlindTuner(self) if plan.pace.step == "auto" else None
        self.measured = BlindMeasurement(self)
        rounds, per_epoch = self.schedule.rounds, self.schedule.per_epoch
        every = Marks.of(plan.pace.evaluate_every, self.schedule).every
        self.marks = {*range(0, rounds, every), rounds}  # after these rounds the model is measured
        self.pauses = (self.marks | self.timetable.gates | {*range(per_epoch, rounds, per_epoch)}) - {0}
        self.over = False
        self.done = 0  # rounds
        self.delays: Counter[int] = Counter()  # of all rounds, in updates
        self.lengths = Lengths(0.0, 0.0)  # of the owners' rows, at the label holder; everybody has their bits
        self.since = self.lasts = 0  # rounds since all coefficients were sent, and how many they last

    # -- the columns ----------------------------------------------------------------------------------

    def _sizes(self) -> dict[str, int]:
        test = self.context.test
        return {"train": self.schedule.rows} | ({"test": test.rows} if test is not None else {})

    async def _lengths(self) -> Lengths:
        """Return how long all owners' rows are, at the label holder; at everybody how finely they are
        written."""
        tag = self.products.next_tag()
        found = {table: columns.lengths(X) for table, X in self.owned.tables.items()}
        worst = max((float(each[0]) for each in found.values()), default=0.0)
        mean = found["train"][1] / self.schedule.rows if found else 0.0
        piece = np.ceil(np.array([worst, mean]) * 2.0**8).astype(np.uint64)
        if self.label_holder is None:
            await self.context.sum.give(piece, root=self.context.evaluator, tag=tag)
            bits = whole(1, low=columns.COARSEST, high=columns.FINEST)
            return Lengths(0.0, 0.0, await self._agreed(0, 0, bits))
        total = (await self.context.sum.collect(piece, tag=tag)) * 2.0**-8
        lengths = Lengths.of(total * np.array([1.0, self.schedule.rows]))
        return replace(lengths, bits=await self._agreed(self.label_holder.headroom.column_bits(lengths), 0))

    # -- the run --------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Veil all columns, and agree on how numbers are written and how long coefficients last."""
        gates = self.context.gates
        if not gates.position:
            self.lengths = await self._lengths()
        gates.keep(self, "lengths", name=CALLED)
        await self.products.set_up(self.owned.fixed(self.lengths.bits), self.probe.stop)
        plan = self.context.plan
        if self.label_holder is not None and plan.blind is not None and plan.blind.reveal == "owner":
            widths = {owner: part.shape[1] for owner, part in self.products.parts.items()}
            refuse_wide(self.context, widths, "set reveal = 'never'")
        if not gates.position and self.tuner is not None:
            await self.tuner.measure(self.lengths, first=True)
        self._keep()
        gates.begin(self.schedule.per_epoch)
        if not gates.position:
            await self._agree_on_lasting()

    @property
    def _is_whole(self) -> bool:
        """Whether p is the weights as it stands, up to a factor that everybody knows."""
        plan = self.context.plan
        known = plan.pace.step != "auto" or not plan.objective.l2
        told = plan.blind is not None and plan.blind.reveal == "owner"
        return self.whole == self.p and known and told

    def _keep(self) -> None:
        """Let all that rounds change be part of checkpoints."""
        gates, label_holder = self.context.gates, self.label_holder
        gates.keep(self, name=CALLED)
        gates.keep(self.products, name=f"{CALLED}.verbs")
        gates.keep(self.measured, name="Measured")
        if label_holder is None:
            return
        if self.tuner is not None:
            gates.keep(self.tuner, name=f"{CALLED}.tuner")
        # how numbers are written depends on these
        gates.keep(label_holder, "block", "window", "steps", name="Desk")
        label_holder.begin(self.lengths)
        gates.keep(label_holder, name="Desk")

    async def next_rounds(self) -> range:
        """Return the rounds up to the next pause, or until all coefficients are due again."""
        if self.over or self.done == self.schedule.rounds:
            return range(0)
        if self.since >= self.lasts:
            await self.renew()
        stop = min(pause for pause in self.pauses if pause > self.done)
        return range(self.done, min(stop, self.done + self.lasts - self.since))

    async def open(self, batches: Sequence[Round]) -> OpenLot:
        """Prepare the products of some rounds."""
        rows, width = [self.schedule.rows_of(batch) for batch in batches], self.vectors.stop
        return await self.products.open("train", rows, scored=width, added=width)

    async def give(self, at: InLot[OpenLot], behind: int) -> AskedAt:
        """Ask for the scores of a batch, or give the own share of them."""
        self.done += 1
        self.since += 1
        self.delays[behind] += 1  # those before it land first, and each is an update
        scored_at = None if self.label_holder is None else self.label_holder.ask(at.batch)
        return AskedAt(scored_at, await self.products.ask(at.lot, at.place, self.vectors))

    async def reply(self, at: InLot[OpenLot], asked: AskedAt) -> Words | None:
        """Return what is added to all weights, at the label holder."""
        total = await self.products.answer(asked.pending)
        if self.label_holder is None or total is None or asked.scored_at is None:
            return None
        return self.label_holder.step(at.batch, total, asked.scored_at)

    async def step(self, at: InLot[OpenLot], added: Words | None) -> None:
        """Add it to the own part of weights."""
        await self.products.add(at.lot, at.place, self.vectors, added)

    async def pause(self) -> None:
        """Do what is due after some rounds, and go on from here if the run is cut off."""
        gates = self.context.gates
        if self.done not in self.pauses:
            return
        self.over = await self._pause()
        if not self.over and gates.due(self.done):
            await self.products.flush()
            await gates.reached(self.done)

    async def _pause(self) -> bool:
        """Do what is due between two rounds; returns whether the run is over."""
        loss, last = None, self.done == self.schedule.rounds
        if self.done in self.marks:
            loss = await self.measured.measure(final=last)
        at = self.done / self.schedule.per_epoch
        over = loss is not None and self.evaluation.over(loss, at)
        if last:
            return True
        tight = (
            self.label_holder is not None
            and self.label_holder.settle()
            and at not in self.timetable.snapshots
        )
        told = await self._agreed(OVER if over else TIGHT if tight else 0, 2 * self.done)
        if told == OVER:
            await self.measured.measure(final=True)
            return True
        if told == TIGHT:
            await self.renew()
        if self.tuner is not None and at in self.timetable.tunings:
            await self.tuner.measure(self.lengths)
        await self._agree_on_lasting()
        if at in self.timetable.snapshots:
            await self.snapshot()
        return False

    async def _agree_on_lasting(self) -> None:
        """Agree on how many rounds coefficients last: everybody knows, or the label holder says."""
        plan, rounds = self.context.plan, self.schedule.rounds
        if plan.pace.step != "auto" or not plan.objective.l2:
            step = 0.0 if plan.pace.step == "auto" else float(plan.pace.step)
            self.lasts = lasting(step * plan.objective.l2, rounds)
            return
        shrink = 0.0 if self.label_holder is None else self.label_holder.steps.rate() * plan.objective.l2
        self.lasts = await self._agreed(lasting(shrink, rounds), 2 * self.done + 1)

    async def _agreed(self, number: int, about: int, due: Array = ONE) -> int:
        """Return a number of the label holder's, at everybody."""
        tag, net = tag_of(Topic.PAUSE, about), self.context.net
        if self.label_holder is None:
            told = await net.recv(Announce, self.context.evaluator, tag, values=due)
            return int(told.values[0])
        await net.broadcast(Announce(tag, np.array([number])))
        return number

    # -- all coefficients again ------------------------------------------------------------------------

    async def snapshot(self) -> None:
        """Take svrg's snapshot: all coefficients again, the mean gradient, and its scores."""
        if self.measured.at == self.done:
            z = self.measured.scores
        else:
            total = await all_scores(self.products, "train", self.both)
            z = np.zeros(0)
            if self.label_holder is not None and total is not None:
                z = self.label_holder.all_others(total) + self.label_holder.own_scores()
        t = None if self.label_holder is None else self.label_holder.snapshot(z)
        await self.products.flush()
        self.since = 0
        self.products.clear(self.both)
        await add_all(self.products, self.both, t)
        slope = await all_scores(self.products, "train", self.q)
        if self.label_holder is not None and slope is not None:
            self.label_holder.take_slope(slope)

    async def renew(self, *, final: bool = False) -> None:
        """Send all coefficients again: p becomes the weights themselves."""
        await self.products.flush()
        self.since = 0
        self.products.clear(self.p)
        whole = None if self.label_holder is None else self.label_holder.renew(final=final)
        await add_all(self.products, self.p, whole)

    # -- the end ----------------------------------------------------------------------------------------

    async def outcome(self) -> Outcome:
        """Return what this party returns: its weights, or its part of them, as the plan lets it know them."""
        if not self._is_whole:
            await self.renew(final=True)
        await prove(self)
        return Outcome(
            weights=await self._weights(),
            step=self.label_holder.steps.rate() if self.label_holder is not None else 0.0,
            rounds=self.timetable.rounds(self.done),
            updates=self.done,
            launched=self.done if self.label_holder is not None else 0,
            evaluation=self.evaluation,
            delays=self.delays,
            lateness=Lateness(self.context.plan.pace.ahead - 1),
            converged=self.done < self.schedule.rounds if self.context.plan.pace.open else None,
        )

    async def _weights(self) -> Arrays:
        parts = {owner: part[self.p] for owner, part in self.products.parts.items()}
        blind, label_holder = self.context.plan.blind, self.label_holder
        if blind is not None and blind.reveal == "never":
            await self.products.flush()
            if label_holder is not None:
                if self.context.apart:  # scores of rows that an owner chooses tell it its weights
                    parts = dict(zip(parts, label_holder.as_told(parts.values()), strict=True))
                return label_holder_arrays(label_holder.block.w, parts, label_holder.unit, self.lengths.bits)
            X, bits = self.owned.tables.get("train"), self.lengths.bits
            return {} if X is None else owner_arrays(parts[self.context.me], self.key, X, bits)
        told = [] if label_holder is None else label_holder.as_told(parts.values())
        unveiled = await self.products.unveil(
            self.p, told, label_holder.unit if label_holder is not None else 0.0
        )
        if label_holder is not None:
            return {"w": label_holder.block.w}
        shape = (self.context.train.width, *self.context.plan.objective.shape)
        if unveiled is None or self.owned.turn is None:
            return {"w": np.zeros(shape)}
        words, unit = unveiled
        turned = self.owned.turn.back(words.view(np.int64).T.astype(np.float64) * unit)
        return {"w": turned.reshape(shape)}
