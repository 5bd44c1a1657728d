"""L-BFGS on all rows with dealers, for three and more parties: labels are blind, and scores hidden if asked.

Every party keeps its weights in clear to itself, and learns the gradient of its own columns with noise, as
between two parties (`parties.encrypted`), whose steps these are (`noisy.noisy_lbfgs`). What differs is how
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
where scores are hidden. Sines draw a score that is too far back, so few rows of such scores do no harm; with
more the model is refused. With `secure.proofs` every party sees in the end whether the model is an optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from colonnade.arrays import Floats, Numbers, Words
from colonnade.conversations.blind import columns
from colonnade.conversations.blind.gradients import DealtGradients, sides_of
from colonnade.conversations.blind.shared_theta import SharedTheta
from colonnade.conversations.context import Context
from colonnade.conversations.evaluate import MEGA, Mark
from colonnade.conversations.linear.noisy import whole_columns
from colonnade.conversations.linear.noisy.optimum import check, check_rows
from colonnade.conversations.linear.noisy.party import NoisyParty
from colonnade.conversations.linear.noisy.whole_columns import WholeColumns
from colonnade.conversations.linear.parties.blind_refusals import refuse_wide
from colonnade.conversations.linear.settings import FullSettings
from colonnade.conversations.linear.tune import sum_to_all
from colonnade.conversations.pieces import collect_pieces, cut, give_pieces, messages
from colonnade.errors import FixedPointOverflow
from colonnade.job.plan import Blind, Noisy
from colonnade.messages import Announce, Topic, tag_of
from colonnade.net.expect import floats
from colonnade.secure import shared_logistic
from colonnade.secure.overheard import opened
from colonnade.secure.ring import finely, joined, whole
from colonnade.secure.streams import Roles, Stream

MOST_BITS = 28  # of theta
MOST_FAR = 0.01  # of the rows, whose scores may be beyond what the sum of sines is good for
LOUDEST = 4.0  # theta, in its unit, in the root mean square of rows


def party_of(context: Context[FullSettings], blind: Blind, terms: Noisy) -> DealtParty:
    """Return this party; one without columns helps others with theirs."""
    return DealtParty(replace(context, streams=columns.pair_streams(context)), blind, terms)


def theta_bits(rows: int) -> int:
    """Return bits of theta's fraction, so that no inner product with a column wraps around.

    |x_j| is at most 2^14 root(n), and |theta| at most `LOUDEST` root(n) in its unit.
    """
    return min(MOST_BITS, 60 - whole_columns.BITS - int(np.ceil(np.log2(max(rows, 1)))))


class DealtParty(NoisyParty):
    """One party's side."""

    sums_a_pass = 2

    def __init__(self, context: Context[FullSettings], blind: Blind, terms: Noisy) -> None:
        super().__init__(context, terms)
        self.hidden = blind.hidden
        self.me, self.asker, self.rows = context.me, context.evaluator, context.train.rows
        self.mate = None if self.hidden is None else self.hidden.mate
        self.bits = theta_bits(self.rows)
        self.columns = WholeColumns(context.train.X, self.noise.rounding("columns"))
        self.keep_columns(self.columns.kept, "secure.labels = 'blind'", helper=not context.train.width)
        self.kernels = context.engine.rows(context.train.X)
        roles = sides_of(
            self.asker, blind.dealers, self.mate, None if self.hidden is None else self.hidden.dealers
        )
        self.products = DealtGradients(context, roles, self.columns.values, 0)
        if self.hidden is not None:
            pair = Roles(self.asker, self.hidden.mate, self.hidden.dealer)
            self.shared = SharedTheta(context, pair, self.bits)
        self._secret = Stream(columns.own_key(context, "scores"))
        self._tags = self._proven = 0  # totals, and proofs that are made

    # -- before the first pass ------------------------------------------------------------------------

    async def set_up(self) -> None:
        """Agree on noise and unit, make the first matrix, and veil columns."""
        told = await self._sum(np.array([self.columns.longest**2]), self._settled, 2)
        self.loudness = self.heard_loudness(int(told[0]), self.columns.longest)
        self.unit = 2.0 ** int(told[1])
        # blocks that go together bend alike: a step of all of them at once would go too far
        self.together = max(1.0, len(self.products.roles) / 2)
        self.begin(self.loudness.rows * self.columns.largest / self.rows, self.together)
        self.products.passes = self.terms.releases - self.lbfgs.state.steps
        await self.products.set_up()
        if not self.terms.tight:
            widths = {side.roles.owner: side.asker.width for side in self.products.sides if side.asker}
            refuse_wide(self.context, widths, "bring fewer, or take vfb2-saga and reveal = 'never'")

    def _settled(self, total: Floats) -> Floats:
        """Return the label holder's word on noise, as a code, and on the unit of theta."""
        unit = self.settle(float(np.sqrt(total[0])))
        return np.array([self.loudness.code, unit], dtype=np.float64)

    # -- passes ---------------------------------------------------------------------------------------

    async def totals(self, own: Floats) -> Floats:
        """Return the sum of all parties' inner products, which the label holder tells to all."""
        totals = await self._sum(finely(own.ravel()), np.copy, 2 * own.size)
        return joined(totals).reshape(own.shape)

    async def gradient(self) -> Floats:
        """Return the gradient of the own block with noise: at the label holder of an open run without."""
        await self.products.ready()
        z, columns = self._scores(self.whole(self.lbfgs.state.w)), self.columns
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
        return self.noise.words(deviation, owner, self.lbfgs.state.steps + self._proven).view(np.uint64)

    # -- theta ----------------------------------------------------------------------------------------

    async def _open(self, z: Floats) -> tuple[Words | None, Floats | None]:
        """Return theta in words and as it is, at the label holder, which learns all scores."""
        total = await self._total(z, self.asker)
        if total is None:
            return None, None
        theta = self._in_range(total)
        return whole(theta * 2.0**self.bits), theta

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
        part, y = whole(z / self.unit * 2.0**self.bits), None
        if self.holds:
            share = self._secret.once(self._tags, self.rows)
            part = part - share
            y = np.sign(self.y) / 2 if self.shared.has_sines else self.y / self.unit
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

    def _scores(self, w: Floats) -> Floats:
        return self.kernels.scores(0, self.rows, w)

    # -- the end --------------------------------------------------------------------------------------

    async def measure(self) -> None:
        """Measure the model: the label holder learns total scores of all rows."""
        context, test = self.context, self.test_scores()
        parts = [self._scores(self.w), *([] if test is None else [test])]
        numbers = [context.penalty.value(self.w), self.evaluation.sent_bytes() / MEGA]
        total = await self._total(np.concatenate([*parts, numbers]), self.asker)
        scribe = self.evaluation.scribe
        if total is None or scribe is None:
            await self._prove(None)
            return
        z = np.split(total[:-2], np.cumsum([len(each) for each in parts]))[:-1]
        theta = self._in_range(z[0])
        far = np.abs(z[0]) >= shared_logistic.REACH
        if self.hidden is not None and not self.form.scaled and far.mean() > MOST_FAR:
            raise FixedPointOverflow(
                f"secure.scores = 'hidden': scores of {far.mean():.1%} of the rows are beyond "
                f"{shared_logistic.REACH:g}, where steps are no longer those of the logistic loss; raise "
                "train.l2"
            )
        if self.terms.proofs and not self.form.scaled:
            check_rows(np.where(self.y > 0, z[0], -z[0]))
        await self._prove(theta)
        scribe.ending.strict = False  # noise may end anywhere
        steps = self.lbfgs.state.steps
        mark = Mark(steps, 2 * steps, final=True)
        scribe.record(z, float(total[-2]), round(float(total[-1]) * MEGA), context.net.clock.now(), mark)

    async def _prove(self, theta: Floats | None) -> None:
        """Let every party see that its gradient of the finished model vanishes (`noisy.optimum`), as often as
        the plan says: theta is the label holder's, and new words are dealt."""
        first = 1.0 if self.form.scaled else 0.25  # theta's mean square at scores of 0, at the most
        whole_theta = first / (self.form.curvature(self.unit) * self.together)
        for number in range(self.terms.proofs):
            self._proven = number
            await self.products.ready()
            if theta is not None:
                sign = self._sign(number)
                await self.products.ask(whole(sign * theta * 2.0**self.bits), self._noise)
                await self._told(number, sign)
                if len(self.kept):
                    own = self.kernels.gradient(0, self.rows, theta)[self.kept] / self.rows
                    check(self.lbfgs, own, whole_theta)
                continue
            sums, sign = await self.products.answer(self.asker), await self._told(number)
            if sums is not None:
                check(self.lbfgs, sign * self.columns.gradient(sums, self.bits), whole_theta)

    def _sign(self, number: int) -> int:
        """Return the sign of theta in a proof, drawn by the label holder."""
        return 1 - 2 * int(self._secret.once(self._tags + number, 1)[0] >> np.uint64(63))

    async def _told(self, number: int, sign: int = 0) -> int:
        """Tell all others the sign of theta, as the label holder, or hear it: all words are dealt by then."""
        net, tag = self.context.net, tag_of(Topic.TRAIN, self._tags + number)
        if self.holds:
            await net.broadcast(Announce(tag, np.array([float(sign)])))
            return sign
        told = await net.recv(Announce, self.asker, tag, values=floats(1, low=-1, high=1))
        return int(told.values[0])
