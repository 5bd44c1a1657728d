"""Finding the rows that all parties of a session have, if what the peers bring may be compared at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from colonnade.conversations.align import Alignment, AlignTerms, align
from colonnade.deploy.policy.membership import ComparisonRequest
from colonnade.deploy.rows.rows import rules_of
from colonnade.deploy.session.session import Event, RunSession
from colonnade.job import Key
from colonnade.run.party import held_to


async def common_rows(
    session: RunSession,
    digest: str,
    keys: Sequence[Key],
    asked: ComparisonRequest,
    *,
    minimum: int = 1,
    method: Literal["curve", "ot"] = "curve",
) -> Alignment:
    """Return the common rows of a session with this digest; raises if comparing ids would tell too much.

    Fewer than `minimum` end the session.
    """
    ids = session.own_rows.ids
    declare = held_to(session.align)  # what peers hear of ids is booked where they are admitted
    secrets = await session.party.join(session.align, digest)
    found = await align(
        session.align,
        ids,
        secrets,
        AlignTerms(
            order=bytes.fromhex(digest),
            rules=rules_of(keys),
            minimum=minimum,
            commitment=session.guard.commitment(ids),
            method=method,
            admit=lambda rosters: session.guard.admit(asked, len(ids), rosters),
            declare=declare,
        ),
        progress=lambda done, total: session.tell(Event("aligning", done, total)),
    )
    session.guard.found(ids, ids[found.rows])
    await session.align.finish()
    return found
