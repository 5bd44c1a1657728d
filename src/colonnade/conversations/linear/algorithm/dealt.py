"""L-BFGS on all rows with dealers, for three and more parties: labels are blind, and scores hidden if asked.

Every party keeps its weights in clear to itself, and learns the gradient of its own columns with noise, as
between two parties (`algorithm.encrypted`), whose steps these are (`two.noisy_lbfgs`). What differs is how
products are made: a third party deals words for every block (`blind.gradients`). A pass:

1. scores X_l w_l of all rows go into a secure sum. Its root is the label holder A, which learns totals. Where
   scores are hidden its root is A's mate B, and A takes random words away: A's words and B's total add up to
   the scores, and neither says anything alone;
2. theta: A computes it. Where scores are hidden A and B compute a part each: of the logistic loss by a sum
   of sines, for which T deals words (`secure.shared_logistic`), of the squared loss by themselves;
3. every owner is told its gradient, with noise of S rows that A adds (B, for A's own columns);
4. inner products of all blocks, rounded to 5 bits, are summed and told to all, and every party steps.

There is a fixed number of passes. Columns are whole numbers of which the largest is 2^14 in size, so noise
of S rows is as loud in every column, and nothing need be told of them.

What each side learns: its own gradient with noise, in every pass; totals of rounded inner products; in the
end its own weights. A learns total scores of all rows: in every pass or, where they are hidden, once, of the
finished model. A and B together know theta; so do an owner and its dealer where scores are open. Scores
beyond what the sum of sines is good for, and thetas beyond the range of products, A sees only in the end
where scores are hidden; the model is refused then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from colonnade.arrays import Floats, Numbers, Words
from colonnade.conversations.blind import columns
from colonnade.conversations.blind.gradients import DealtGradients, sides_of
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import MEGA, Mark
from colonnade.conversations.linear.many import whole_columns
from colonnade.conversations.linear.many.shared_theta import SharedTheta, whole
from colonnade.conversations.linear.many.whole_columns import WholeColumns
from colonnade.conversations.linear.settings import FullSettings
from colonnade.conversations.linear.tune import sum_to_all
from colonnade.conversations.linear.two.noise import Loudness, OwnNoise
from colonnade.conversations.linear.two.noisy_lbfgs import FirstMatrix, NoisyLbfgs
from colonnade.conversations.linear.two.rare import gram
from colonnade.conversations.linear.two.theta import FORMS
from colonnade.conversations.pieces import collect_pieces, cut, give_pieces, messages
from colonnade.errors import FixedPointOverflow, JobError
from colonnade.job.plan import Blind, Noisy
from colonnade.losses import labels_of, weights_of
from colonnade.messages import Topic, tag_of
from colonnade.models.linear import rows_of
from colonnade.net.expect import floats
from colonnade.regularizers import Penalty
from colonnade.secure import shared_logistic
from colonnade.secure.overheard import opened
from colonnade.secure.ring import finely, joined
from colonnade.secure.streams import Roles, Stream
from colonnade.state import Declared

MOST_BITS = 28  # of theta
LOUDEST = 4.0  # theta, in its unit, in the root mean square of rows


async def converse(context: Context[FullSettings], blind: Blind, terms: Noisy) -> Outcome:
    """Train the party's block, or help with others'."""
    conversation = DealtConversation(replace(context, streams=columns.pair_streams(context)), blind, terms)
    await conversation.run()
    return conversation.outcome()


def theta_bits(rows: int) -> int:
    """Return bits of theta's fraction, so that no inner product with a column wraps around.

    |x_j| is at most 2^14 root(n), and |theta| at most `LOUDEST` root(n) in its unit.
    """
    return min(MOST_BITS, 60 - whole_columns.BITS - int(np.ceil(np.log2(max(rows, 1)))))


class DealtConversation:
    """One party's side."""

    STATE = Declared(parts=("lbfgs",))

    def __init__(self, context: Context[FullSettings], blind: Blind, terms: Noisy) -> None:
        self.context, self.terms, self.hidden = context, terms, blind.hidden
        self.me, self.asker, self.rows = context.me, context.evaluator, context.train.rows
        self.mate = None if self.hidden is None else self.hidden.mate
        self.form, self.bits = FORMS[context.plan.objective.loss], theta_bits(self.rows)
        self.noise = OwnNoise.of(context.gates)
        self.columns = WholeColumns(context.train.X, self.noise.rounding("columns"))
        kept = self.columns.kept
        if context.train.width and not len(kept):
            raise JobError(
                f"secure.labels = 'blind': every column of {context.me} says something of few rows alone; "
                "more rows or coarser columns are needed"
            )
        self.free = tuple(place for place, column in enumerate(kept) if column in context.train.free)
        self.kernels = context.engine.rows(context.train.X)
        roles = sides_of(
            self.asker, blind.dealers, self.mate, None if self.hidden is None else self.hidden.dealers
        )
        self.products = DealtGradients(context, roles, self.columns.values, 0)
        if self.hidden is not None:
            pair = Roles(self.asker, self.hidden.mate, self.hidden.dealer)
            self.shared = SharedTheta(context, pair, self.bits)
        self.evaluation = context.evaluation()
        self.holds = self.me == self.asker
        self.unit, self.loudness = 1.0, Loudness(0)
        self._secret = Stream(columns.own_key(context, "scores"))
        self._tags = 0
        if self.holds:
            y = context.label_holder.y
            self.y, self.weight = labels_of(y), weights_of(y)

    # -- before the first pass ------------------------------------------------------------------------

    async def set_up(self) -> None:
        """Agree on noise and unit, veil columns, and make the first matrix."""
        piece = np.array([self.columns.longest**2])
        told = await self._sum(piece, self._settled, 2)
        self.loudness = Loudness(int(told[0]), self.loudness.epsilon)
        self.unit = 2.0 ** int(told[1])
        objective, rows = self.context.plan.objective, self.rows
        self.penalty = Penalty(self.context.regularizer, objective.l2 / self.unit, 0.0, self.free)
        spread, kept = self.loudness.rows * self.columns.largest / rows, self.columns.kept
        ones = np.ones(len(kept))
        moments = gram(self.context.train.X, kept) * (self.form.curvature(self.unit) / rows)
        bend = self.penalty.bend(ones, ones)
        if not len(kept):  # a helper takes part in sums with a column of zeros
            moments, bend, spread, ones = np.zeros((1, 1)), np.ones(1), np.zeros(1), np.ones(1)
        # blocks that go together bend alike: a step of all of them at once would go too far
        together = max(1.0, len(self.products.roles) / 2)
        w = np.zeros(len(ones))
        if self.holds and self.free:
            w[list(self.free)] = self.context.label_holder.start
        self.lbfgs = NoisyLbfgs(FirstMatrix(moments * together, bend, spread), self.penalty, w)
        self.context.gates.keep(self, "lbfgs", name="DealtConversation")
        self.products.passes = self.terms.passes - self.lbfgs.state.steps
        await self.products.set_up()

    def _settled(self, total: Floats) -> Floats:
        """Return the label holder's word on noise, as a code, and on the unit of theta."""
        holder, weight = self.context.label_holder, self.weight
        spread = 1.0 if weight is None else float(np.sqrt(np.mean(weight**2)))
        heaviest = 1.0 if weight is None else float(weight.max())
        self.loudness = Loudness.of(self.terms, spread, heaviest * float(np.sqrt(total[0])))
        start = holder.start if self.free else 0.0
        size = float(np.sqrt(np.mean(holder.loss.dz(np.full(self.rows, start), holder.y) ** 2)))
        unit = round(np.log2(size)) if self.form.scaled and size else 0
        return np.array([self.loudness.code, unit], dtype=np.float64)

    # -- passes ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Make all passes, and measure the finished model."""
        await self.set_up()
        gates, state = self.context.gates, self.lbfgs.state
        gates.begin(1)
        while state.steps < self.terms.passes:
            await self.products.ready()
            own = self.lbfgs.told(await self._gradient())
            totals = await self._sum(finely(own.ravel()), np.copy, 2 * own.size)
            self.lbfgs.step(joined(totals).reshape(own.shape))
            if gates.due(state.steps):
                await gates.reached(state.steps)
        self.w = self._whole(self.lbfgs.weights)
        await self._measure()

    async def _gradient(self) -> Floats:
        """Return the gradient of the own block with noise: at the label holder of an open run without."""
        z, columns = self._scores(self._whole(self.lbfgs.state.w)), self.columns
        await self.context.charge(2 * self.rows * len(columns.kept))
        t, theta = await (self._open(z) if self.hidden is None else self._hidden(z))
        if t is not None:
            await self.products.ask(t, self._noise)
        sums = await self.products.answer()
        if columns.values is None:
            return np.zeros(1)
        if theta is not None:
            found: Floats = self.kernels.gradient(0, self.rows, theta)[columns.kept] / self.rows
            if self.loudness.epsilon is None:
                return found
            # then inner products must follow from noisy gradients alone
            return found + columns.gradient(self._drawn(self.me, columns.values.width), self.bits)
        total = np.zeros(columns.values.width, dtype=np.uint64) if sums is None else sums
        told = columns.gradient(total if t is None else total + self.products.own(t), self.bits)
        opened(self.context.sum, tag_of(Topic.TRAIN, self.lbfgs.state.steps), told)
        return told

    def _noise(self, owner: str, width: int) -> Words:
        """Return noise for an owner: the label holder draws it, and its mate for the label holder."""
        if self.holds or owner == self.asker:
            return self._drawn(owner, width)
        return np.zeros(width, dtype=np.uint64)

    def _drawn(self, owner: str, width: int) -> Words:
        deviation = np.full(width, self.loudness.rows * 2.0 ** (whole_columns.BITS + self.bits))
        return self.noise.words(deviation, owner, self.lbfgs.state.steps).view(np.uint64)

    # -- theta ----------------------------------------------------------------------------------------

    async def _open(self, z: Floats) -> tuple[Words | None, Floats | None]:
        """Return theta in words and as it is, at the label holder, which learns all scores."""
        total = await self._total(z, self.asker)
        if total is None:
            return None, None
        theta = self._in_range(total)
        return whole(theta, self.bits), theta

    def _in_range(self, z: Floats) -> Floats:
        """Return theta in its unit; refused where inner products with columns could wrap around."""
        theta: Floats = self.context.label_holder.theta(z, slice(None)) / self.unit
        if not float(np.linalg.norm(theta)) < LOUDEST * np.sqrt(self.rows):
            raise FixedPointOverflow(
                "secure.labels = 'blind': theta has grown beyond the range of products; raise train.l2, or "
                "scale the columns (data.scale = 'zscore')"
            )
        return theta

    async def _hidden(self, z: Floats) -> tuple[Words | None, None]:
        """Return a part of theta, at the label holder and its mate."""
        share: Words | None = None
        part, y = whole(z / self.unit, self.bits), None
        if self.holds:
            share = self._secret.once(self._tags, self.rows)
            part = part - share
            y = np.sign(self.y) / 2 if self.shared.sines else self.y / self.unit
        total = await self._total(part, str(self.mate))
        return await self.shared.of(share if total is None else total, y), None

    # -- sums -----------------------------------------------------------------------------------------

    async def _total(self, piece: Numbers, root: str) -> Numbers | None:
        """Return the sum of all parties' pieces, at its root."""
        context, first = self.context, self._tags
        parts = cut(piece)
        self._tags += len(parts)
        tags = [tag_of(Topic.TRAIN, first + k) for k in range(len(parts))]
        if self.me != root:
            await give_pieces(context.net, context.sum, iter(parts), root=root, tags=tags)
            return None
        totals = collect_pieces(context.net, context.sum, iter(parts), tags=tags)
        return np.concatenate([each async for each in totals])

    async def _sum(self, piece: Floats, answer: Callable[[Floats], Floats], size: int) -> Floats:
        """Return the label holder's answer to the sum of all parties' pieces, at everybody."""
        first = self._tags
        self._tags += messages(max(size, piece.size))
        return await sum_to_all(self.context, piece, first, answer, floats(size), Topic.TRAIN, size)

    def _whole(self, w: Floats) -> Floats:
        """Return weights of all own columns: of those that were left out they are 0."""
        weights = np.zeros(self.context.train.width)
        if len(self.columns.kept):
            weights[self.columns.kept] = w
        return weights

    def _scores(self, w: Floats) -> Floats:
        return self.kernels.scores(0, self.rows, w)

    # -- the end --------------------------------------------------------------------------------------

    async def _measure(self) -> None:
        """Measure the model: the label holder learns total scores of all rows."""
        context, test = self.context, self.context.test
        parts = [self._scores(self.w)]
        if test is not None:
            parts.append(rows_of(test.X).scores(0, test.rows, self.w))
        numbers = [context.penalty.value(self.w), self.evaluation.sent_bytes() / MEGA]
        total = await self._total(np.concatenate([*parts, numbers]), self.asker)
        scribe = self.evaluation.scribe
        if total is None or scribe is None:
            return
        z = np.split(total[:-2], np.cumsum([len(each) for each in parts]))[:-1]
        self._in_range(z[0])
        reached = float(np.abs(z[0]).max(initial=0.0))
        if self.hidden is not None and not self.form.scaled and not reached < shared_logistic.REACH:
            raise FixedPointOverflow(
                f"secure.scores = 'hidden': scores reach {reached:.3g}, and beyond {shared_logistic.REACH:g} "
                "steps are no longer those of the logistic loss; raise train.l2"
            )
        scribe.ending.strict = False  # noise may end anywhere
        steps = self.lbfgs.state.steps
        mark = Mark(steps, 2 * steps, final=True)
        scribe.record(z, float(total[-2]), round(float(total[-1]) * MEGA), context.net.clock.now(), mark)

    def outcome(self) -> Outcome:
        """Return what this party returns."""
        steps = self.lbfgs.state.steps
        return Outcome(
            weights={"w": self.w},
            step=1.0,
            rounds=2 * steps,
            updates=steps,
            evaluation=self.evaluation,
            delays=Counter({0: steps}),
            epsilon=self.loudness.epsilon,
        )
