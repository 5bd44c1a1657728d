"""Writes down what a run opens, line by line: who opens to whom follows from the plan's parties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from colonnade.job.plan import Plan
from colonnade.messages import Announce, Message, Topic
from colonnade.openings.opening import DOUBLE, Extent, Kind, Opening, multiplied, sent, summed
from colonnade.result import About

WORDS_AT_A_GATE = 4


@dataclass
class Declaration:
    """The openings of one run, as they are written down."""

    plan: Plan[Any]
    extent: Extent
    openings: list[Opening] = field(default_factory=list)

    @property
    def scores(self) -> int:
        """How many scores a row has."""
        return max(1, self.plan.objective.classes)

    def others(self, *parties: str) -> tuple[str, ...]:
        """Return all parties but these."""
        return tuple(party for party in self.plan.parties if party not in parties)

    def total(
        self,
        kind: Kind,
        numbers: float,
        root: str,
        topic: Topic,
        when: str,
        *,
        about: About = "columns",
        of: Iterable[str] | None = None,
        rows: int | None = None,
    ) -> None:
        """Write down totals that a sum opens to its root: of all others, but where it is said of whom."""
        if numbers <= 0:
            return
        self.openings.append(
            Opening(
                kind=kind,
                about=about,
                of=self.others(root) if of is None else tuple(of),
                to=(root,),
                numbers=int(numbers),
                rows=self.extent.rows if rows is None else rows,
                when=when,
                channel=summed(topic),
            )
        )

    def told(
        self,
        kind: Kind,
        numbers: float,
        by: str,
        message: type[Message],
        topic: Topic,
        when: str,
        *,
        about: About,
        to: Iterable[str] | None = None,
        of: Iterable[str] | None = None,
        bits: float = DOUBLE,
        carried: float = 0.0,
        rows: int | None = None,
    ) -> None:
        """Write down what a party sends to others, to all where it is not said to whom; of its own."""
        hearers = self.others(by) if to is None else tuple(party for party in to if party != by)
        if numbers <= 0 or not hearers:
            return
        self.openings.append(
            Opening(
                kind=kind,
                about=about,
                of=(by,) if of is None else tuple(of),
                to=hearers,
                numbers=int(numbers),
                bits=bits,
                carried=carried,
                rows=self.extent.rows if rows is None else rows,
                when=when,
                by=by,
                channel=sent(message, topic),
            )
        )

    def product(
        self,
        kind: Kind,
        numbers: float,
        to: str,
        topic: Topic,
        when: str,
        *,
        about: About,
        of: Iterable[str] | None = None,
        bits: float = DOUBLE,
        rows: int | None = None,
    ) -> None:
        """Write down what others let a party open of products with theirs: of all, where nobody is named."""
        if numbers > 0:
            self.openings.append(
                Opening(
                    kind=kind,
                    about=about,
                    of=self.others(to) if of is None else tuple(of),
                    to=(to,),
                    numbers=int(numbers),
                    bits=bits,
                    rows=self.extent.rows if rows is None else rows,
                    when=when,
                    channel=multiplied(topic),
                )
            )

    def follows(
        self,
        kind: Kind,
        numbers: float,
        of: Iterable[str],
        to: Iterable[str],
        when: str,
        *,
        about: About,
        bits: float = DOUBLE,
    ) -> None:
        """Write down what follows from numbers that are declared already, and is not sent beside them."""
        if numbers > 0:
            self.openings.append(
                Opening(
                    kind=kind,
                    about=about,
                    of=tuple(of),
                    to=tuple(to),
                    numbers=int(numbers),
                    bits=bits,
                    rows=self.extent.rows,
                    when=when,
                )
            )

    def gates(self) -> None:
        """Write down what parties say at checkpoints: how far they are, and nothing of anybody's data."""
        if self.plan.checkpoints is None or not self.extent.checkpoints:
            return
        numbers = WORDS_AT_A_GATE * (self.plan.pace.epochs + 16)
        for party in self.plan.parties:
            self.told(
                "progress", numbers, party, Announce, Topic.GATE, "at checkpoints", about="nothing", rows=0
            )

    def words(self, by: str, numbers: float, topic: Topic, when: str) -> None:
        """Write down words of one party about how the run goes on, which follow from its labels."""
        self.told("stops", numbers, by, Announce, topic, when, about="labels", bits=1, carried=DOUBLE)
