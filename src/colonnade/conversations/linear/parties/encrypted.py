"""L-BFGS on all rows between two parties alone: neither learns a label, a column or a score of the other.

A holds the label, P does not; both hold columns. Scores are shared by themselves: z = u + v, u = X_A w_A at
A and v = X_P w_P at P, and theta is a sum of products of a function of u and one of v
(`noisy.product_forms`). Products are made under encryption that only the asker can open (`secure.lattice`,
`linear.encrypted`). A pass:

1. both tell how far their scores reach, rounded up to 2^(k/2): which functions there are follows from it;
2. theta: A asks, P answers; each ends with a part that is uniform without the other. In the first pass
   theta follows from labels alone, and is A's;
3. gradients: each asks with its part of theta, the other adds its own and multiplies by its columns, and
   the asker gives back its part of the answer **with noise of S rows**, fresh, discrete and Gaussian;
4. both tell inner products of their blocks of all vectors, rounded to 5 bits, and step (`noisy.noisy_lbfgs`).

Every key is made for one question and thrown away. There is a fixed number of passes; a run ends before
only if gradients have all but vanished, as both see from inner products. No loss is known before the end.

What each side learns: its own gradient with the other's noise, in every pass; rounded inner products; how
far the other's scores reach; how large the largest number of every column of the other is beside its
length. In the end its own weights. A learns the loss of the finished model with noise of S rows, the size
of P's weights, and total scores of test rows, where there are some. docs/two.md has every message, and why
it says nothing.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from colonnade.arrays import Floats, Rows, Words
from colonnade.conversations.context import Context
from colonnade.conversations.evaluate import MEGA, Mark
from colonnade.conversations.linear.encrypted import final_loss
from colonnade.conversations.linear.encrypted.encrypted_products import (
    Asked,
    GradientAsker,
    GradientOwner,
    answer_rows,
    ask_rows,
    modulo,
)
from colonnade.conversations.linear.encrypted.home_columns import ROWS, HomeColumns, theta_bits, together_for
from colonnade.conversations.linear.noisy.noisy_lbfgs import few_bits
from colonnade.conversations.linear.noisy.party import NoisyParty
from colonnade.conversations.linear.noisy.product_forms import LOUD, Form, Reaches, Whole, code_of, size_of
from colonnade.conversations.linear.parties.blind_refusals import refuse_wide
from colonnade.conversations.linear.settings import FullSettings
from colonnade.conversations.peer_line import PeerLine
from colonnade.errors import FixedPointOverflow, ProtocolError
from colonnade.job.plan import Encrypted
from colonnade.messages import Topic, tag_of
from colonnade.secure.lattice.parameters import LEAN, STRICT, coefficients_beside
from colonnade.secure.overheard import opened

LEAST_BITS = 4  # of theta: below that rounding is louder than what is said
_CODES = {"low": -60, "high": 60}  # of sizes, and bits
_WORK = 60.0  # numbers of a column that a product of a row takes the time of, and four a number of a gradient
GROWTH = 2  # codes by which reaches may grow in a pass, where they are far
SHORTEST = 1e-3  # of a step


def _size(form: Form, v: Floats) -> int:
    """Return the code of the owner's function; the largest where it cannot be computed."""
    try:
        return min(code_of(form.size(v)), _CODES["high"])
    except FixedPointOverflow:
        return _CODES["high"]


def party_of(context: Context[FullSettings], terms: Encrypted) -> EncryptedParty:
    """Return this party: the first label holder is A, the other party P."""
    return (LabelSide if context.me == context.evaluator else OwnerSide)(context, terms)


