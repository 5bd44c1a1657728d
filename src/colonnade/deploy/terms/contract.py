"""Reading and checking the terms of a run between companies: they become a contract, or are refused.

Every daemon makes the contract by itself, from the terms that it has read or been sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from colonnade.conversations.conversation import Conversation
from colonnade.deploy.agreed import checked_day, checked_line, one_script
from colonnade.deploy.terms.model_terms import check_models, refuse_code
from colonnade.deploy.terms.terms import FileData, Terms
from colonnade.errors import JobError
from colonnade.job import (
    Tell,
    for_train,
    in_file_word,
    job_from,
    read_toml,
    readable,
    refuse_unknown,
    untold,
    with_defaults,
)
from colonnade.job.plan import Facts, Plan
from colonnade.job.presets import PRESETS
from colonnade.losses import LOSSES, Loss
from colonnade.run.blind import as_trained, hides_counts, labels_between, labels_of, proofs_of, reveal_of
from colonnade.run.resolve import Composition, check_sum, compose, looked_up, resolve

MOST_PARTIES = 64
LONGEST_NAME = 100
MOST_FORMATS = 16  # of the dates in one column
MOST_IDS = 2**40
LEAST_NOISE, MOST_NOISE = 0.01, 10.0  # of statistics, in standard errors
MOST_DIRECTIONS = 4096  # each is a copy of the outputs, or of the parameters, at somebody else's machine


@dataclass(frozen=True)
class Contract:
    """Terms that were checked, and the algorithm that they ask for."""

    terms: Terms
    composition: Composition

    @staticmethod
    def of(terms: Terms) -> Contract:
        """Return the contract of terms that were checked before, as those of a stored share."""
        return Contract(terms, looked_up(as_trained(terms.job())))

    @property
    def conversation(self) -> Conversation[Any]:
        """The record of the algorithm's conversation."""
        return self.composition.conversation

    @property
    def loss(self) -> Loss:
        """The loss that is trained; where the terms do not name one, that for two classes."""
        return LOSSES[self.composition.loss("binary")]

    @property
    def asks_for_models(self) -> bool:
        """Whether parties bring models of their own."""
        return "model" in self.conversation.understands

    @property
    def goes_on(self) -> bool:
        """Whether a run that was cut off goes on once all parties are there again."""
        kept = self.terms.checkpoint.wait_s > 0 and self.terms.checkpoint.every != "never"
        return kept and not self.terms.value  # a training of a coalition that is made again would tell more

    @property
    def describes(self) -> bool:
        """Whether only statistics are asked for, and nothing is trained."""
        return self.terms.statistics_only

    @property
    def weighs(self) -> bool:
        """Whether only weight of evidence is asked for, as a bound of what parties may be worth."""
        return self.describes and self.terms.prepare.woe

    @property
    def hides_counts(self) -> bool:
        """Whether nobody is told counts of labels, but of its own bins with noise."""
        return hides_counts(self.terms, self.conversation, len(self.terms.parties))

    @property
    def gradients_epsilon(self) -> float | None:
        """What noise on gradients lets an owner learn of a label, of a job that has any; None: no bound.

        A job may say `secure.epsilon` in vain, and then it bounds nothing.
        """
        labels = labels_of(self.terms, self.conversation, len(self.terms.parties))
        told = "encrypts" in self.conversation.traits and labels == "blind"
        return self.terms.secure.epsilon if told and not self.describes else None

    @property
    def epsilon(self) -> float | None:
        """What noise lets a party learn of a label in the training; None where nothing bounds it."""
        privacy = self.terms.privacy
        if self.describes:  # correlations have noise of their own, and no epsilon
            return None
        return self.gradients_epsilon if privacy.mechanism == "none" else privacy.epsilon

    def is_bare(self, party: str) -> bool:
        """Return whether a party may come without columns: a server with the label alone, or a neutral
        helper."""
        return (self.composition.has("server") and party == self.terms.server) or self.is_neutral(party)

    def is_neutral(self, party: str) -> bool:
        """Return whether a party helps a blind run with random words and brings no columns, as the job
        says."""
        return party == self.terms.secure.helper and self.terms.parties[party].columns == ()

    @property
    def intercept_at(self) -> str | None:
        """Who has the column of ones: the first label holder or, if that may be bare, the first other."""
        if not self.composition.intercept:
            return None
        server = self.terms.server
        if not self.composition.has("server"):
            return server
        return next(party for party in sorted(self.terms.parties) if party != server)

    def plan(self, party: str, columns: int, rows: int) -> Plan[Any]:
        """Return the plan of the run at this party, which knows its own number of columns and nobody
        else's."""
        terms = self.terms
        facts = Facts(
            columns={
                name: columns if name == party else int(not self.is_neutral(name))
                for name in sorted(terms.parties)
            },
            label_holders=terms.active,
            rows=rows,
            task=self.loss.task,
            classes=terms.train.classes or 0,
            weighted=terms.weighted,
        )
        return self._between(resolve(self.composition, facts), party, columns, rows)

    def _between(self, plan: Plan[Any], party: str, columns: int, rows: int) -> Plan[Any]:
        """Return the plan as it is between companies; few rows for columns are refused."""
        noisy = None if plan.blind is None else plan.blind.told
        if plan.blind is None or noisy is None or self.describes:
            return plan
        few = self.terms.secure.few_rows
        if noisy.tight and not few:
            raise JobError(
                f"secure.few_rows: {rows} rows for {columns} columns of {party} are few: a party's own "
                "weights would tell of labels; set few_rows = true, which the others' policies must accept, "
                "or train on more rows"
            )
        told = msgspec.structs.replace(noisy, tight=few)  # the same at all, who know their own columns
        key = "noisy" if plan.blind.encrypted is None else "encrypted"
        blind = msgspec.structs.replace(plan.blind, **{key: told})
        return msgspec.structs.replace(plan, blind=blind)


