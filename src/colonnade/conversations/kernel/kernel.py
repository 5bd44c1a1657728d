"""The kernel conversation (FDSKL, Algorithms 1-3): doubly stochastic gradients over split columns.

f(x) = sum_i alpha_i phi_i(x), phi_i(x) = sqrt(2) cos(omega_i'x + b_i). A round takes B rows and M new
random features. Every party sends its part of omega'x into the secure sum (Algorithm 3), whose root owns
the features; every owner l adds up f_l over its own features (Algorithm 2) and the f_l are summed to the
round's dominator, which sets the M new coefficients from theta = L'(f(x), y) and keeps them; a word to all
lets everybody's earlier coefficients decay by 1 - gamma lambda (Algorithm 1). An owner keeps a running f of
every row, which each round's new features move (`running`), so directions are drawn from seeds and forgotten.
Dominators take turns, a round after the other unless `ahead` lets some overlap. B = M = 1 takes the paper's
steps; which rows, directions and dominators they have is ours (docs/algorithms/fdskl.md). With a cap on the
features (`fdskl-capped`, which is ours) the rounds go on over those there are: theta then goes to all owners,
and each steps on its own coefficients (`kept`).

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
from colonnade.conversations.checkpoint import WindowGates
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Mark, Marks, Scored, measure_at_marks
from colonnade.conversations.kernel.kept_scores import KeptScores
from colonnade.conversations.kernel.predict import KernelShare, score_share
from colonnade.conversations.kernel.running import RunningScores
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import (
    Agreed,
    FeatureLayout,
    agree,
    draw_features,
    layout_of,
    seed_features,
    step_of,
)
from colonnade.conversations.pacing.delays import Delays, Lateness
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.messages import Backward, Decay, Topic, tag_of
from colonnade.models.random_features import FeaturePart, RandomFeatures, SeededFeatures
from colonnade.net.expect import expect, floats, out_of_turn
from colonnade.optim.steps import step_of_round
from colonnade.state import Declared


async def converse(context: Context[KernelSettings]) -> Outcome:
    """Train a kernel machine; returns the party's features and, if it holds the label, its coefficients."""
    layout = layout_of(context.plan, context.train.rows)
    agreed = await agree(context)
    window = OneOrder(context.plan.pace.ahead, layout.schedule.rounds)
    conversation = KernelConversation(context, layout, agreed, window)
    await conversation.run()
    return Outcome(
        weights=dict(conversation.share.arrays()),
        step=conversation.gamma,
        chosen={"sigma": agreed.sigma, "l2": agreed.l2},
        rounds=window.base,
        updates=conversation.state.updates,
        evaluation=conversation.evaluation,
        delays=conversation.delays.counts,
        lateness=Lateness(window.delay_bound),
        converged=window.state.stop < layout.schedule.rounds if context.plan.pace.open else None,
    )


def memory_of(
    context: Context[KernelSettings], layout: FeatureLayout, agreed: Agreed, window: OneOrder
) -> KeptScores | RunningScores:
    """Return what a party remembers of its rows' scores, which depends on whether coefficients move again."""
    if layout.running:
        return RunningScores(context, layout, window, seed_features(context, layout, agreed), agreed.outputs)
    return KeptScores(context, layout, window, draw_features(context, layout, agreed))


@dataclass
class KernelState:
    """What rounds change: the coefficients of the own features, and their momentum."""

    alpha: Floats
    velocity: Floats
    updates: int = 0
    filled: int = 0  # coefficients that were set; the features after them are still to come


