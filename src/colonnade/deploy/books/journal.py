"""The journal of a daemon: counts and latest events since it started, and every decision on disk.

A decision is something that this party or one of its operators said yes or no to: who, when, about which job
or model, with its digest. A comparison is that of this party's ids with those of its peers: for what, with
whom, and how many ids each brought; it is written down before the first id is compared. So is what cut a
training off, when it went on, how every run ended and what it cost, which rows were scored for whom, what
peers have signed (`statements`), and that settings changed. All are lines of a file that only grows and in
which every line vouches for those before it (`hash_chain.py`).
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from colonnade.deploy.books.daily_comparisons import DailyComparisons, Kind, Purpose
from colonnade.deploy.books.hash_chain import ChainEnd, append, read_chain
from colonnade.deploy.books.score_drift import ScoreMonitor
from colonnade.deploy.books.scored import ScoredLine, ScoredRows
from colonnade.deploy.books.spent import ByPeer
from colonnade.deploy.books.statements import Statement, Witnessed
from colonnade.errors import ChangedIds, ShareError
from colonnade.shares import now

log = logging.getLogger("colonnade.party")

DAY_S = 86_400.0
SETS = 1000  # of ids of one peer that are known again
KEPT = 20
SHOWN = 200  # decisions that are kept in memory

SCORES_OF = "scores of "
"""What a scoring session is about: these words, and a model."""

POLICY = "policy"
"""Who decided, where nobody was asked."""

DEADLINE = "deadline"
"""Who decided, where an operator was asked and said nothing."""


What = Literal[
    "proposed",
    "accepted",
    "approved",
    "revoked",
    "refused",
    "pinned",
    "promoted",
    "kept",
    "rolled back",
    "stopped",
    "deleted",
]
"""What somebody decides."""


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="decision"):
    """One decision: what was decided by whom, about a job that was proposed or a model that is stored."""

    when: str
    what: What
    who: str
    about: str
    run: str = ""
    proposer: str = ""
    digest: str = ""
    reason: str = ""
    people: tuple[str, ...] = ()  # who have approved, where more than one has to
    more: int = 0  # how many still have to
    columns: tuple[str, ...] = ()  # of this party, that were shown when it was approved

    def line(self) -> str:
        """Return the decision as one line of text."""
        of = f" of {self.proposer}" if self.proposer else ""
        reason = f": {self.reason}" if self.reason else ""
        more = f", {self.more} more to approve" if self.more else ""
        return f"{self.what} by {self.who}: {self.about}{of}{reason}{more}"


class Comparison(msgspec.Struct, frozen=True, kw_only=True, tag="comparison"):
    """The ids of one entry were compared with a peer's, for training or for scores.

    `commitment` stands for the peer's set of ids without showing it. `read` is a hash of what this party had
    read of its entry, rows and values; `forgotten` says how many rows of the model before were gone from it.
    """

    when: str
    run: str
    purpose: Purpose
    entry: str
    peer: str
    own_ids: int
    peer_ids: int
    commitment: str
    read: str = ""
    tested: int = 0  # ids that the peer could have compared if it cheated, where these are more
    known: bool = False  # whether the peer had come with this set before, and was asked for scores again
    forgotten: int = 0


class ComparisonOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="outcome"):
    """What a comparison for scores told: how many of the peer's ids were common.

    `sets` stands for all parties' sets of ids, and `common` for the ids that they have in common, without
    showing any. `when` is that of the comparison.
    """

    when: str
    run: str
    entry: str
    peer: str
    rows: int
    sets: str
    common: str
    known: bool = False
    commitment: str = ""


class Interruption(msgspec.Struct, frozen=True, kw_only=True, tag="interruption"):
    """A training was cut off, or has gone on after that."""

    when: str
    run: str
    what: str
    reason: str


class Ended(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="ended"):
    """A run that is over: what it was, how it ended, what it cost here, and the losses that this party saw.

    `seconds`, `sessions` and bytes are of all its sessions together, from the first word to the end; bytes
    are by peer and by what they were for. Losses are not on disk.
    """

    run: str
    about: str
    proposer: str
    state: str
    reason: str
    when: str
    kind: Literal["train", "score"] = "train"
    digest: str = ""
    model: str = ""
    share: str = ""  # the hash of the weights that this party has stored
    code: int = 0  # of a failure: the exit code of a command that waits for the run
    seconds: float = 0.0
    sessions: int = 0
    epochs: int = 0
    sent: ByPeer = {}
    received: ByPeer = {}
    losses: list[tuple[int, float]] = []


class SettingsChanged(msgspec.Struct, frozen=True, kw_only=True, tag="settings"):
    """The settings that this party has from now on: their hash, and what is other than before."""

    when: str
    digest: str
    changed: list[str]


Written = (
    Decision
    | Comparison
    | ComparisonOutcome
    | Interruption
    | Ended
    | Statement
    | ScoredLine
    | SettingsChanged
)
"""What a journal keeps for good."""


@dataclass
class DecidedProposals:
    """What operators have decided about proposals, and how often a job was run: what later ones go by."""

    approved: dict[tuple[str, str], Decision] = field(default_factory=dict)  # by proposer and digest
    by_run: dict[str, Decision] = field(default_factory=dict)
    trained: Counter[tuple[str, str]] = field(default_factory=Counter)  # by proposer and name of the job
    repeated: Counter[tuple[str, str]] = field(default_factory=Counter)  # by proposer and digest
    refused: dict[tuple[str, str], Decision] = field(default_factory=dict)  # by proposer and digest

    def note(self, written: Decision | Ended) -> None:
        """Take in a line of the journal."""
        match written:
            case Ended(kind="train", state="done" | "failed"):  # what was withdrawn has never begun
                self.trained[written.proposer, written.about] += 1
                self.repeated[written.proposer, written.digest] += 1
            case Decision(what="approved", more=0):
                self.refused.pop((written.proposer, written.digest), None)
                self.approved[written.proposer, written.digest] = self.by_run[written.run] = written
            case Decision(what="revoked"):
                self.approved.pop((written.proposer, written.digest), None)
                self.refused.pop((written.proposer, written.digest), None)
                self.by_run[written.run] = written
            case Decision(what="refused"):
                self.by_run[written.run] = written
                if written.who != DEADLINE:
                    self.refused[written.proposer, written.digest] = written

    def times(self, proposer: str, name: str, digest: str) -> int:
        """Return how often a proposer's job was run: under this name, or in exactly these terms."""
        return max(self.trained[proposer, name], self.repeated[proposer, digest])


