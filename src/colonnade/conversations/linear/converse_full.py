"""Which kind of party L-BFGS on all rows has, as `plan.blind` says.

    None                theta in clear: `algorithm.full`
    blind.encrypted     two parties alone, products under encryption: `algorithm.encrypted`
    blind.noisy         three or more, products by words of dealers: `algorithm.dealt`

A kind of party is a module with a `converse(context, ...)`, which is given its part of `plan.blind`.
"""

from __future__ import annotations

from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.linear.algorithm import dealt, encrypted, full
from colonnade.conversations.linear.settings import FullSettings
from colonnade.errors import JobError


async def converse_full(context: Context[FullSettings]) -> Outcome:
    """Train the party's block from all rows at once."""
    if context.plan.blind is None:
        return await full.converse(context)
    if context.plan.blind.encrypted is not None:
        return await encrypted.converse(context, context.plan.blind.encrypted)
    if context.plan.blind.noisy is not None:
        return await dealt.converse(context, context.plan.blind, context.plan.blind.noisy)
    raise JobError("secure.labels = 'blind': lbfgs has no kind of party for this plan")
