"""What a daemon has done: counts and latest events since it started, and every decision for good.

A decision is something that this party said yes to, or that one of its operators decided: who, when, about
which job or model, with its digest. Decisions are lines of JSON at the end of a file that only grows; they
are on disk before a call returns. A refusal by policy is only among the events, because a peer can cause as
many as it likes.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from colonnade.deploy.score_monitor import ScoreMonitor

KEPT = 20
SHOWN = 200  # decisions that are kept in memory

POLICY = "policy"
"""Who decided, where nobody was asked."""

DEADLINE = "deadline"
"""Who decided, where an operator was asked and said nothing."""


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision: what was decided by whom, about a job that was proposed or a model that is stored."""

    when: str
    what: Literal["accepted", "approved", "refused", "pinned", "promoted", "rolled back"]
    who: str
    about: str
    run: str = ""
    proposer: str = ""
    digest: str = ""
    reason: str = ""

    def line(self) -> str:
        """The decision as one line of text."""
        of = f" of {self.proposer}" if self.proposer else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.what} by {self.who}: {self.about}{of}{reason}"


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is over: what it was, how it ended, and the losses that this party saw."""

    run: str
    about: str
    proposer: str
    state: str
    reason: str
    when: str
    losses: list[tuple[int, float]]


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

    def __post_init__(self) -> None:
        self.decisions = read_decisions(self.path)[-SHOWN:]

    def note(self, text: str) -> None:
        """Add an event to the latest, of which only the last few are kept."""
        self.latest = [*self.latest[1 - KEPT :], text]

    def end(self, run: Ended) -> None:
        """Count a run that is over, and keep it among the last few."""
        self.ended[run.state] += 1
        self.runs = [*self.runs[1 - KEPT :], run]

    def decide(self, decision: Decision) -> None:
        """Write a decision down; when this returns it is on disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            # a line of its own even after one that a crash cut off; empty lines are no decisions
            os.write(file, b"\n" + msgspec.json.encode(decision) + b"\n")
            os.fsync(file)
        finally:
            os.close(file)
        self.decisions = [*self.decisions[1 - SHOWN :], decision]
        self.note(decision.line())


def read_decisions(path: Path) -> list[Decision]:
    """The decisions in a file, the oldest first; a line that was cut off by a crash is left out."""
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else []:
        try:
            found.append(msgspec.json.decode(line, type=Decision))
        except msgspec.MsgspecError:
            continue
    return found