class EncryptedParty(NoisyParty):
    """What both sides do alike."""

    terms: Encrypted

    def __init__(self, context: Context[FullSettings], terms: Encrypted) -> None:
        super().__init__(context, terms)
        self.line = PeerLine(context.net, context.net.peers[0])
        self.slots = STRICT if terms.profile == "strict" else LEAN
        self.ring = coefficients_beside(self.slots)
        self.columns = HomeColumns(
            context.train.X,
            self.slots,
            self.ring,
            context.memory,
            context.engine,
            self.noise.rounding("columns"),
        )
        self.keep_columns(self.columns.kept, "secure.products = 'encrypted'")

    # -- before the first pass --------------------------------------------------------------------------

    async def set_up(self) -> None:
        """Tell of the own columns what the other must know, and learn it of the other's."""
        own, rows = self.columns, self.context.train.rows
        await self.line.tell(len(own.kept), code_of(own.longest), *own.codes.tolist())
        told = await self.line.told(None, -(2**30), 2**30)
        if len(told) < 3 or told[0] != len(told) - 2 or np.abs(told[1:]).max() > 1000:
            raise ProtocolError(f"{self.line.peer} told {len(told)} numbers of its columns that cannot be")
        if told[2:].min() < self.columns.least_code or size_of(int(told[1])) < 1:
            raise ProtocolError(
                f"{self.line.peer} says that a column's largest number, or a row, is smaller than any can "
                "be: noise goes by that, and would hide nothing"
            )
        width = int(told[0])
        if not self.terms.tight:
            refuse_wide(self.context, {self.line.peer: width}, "set reveal = 'never'")
        self.asked = Asked(rows, width, together_for(self.ring, min(rows, ROWS), width), told[2:])
        self.longest = size_of(int(told[1]))
        self.unit = 2.0 ** await self.agree()
        self.begin(own.spread(self.loudness.rows))

    @abstractmethod
    async def agree(self) -> int:
        """Learn how loud the noise is, as A says; returns the unit of theta, as a power of two."""

    # -- passes -----------------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether gradients have all but vanished, in a run that may end early."""
        return self.context.plan.pace.open and self.lbfgs.settled

    async def gradient(self) -> Floats:
        """Return the gradient of the own block, with noise."""
        told = await self.one_pass()
        opened(self.context.sum, tag_of(Topic.TRAIN, self.lbfgs.state.steps), told)
        return told

    async def totals(self, own: Floats) -> Floats:
        """Return the sum of both parties' inner products."""
        return own + await self.line.exchange(own)

    async def one_pass(self) -> Floats:
        """Return the gradient of the own block at the present weights, unless the last step was too long."""
        scores = self.columns.scores(self.whole(self.lbfgs.state.w))
        await self._charge(4 * self.columns.width)
        return await self.gradient_at(scores, first=not self.lbfgs.state.steps)

    @abstractmethod
    async def gradient_at(self, scores: Floats, *, first: bool) -> Floats:
        """Return the gradient of the own block at these parts of scores."""

    async def gradients(self, theta: Words, bits: int) -> Floats:
        """Ask for the other's gradient and answer for the own one; returns that, with the other's noise."""
        asker = GradientAsker(self.line, self.ring, self.asked)
        owner = GradientOwner(self.line, self.ring, self.columns)
        await asker.ask(theta)
        await owner.answer(theta)
        await asker.give_back(self.noise_of(self.asked.codes, bits, "the other's gradient"))
        return await owner.open(bits)

    async def shorter(self) -> Floats:
        """Go back most of the last step, and begin the pass again."""
        self.lbfgs.shorten()
        return await self.one_pass()

    def noise_of(self, codes: Rows, bits: int, purpose: str) -> Rows:
        """Return this pass's noise for a gradient of columns that are so large."""
        steps = self.lbfgs.state.steps
        return self.noise.gaussian(self.ring, codes, self.loudness.rows, bits, purpose, steps)

    def rounding(self) -> np.random.Generator:
        """Return what rounds theta in this pass."""
        return self.noise.rounding("theta", self.lbfgs.state.steps)

    def part_of(self, answered: Words, whole: Whole) -> Words:
        """Return a part of theta: of the products, and what this party adds by itself."""
        t = np.uint64(self.slots.plain)
        return (answered + modulo(whole.own, self.slots.plain)) % t

    async def _charge(self, values: float) -> None:
        await self.context.charge(values * self.context.train.rows)


