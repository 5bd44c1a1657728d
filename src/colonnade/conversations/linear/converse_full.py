"""Which kind of party L-BFGS on all rows has, as `plan.blind` says, and so which loop it runs.

    None                theta in clear: `algorithm.full`
    blind.encrypted     two parties alone, products under encryption: `parties.encrypted`, or where nobody
                        is to know a weight (`blind.reveal`) `parties.parted`
    blind.noisy         three or more, products by words of dealers: `parties.dealt`

Kinds of `noisy.party` run `algorithm.noisy_full`; weights in parts `algorithm.accelerated`.
"""

from __future__ import annotations

from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.linear.algorithm import accelerated, full, noisy_full
from colonnade.conversations.linear.parties import dealt, encrypted, parted
from colonnade.conversations.linear.settings import FullSettings
from colonnade.errors import JobError


async def converse_full(context: Context[FullSettings]) -> Outcome:
    """Train the party's block from all rows at once."""
    blind = context.plan.blind
    if blind is None:
        return await full.converse(context)
    if blind.encrypted is not None and blind.reveal == "never":
        return await accelerated.converse(parted.party_of(context, blind.encrypted))
    if blind.encrypted is not None:
        return await noisy_full.converse(encrypted.party_of(context, blind.encrypted))
    if blind.noisy is not None:
        return await noisy_full.converse(dealt.party_of(context, blind, blind.noisy))
    raise JobError("secure.labels = 'blind': lbfgs has no kind of party for this plan")
