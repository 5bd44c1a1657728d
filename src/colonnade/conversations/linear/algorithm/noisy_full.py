"""L-BFGS on all rows from gradients with noise: neither labels nor scores nor columns are told.

A pass: every party is told the gradient of its own block, with noise; inner products of all blocks, rounded
to 5 bits, are added up and told to all, and every party steps (`noisy.noisy_lbfgs`). There is a fixed number
of passes. How gradients are made is the party's: `parties.encrypted` for two parties alone, `parties.dealt`
for three and more.
"""

from __future__ import annotations

from colonnade.conversations.context import Outcome
from colonnade.conversations.linear.noisy.party import NoisyParty


async def converse(party: NoisyParty) -> Outcome:
    """Make all passes, and measure the finished model."""
    await party.set_up()
    gates, lbfgs = party.context.gates, party.lbfgs
    gates.begin(1)
    while lbfgs.state.steps < party.terms.passes and not party.settled:
        own = lbfgs.told(await party.gradient())
        lbfgs.step(await party.totals(own))
        if gates.due(lbfgs.state.steps):
            await gates.reached(lbfgs.state.steps)
    party.end()
    await party.measure()
    return party.outcome()
