"""How late a theta can be where dominators launch rounds at their own pace (`own_pace`), with the proof.

The keeper gives a dominator at most `lead` shares between two thetas of any other. Nobody waits for ever: if
i waits for j, then i was given a share after j's last theta, so the one that has been waiting longest has
nobody to wait for. Say that a party gives its shares b rounds of a dominator ahead (b is `ahead`, or `ahead`
+ `stale`) and reads its weights for a round of dominator j. Until it applies the round's theta, - it applies
at most 2 (b - 1) other thetas of j; - of another dominator, the keeper has given at most 2 b shares of rounds
that this party has not applied yet,
  and meanwhile it gives at most `lead` between any two of the 2 b + 1 thetas of j that it sees.
With m dominators that is 2 (b - 1) + (m - 1) (2 b + (2 b + 1) lead) updates (`bound`). The two delays of the
theorems have the same bound: tau_1 counts the updates that the dominator had made when it computed theta and
this party had not when it read its weights, tau_2 those that this party has made and the dominator had not.
"""

from __future__ import annotations

from colonnade.conversations.pacing.shares_ahead import MOST
from colonnade.errors import JobError

UNBOUNDED = 2**62


def each_ahead(ahead: int, dominators: int) -> int:
    """Return the rounds that every dominator has in flight, of `ahead` in all: its equal part, at least one.

    >>> each_ahead(6, 3), each_ahead(7, 3), each_ahead(1, 3)
    (2, 3, 1)
    """
    return -(-ahead // dominators)


def bound(dominators: int, ahead: int, stale: int, lead: int) -> int | None:
    """Return the most updates that a theta can be late, with this many batches in flight each; None: no
    bound.

    >>> bound(1, 4, 0, UNBOUNDED), bound(3, 1, 0, 1), bound(3, 1, 0, UNBOUNDED)
    (6, 10, None)
    """
    others, b = dominators - 1, ahead + stale
    if others and lead >= UNBOUNDED:
        return None
    return 2 * (b - 1) + (others * (2 * b + (2 * b + 1) * lead) if others else 0)


def lead_within(dominators: int, ahead: int, stale: int, max_delay: int | None) -> int:
    """Return how many shares a dominator gets between two thetas of another, so that `max_delay` is kept.

    >>> lead_within(3, 1, 0, 10), lead_within(3, 1, 0, 30), lead_within(3, 1, 0, None) == UNBOUNDED
    (1, 4, True)
    """
    if max_delay is None:
        return UNBOUNDED
    none, one = (bound(dominators, ahead, stale, lead) or 0 for lead in (0, 1))
    if max_delay < one:
        raise JobError(
            f"train.max_delay: {dominators} dominators at their own pace, each with {ahead} batches in flight"
            f"{f' and {stale} stale ones' if stale else ''}, can be {one} updates late at the least, over "
            f"max_delay = {max_delay}; set max_delay = {one}, or ahead = 1, which is one batch at a time"
        )
    return (max_delay - none) // (one - none) if one > none else UNBOUNDED


def stale_within(dominators: int, ahead: int, max_delay: int | None) -> int:
    """Return how many rounds beyond its window a dominator may get, so that `max_delay` is kept.

    A dominator that is k times as fast as another needs k shares ahead and k between two thetas of the other:
    the bound is used up for both alike.

    >>> stale_within(3, 1, 10), stale_within(3, 1, 300), stale_within(3, 1, None) == MOST
    (0, 6, True)
    """
    if max_delay is None:
        return MOST
    stale = 0
    while stale < MOST and (bound(dominators, ahead, stale + 1, ahead + stale + 1) or 0) <= max_delay:
        stale += 1
    return stale
