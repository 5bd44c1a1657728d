"""An audit of a job: run it, write down what every party hears, and let each in turn try to learn more.

The run is that of the job, in this process: taps sit between every party and its wire, and around its secure
sums, and change nothing. Then every attack that makes sense for a party is tried on what that party really
said and heard (`registry`), and compared with the truth (`verdict`). Where the job promises an epsilon it is
run once more with the labels of some rows drawn by coin: nobody can guess these, so what attacks get right
bounds the true epsilon from below.

Noise on labels that are numbers is tried by itself: whether some value gives a label away (`gaps`).

What parties can work out together is derived from the messages of the run (`colluding`).

What is found is given away at least; what is not found may be given away all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.attacks import verdict
from colonnade.attacks.case import BinGuess, Case, ColumnGuess, LabelGuess, UnnamedColumns
from colonnade.attacks.colluding import derived
from colonnade.attacks.gaps import labels_from_gaps
from colonnade.attacks.registry import ATTACKS, Attack
from colonnade.attacks.transcript import Transcript
from colonnade.conversations.context import GivenModels
from colonnade.data.prepare.party_data import PartyData
from colonnade.data.table import Table
from colonnade.errors import DataError
from colonnade.findings import Finding
from colonnade.job import Job
from colonnade.job.plan import Task
from colonnade.losses import LOSSES
from colonnade.models.blackbox import Model
from colonnade.net.network import Wire
from colonnade.privacy.label_noise import delta_of
from colonnade.run.federate import Finished, conclude, prepare
from colonnade.run.gather_result import DataFacts
from colonnade.run.launch import IN_PROCESS
from colonnade.run.party import Progress
from colonnade.run.resolve import compose
from colonnade.run.world import Launch
from colonnade.secure.protocol import SecureSum

COINS = 1000  # labels drawn by coin, at most; and of a quarter of the rows
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Audited:
    """A job's run, and what attacks on it found."""

    done: Finished
    findings: list[Finding]


def audit(
    job: Job,
    *,
    progress: Progress = lambda moment: None,
    tell: Tell = lambda words: None,
    attacks: tuple[Attack, ...] = ATTACKS,
) -> Audited:
    """Run a job in this process and try every attack on what each party heard; `tell` hears what is done."""
    if job.world not in IN_PROCESS:
        job = msgspec.structs.replace(job, world="local")
    tell("reading the data")
    source, order = prepare(compose(job))
    return audit_run(job, source, replace(order, progress=progress), tell=tell, attacks=attacks)


def audit_run(
    job: Job,
    source: DataFacts,
    order: Launch,
    *,
    tell: Tell = lambda words: None,
    attacks: tuple[Attack, ...] = ATTACKS,
) -> Audited:
    """Return the same for a run that is ready to be launched in this process."""
    order = order.ready()
    auditor = Auditor(job, source, order, attacks, tell)
    done, cases = auditor.cases()
    findings = [*auditor.attacked(cases), *auditor.coins(cases)]
    findings.sort(key=lambda each: order.plan.parties.index(each.by))
    gaps = labels_from_gaps(order.plan, auditor.truth)
    return Audited(done, [*findings, *gaps, *derived(order.plan)])


