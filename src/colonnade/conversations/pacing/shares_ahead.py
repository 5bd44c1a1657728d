"""How many shares a party gives every dominator ahead: those that it uses while the party makes one update.

While a party computes it gives no shares. With one share in advance a dominator five times as fast waits
four fifths of its time, and all others with it. So a party looks back after every update. A dominator that
has used all shares that it was given since the update before may have waited for more, and gets twice as
many; of another it is known how many it used, and it gets these and, if it is the faster one, one to spare.
Nobody gets more: the weights behind a share that lies unused grow old. Dominators are not coupled.

Where both are as fast, one share is all that is used, and whether two would be is tried only now and then.

A dominator launches one round of its own in the time of an update. Its theta may come too late for the
update that begins then; the next round need not wait until it is applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from colonnade.job import Net

MOST = 64
"""Rounds of one dominator that a party scores ahead at the most."""

FAR_MORE = 4
"""Times that a call must cost what numbers cost, so that joining them pays."""

PATIENCE = 8
"""Updates after which a party tries again whether a dominator uses more than one share."""


def joining_pays(network: Net, touched: float) -> bool:
    """Return whether a call costs far more than the numbers that a batch of every dominator touches.

    Then one call for many batches is hardly longer than one for one. Where numbers count, shares ahead make a
    slow party's updates ever longer, and its weights older than its speed does. All parties had better decide
    alike: where some give shares ahead and others do not, weights are older and nobody is faster for it.
    """
    products = 2 if network.charge_forward else 1
    return FAR_MORE * products * touched * network.ns_per_value * 1e-3 <= network.us_per_call


@dataclass
class SharesAheadState:
    """For every dominator: thetas that came, what was given and came before the last update, shares ahead."""

    heard: list[int]
    given_before: list[int]
    heard_before: list[int]
    ahead: list[int]
    patience: list[int] = field(default_factory=list)


class SharesAhead:
    """Looks back after every update of one party, and says how far ahead every dominator gets its shares.

    `own` is which of the dominators the party is, if any; `least` is what a dominator gets in any case.
    """

    def __init__(self, dominators: int, least: int, own: int | None) -> None:
        self.least, self.own = least, own
        zeros = [0] * dominators
        self.state = SharesAheadState(zeros, list(zeros), list(zeros), [least] * dominators, list(zeros))

    def hear(self, index: int) -> None:
        """Note that a theta of a dominator came."""
        self.state.heard[index] += 1

    def look_back(self, given: Sequence[int]) -> None:
        """Note that an update is made; this many shares were given to every dominator until now."""
        heard, heard_before, given_before = self.state.heard, self.state.heard_before, self.state.given_before
        for index, shares in enumerate(given):
            used, new = heard[index] - heard_before[index], shares - given_before[index]
            if used or new:
                self._adapt(index, used, all_used=heard[index] == shares, new=new > 0)
        heard_before[:], given_before[:] = heard, given

    def _adapt(self, index: int, used: int, *, all_used: bool, new: bool) -> None:
        state = self.state
        if not all_used:
            state.ahead[index] = max(self.least, used + (used > 1))
            state.patience[index] = PATIENCE
        elif new and (state.ahead[index] > self.least or state.patience[index] <= 0):
            state.ahead[index] = min(2 * state.ahead[index], MOST)
        else:
            state.patience[index] -= 1

    def beyond(self, index: int, base: int) -> int:
        """Return how many rounds more than `least` a dominator gets whose first `base` rounds are finished
        here.

        >>> reach = SharesAhead(2, least=1, own=1)
        >>> reach.look_back([1, 1])
        >>> reach.hear(0)
        >>> reach.beyond(0, base=0)  # the theta that is here and not applied counts as used
        1
        """
        state = self.state
        if index == self.own:
            return 1
        return max(0, state.heard[index] + state.ahead[index] - base - self.least)

    def may_launch(self, base: int) -> bool:
        """Return whether an own round may begin: the last theta is applied, or an update is made since
        then."""
        state, own = self.state, self.own
        return own is None or state.heard[own] in (base, state.heard_before[own])
