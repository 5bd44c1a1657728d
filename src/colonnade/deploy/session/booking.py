"""Writes down what a session will tell each peer of this party's labels, columns and ids, before it does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from colonnade.conversations.correlate import CorrelationTerms, NamedColumns, told_of_columns
from colonnade.conversations.predict import Scorer
from colonnade.conversations.prospect import ProspectTerms, told_of_prospects
from colonnade.conversations.woe import tallied, told_of_bins
from colonnade.conversations.woe_encrypted import told_of_bins_masked
from colonnade.deploy.books.opened import UNITS, Account, Opened, OpenedBooks, sums
from colonnade.deploy.session.session import RunSession
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Terms
from colonnade.job.plan import Plan
from colonnade.openings.account import heard
from colonnade.openings.opening import Declare, Extent, Opening, most_columns
from colonnade.openings.scoring import ScoringRequest, asked_by_an_owner
from colonnade.privacy.counts import CountNoise
from colonnade.run.coalitions import whole_openings


def opened(
    me: str,
    entry: str,
    run: str,
    job: str,
    openings: Iterable[Opening],
    *,
    rows: int,
    columns: int,
    epsilon: float | None = None,
) -> list[Opened]:
    """Return the lines of this party's books: what each peer hears of its labels and columns.

    `epsilon` bounds what all of it tells of a label.
    """
    return [Opened.of(each, run, job, entry, columns, epsilon) for each in heard(openings, rows, of=me)]


def losses(contract: Contract) -> Iterator[Opening]:
    """Yield the loss of every measurement, as label holders show it to those that the job says."""
    terms = contract.terms
    for holder in terms.active:
        seen = terms.parties if terms.use.loss_seen_by == "all" else terms.active
        if to := tuple(party for party in seen if party != holder):
            yield Opening(
                kind="losses",
                about="labels",
                of=(holder,),
                to=to,
                numbers=most_losses(terms),
                when="when the model is measured",
                by=holder,
            )


def most_losses(terms: Terms) -> int:
    """Return how often a training is measured at the most: what label holders show more often, they do not
    show."""
    every = terms.train.evaluate_every
    return 2 + (math.ceil(terms.train.epochs / every) if every else 0)


async def book(
    session: RunSession, contract: Contract, openings: Iterable[Opening], rows: int, columns: int
) -> None:
    """Write down what a training may tell; Refused where that is more than this party's limits allow."""
    terms, me = contract.terms, session.me
    told = [*openings, *losses(contract)]
    lines = opened(
        me,
        terms.parties[me].data,
        f"{session.run:08x}",
        terms.name,
        told,
        rows=rows,
        columns=columns,
        epsilon=contract.epsilon,
    )
    await session.guard.book(lines)


def books_of(session: RunSession, terms: Terms, rows: int, columns: int) -> Declare:
    """Return what writes down openings beside those of the training itself, which have epsilons of their
    own."""
    entry, run = terms.parties[session.me].data, f"{session.run:08x}"

    async def declare(openings: list[Opening]) -> None:
        found = opened(session.me, entry, run, terms.name, openings, rows=rows, columns=columns)
        await session.guard.book(found)

    return declare


async def book_scores(
    session: RunSession,
    entry: str,
    model: str,
    alignment: str,
    part: Scorer,
    *,
    asker: str,
    columns: int,
    label_holders: tuple[str, ...],
) -> None:
    """Write down what scores of all common rows tell, once for a model and its common rows."""
    request = ScoringRequest(session.me, session.parties, asker, part.rows)
    told = [request.named, *part.opens(request), *asked_by_an_owner(request, label_holders)]
    run = f"scores of {model}, rows {alignment[:16]}"
    found = opened(session.me, entry, run, model, told, rows=max(1, part.rows), columns=columns)
    await session.guard.book(found)