@dataclass(frozen=True, eq=False)
class Auditor:
    """Runs a job on prepared columns, as often as its attacks need, and judges them by the truth."""

    job: Job
    source: DataFacts
    order: Launch
    attacks: tuple[Attack, ...]
    tell: Tell

    @property
    def tables(self) -> dict[str, Table]:
        return {party: data.prepare().train for party, data in self.order.data.items()}

    @property
    def truth(self) -> Floats:
        y = self.tables[self.order.plan.label_holders[0]].y
        if y is None:
            raise DataError(f"{self.order.plan.label_holders[0]} holds no label")
        return y

    @property
    def task(self) -> Task:
        return LOSSES[self.order.plan.objective.loss].task

    def cases(self, order: Launch | None = None, job: Job | None = None) -> tuple[Finished, list[Case]]:
        """Run the job, or another like it; returns what every party has afterwards."""
        given = order or self.order
        transcripts = {party: Transcript(party) for party in given.data}
        done = conclude(job or self.job, self.source, _listening(given, transcripts), self.tell)
        tables = self.tables
        widths = {party: table.width for party, table in tables.items()}
        found = [
            Case(
                done.plan,
                party,
                transcripts[party],
                tables[party],
                done.shares[party],
                widths,
                again=lambda model, party=party: self._again(party, model),  # type: ignore[misc]
                chosen=lambda X, step, party=party: self._chosen(party, X, step),  # type: ignore[misc]
            )
            for party in done.plan.parties
        ]
        return done, found

    def _again(self, party: str, model: Model) -> Transcript:
        """Return what a party hears if it runs the job with another model of its own."""
        heard = Transcript(party)
        models = {**self.order.models, party: GivenModels(model, None)}
        order = _listening(replace(self.order, models=models), {party: heard})
        conclude(msgspec.structs.replace(self.job, compare=False), self.source, order)
        return heard

    def _chosen(self, party: str, X: Floats, step: float) -> Case:
        """Return what a party has after one pass with columns and a step of its own choice."""
        data, plan = dict(self.order.data), self.order.plan
        names = tuple(f"chosen {k}" for k in range(X.shape[1]))
        for name, each in data.items():
            train = each.prepare().train
            if name == party:
                train = replace(train, X=X, columns=names, categories=())
            data[name] = PartyData.of(name, train)
        pace = msgspec.structs.replace(plan.pace, epochs=1, step=step)
        objective = msgspec.structs.replace(plan.objective, l2=0.0)
        plan = msgspec.structs.replace(plan, pace=pace, objective=objective)
        quiet = msgspec.structs.replace(self.job, compare=False)
        _, cases = self.cases(replace(self.order, plan=plan, data=data), quiet)
        return next(case for case in cases if case.party == party)

    def attacked(self, cases: list[Case]) -> Iterator[Finding]:
        """Try every attack of every party."""
        for case in cases:
            tried = [attack for attack in self.attacks if attack.applies(case)]
            for attack in tried:
                self.tell(f"{case.party}: {attack.name}")
                yield self._judged(attack, case)
            if not tried:
                yield Finding(
                    attack="none of ours applies",
                    by=case.party,
                    success="not measured",
                    note="which does not mean that there is none",
                )

    def _judged(self, attack: Attack, case: Case) -> Finding:
        guess = attack.guess(case)
        y = self.truth if case.holds_label and self.task != "multiclass" else None
        if isinstance(guess, ColumnGuess):
            return verdict.on_columns(attack, case, guess, self.tables, y)
        if isinstance(guess, BinGuess):
            return verdict.on_bins(attack, case, guess, self.tables)
        if isinstance(guess, UnnamedColumns):
            return verdict.on_unnamed(attack, case, guess, self.tables, y)
        return verdict.on_labels(attack, case, guess, self.truth, self.task)

    def coins(self, cases: list[Case]) -> Iterator[Finding]:
        """Yield what attacks say about the epsilon that the job promises, where it promises one for two
        classes."""
        privacy = self.order.plan.privacy
        who = {(a.name, c.party) for c in cases for a in self.attacks if self._of_labels(a) and a.applies(c)}
        if privacy.epsilon is None or self.task != "binary" or not who:
            return
        rng = np.random.default_rng(self.job.seed)
        rows = len(self.truth)
        coins = np.sort(rng.choice(rows, size=min(COINS, rows // 4), replace=False))
        self.tell("once more, with labels drawn by coin")
        order, y = _with_coins(self.order, coins, rng)
        quiet = msgspec.structs.replace(self.job, compare=False)
        _, again = self.cases(order, quiet)
        delta = delta_of(privacy, self.order.plan.objective.loss)
        for case in again:
            for attack in self.attacks:
                if (attack.name, case.party) not in who:
                    continue
                guess = attack.guess(case)
                if isinstance(guess, LabelGuess):
                    yield verdict.on_coins(attack, case, guess, y, coins, privacy.epsilon, delta)

    @staticmethod
    def _of_labels(attack: Attack) -> bool:
        return attack.aim == "labels" and not attack.active


def _listening(order: Launch, transcripts: dict[str, Transcript]) -> Launch:
    """Return the run with everything written down that these parties say, hear and sum."""

    def tap(party: str, wire: Wire) -> Wire:
        return transcripts[party].tap(party, wire) if party in transcripts else wire

    def overhear(party: str, secure: SecureSum) -> SecureSum:
        return transcripts[party].overhear(party, secure) if party in transcripts else secure

    return replace(order, tap=tap, overhear=overhear)


def _with_coins(order: Launch, coins: Rows, rng: np.random.Generator) -> tuple[Launch, Floats]:
    """Return the run with the labels of some rows drawn by coin, and the labels it is trained on."""
    drawn = rng.choice([-1.0, 1.0], size=len(coins))
    data: dict[str, Any] = dict(order.data)
    labels: Floats = np.zeros(0)
    for party, each in order.data.items():
        if each.train.y is None:
            continue
        labels = np.asarray(each.train.y, dtype=np.float64).copy()
        labels[coins] = drawn
        data[party] = replace(each, train=replace(each.train, y=labels))
    return replace(order, data=data), labels