@dataclass
class Journal:
    """Counts of ended runs by how they ended, of bytes sent in them and of scored rows; events; decisions."""

    path: Path
    ended: Counter[str] = field(default_factory=Counter)
    sent_bytes: int = 0
    scored_rows: int = 0
    scores: dict[str, ScoreMonitor] = field(default_factory=dict)
    latest: list[str] = field(default_factory=list)
    runs: list[Ended] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    decided: DecidedProposals = field(default_factory=DecidedProposals)
    compared: DailyComparisons = field(default_factory=DailyComparisons)
    trained: dict[tuple[str, str], Comparison] = field(default_factory=dict)  # last by peer and entry
    read: dict[str, Comparison] = field(default_factory=dict)  # last by entry
    # sets of ids that peers came with, by peer and entry, and what all parties' sets had in common
    known: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    common: dict[tuple[str, str], str] = field(default_factory=dict)
    witnessed: Witnessed = field(default_factory=Witnessed)
    scored: ScoredRows = field(default_factory=ScoredRows)
    used: dict[str, str] = field(default_factory=dict)  # by model: when it was last scored with
    settings: str = ""  # the hash of the settings that were written down last
    on_disk: ChainEnd = field(default_factory=ChainEnd)

    def __post_init__(self) -> None:
        written, self.on_disk = read_journal(self.path)
        self.decisions = [each for each in written if isinstance(each, Decision)][-SHOWN:]
        self.runs = [each for each in written if isinstance(each, Ended)][-KEPT:]
        for each in written:
            if isinstance(each, (Decision, Ended)):
                self.decided.note(each)
            if isinstance(each, (Ended, ScoredLine)):
                self._note_use(each)
            elif isinstance(each, Comparison):
                self._remember(each)
            elif isinstance(each, ComparisonOutcome):
                self._remember_found(each)
            elif isinstance(each, Statement):
                self.witnessed.keep(each)
            elif isinstance(each, SettingsChanged):
                self.settings = each.digest

    @property
    def last(self) -> str:
        """The hash of the last line on disk."""
        return self.on_disk.last

    def note(self, text: str) -> None:
        """Add an event to the latest, of which only the last few are kept."""
        self.latest = [*self.latest[1 - KEPT :], text]

    def end(self, run: Ended) -> None:
        """Count a run that is over, keep it among the last few, and write it down."""
        self.ended[run.state] += 1
        self.decided.note(run)
        self._note_use(run)
        self.runs = [*self.runs[1 - KEPT :], run]
        try:
            self._write(msgspec.structs.replace(run, losses=[]))
        except ShareError:  # it is over all the same
            log.exception("the end of run %s is not in the journal", run.run)

    def _note_use(self, written: Ended | ScoredLine) -> None:
        """Remember when a model was last scored with."""
        match written:
            case Ended(kind="score", about=about, when=when):
                self.used[about.removeprefix(SCORES_OF)] = when
            case ScoredLine(model=model, when=when):
                self.used[model] = when

    def decide(self, decision: Decision) -> None:
        """Write a decision down; when this returns it is on disk."""
        self._write(decision)
        self.decided.note(decision)
        self.decisions = [*self.decisions[1 - SHOWN :], decision]
        self.note(decision.line())

    def compare(self, comparison: Comparison) -> None:
        """Write down that ids are about to be compared; when this returns it is on disk."""
        self._write(comparison)
        before = self.read.get(comparison.entry)
        if before is not None and comparison.read and comparison.read != before.read:
            self.note(
                f"data.{comparison.entry}: has changed since run {before.run}, in rows, values or their order"
            )
        self._remember(comparison)

    def _remember(self, comparison: Comparison) -> None:
        """Keep what limits ask about: counts of a day, and each peer's last set of ids."""
        if comparison.purpose == "train" and comparison.read:
            self.read[comparison.entry] = comparison
        if comparison.purpose == "train":
            self.trained[comparison.peer, comparison.entry] = comparison
        if comparison.known:
            return  # it tells nothing that was not told before
        kind = Kind(
            comparison.when, comparison.peer, comparison.entry, comparison.purpose, comparison.commitment
        )
        self.compared.count(kind, max(comparison.peer_ids, comparison.tested), now(-DAY_S))
        if comparison.commitment:
            sets = self.known.setdefault((comparison.peer, comparison.entry), {})
            sets[comparison.commitment] = None
            if len(sets) > SETS:
                del sets[next(iter(sets))]

    def found(self, outcome: ComparisonOutcome) -> None:
        """Write down what a comparison for scores told; ChangedIds if sets that are said to be the same have
        other ids in common than the time before."""
        before = self.common.get((outcome.entry, outcome.sets), outcome.common)
        self._write(outcome)
        self._remember_found(outcome)
        if before != outcome.common:
            raise ChangedIds(
                f"{outcome.peer} says that its ids are those of an earlier run, but other rows are common "
                "now; its ids count as new ones from now on"
            )

    def _remember_found(self, outcome: ComparisonOutcome) -> None:
        """Give back what was counted for ids that are common, and forget a set that was not what it was said
        to be."""
        kind = Kind(outcome.when, outcome.peer, outcome.entry, "score", outcome.commitment)
        if self.common.setdefault((outcome.entry, outcome.sets), outcome.common) != outcome.common:
            self.known.get((outcome.peer, outcome.entry), {}).pop(outcome.commitment, None)
            del self.common[outcome.entry, outcome.sets]
        elif not outcome.known:
            self.compared.found(kind, outcome.rows, now(-DAY_S))

    def interrupt(self, interruption: Interruption) -> None:
        """Write down that a training was cut off or goes on; when this returns it is on disk."""
        self._write(interruption)

    def changed(self, digest: str, names: list[str]) -> None:
        """Write down that settings are others than those written down last."""
        if digest != self.settings:
            self._write(SettingsChanged(when=now(), digest=digest, changed=names))
            self.settings = digest

    def witness(self, statement: Statement) -> None:
        """Write down what a peer has signed; where the head of its journal went back, that is noted."""
        if not self.witnessed.is_new(statement):
            return
        odd = self.witnessed.oddness(statement.peer, ChainEnd(statement.count, statement.head))
        if odd:
            log.warning("%s", odd)
            self.note(odd)
        self._write(msgspec.structs.replace(statement, odd=odd))
        self.witnessed.keep(statement)

    def score(self, asker: str, model: str, rows: int) -> None:
        """Count rows that were scored for a party."""
        self.scored.add(asker, model, rows)
        if self.scored.due:
            self.write_scored()

    def write_scored(self) -> None:
        """Write down which rows were scored since the last time."""
        for each in self.scored.take():
            try:
                self._write(each)
                self._note_use(each)
            except ShareError:  # scores go on
                log.exception("%d rows scored for %s are not in the journal", each.rows, each.asker)

    def _write(self, written: Written) -> None:
        self.on_disk = append(self.path, self.on_disk, msgspec.json.encode(written))


def read_journal(path: Path) -> tuple[list[Written], ChainEnd]:
    """Return all that a journal keeps, the oldest first, and its end; ShareError if it was changed or cut."""
    records, end = read_chain(path)
    return [msgspec.json.decode(record, type=Written) for record in records], end
