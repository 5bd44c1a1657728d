"""Accelerated gradients on all rows, of weights that nobody knows: no step depends on anything that is seen.

Nesterov's steps, of a length and a momentum that are right for any data, as every party has turned its
columns so that its own second moments are 1 (`parted.turned_columns`). After gradients g_j weights are

    w - STEP sum_j (1 - MOMENTUM^(k - j)) / (1 - MOMENTUM) g_j        after k of them

and a step ahead of that where the next gradient is taken: sums of multiples that both parties know, which
each computes of its parts alone. There is a fixed number of passes. `parties.parted` is the party.
"""

from __future__ import annotations

from colonnade.conversations.context import Outcome
from colonnade.conversations.linear.parties.parted import PartedParty

STEP = 2 / 3  # stable with this momentum while no direction is steeper than 2.18; over two blocks 2 is most
MOMENTUM = 0.6
SPARSE = (4, 4, 4, 4, 2, 2)  # theta is asked for of one row in this number, in the passes after the first


def factors(count: int, *, ahead: bool) -> list[float]:
    """Return what each of this number of gradients counts in the weights, or in those a step ahead.

    >>> [[round(each, 2) for each in factors(2, ahead=ahead)] for ahead in (False, True)]
    [[-1.07, -0.67], [-1.31, -1.07]]
    """
    decays = [MOMENTUM ** (count - k) for k in range(count)]
    return [-STEP * ((1 - d) / (1 - MOMENTUM) + (d if ahead else 0.0)) for d in decays]


def stride(count: int, passes: int) -> int:
    """Return of how many rows one has its theta asked for, after this many passes: what is soon outdone need
    not be exact."""
    sparse = passes >= 2 * len(SPARSE) and 1 <= count <= len(SPARSE)
    return SPARSE[count - 1] if sparse else 1


async def converse(party: PartedParty) -> Outcome:
    """Make all passes, and measure the finished model."""
    await party.set_up()
    gates, passes = party.context.gates, party.terms.passes
    gates.begin(1)
    while party.passed < passes:
        counts = factors(party.passed, ahead=True)
        await party.one_pass(counts, stride(party.passed, passes))
        if gates.due(party.passed):
            await gates.reached(party.passed)
    party.end(factors(passes, ahead=False))
    await party.measure()
    return party.outcome()