@dataclass
class KernelConversation:
    """One party's side of the conversation."""

    STATE = Declared(kept=("state", "delays", "features"), parts=("window", "memory"))

    context: Context[KernelSettings]
    layout: FeatureLayout
    agreed: Agreed
    window: OneOrder
    state: KernelState = field(init=False)

    def __post_init__(self) -> None:
        context, layout = self.context, self.layout
        self.net, self.sum, self.schedule = context.net, context.sum, layout.schedule
        self.evaluation = context.evaluation()
        self.gamma = step_of(context, layout, self.agreed, delay=self.window.ahead - 1)
        self.memory = memory_of(context, layout, self.agreed, self.window)
        owned = 0 if self.owner is None else layout.width(self.owner)
        alpha = np.zeros((owned, *self.agreed.outputs))
        self.state = KernelState(alpha, np.zeros_like(alpha))
        self.delays = Delays(self.window.delay_bound)
        context.gates.keep(self)

    @property
    def owner(self) -> int | None:
        """This party's place among the owners of features; None if it owns none."""
        return self.memory.owner

    @property
    def features(self) -> list[RandomFeatures] | list[SeededFeatures]:
        """This party's part of every owner's features."""
        return self.memory.features

    @property
    def several(self) -> bool:
        """Whether there are several owners, so that f has to be summed."""
        return len(self.layout.owners) > 1

    @property
    def alpha(self) -> Floats:
        """The coefficients of the own features so far; a view."""
        return self.state.alpha[: self.state.filled]

    @property
    def l2(self) -> float:
        return self.agreed.l2

    @property
    def momentum(self) -> float:
        """The momentum of the plan; none where rounds overlap, as late gradients act like momentum."""
        return self.context.plan.settings.momentum if self.window.ahead == 1 else 0.0

    @property
    def share(self) -> KernelShare:
        """What this party keeps of the model."""
        owned: dict[str, FeaturePart] = dict(zip(self.layout.owners, self.features, strict=True))
        alpha = None if self.owner is None else self.state.alpha
        return KernelShare(owned, alpha, self.agreed.outputs)

    async def run(self) -> None:
        """Run all rounds to the end, and measure the model on the way."""
        self.checkpoints.begin()
        await self.memory.find_again()
        work = [self.measure(), self.memory.send(), self.pauses()]
        if self.owner is None:
            work.append(self.heed())
        else:
            work += [self.memory.receive(), self.dominate()]
            if self.several:
                work.append(self.collaborate())
        if self.several:
            work.append(self.push())
        early, evaluator = self.context.may_end_early, self.context.evaluator
        work.append(self.window.agree_on_ends(self.net, evaluator, may_end_early=early))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in work]
            await self.window.ends()
            # the last measurement may take long, and nobody must wait for a round meanwhile
            for task in tasks[1:]:
                task.cancel()

    @property
    def checkpoints(self) -> WindowGates:
        """Where the state is stored on the way."""
        return WindowGates(self.context.gates, self.window, self.schedule, self.evaluation, self.marks)

    async def pauses(self) -> None:
        """Store the state at every gate."""
        async for gate in self.window.gates():
            await self.checkpoints.at(gate)

    # --- Algorithm 2: scores ------------------------------------------------------------------------

    async def scores(self, number: int) -> Floats:
        """Return f_l of a round's rows: the own features' part of their scores."""
        if self.owner is None:
            return np.zeros((self.schedule.round(number).size, *self.agreed.outputs))
        f = await self.memory.of(number, self.alpha)
        self.delays.read(number, self.window.finished)
        return f

    async def push(self) -> None:
        """Send f_l of other dominators' rounds as early as the window allows."""
        for number in range(self.window.base, self.schedule.rounds):
            root = self.schedule.dominator(number)
            if root == self.net.me:
                continue
            if not await self.window.opens(number):
                return
            await self.sum.give(await self.scores(number), root=root, tag=tag_of(Topic.TRAIN, number))

    # --- Algorithm 1: coefficients ------------------------------------------------------------------

    async def dominate(self) -> None:
        """Run the own rounds: sum f, send theta or the decay, set coefficients (Algorithm 1, lines 7-10)."""
        holder = self.context.label_holder
        for number in range(self.window.base, self.schedule.rounds):
            if self.schedule.dominator(number) != self.net.me or not await self.window.opens(number):
                continue
            f = await self.scores(number)
            if self.several:
                f = await self.sum.collect(f, tag=tag_of(Topic.TRAIN, number))
            theta = holder.theta(f, self.layout.rows(number), number)
            await self.memory.ready(number)  # nobody must take a round for over while it still sends for it
            await self.tell(number, theta)
            await self.update(number, theta)
            # a party that never has to wait for another must still let the others act
            await asyncio.sleep(0)

    async def tell(self, number: int, theta: Floats) -> None:
        """Tell all parties that a round is over; owners also get theta once no features are added."""
        tag = tag_of(Topic.TRAIN, number)
        told = theta if number >= self.layout.growth else theta[:0]
        owners = set(self.layout.owners)
        await self.net.spread(Backward(tag, told), owners)
        await self.net.spread(Decay(tag), set(self.net.peers) - owners)

    async def collaborate(self) -> None:
        """Follow other owners' rounds: let the own coefficients decay, or step on the theta that comes."""
        async for waiting in self.net.stream(Backward):
            for sender, message in waiting:
                self._check_turn(sender, message)
                size = self.schedule.round(message.tag).size if message.tag >= self.layout.growth else 0
                expect(sender, message, {"theta": floats(size, *self.agreed.outputs)})
                await self.update(message.tag, message.theta if len(message.theta) else None)

    async def heed(self) -> None:
        """Follow the rounds at a party without labels: when one is over, later ones may begin."""
        async for waiting in self.net.stream(Decay):
            for sender, message in waiting:
                self._check_turn(sender, message)
                self.state.updates += 1
                self.window.finish([message.tag])

    def _check_turn(self, sender: str, message: Backward | Decay) -> None:
        """Raise unless a round is its sender's to end, and is under way here."""
        number = message.tag
        if not 0 <= number < self.schedule.rounds or self.schedule.dominator(number) != sender:
            raise out_of_turn(sender, message, "it does not dominate that round")
        # where one party dominates all rounds it ends them in order, and the others begin none
        if not (self.window.expects(number) if self.several else number == self.window.base):
            raise out_of_turn(sender, message, "that round is over or has not begun")

    async def update(self, number: int, theta: Floats | None) -> None:
        """Update the own coefficients after a round; without a theta there is only the decay."""
        gamma = step_of_round(self.gamma, self.context.plan.settings.step, number, self.schedule.rounds)
        await self.memory.ready(number)
        if number < self.layout.growth:
            await self.grow(number, gamma, theta)
        elif theta is not None:
            await self.descend(number, gamma, theta)
        self.memory.forget(number)
        self.delays.apply([number], self.window.finished)
        self.state.updates += 1
        self.window.finish([number])

    async def grow(self, number: int, gamma: float, theta: Floats | None) -> None:
        """Let all coefficients decay; the dominator sets its new ones (lines 9 and 10 of Algorithm 1)."""
        state, decay, new = self.state, 1 - gamma * self.l2, None
        if theta is not None:
            phi = await self.memory.new(number)
            new = -gamma / self.layout.block * (phi.T @ theta) / len(theta)
        self.alpha[:] *= decay
        if new is not None:
            block = self.layout.place(number)
            state.alpha[block], state.filled = new, block.stop
        self.memory.follow(number, decay, new)

    async def descend(self, number: int, gamma: float, theta: Floats) -> None:
        """Step on all own coefficients along the gradient, where no features are added any more."""
        phi = await self.memory.known(number)
        state, known = self.state, slice(0, self.state.filled)
        gradient = phi.T @ theta / (len(theta) * self.layout.features) + self.l2 * self.alpha
        state.velocity[known] = self.momentum * state.velocity[known] - gamma * gradient
        state.alpha[known] += state.velocity[known]

    # --- measuring ----------------------------------------------------------------------------------

    async def measure(self) -> None:
        """Measure the model at its marks and at the end."""

        async def now(rounds: int, final: bool) -> float | None:
            return await self.evaluate(Mark(rounds // self.schedule.per_epoch, rounds, final))

        await measure_at_marks(self.net, self.evaluation, self.marks, self.schedule, self.window, now)

    @property
    def marks(self) -> Marks:
        """When the model is measured."""
        return Marks.of(self.context.plan.pace.evaluate_every, self.schedule)

    async def evaluate(self, mark: Mark) -> float | None:
        """Measure the model; the loss at the evaluator, None elsewhere.

        Test rows, and without a cache all rows, are projected for it.
        """
        clock, test = self.net.clock, self.context.test
        when = clock.now()  # projecting rows for the measurement is not training
        with clock.uncharged():
            known = self.memory.of_all(self.alpha)
        f = [await self.unseen(self.context.train.X) if known is None else known]
        if mark.final and test is not None:
            f.append(await self.unseen(test.X))
        scored = [Scored.known(each) for each in f]
        return await self.evaluation.measure(scored, self.penalty(), mark, when)

    async def unseen(self, X: Matrix) -> Floats:
        """Return f_l of rows whose projections are not kept; all parties take part."""
        return await score_share(
            self.share,
            X,
            net=self.context.measuring.net,
            secure=self.context.measuring.sum,
            next_tag=self.evaluation.next_tag,
        )

    def penalty(self) -> float:
        """Return the own part of lambda / 2 ||f||^2, in the space that the features so far span.

        Where every round adds features there is nothing to measure: f is not in the kernel's space then.
        """
        if self.layout.growth == self.schedule.rounds:
            return 0.0
        count = self.layout.block * min(max(1, self.window.base), self.layout.growth)
        return 0.5 * self.l2 * count * float(np.sum(self.state.alpha**2))
