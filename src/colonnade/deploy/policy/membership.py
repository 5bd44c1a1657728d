"""Bounds what peers can find out about this party's ids: which comparisons of ids it takes part in.

Finding common rows tells every party which of its own ids all others hold, too. Nothing can take that back,
and a peer may bring ids that it made up. So before the first id is compared this party looks at what its
peers announce, under its own settings:

- sizes: a peer that brings very many ids, or very many for each of this party's, lists candidates;
- changed ids: from two runs whose sets differ by one id a peer can tell whether the others hold that id, so
  another set than the time before needs the consent of job and policy, and their number a day is limited;
- misses: of ids that a peer asks scores for, those that are not common are guesses, and few a day are
  allowed. All are counted as misses before they are compared, and what is common is given back afterwards;
- how often: what a peer says about its set cannot be proved, so comparisons are counted as well.

A set that a peer has come with before tells nothing new: a session that begins again, or a service that is
started again, costs it nothing. Where all sets are said to be the same and other ids are common all the same,
somebody has not told the truth: the session ends, and that set counts as a new one from then on.

Every comparison is in the journal before it begins, so that one that was made to fail counts like any other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from colonnade.arrays import Digests
from colonnade.conversations.align import leader_of, most_tested, most_written
from colonnade.deploy.books.daily_comparisons import Purpose
from colonnade.deploy.books.journal import DAY_S, Comparison, ComparisonOutcome, Journal
from colonnade.deploy.books.opened import Opened, OpenedBooks
from colonnade.deploy.rows.rows import commitment
from colonnade.deploy.settings import Settings
from colonnade.disk import replace_file
from colonnade.errors import ChangedIds, Refused
from colonnade.messages import Roster
from colonnade.shares import now

MISSED = 1000  # ids a day that are not here, at least: of small tables one in a hundred would be none


@dataclass(frozen=True)
class ComparisonRequest:
    """What ids are compared for: which run, for training or scores, and by whose wish.

    `changed` is whether the job lets parties come with other ids than the time before. `read` is a hash of
    what this party has read of its entry, `forgotten` how many rows of the model before are not in it.
    """

    run: str
    purpose: Purpose
    entry: str
    proposer: str
    changed: bool = False
    read: str = ""
    forgotten: int = 0


@dataclass
class Membership:
    """The ids of one party, and the journal of who has compared what with them."""

    settings: Settings
    journal: Journal
    _asker: Comparison | None = None  # what was admitted of a peer that asks for scores
    _sets: str = ""

    def commitment(self, ids: Digests) -> bytes:
        """Return what this party announces of its set of ids."""
        return announced(self.settings, ids)

    async def admit(self, asked: ComparisonRequest, own_ids: int, rosters: Mapping[str, Roster]) -> None:
        """Write down that ids are compared now; Refused or ChangedIds if that would tell too much."""
        tested = most_tested_by(self.settings.name, own_ids, rosters)
        known = {peer: self._known(asked, peer, roster) for peer, roster in rosters.items()}
        for peer, roster in sorted(rosters.items()):
            self._check_sizes(asked, peer, roster, own_ids, tested[peer])
            if known[peer]:
                continue
            self._check_often(asked, peer)
            if asked.purpose == "train":
                self._check_changed(asked, peer, roster)
            elif peer == asked.proposer:
                self._check_scored(asked, peer, roster, own_ids, tested[peer])
        OpenedBooks(self.settings.state).book(
            self.settings.limits,
            [
                _common_ids(asked.entry, peer, roster, tested[peer], own_ids)
                for peer, roster in sorted(rosters.items())
            ],
        )
        for peer, roster in sorted(rosters.items()):
            comparison = Comparison(
                when=now(),
                run=asked.run,
                purpose=asked.purpose,
                entry=asked.entry,
                peer=peer,
                own_ids=own_ids,
                peer_ids=roster.size,
                commitment=roster.commitment.hex(),
                read=asked.read,
                forgotten=asked.forgotten,
                tested=tested[peer] if tested[peer] > roster.size else 0,
                known=known[peer],
            )
            self.journal.compare(comparison)
            if asked.purpose == "score" and peer == asked.proposer:
                self._asker = comparison
        self._sets = _one_hash(
            f"{peer} {roster.commitment.hex()}" for peer, roster in sorted(rosters.items())
        )

    def found(self, ids: Digests, common: Digests) -> None:
        """Write down which of the own ids a peer that asks for scores has found; ChangedIds if it cannot have
        come with the ids that it announced."""
        if (asker := self._asker) is None:
            return
        sets = _one_hash([self._sets, self.commitment(ids).hex()])
        outcome = ComparisonOutcome(
            when=asker.when,
            run=asker.run,
            entry=asker.entry,
            peer=asker.peer,
            rows=len(common),
            sets=sets,
            common=self.commitment(common).hex(),
            known=asker.known,
            commitment=asker.commitment,
        )
        self.journal.found(outcome)

    def _known(self, asked: ComparisonRequest, peer: str, roster: Roster) -> bool:
        """Return whether a peer comes again with ids that were compared before, to ask for scores."""
        return asked.purpose == "score" and roster.commitment.hex() in self.journal.known.get(
            (peer, asked.entry), {}
        )

    async def book(self, lines: list[Opened]) -> None:
        """Write down what a run may tell peers; Refused if that is more than this party allows."""
        OpenedBooks(self.settings.state).book(self.settings.limits, lines)

    def _check_sizes(
        self, asked: ComparisonRequest, peer: str, roster: Roster, own_ids: int, ids: int
    ) -> None:
        limits = self.settings.limits
        brings = f"{peer} brings {roster.size} ids"
        if ids > roster.size:
            brings += f" and could test {ids}"
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
        self._check_sets(asked, peer, roster)

    def _check_sets(self, asked: ComparisonRequest, peer: str, roster: Roster) -> None:
        most = self.settings.limits.id_sets_a_day
        sets = self.journal.compared.sets(peer, asked.entry, now(-DAY_S))
        if len(sets | {roster.commitment.hex()}) > most:
            raise Refused(f"limits.id_sets_a_day = {most} of {peer} is reached; nothing was compared")

    def _check_scored(
        self, asked: ComparisonRequest, peer: str, roster: Roster, own_ids: int, ids: int
    ) -> None:
        limits, policy = self.settings.limits, self.settings.policy
        scored = self.journal.compared.scored(peer, now(-DAY_S))
        if limits.scored_ids_a_day is not None and scored + ids > limits.scored_ids_a_day:
            raise Refused(
                f"{peer} asks about {ids} ids after {scored} within a day, limits.scored_ids_a_day = "
                f"{limits.scored_ids_a_day}; nothing was compared"
            )
        most = most_missed(self.settings, own_ids)
        room = max(0, most - self.journal.compared.missed(peer, asked.entry, now(-DAY_S)))
        if ids <= room:
            return
        if policy.peers.get(peer, policy).changed == "accept":
            self._check_sets(asked, peer, roster)
            return
        raise Refused(
            f"{peer} asks about {ids} ids that it has not come with before, and today {room} more may turn "
            f"out not to be here, limits.missed_ids_a_day = {most}; nothing was compared. Ask about fewer at "
            f"once (ids that are here do not count), or set policy.changed = 'accept'"
        )


def _common_ids(entry: str, peer: str, roster: Roster, tested: int, own_ids: int) -> Opened:
    """Return the line of the books about a set of ids: of each of them its party hears whether it is here.

    The same set tells nothing new, however often it is compared.
    """
    return Opened(
        run=f"ids {roster.commitment.hex()[:16]}",
        job="",
        entry=entry,
        peer=peer,
        about="membership",
        kinds=("common ids",),
        numbers=max(tested, roster.size),
        bits=float(max(tested, roster.size)),
        rows=own_ids,
        columns=1,
        when=now(),
    )


def most_missed(settings: Settings, own_ids: int) -> int:
    """Return how many ids that are not common a peer may ask scores for within a day."""
    most = settings.limits.missed_ids_a_day
    return max(MISSED, own_ids // 100) if most is None else most


def most_tested_by(me: str, own_ids: int, rosters: Mapping[str, Roster]) -> dict[str, int]:
    """Return at how many ids every peer can find out whether they are common, if it cheats."""
    sizes = {me: own_ids, **{peer: roster.size for peer, roster in rosters.items()}}
    leader = leader_of(sizes)
    return {
        peer: most_tested(roster.size, roster.method)
        if peer == leader
        else most_written(roster.size, sizes[leader], roster.method)
        for peer, roster in rosters.items()
    }


def _one_hash(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def announced(settings: Settings, ids: Digests) -> bytes:
    """Return what a party announces of its set of ids, under a salt of its own."""
    return commitment(ids, _salt(settings))


def secret_for(settings: Settings, purpose: str) -> bytes:
    """Return a secret of this party's for a purpose, always the same."""
    return hashlib.blake2b(
        purpose.encode(), key=_salt(settings), person=b"colonnade", digest_size=32
    ).digest()


def _salt(settings: Settings) -> bytes:
    """Return this party's own random key, which is made at first use."""
    path = settings.state / "memory" / "salt"
    if not path.exists():
        replace_file(path, os.urandom(32))
        path.chmod(0o600)
    return path.read_bytes()
