"""The kernel conversation (FDSKL, Algorithms 1-3): doubly stochastic gradients over split columns.

f(x) = sum_i alpha_i phi_i(x), phi_i(x) = sqrt(2) cos(omega_i'x + b_i). A round takes B rows and M new
random features. Every party sends its part of omega'x into the secure sum (Algorithm 3), whose root owns
the features; every owner l adds up f_l over its own features (Algorithm 2) and the f_l are summed to the
round's dominator, which sets the M new coefficients from theta = L'(f(x), y) and keeps them; a word to all
lets everybody's earlier coefficients decay by 1 - gamma lambda (Algorithm 1). B = M = 1 is the paper's
algorithm. When there are as many features as wanted, the rounds go on over those: theta then goes to all
owners, and each steps on its own coefficients. An owner keeps phi of every row it has met, so f is a
product with what is kept, and no running score has to be stored beside it.

What each side learns: an owner learns omega'x + b of every row for its own features, hence an estimate of
the kernel between rows (with shared directions: the others' columns); a dominator learns the total score
of its rows, and from it, if there are only two owners, the other owner's f_l. Owners hold the label and
see each other's theta. A party without labels learns which rows are visited, the bandwidth, and nothing
about scores or labels (docs/algorithms/fdskl.md).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Evaluation, Mark
from colonnade.conversations.kernel.features import MULTIPLICATIONS, Projections, charge
from colonnade.conversations.kernel.predict import KernelShare, score_share
from colonnade.conversations.kernel.setup import (
    Plan,
    Terms,
    agree_terms,
    draw_features,
    plan_of,
    step_of,
)
from colonnade.conversations.linear.block import Delays
from colonnade.conversations.marks import heed_stop, measure_at_marks
from colonnade.conversations.window import Window
from colonnade.errors import Diverged
from colonnade.job.rules import batches_in_flight
from colonnade.messages import Backward, Decay, Topic, tag_of
from colonnade.models.random_features import RandomFeatures
from colonnade.optim.steps import step_of_round


async def converse(context: Context) -> Outcome:
    """Train a kernel machine; the party's features and, where it has labels, its coefficients come out."""
    plan = plan_of(context.job, context.train.rows, context.active)
    terms = await agree_terms(context)
    window = Window(batches_in_flight(context.job, len(context.active)), plan.schedule.rounds)
    conversation = KernelConversation(
        context=context,
        plan=plan,
        terms=terms,
        features=draw_features(context, plan, terms),
        window=window,
        gamma=step_of(context, plan, terms, delay=window.ahead - 1),
        evaluation=context.evaluation(),
    )
    await conversation.run()
    return Outcome(
        weights=conversation.share.arrays(),
        step=conversation.gamma,
        rounds=window.base,
        updates=conversation.updates,
        evaluation=conversation.evaluation,
        delays=conversation.delays.counts,
    )