def read_terms(path: Path, tell: Tell = untold) -> Terms:
    """Return the terms in a TOML file; JobError if they cannot be read or cannot work.

    `tell` is told of old words for keys, and of keys that are for `colonnade run` alone.
    """
    plain = read_toml(path, "there is no such job file")
    if "data" in plain and "parties" not in plain:
        raise JobError(
            f"{path}: this is a job for one machine; `colonnade run` runs it, and to propose it to companies "
            "it needs a name and [parties]"
        )
    return terms_from(plain, str(path), tell)


def terms_from(plain: dict[str, Any], where: str = "job", tell: Tell = untold) -> Terms:
    """Return the terms in the tables of a job file; JobError if they cannot work."""
    data = plain.get("data", {})
    if not isinstance(data, dict):
        raise JobError(f"{where}: data: expected a section")
    refuse_code(plain, where)
    tables = for_train(plain, where, tell)
    refuse_unknown(tables.pop("data", {}), FileData, where, "data.")
    refuse_unknown(tables, Terms, where)
    try:
        terms = msgspec.convert(with_defaults(tables), Terms)
    except msgspec.ValidationError as error:
        raise JobError(f"{where}: {in_file_word(readable(str(error), Terms))}") from error
    terms = _with_secrecy(terms, plain)
    contract = check_terms(terms, where)
    _refuse_another_model(data, terms, where)
    # a number, which peers of 0.2 can read
    trees = terms.trees.for_loss(counts_rows=contract.loss.counts_rows)
    return msgspec.structs.replace(terms, trees=trees)


def _with_secrecy(terms: Terms, plain: Mapping[str, Any]) -> Terms:
    """Return terms that say who learns labels and weights, and whether these are proven, so that peers of any
    version read the same: those of 0.2 take a job that says nothing for `labels = "clear"`, `reveal =
    "owner"` and no proofs."""
    conversation, parties = looked_up(terms.job()).conversation, len(terms.parties)
    said = plain.get("secure", {})
    labels = labels_between(terms, conversation, parties)
    terms = msgspec.structs.replace(terms, secure=msgspec.structs.replace(terms.secure, labels=labels))
    reveal, proofs = terms.secure.reveal, terms.secure.proofs
    if said.get("reveal", "auto") == "auto":
        reveal = reveal_of(terms, conversation, parties, degraded=terms.use.degraded)
    if "proofs" not in said:
        proofs = proofs_of(terms, conversation, parties)
    secure = msgspec.structs.replace(terms.secure, reveal=reveal, proofs=proofs)
    return msgspec.structs.replace(terms, secure=secure)


