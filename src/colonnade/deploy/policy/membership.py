"""Bounds what peers can find out about this party's ids: which comparisons of ids it takes part in.

Finding common rows tells every party which of its own ids all others hold, too. Nothing can take that back,
and a peer may bring ids that it made up. So before the first id is compared this party looks at what its
peers announce, under its own settings:

- sizes: a peer that brings very many ids, or very many for each of this party's, lists candidates;
- changed ids: from two runs whose sets differ by one id a peer can tell whether the others hold that id, so
  another set than the time before needs the consent of job and policy, and their number a day is limited;
- how often: what a peer says about its set cannot be proved, so comparisons are counted as well, and the ids
  that a peer asks scores for.

Every comparison is in the journal before it begins, so that one that was made to fail counts like any other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from colonnade.arrays import Digests
from colonnade.conversations.align import most_tested
from colonnade.deploy.books.daily_comparisons import Purpose
from colonnade.deploy.books.journal import DAY_S, Comparison, Journal
from colonnade.deploy.rows.rows import commitment
from colonnade.deploy.settings import Settings
from colonnade.disk import replace_file
from colonnade.errors import ChangedIds, Refused
from colonnade.messages import Roster
from colonnade.shares import now


@dataclass(frozen=True)
class ComparisonRequest:
    """What ids are compared for: which run, for training or scores, and by whose wish.

    `changed` is whether the job lets parties come with other ids than the time before. `read` is a hash of
    what this party has read of its entry.
    """

    run: str
    purpose: Purpose
    entry: str
    proposer: str
    changed: bool = False
    read: str = ""


@dataclass
class Membership:
    """The ids of one party, and the journal of who has compared what with them."""

    settings: Settings
    journal: Journal

    def commitment(self, ids: Digests) -> bytes:
        """Return what this party announces of its set of ids."""
        return announced(self.settings, ids)

    async def admit(self, asked: ComparisonRequest, own_ids: int, rosters: Mapping[str, Roster]) -> None:
        """Write down that ids are compared now; Refused or ChangedIds if that would tell too much."""
        for peer, roster in sorted(rosters.items()):
            self._check_sizes(asked, peer, roster, own_ids)
            self._check_often(asked, peer)
            if asked.purpose == "train":
                self._check_changed(asked, peer, roster)
            elif peer == asked.proposer:
                self._check_scored(peer, roster.size)
        for peer, roster in sorted(rosters.items()):
            self.journal.compare(
                Comparison(
                    when=now(),
                    run=asked.run,
                    purpose=asked.purpose,
                    entry=asked.entry,
                    peer=peer,
                    own_ids=own_ids,
                    peer_ids=roster.size,
                    commitment=roster.commitment.hex(),
                    read=asked.read,
                )
            )

    def _check_sizes(self, asked: ComparisonRequest, peer: str, roster: Roster, own_ids: int) -> None:
        limits, ids = self.settings.limits, most_tested(roster.size, roster.method)
        brings = f"{peer} brings {roster.size} ids"
        if ids > roster.size:
            brings += f" and could test {ids} (align.method = {roster.method!r})"
        if ids > limits.ids:
            raise Refused(f"{brings}, limits.ids = {limits.ids}; nothing was compared")
        # who asks for scores brings as few ids as it likes: what others hold are no candidates for these
        asks = asked.purpose == "score" and asked.proposer == self.settings.name
        if ids > limits.ids_ratio * own_ids and not asks:
            raise Refused(
                f"{brings}, which is over limits.ids_ratio = {limits.ids_ratio:g} times the "
                f"{own_ids} of {self.settings.name}; nothing was compared"
            )

    def _check_often(self, asked: ComparisonRequest, peer: str) -> None:
        most = self.settings.limits.comparisons_a_day
        if self.journal.compared.times(peer, asked.entry, now(-DAY_S)) >= most:
            raise Refused(f"limits.comparisons_a_day = {most} of these ids is reached; nothing was compared")

    def _check_changed(self, asked: ComparisonRequest, peer: str, roster: Roster) -> None:
        before = self.journal.trained.get((peer, asked.entry))
        if before is None or before.commitment == roster.commitment.hex():
            return
        policy = self.settings.policy
        if not asked.changed or policy.peers.get(peer, policy).changed != "accept":
            raise ChangedIds(
                f"{peer} brings other ids than the time before ({roster.size} now), or the same in another "
                "form (data.keys); comparing both would tell which of them others hold. If all agree to "
                "that, set align.changed = 'accept' in the job and policy.changed = 'accept' in the settings"
            )
        most = self.settings.limits.id_sets_a_day
        sets = self.journal.compared.sets(peer, asked.entry, now(-DAY_S))
        if len(sets | {roster.commitment.hex()}) > most:
            raise Refused(f"limits.id_sets_a_day = {most} of {peer} is reached; nothing was compared")

    def _check_scored(self, peer: str, ids: int) -> None:
        asked = self.journal.compared.scored(peer, now(-DAY_S))
        most = self.settings.limits.scored_ids_a_day
        if asked + ids > most:
            raise Refused(
                f"{peer} asks about {ids} ids after {asked} within a day, limits.scored_ids_a_day = {most}; "
                "nothing was compared"
            )


def announced(settings: Settings, ids: Digests) -> bytes:
    """Return what a party announces of its set of ids, under a salt of its own that is made at first use."""
    path = settings.state / "memory" / "salt"
    if not path.exists():
        replace_file(path, os.urandom(32))
        path.chmod(0o600)
    return commitment(ids, path.read_bytes())