class LabelSide(EncryptedParty):
    """A: it holds the labels, asks for theta, and learns how good the model is."""

    async def agree(self) -> int:
        """Tell how loud the noise is, and in which unit theta is."""
        unit = self.settle(float(np.hypot(self.longest, self.columns.longest)))
        await self.line.tell(self.loudness.code, unit)
        return unit

    async def gradient_at(self, scores: Floats, *, first: bool) -> Floats:
        """Make theta with P, and both gradients of it."""
        u, weight = scores, self.weight
        if first:
            theta = self.context.label_holder.loss.dz(u, self.context.label_holder.y) / self.unit
            bits = self._bits(float(np.linalg.norm(theta)))
            await self.line.tell(bits)
            steps = np.rint(np.ldexp(theta, bits)).astype(np.int64)
            asker = GradientAsker(self.line, self.ring, self.asked)
            await asker.ask(modulo(steps, self.slots.plain))
            await asker.give_back(self.noise_of(self.asked.codes, bits, "the other's gradient"))
            return self.columns.gradient(theta) + self._own_noise(bits)
        owners, size = (await self.line.told(2, **_CODES)).tolist()
        own = code_of(float(np.abs(u).max(initial=0.0)))
        if self.too_far(own, owners):
            await self.line.tell(own, 0, 0, 1)
            return await self.shorter()
        bound, larger = self.form.bound(u, self.y, weight, size_of(size))
        bits = self._bits(bound / self.unit)
        right = round((bits + np.log2(larger / self.unit)) / 2)
        reaches = Reaches(own, owners, weight is not None)
        await self.line.tell(own, bits, right, 0)
        whole = (  # factors have no name, so that they are gone while products are asked for
            self.form.holder(u, self.y, weight, reaches)
            .over(self.unit)
            .whole(bits, bits - right, self.rounding())
        )
        await self._charge(_WORK * len(whole.products))
        answered = await ask_rows(self.line, self.slots, whole.products)
        return await self.gradients(self.part_of(answered, whole), bits) + self._own_noise(bits)

    def too_far(self, own: int, owners: int) -> bool:
        """Return whether scores reach much further than they did: as a step does that is too long."""
        state, furthest = self.lbfgs.state, max(own, owners)
        far = furthest > max(self.form.far, state.reach + GROWTH)
        if not far:
            state.reach = furthest
        return far and state.length > SHORTEST

    def _own_noise(self, bits: int) -> Floats | float:
        """Return noise for the own block as well, if all that is told must follow from noisy gradients."""
        if self.loudness.epsilon is None:
            return 0.0
        own = self.columns
        words = self.noise_of(own.codes, bits, "the own gradient") * self.ring.unit
        noise: Floats = words / own.scale / own.rows * 2.0**-bits
        return noise

    def _bits(self, bound: float) -> int:
        """Return bits of theta, so that no inner product of it with a column can wrap around."""
        room = self.slots.plain / 2 / (self.columns.length * LOUD * max(bound, 1e-30))
        bits = min(int(np.floor(np.log2(room) + 1e-9)), 2 * theta_bits(self.slots, len(self.y)))
        if bits < LEAST_BITS:
            raise FixedPointOverflow(
                "labels, weights or scores differ so much in size that sums of them leave no room for the "
                "small; cap them, or raise train.l2"
            )
        return bits

    async def measure(self) -> None:
        """Learn the loss of all training rows in one number, and total scores of test rows."""
        u, weight, holder = self.columns.scores(self.w), self.weight, self.context.label_holder
        owners = int((await self.line.told(1, **_CODES))[0])
        reaches = Reaches(code_of(float(np.abs(u).max(initial=0.0))), owners, weight is not None)
        await self.line.tell(reaches.holder)
        factors = self.form.holders_loss(u, self.y, weight, reaches)
        total = await final_loss.learn_loss(self.line, self.ring, factors, self.noise) + float(
            factors.own.sum()
        )
        base = self.form.at_zero(self.y)
        total += float(holder.loss.value(np.zeros_like(self.y), holder.y).sum())
        total -= float((base if weight is None else weight * base).sum())
        penalty, sent = (await self.line.shown(2)).tolist()
        penalty += self.context.penalty.value(self.w)
        z = self.test_scores()
        if z is not None:
            others = await self.line.shown(len(z))
            opened(self.context.sum, tag_of(Topic.EVALUATE, 0), others)
            z = z + others
        scribe = self.evaluation.scribe
        if scribe is None:
            raise RuntimeError(f"{self.context.me} is not the evaluator")
        scribe.ending.strict = False  # noise may end anywhere
        sent = round(sent * MEGA) + self.evaluation.sent_bytes()
        steps = self.lbfgs.state.steps
        mark = Mark(steps, steps, final=True)
        scribe.note(total / len(u), z, penalty, sent, self.context.net.clock.now(), mark)


class OwnerSide(EncryptedParty):
    """P: it holds columns and no label, and answers."""

    async def agree(self) -> int:
        """Learn how loud the noise is, and in which unit theta is."""
        code, unit = (await self.line.told(2, -160, 160)).tolist()
        self.loudness = self.heard_loudness(code, self.columns.longest)
        return int(unit)

    async def gradient_at(self, scores: Floats, *, first: bool) -> Floats:
        """Answer for theta, and make both gradients of it."""
        v = scores
        if first:
            bits = int((await self.line.told(1, **_CODES))[0])
            owner = GradientOwner(self.line, self.ring, self.columns)
            await owner.answer(np.zeros(len(v), dtype=np.uint64))
            return await owner.open(bits)
        reach = code_of(float(np.abs(v).max(initial=0.0)))
        await self.line.tell(reach, _size(self.form, v))
        other, bits, right, shorten = (await self.line.told(4, **_CODES)).tolist()
        if shorten:
            return await self.shorter()
        self.lbfgs.state.reach = max(reach, other)
        whole = (
            self.form.owner(v, Reaches(other, reach, self.terms.weighted))
            .over(self.unit, only_own=True)
            .whole(bits, right, self.rounding())
        )
        await self._charge(_WORK * len(whole.products))
        answered = await answer_rows(self.line, self.slots, whole.products)
        return await self.gradients(self.part_of(answered, whole), bits)

    async def measure(self) -> None:
        """Tell the loss and test rows' scores to A."""
        v = self.columns.scores(self.w)
        reach = code_of(float(np.abs(v).max(initial=0.0)))
        await self.line.tell(reach)
        reaches = Reaches(int((await self.line.told(1, **_CODES))[0]), reach, self.terms.weighted)
        factors = self.form.owners_loss(v, reaches)
        rows = self.loudness.rows * self.form.loss_unit(self.unit)
        await final_loss.tell_loss(self.line, self.ring, factors, self.noise, rows)
        penalty = few_bits(np.array([self.context.penalty.value(self.w)]))
        await self.line.show(np.append(penalty, self.evaluation.sent_bytes() / MEGA))
        z = self.test_scores()
        if z is not None:
            await self.line.show(final_loss.rounded_by_chance(z, self.noise.rounding("test rows")))