def _refuse_another_model(data: Mapping[str, Any], terms: Terms, where: str) -> None:
    """Refuse keys for one machine where [parties] says something else, so that other rows or labels count."""
    for key in ("weight", "exposure"):
        if key in data and not any(getattr(member, key) for member in terms.parties.values()):
            raise JobError(
                f"{where}: data.{key}: between companies say {key} = true for who holds the label, under "
                f"[parties]; its own file names the column"
            )
    active = data.get("active")
    if isinstance(active, list) and sorted(active) != list(terms.active):
        raise JobError(
            f"{where}: data.active names {', '.join(map(str, active))}, but under [parties] the label is at "
            f"{', '.join(terms.active)}; make them agree, or drop data.active"
        )


def check_terms(terms: Terms, where: str) -> Contract:
    """Return the contract that the terms make; JobError if they cannot work."""

    def refuse(text: str) -> None:
        raise JobError(f"{where}: {text}")

    _check_parties_and_rows(terms, refuse)
    _check_agreed(terms, where)
    _check_running(terms, refuse)
    check_models(terms.model, terms.parties, refuse)
    preset = PRESETS.get(terms.algorithm)
    if preset is not None and preset.literal and terms.secure.labels is None:
        refuse(
            f"secure.labels: {terms.algorithm} is as published, with labels in clear, and no job has that "
            'unless it says so; under [secure] write labels = "clear", or take the algorithm that is '
            f'algorithm = "{terms.algorithm.removesuffix("-paper")}"'
        )
    job = job_from(msgspec.to_builtins(terms.job()), where)  # with all its own checks
    contract = Contract(terms, compose(job))
    if contract.composition.job.secure.labels == "blind" and terms.use.loss_seen_by == "all":
        refuse("use.loss_seen_by = 'all': the exact loss tells about labels what blind labels hide; drop it")
    _check_algorithm(contract, refuse)
    if contract.loss.task == "multiclass" and terms.train.classes is None:
        refuse("train.classes: say how many classes there are, every party needs to know")
    if terms.prepare.woe and contract.loss.task != "binary":
        refuse("data.woe: weight of evidence needs two classes; drop it, or train the logistic loss")
    if contract.describes:
        _check_description(terms, refuse)
    contract.composition.ahead(len(terms.active))
    try:
        check_sum(job, len(terms.parties))
    except JobError as error:
        refuse(str(error))
    return contract


def _check_description(terms: Terms, refuse: Callable[[str], None]) -> None:
    """Refuse statistics of what has no such statistics, or that promise what noise on them does not keep."""
    if not LEAST_NOISE <= terms.describe.noise <= MOST_NOISE:
        refuse(f"describe.noise: give {LEAST_NOISE:g} to {MOST_NOISE:g} standard errors")
    if terms.prepare.woe:  # asks for weight of evidence alone
        return
    if terms.weighted:
        refuse("weight, class_weight: statistics count every row once; drop them")
    if terms.privacy.mechanism != "none":
        refuse("privacy.mechanism: correlations of the label have noise of their own; drop it")