@dataclass
class KernelConversation:
    context: Context
    plan: Plan
    terms: Terms
    features: list[RandomFeatures]  # this party's part of every owner's features
    window: Window
    gamma: float
    evaluation: Evaluation
    updates: int = 0
    filled: int = 0  # coefficients that were set; the features after them are still to come
    delays: Delays = field(init=False)

    def __post_init__(self) -> None:
        context, plan = self.context, self.plan
        self.net, self.sum, self.schedule = context.net, context.sum, plan.schedule
        self.l2 = context.job.train.l2
        self.projections = Projections(context, plan, self.features, self.window)
        self.owner = self.projections.owner
        # with one owner alone f is known where it is needed; with more it has to be summed
        self.several = len(plan.owners) > 1
        owned = 0 if self.owner is None else plan.width(self.owner)
        self.alpha: Floats = np.zeros((owned, *self.terms.outputs))
        self._velocity = np.zeros_like(self.alpha)
        # rounds that are late have a momentum of their own
        self.momentum = context.job.kernel.momentum if self.window.ahead == 1 else 0.0
        self.delays = Delays(self.window.delay_bound)

    @property
    def share(self) -> KernelShare:
        owned = dict(zip(self.plan.owners, self.features, strict=True))
        return KernelShare(owned, None if self.owner is None else self.alpha, self.terms.outputs)

    async def run(self) -> None:
        work = [self.measure(), self.projections.send()]
        if self.owner is None:
            work.append(self.heed())
        else:
            work += [self.projections.receive(), self.dominate()]
            if self.several:
                work.append(self.collaborate())
        if self.several:
            work.append(self.push())
        if self.context.target_loss is not None and self.net.me != self.context.evaluator:
            work.append(heed_stop(self.context, self.window))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in work]
            await self.window.ends()
            # the last measurement may take long, and nobody must wait for a round meanwhile
            for task in tasks[1:]:
                task.cancel()

    # --- Algorithm 2: scores ------------------------------------------------------------------------

    async def scores(self, number: int) -> Floats:
        """f_l of a round's rows."""
        if self.owner is None:
            return np.zeros((self.schedule.round(number).size, *self.terms.outputs))
        values = await self.projections.phi(number)
        await charge(self.context, values.shape[0] * self.filled / MULTIPLICATIONS)
        self.delays.read(number, self.window.finished)
        f: Floats = values[:, : self.filled] @ self.alpha[: self.filled]
        return f

    async def push(self) -> None:
        """Send f_l of other dominators' rounds as early as the window allows."""
        for number in range(self.schedule.rounds):
            root = self.schedule.dominator(number)
            if root == self.net.me:
                continue
            if not await self.window.opens(number):
                return
            await self.sum.sum(await self.scores(number), root=root, tag=tag_of(Topic.TRAIN, number))

    # --- Algorithm 1: coefficients ------------------------------------------------------------------

    async def dominate(self) -> None:
        """Lines 7-10 of Algorithm 1, on the rounds of this active party."""
        y, loss = self.context.y, self.context.loss
        assert y is not None  # noqa: S101  only label holders dominate
        for number in range(self.schedule.rounds):
            if self.schedule.dominator(number) != self.net.me or not await self.window.opens(number):
                continue
            f = await self.scores(number)
            if self.several:
                total = await self.sum.sum(f, root=self.net.me, tag=tag_of(Topic.TRAIN, number))
                assert total is not None  # noqa: S101  this party is the root
                f = total
            theta = loss.dz(f, y[self.plan.rows(number)])
            if not np.isfinite(theta).all():
                raise Diverged(f"theta of round {number} is not finite; use a smaller step or step = 'auto'")
            await self.tell(number, theta)
            await self.update(number, theta)
            # a party that never has to wait for another must still let the others act
            await asyncio.sleep(0)

    async def tell(self, number: int, theta: Floats) -> None:
        """The decay goes to everybody; theta, once no features are added, only to who holds the label."""
        tag = tag_of(Topic.TRAIN, number)
        told = theta if number >= self.plan.growth else theta[:0]
        for peer in self.net.peers:
            await self.net.send(peer, Backward(tag, told) if peer in self.plan.owners else Decay(tag))

    async def collaborate(self) -> None:
        """On another owner: let the own coefficients decay, and step on them if there is a theta."""
        async for waiting in self.net.stream(Backward):
            for _, message in waiting:
                await self.update(message.tag, message.theta if len(message.theta) else None)

    async def heed(self) -> None:
        """On a party without labels: the round is over, later ones may begin."""
        async for waiting in self.net.stream(Decay):
            self.updates += len(waiting)
            self.window.finish(message.tag for _, message in waiting)

    async def update(self, number: int, theta: Floats | None) -> None:
        """Lines 9 and 10: the dominator's new coefficients, the decay of the others; later, plain steps."""
        plan, kind = self.plan, self.context.job.kernel.step
        gamma = step_of_round(self.gamma, kind, number, self.schedule.rounds)
        values = await self.projections.phi(number)
        if theta is not None:
            await charge(self.context, values.size / MULTIPLICATIONS)
        if number < plan.growth:
            self.alpha[: self.filled] *= 1 - gamma * self.l2
            if theta is not None:
                block = plan.place(number)
                self.alpha[block] = -gamma / plan.block * (values[:, block].T @ theta) / len(theta)
                self.filled = block.stop
        elif theta is not None:
            known = slice(0, self.filled)
            gradient = values[:, known].T @ theta / (len(theta) * plan.features) + self.l2 * self.alpha[known]
            self._velocity[known] = self.momentum * self._velocity[known] - gamma * gradient
            self.alpha[known] += self._velocity[known]
        self.projections.forget(number)
        self.delays.apply(number, self.window.finished)
        self.updates += 1
        self.window.finish([number])

    # --- measuring ----------------------------------------------------------------------------------

    async def measure(self) -> None:
        async def now(rounds: int, final: bool) -> float | None:
            return await self.evaluate(Mark(rounds // self.schedule.per_epoch, rounds, final))

        await measure_at_marks(self.context, self.schedule, self.window, now)

    async def evaluate(self, mark: Mark) -> float | None:
        """The loss at the evaluator. Rows that are not kept, and test rows, are projected for it."""
        clock, test = self.net.clock, self.context.test
        when = clock.now()  # projecting rows for the measurement is not training
        f = []
        if self.plan.cached:
            with clock.uncharged():
                f.append(self.projections.kept[:, : self.filled] @ self.alpha[: self.filled])
        else:
            f.append(await self.unseen(self.context.train.X))
        if mark.final and test is not None:
            f.append(await self.unseen(test.X))
        return await self.evaluation.measure(lambda: f, self.penalty(), mark, when)

    async def unseen(self, X: Matrix) -> Floats:
        return await score_share(
            self.share,
            X,
            net=self.context.evaluation_net,
            secure=self.context.evaluation_sum,
            next_tag=self.evaluation.next_tag,
        )

    def penalty(self) -> float:
        """lambda / 2 ||f||^2, with the norm that the features so far span."""
        count = self.plan.block * min(max(1, self.window.base), self.plan.growth)
        return 0.5 * self.l2 * count * float(np.sum(self.alpha**2))