@dataclass(frozen=True)
class Foreseen:
    """What a proposed training will be, if all of this party's rows are common.

    Openings of weighing have an epsilon of their own, and are apart.
    """

    plan: Plan[Any]
    openings: list[Opening]
    weighed: list[Opening]
    rows: int  # that it is trained on

    @staticmethod
    def of(settings: Settings, contract: Contract, rows: int, columns: int) -> Foreseen:
        """Return that of a job; JobError where there are too few rows for it."""
        terms, me = contract.terms, settings.name
        test, validation = (int(rows * part) for part in (terms.split.test, terms.split.validation))
        train = max(1, rows - test - validation)
        plan = contract.plan(me, columns, train)
        if contract.weighs:
            extent = Extent(train, 0, {me: columns}, widest=most_columns(train), apart=True)
            weighed = expected_of_weighing(settings, contract, extent)
            return Foreseen(plan, [], [*weighed, *expected_of_prospects(settings, contract, train)], train)
        if contract.describes:
            return Foreseen(plan, expected_of_describing(contract, train, {me: columns}), [], train)
        extent = Extent(train, test, {me: columns}, widest=most_columns(train), apart=True)
        once = contract.conversation.openings(plan, extent)
        told = [*whole_openings(plan, once, extent), *losses(contract)]
        if validation:
            scores = validation * max(1, plan.objective.classes)
            told.append(ScoringRequest(me, tuple(terms.parties), terms.active[0], validation).total(scores))
        weighed = expected_of_weighing(settings, contract, extent) if terms.prepare.woe else []
        return Foreseen(plan, told, weighed, train)

    @property
    def everything(self) -> list[Opening]:
        """All openings, with those of weighing."""
        return [*self.openings, *self.weighed]

    def told(self, settings: Settings, contract: Contract, columns: int) -> list[Opened]:
        """Return what it may tell each peer of this party's labels and columns."""
        terms, me = contract.terms, settings.name
        found = []
        for openings, epsilon in ((self.openings, contract.epsilon), (self.weighed, None)):
            found += opened(
                me,
                terms.parties[me].data,
                "",
                terms.name,
                openings,
                rows=self.rows,
                columns=max(1, columns),
                epsilon=epsilon,
            )
        return found


def expected_of_describing(contract: Contract, rows: int, columns: Mapping[str, int]) -> list[Opening]:
    """Return what statistics may tell, if parties have as many columns as the job names, or as are known."""
    terms, found = contract.terms, []
    named = {}
    for party, member in terms.parties.items():
        label = party == terms.server
        width = columns.get(party, len(member.columns or ()) or most_columns(rows)) + label
        named[party] = NamedColumns(("",) * width, label, b"")
    for party in terms.parties:
        found += list(told_of_columns(party, named, CorrelationTerms(terms.describe.noise, rows)))
    return found


def expected_of_weighing(settings: Settings, contract: Contract, extent: Extent) -> list[Opening]:
    """Return what weighing columns may tell, if every column has as many bins as the job allows."""
    terms, holder = contract.terms, contract.terms.active[0]
    noise = CountNoise(max(terms.woe.noise or 0.0, settings.limits.woe_noise))
    found: list[Opening] = []
    for party in terms.parties:
        if party != holder:
            columns = len(terms.parties[party].columns or ()) or extent.width(party)
            bins = columns * terms.woe.bins
            if contract.hides_counts:
                deviation = noise.multiplier * columns**0.5
                masked = told_of_bins_masked(holder, party, extent.rows, bins, deviation)
                found += [structs.replace(each, epsilon=noise.epsilon) for each in masked]
                continue
            found += tallied(party, holder, columns, bins, extent.rows)
            found.append(told_of_bins(party, holder, columns, bins, extent.rows, noise))
    return found


def expected_of_prospects(settings: Settings, contract: Contract, rows: int) -> list[Opening]:
    """Return what all parties tell of what their columns may be worth."""
    noise = CountNoise(max(contract.terms.woe.noise or 0.0, settings.limits.woe_noise))
    asked = prospects_of(contract, rows)
    return [each for party in asked.parties for each in told_of_prospects(party, asked, noise)]


def prospects_of(contract: Contract, rows: int) -> ProspectTerms:
    """Return what parties agree on that tell what their columns may be worth."""
    terms = contract.terms
    return ProspectTerms(terms.name, tuple(sorted(terms.parties)), terms.server, rows)


def sentences(settings: Settings, asked: Iterable[Opened]) -> Iterator[str]:
    """Yield what each peer has heard so far, and what a run adds, a sentence each."""
    books = OpenedBooks(settings.state)
    before = {(each.entry, each.peer, each.about): each for each in books.accounts()}
    for each in sums(asked):
        known = before.get((each.entry, each.peer, each.about))
        unit, cell = UNITS[each.about], each.about == "columns"
        told, adds = (0.0 if known is None else bits_of(known, cell=cell)), bits_of(each, cell=cell)
        yield (
            f"{each.peer} has heard {figure(told)} bits a {unit} of {each.entry} so far, by counting; this "
            f"run adds at most {figure(adds)} ({each.numbers:,} numbers)."
        )


def figure(number: float) -> str:
    """Return a number as people read it.

    >>> figure(2593.6), figure(0.21789), figure(0.0)
    ('2,594', '0.218', '0')
    """
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def bits_of(account: Account, *, cell: bool) -> float:
    """Return bits a label or a row, or of columns bits a cell."""
    return account.per_cell if cell else account.per_row