def _check_parties_and_rows(terms: Terms, refuse: Callable[[str], None]) -> None:
    """Refuse impossible names, parties, and ways to compare ids and to split rows."""
    if not terms.name or not all(c.isalnum() or c in "-_." for c in terms.name) or terms.name[0] == ".":
        refuse(f"name: {terms.name!r}; use letters, digits, '-', '_' and '.'")
    if (length := len(terms.name.encode())) > LONGEST_NAME:
        refuse(f"name: has {length} bytes; a folder is made of it, at most {LONGEST_NAME}")
    if not 2 <= len(terms.parties) <= MOST_PARTIES:
        refuse(f"parties: {len(terms.parties)} parties cannot train together, 2 to {MOST_PARTIES} can")
    if not terms.active:
        refuse("parties: nobody holds the label; say label = true for the party that does")
    for key in ("weight", "exposure"):
        saying = [party for party, member in terms.parties.items() if getattr(member, key)]
        if saying and sorted(saying) != list(terms.active):
            refuse(f"parties: {key} = true goes with label = true, at every party that holds it or at none")
        if key == "exposure" and saying and not LOSSES.of_counts(terms.train.loss):
            known = LOSSES.named(lambda loss: loss.counts)
            refuse(f"parties: exposure = true is for counts; set train.loss = {known}, or drop it")
    if not terms.align.keys:
        refuse("data.keys: give at least one")
    if not 1 <= terms.align.minimum <= MOST_IDS:
        refuse("align.minimum: give at least 1 and at most 2^40")
    if any(len(key.formats) > MOST_FORMATS for key in terms.align.keys):
        refuse(f"data.keys: every value is tried with every format; give at most {MOST_FORMATS}")
    split = terms.split
    if not (0 < split.test < 1 and 0 <= split.validation < 1 and split.test + split.validation < 1):
        refuse(
            "data.test_fraction and data.validation_fraction are parts of the rows, the first above 0, the "
            "other not below, and together below 1"
        )


def _check_agreed(terms: Terms, where: str) -> None:
    """Refuse names that look alike, and words and days that cannot be meant."""
    one_script(f"{where}: name", (terms.name,))
    one_script(f"{where}: parties", terms.parties)
    for key in ("purpose", "contract", "contact"):
        checked_line(getattr(terms, key), f"{where}: {key}")
    checked_day(terms.expires, f"{where}: expires")
    if terms.runs_of_a_job is not None and terms.runs_of_a_job < 1:
        raise JobError(f"{where}: runs_of_a_job: {terms.runs_of_a_job}; at least 1")


def _check_running(terms: Terms, refuse: Callable[[str], None]) -> None:
    """Refuse what no run between companies can do: how it ends, speaks, shows its loss, waits and asks."""
    if terms.train.target is not None:
        refuse("train.target: the optimum is only known where data is pooled; drop it")
    if terms.network.broadcast != "star":
        refuse(
            f"network.broadcast = {terms.network.broadcast!r}: between companies everybody hears a result "
            "from its sender, so that nobody can change it on the way; drop it"
        )
    if terms.privacy.mechanism not in ("none", "labels") and terms.use.loss_seen_by == "all":
        refuse("use.loss_seen_by = 'all': the exact loss tells about labels what the noise hides; drop it")
    if not 0 <= terms.checkpoint.wait_s < math.inf:
        refuse(f"checkpoint.wait_s: {terms.checkpoint.wait_s:g}; give seconds, or 0 to wait for nobody")
    if terms.cascade.directions > MOST_DIRECTIONS:
        refuse(f"cascade.directions: {terms.cascade.directions}; at most {MOST_DIRECTIONS} between companies")


def _check_algorithm(contract: Contract, refuse: Callable[[str], None]) -> None:
    """Refuse an algorithm that leaves a party without a share, or cannot score as the terms say."""
    terms, composition, name = contract.terms, contract.composition, contract.composition.preset.name
    if composition.has("no-share"):
        refuse(
            f"algorithm: {name} is a comparator that keeps the whole kernel matrix at one party, and "
            "no shares; use fdskl"
        )
    if composition.has("labels-everywhere") and len(terms.active) < len(terms.parties):
        lacking = sorted(set(terms.parties) - set(terms.active))
        refuse(
            f"algorithm: {name} trains the blocks of label holders only; {', '.join(lacking)} would "
            "learn nothing. Use vfb2-svrg, or give label = true where the label is known"
        )
    if terms.use.degraded and not contract.conversation.share.is_sum(composition.job):
        refuse("use.degraded: only scores that are a sum over parties have a mean part each; drop it")
