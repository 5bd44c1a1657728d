"""A party of two that train weights in parts: nothing is opened to either before the end.

As in `parties.encrypted` A holds the label, P does not, and products are made under encryption that only the
asker can open. But weights, scores, theta and gradients are in parts that are uniform without the other
(`secure.reveal = "never"`). A pass:

1. scores: each multiplies its own columns by the weights of its block, of which both have a part, so that
   both have a word of every score (`parted.both_blocks`);
2. theta: a sum of sines of both words (`parted.wave_theta`; of the squared loss the score itself); A asks;
3. gradients: each multiplies its own columns by theta, of which both have a part;
4. both learn, in parts, how often these words wrap around (`parted.wrapped_parts`). Then weights are sums of
   multiples of all gradients (`algorithm.accelerated`), and each computes its part of them alone.

No noise is needed for what is not told, so none is added, and no column is left out.

What each side learns: how many directions the other's columns have; from A how heavy rows are, and the size
of labels that are numbers. In the end A learns the loss and the penalty, in two numbers with noise of S rows,
and total scores of test rows with a little noise (`parted.parted_scores`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import MEGA, Mark
from colonnade.conversations.linear.encrypted import final_loss
from colonnade.conversations.linear.encrypted.encrypted_products import answer_rows, ask_rows, modulo
from colonnade.conversations.linear.noisy.product_forms import FORMS
from colonnade.conversations.linear.parted import parted_scores, wave_theta
from colonnade.conversations.linear.parted.both_blocks import Blocks, Both, rows_of_tables, with_weights
from colonnade.conversations.linear.parted.turned_columns import SCORED, PartedSizes, TurnedColumns
from colonnade.conversations.linear.parted.wrapped_parts import Parted, dot_product, parted
from colonnade.conversations.linear.settings import FullSettings
from colonnade.conversations.own_noise import OwnNoise
from colonnade.conversations.peer_line import PeerLine
from colonnade.errors import ProtocolError
from colonnade.job.plan import Encrypted
from colonnade.losses import labels_of, weights_of
from colonnade.messages import Topic, tag_of
from colonnade.secure.lattice.ciphertexts import centred
from colonnade.secure.lattice.columns import TransformedColumns
from colonnade.secure.lattice.portable import times
from colonnade.secure.overheard import holds, opened
from colonnade.state import Declared

HEAVIEST = 4.0  # times the usual weight of a row: what a curvature counts with, where one is heavier
FEW = 2**12  # rows that a pass takes at least
WEIGHT_BITS = 4  # of a row's weight, where theta is a number
FINE = 2.0**-11  # noise of the penalty, which is one small number, at the most
START = 0.25  # in units of theta: how finely the score is known that all rows begin with, which scoring tells
RAREST = 1e-3  # class, as a part of the rows, that its score is begun with
SCORES, THETA = "scores", "theta"
"""What an audit hears of the own parts of."""
_WIDEST = 2**20


def party_of(context: Context[FullSettings], terms: Encrypted) -> PartedParty:
    """Return this party: the first label holder is A, the other party P."""
    return (PartedLabelSide if context.me == context.evaluator else PartedOwnerSide)(context, terms)


class PartedParty(ABC):
    """What both sides do alike."""

    STATE = Declared(kept=("words", "wraps"))

    def __init__(self, context: Context[FullSettings], terms: Encrypted) -> None:
        self.context, self.terms = context, terms
        self.line = PeerLine(context.net, context.net.peers[0])
        self.form = FORMS[context.plan.objective.loss]
        self.slots = parted_scores.slots_of(terms)
        self.ring = parted_scores.ring_of(terms)
        self.noise = OwnNoise.of(context.gates)
        self.rows, self.first = context.train.rows, context.me == context.evaluator
        self.evaluation = context.evaluation()
        self.words: list[Words] = []  # of all gradients, A's block before P's
        self.wraps: list[Words] = []
        self.unit = 1.0
        self.start = 0.0  # what is added to every score, at A

    # -- before the first pass --------------------------------------------------------------------------

    async def set_up(self) -> None:
        """Turn the own columns, and learn how many directions the other's have."""
        self.sizes, heavy = await self.agree()
        context = self.context
        curvature = heavy * self.form.curvature(1.0)
        penalty = np.full(context.train.width, context.plan.objective.l2)
        penalty[list(context.train.free)] = 0.0
        self.columns = TurnedColumns(context.train.X, penalty, curvature, context.memory)
        tables = self.columns.tables(self.ring, self.sizes, self.noise.rounding("columns"))
        await self.line.tell(self.columns.width)
        width = int((await self.line.told(1, 1, _WIDEST))[0])
        self.blocks = Blocks(self.line, self.ring, tables, rows_of_tables(self.rows, width), width)
        self.widths = (self.columns.width, width) if self.first else (width, self.columns.width)
        context.gates.keep(self, name="PartedParty")

    @abstractmethod
    async def agree(self) -> tuple[PartedSizes, float]:
        """Return how finely numbers are written and how heavy rows are, as A says; with the unit of theta."""

    # -- passes -----------------------------------------------------------------------------------------

    @property
    def passed(self) -> int:
        """How many gradients there are."""
        return len(self.words)

    async def one_pass(self, factors: Sequence[float], stride: int) -> None:
        """Learn the own part of the gradient at weights that are these multiples of those before."""
        own, others = self._weights(factors, self.sizes.step)
        await self.context.charge(8 * self.rows * self.columns.width)
        if self.passed:
            both = await self.blocks.scores(own, others)
            words = self._of_rows(*both)
            stride = min(stride, max(1, self.rows // FEW))
            theta = await self.theta(words, slice(self.passed % stride, None, stride))
            self._note(both, theta)
        else:
            theta = self.first_theta()
        found = await self.blocks.gradients(with_weights(theta, own), with_weights(theta, others))
        gradient = await self._parted(self._in_order(found))
        self.words.append(gradient.words)
        self.wraps.append(gradient.wraps)

    def end(self, factors: Sequence[float]) -> None:
        """Take the parts of weights that the run ends with, for training rows and for new ones."""
        self.final = self._weights(factors, self.sizes.step)
        own, others = self._weights(factors, self.sizes.step * 0.5 ** (SCORED - self.sizes.columns))
        t = np.uint64(self.slots.plain)
        if self.context.apart:
            # scores of rows that it chooses tell an owner its weights: no finer than half a standard error
            deviation = self.sizes.weights * 0.5 ** (SCORED - self.sizes.columns) / np.sqrt(12 * self.rows)
            moved = self.noise.words(np.full(len(others), deviation), "the other's weights", 0)
            others = (others + modulo(moved, self.slots.plain)) % t
        secret = self.context.gates.secret()
        self.kept = parted_scores.kept(self.columns.turn, own, others, self.unit, self.start, secret)

    @abstractmethod
    def first_theta(self) -> Words:
        """Return the own part of theta before the first step, which follows from labels alone."""

    @abstractmethod
    async def theta(self, words: Words, some: slice) -> Words:
        """Return the own part of theta, from the own words of scores: of some rows, which count for all."""

    def _note(self, scores: Both, theta: Words) -> None:
        """Let an audit hear of the own parts of both blocks' scores, and of theta, in units of labels."""

        def note(name: str, part: Words, modulus: int, unit: float) -> None:
            holds(self.context.sum, name, lambda: np.asarray(centred(part, modulus) * (unit * self.unit)))

        cut = self.ring.cut
        for words in scores:
            note(SCORES, words[: self.rows], 2**cut, wave_theta.PERIOD * 0.5**cut)
        note(THETA, theta, self.slots.plain, 0.5**self.sizes.theta)

    def _of_some(self, part: Words, some: slice) -> Words:
        theta, t = np.zeros(self.rows, dtype=np.uint64), np.uint64(self.slots.plain)
        theta[some] = part % t * np.uint64(some.step) % t
        return theta

    def _in_order(self, both: Both) -> Words:
        """Return what is of both blocks, A's before P's."""
        return np.concatenate(both if self.first else both[::-1])

    def _of_rows(self, own: Words, others: Words) -> Words:
        mask = np.uint64(2**self.ring.cut - 1)
        return (own[: self.rows] + others[: self.rows]) & mask

    async def _parted(self, words: Words) -> Parted:
        return await parted(self.line, self.slots, self.ring.cut, words, first=self.first)

    def _weights(self, factors: Sequence[float], unit: float) -> Both:
        """Return the own parts of the own block's weights and of the other's, in steps of this unit."""
        t, cut = self.slots.plain, self.ring.cut
        total = np.zeros(sum(self.widths), dtype=np.uint64)
        for factor, words, wraps in zip(factors, self.words, self.wraps, strict=True):
            gradient = Parted(words, wraps, cut, t, self.first)
            total += gradient.times(factor * unit * t * 0.5**cut)  # a word of 2^cut is t
        ours, theirs = np.split(total % np.uint64(t), [self.widths[0]])
        return (ours, theirs) if self.first else (theirs, ours)

    # -- the end ----------------------------------------------------------------------------------------

    async def measure(self) -> None:
        """Let A learn how good the model is: the loss of all rows, the penalty, scores of test rows."""
        context, terms = self.context, self.terms
        own, others = parted_scores.weights_in(self.kept)
        diagonal = np.diag(np.rint(np.sqrt(self.columns.penalty) * 2.0**SCORED).astype(np.int64))
        table, width = TransformedColumns(self.ring, diagonal, 0), self.blocks.width
        words = await Blocks(self.line, self.ring, [table], [width], width).scores(own, others)
        roots = await self._parted(self._in_order(words))
        bits = self._short_bits(len(roots.words))
        short = roots.times(wave_theta.PERIOD * 2.0 ** (bits - self.ring.cut))
        part = await dot_product(self.line, self.slots, short, short, first=self.first)
        await self.tell_sum(part, 2.0 ** (2 * bits + 1), min(terms.noise / self.rows, FINE), "penalty")
        await self.tell_loss(self._of_rows(*await self.blocks.scores(*self.final)))
        scorer, z = parted_scores.PartedScorer.of(self.kept, context.plan, context.me), None
        if context.test is not None:
            z = await scorer.total(self.line, context.test.X, context.evaluator)
        await self.conclude(z)

    async def tell_loss(self, words: Words) -> None:
        """Let A learn the loss of all rows in one number, with noise of S rows."""
        if not self.form.scaled:
            await self.logistic_loss(words)
            return
        more = WEIGHT_BITS if self.terms.weighted else 0
        bits = self._short_bits(self.rows) - more // 2
        errors = await self.errors(words, bits)
        weighed = await self.weighed(errors) if more else errors
        part = await dot_product(self.line, self.slots, errors, weighed, first=self.first)
        await self.tell_sum(part, 2.0 ** (2 * bits + more + 1), self.terms.noise, "loss")

    @abstractmethod
    async def logistic_loss(self, words: Words) -> None:
        """Let A learn the loss of the logistic model."""

    async def errors(self, words: Words, bits: int) -> Words:
        """Return the own part of score less label, with these bits of fraction."""
        return (await self._parted(words)).times(wave_theta.PERIOD * 2.0 ** (bits - self.ring.cut))

    @abstractmethod
    async def weighed(self, part: Words) -> Words:
        """Return the own part of numbers times rows' weights, which have bits of fraction themselves."""

    @abstractmethod
    async def tell_sum(self, part: int, unit: float, deviation: float, purpose: str) -> None:
        """Let A learn a sum, of which both have a part, with noise."""

    @abstractmethod
    async def conclude(self, z: Floats | None) -> None:
        """Write down what was measured, at A."""

    def _short_bits(self, count: int) -> int:
        """Return bits of fraction of numbers up to 16, of which this number of squares stays in range."""
        return int(np.clip(np.log2(self.slots.plain / 8 / max(count, 1)) / 2 - 2, 2, 12))

    def outcome(self) -> Outcome:
        """Return what this party returns: its parts, and no weights."""
        steps = self.passed
        return Outcome(
            weights=dict(self.kept),
            step=1.0,
            rounds=steps,
            updates=steps,
            evaluation=self.evaluation,
            delays=Counter({0: steps}),
        )


class PartedLabelSide(PartedParty):
    """A: it holds the labels, asks for theta, and learns how good the model is."""

    def __init__(self, context: Context[FullSettings], terms: Encrypted) -> None:
        super().__init__(context, terms)
        holder = context.label_holder
        self.y, self.weight = labels_of(holder.y), weights_of(holder.y)
        self.told: dict[str, float] = {}

    async def agree(self) -> tuple[PartedSizes, float]:
        """Tell how finely numbers are written, how heavy rows are, and in which unit theta is."""
        usual, heavy, unit = 0, 0, 0
        if self.weight is not None:
            spread = float(np.sqrt(np.mean(self.weight**2)))
            usual = int(np.ceil(np.log2(spread)))
            heavy = int(np.ceil(np.log2(min(float(self.weight.max()), HEAVIEST * spread))))
        start = self._fitting() if self.context.train.free else 0.0
        if self.form.scaled:
            size = float(np.sqrt(np.mean((self.y - start) ** 2)))
            unit = round(np.log2(size or 1.0))
        await self.line.tell(usual, heavy, unit)
        self.unit = 2.0**unit
        self.start = round(start / self.unit / START) * START * self.unit
        return PartedSizes.of(self.slots.plain, self.rows, 2.0**usual), 2.0**heavy

    def _fitting(self) -> float:
        """Return the score that fits all rows best, as far as labels alone tell."""
        if self.form.scaled:
            return float(self.context.label_holder.start)
        rate = float(np.clip(np.average(self.y > 0, weights=self.weight), RAREST, 1 - RAREST))
        return float(np.log(rate / (1 - rate)))

    def first_theta(self) -> Words:
        holder = self.context.label_holder
        return self._whole(holder.loss.dz(np.full(self.rows, self.start), holder.y) / self.unit)

    def _whole(self, theta: Floats, bits: int | None = None) -> Words:
        bits = self.sizes.theta if bits is None else bits
        return modulo(np.rint(np.ldexp(theta, bits)).astype(np.int64), self.slots.plain)

    def _angles(self, words: Words) -> Floats:
        """Return the own part of scores as angles, the start with them."""
        start = 2 * np.pi * self.start / wave_theta.PERIOD
        found: Floats = wave_theta.angles(words, self.ring.cut) + start
        return found

    async def theta(self, words: Words, some: slice) -> Words:
        bits = self.sizes.theta
        if self.form.scaled:
            less = 0 if self.weight is None else WEIGHT_BITS
            errors = await self.errors(words, bits - less)
            return errors if self.weight is None else await self.weighed(errors)
        weight = self.weight
        angle, heavy = self._angles(words[some]), None if weight is None else weight[some]
        factors = wave_theta.holder(angle, self.y[some], heavy)
        whole = factors.whole(bits, bits - bits // 2, self.noise.rounding("theta", self.passed))
        answered = await ask_rows(self.line, self.slots, whole.products)
        return self._of_some(answered + modulo(whole.own, self.slots.plain), some)

    async def errors(self, words: Words, bits: int) -> Words:
        less = self._whole((self.start - self.y) / self.unit, bits)
        return (await super().errors(words, bits) + less) % np.uint64(self.slots.plain)

    async def weighed(self, part: Words) -> Words:
        if self.weight is None:
            raise RuntimeError("rows have no weights")
        t, by_chance = self.slots.plain, self.noise.rounding("weights").random(self.rows)
        weight = np.floor(np.ldexp(self.weight, WEIGHT_BITS) + by_chance).astype(np.int64)
        answered = await ask_rows(self.line, self.slots, weight[None])
        return (answered + times(part, modulo(weight, t), t)) % np.uint64(t)

    async def logistic_loss(self, words: Words) -> None:
        factors = wave_theta.holders_loss(self._angles(words), self.y, self.weight)
        most = wave_theta.LARGEST * (1.0 if self.weight is None else float(np.sqrt(np.mean(self.weight**2))))
        total = await final_loss.learn_loss(self.line, self.ring, factors, self.noise, most)
        self.told["loss"] = total + float(factors.own.sum())

    async def tell_sum(self, part: int, unit: float, deviation: float, purpose: str) -> None:
        t = self.slots.plain
        told = int((await self.line.told(1, 0, t - 1))[0])
        self.told[purpose] = float(centred(np.array([(told + part) % t], dtype=np.uint64), t)[0]) / unit

    async def conclude(self, z: Floats | None) -> None:
        sent = round(float((await self.line.shown(1))[0]) * MEGA) + self.evaluation.sent_bytes()
        scribe, passes = self.evaluation.scribe, self.passed
        if scribe is None:
            raise RuntimeError(f"{self.context.me} is not the evaluator")
        if z is not None:
            opened(self.context.sum, tag_of(Topic.EVALUATE, 0), z)
        scribe.ending.strict = False  # noise may end anywhere
        loss, penalty = (self.unit_of_loss * self.told[name] for name in ("loss", "penalty"))
        now = self.context.net.clock.now()
        scribe.note(loss / self.rows, z, penalty, sent, now, Mark(passes, passes, final=True))

    @property
    def unit_of_loss(self) -> float:
        """How large a row's loss is in units of what was trained."""
        return self.form.loss_unit(self.unit)


class PartedOwnerSide(PartedParty):
    """P: it holds columns and no label, and answers."""

    async def agree(self) -> tuple[PartedSizes, float]:
        """Learn how finely numbers are written, how heavy rows are, and in which unit theta is."""
        usual, heavy, unit = (await self.line.told(3, -160, 160)).tolist()
        if usual < 0 or heavy < 0:
            raise ProtocolError(f"{self.line.peer} says that rows weigh less than they do")
        self.unit = 2.0**unit
        return PartedSizes.of(self.slots.plain, self.rows, 2.0**usual), 2.0**heavy

    def first_theta(self) -> Words:
        return np.zeros(self.rows, dtype=np.uint64)

    async def theta(self, words: Words, some: slice) -> Words:
        bits, weighted = self.sizes.theta, self.terms.weighted
        if self.form.scaled:
            errors = await self.errors(words, bits - (WEIGHT_BITS if weighted else 0))
            return await self.weighed(errors) if weighted else errors
        factors = wave_theta.owner(wave_theta.angles(words[some], self.ring.cut))
        whole = factors.whole(bits, bits // 2, self.noise.rounding("theta", self.passed))
        return self._of_some(await answer_rows(self.line, self.slots, whole.products), some)

    async def weighed(self, part: Words) -> Words:
        return await answer_rows(self.line, self.slots, centred(part, self.slots.plain)[None])

    async def logistic_loss(self, words: Words) -> None:
        factors = wave_theta.owners_loss(wave_theta.angles(words, self.ring.cut))
        await final_loss.tell_loss(self.line, self.ring, factors, self.noise, self.terms.noise)

    async def tell_sum(self, part: int, unit: float, deviation: float, purpose: str) -> None:
        noise = self.noise.words(np.array([deviation * unit]), f"the {purpose}", 0)
        await self.line.tell((part + int(noise[0])) % self.slots.plain)

    async def conclude(self, z: Floats | None) -> None:
        await self.line.show(np.array([self.evaluation.sent_bytes() / MEGA]))
