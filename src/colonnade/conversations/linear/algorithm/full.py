"""The full conversation: L-BFGS on all rows at once, each step as long as is best; for data nobody knows yet.

A step takes two secure sums. First inner products over all blocks: every party then knows its part of the
direction d = -H g, where H comes from the latest pairs (s, y) of the way so far (`quasi_newton.directions`).
Then u = X d of all rows: the evaluator knows the scores z of all rows, so it knows z + t u for every t, and
looks for the best t without asking anybody (`optim.line_search`). It answers with t and theta = dL/dz there;
every party moves and has its next gradient.

Every party begins with an H of its own block (`optim.second_moments`), which it tells nobody: it counts its
directions and gradients in coordinates in which that is 1. Parties say in the first sum that they do; where
one is of version 0.2, nobody does.

No step size is assumed: the loss falls with every step, with any columns, and the run ends when
it stops falling. A step costs as many bytes as one epoch of `backward`, in two messages each way, where an
epoch has hundreds.

Scores and weights are counted in units of the labels, where these are numbers; penalties are summed finely,
as the loss may be next to nothing in that unit. A run ends where gradients are nothing but rounding, or what
they gain is, at the latest.

What a party scores, tells and moves is `parties.clear_full`. The same from gradients with noise, where no
theta is told, is `noisy_full`.

What each side learns: the evaluator learns the total score of every row; every party learns theta of every
row, and with it, for the logistic loss, the label and the total score, as in `backward`; all learn inner
products over all blocks and, where labels are numbers, how large they are.
"""

from __future__ import annotations

from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.linear.parties.clear_full import ClearFullParty
from colonnade.conversations.linear.settings import FullSettings


async def converse(context: Context[FullSettings]) -> Outcome:
    """Train the party's block from all rows at once: until the loss stops falling, or as often as the plan
    allows."""
    party, gates = ClearFullParty(context), context.gates
    gates.begin(1)
    if not gates.position:
        await party.begin()
    while len(party.theta):
        await party.turn()
        await party.move()
        if len(party.theta) and gates.due(party.state.steps):
            await gates.reached(party.state.steps)
    await party.measure()
    return party.outcome()
