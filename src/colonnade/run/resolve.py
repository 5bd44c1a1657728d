"""From a job to a plan: look up its algorithm, see that its choices go together, answer what it leaves open.

`compose` needs the job alone and is the only place where choices are checked against each other;
`resolve` also needs a few facts about the data, and is the only place where open questions are answered.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from colonnade.conversations.conversation import Conversation, Trait
from colonnade.data.prepare.scaling import Tails
from colonnade.errors import JobError, suggest
from colonnade.job import Job, LossName, ModelSpecs
from colonnade.job.advice import USE_IT_WHEN, meant
from colonnade.job.plan import Facts, Objective, Pace, Plan, Task
from colonnade.job.presets import PRESETS, Preset
from colonnade.losses import LOSSES, USUAL
from colonnade.run import rules
from colonnade.run.blind import blind_of, settled
from colonnade.run.registry import CONVERSATIONS
from colonnade.secure.neighbours import neighbours_for
from colonnade.secure.sums import HIDING, SUMS

TOLERANCE = 1e-5  # the relative fall of the loss an epoch that counts as none


@dataclass(frozen=True)
class Composition:
    """A job whose choices go together, with its algorithm's row of the table and its conversation."""

    job: Job
    preset: Preset
    conversation: Conversation[Any]

    def has(self, trait: Trait) -> bool:
        """Return whether the conversation has a trait (`conversations.conversation.Trait`)."""
        return trait in self.conversation.traits

    def label_holders(self, parties: Sequence[str], active: Sequence[str]) -> tuple[str, ...]:
        """Return who holds the label: the active parties, or those that the algorithm assumes to hold it."""
        if not self.has("labels-everywhere"):
            return tuple(active)
        return tuple(parties)[: self.job.train.labels_at or len(parties)]

    def loss(self, task: Task, *, with_probabilities: bool = False) -> LossName:
        """Return the job's loss or, if it names none, what the algorithm takes for such labels.

        `with_probabilities` asks for a loss whose scores are those of probabilities.
        """
        usual = USUAL if with_probabilities else self.conversation.losses
        return self.job.train.loss or usual[task]

    @property
    def given_task(self) -> Task | None:
        """The kind of label that the job's loss is for; None if the job names no loss."""
        return LOSSES[self.job.train.loss].task if self.job.train.loss is not None else None

    @property
    def intercept(self) -> bool:
        """Whether one party gets a column of ones: as the job says, or if the model gains by it."""
        given = self.job.data.intercept
        return self.conversation.intercept(self.job) if given is None else given

    def tails(self, task: Task) -> Tails:
        """Return what becomes of outliers of columns, where nothing is tried: a linear model of a number
        needs them.

        They stay where a run gets to the optimum however steep columns are (`data.outliers`). A few values
        far away make steps of first order so short that these do not.
        """
        linear = self.conversation.intercept(self.job)
        if not linear or task != "regression" or LOSSES[self.loss(task)].link != "identity":
            return "cap"
        return "keep" if self.has("few-rounds") else "bend"

    @property
    def tries_tails(self) -> bool:
        """Whether trainings are spent on what becomes of outliers: short ones that cost no privacy budget."""
        return self.has("few-rounds") and self.job.privacy.mechanism == "none"

    def unused(self) -> dict[str, str]:
        """Return keys that the job gives and nothing reads, and why."""
        return rules.unused(self.job, self.preset, self.conversation)

    def ahead(self, label_holders: int) -> int:
        """Return how many batches are in flight; refused if they could be later than `max_delay` allows."""
        if self.preset.schedule == "sync":
            return 1
        return self.conversation.ahead(self.job, self.preset, label_holders)


def compose(job: Job) -> Composition:
    """Look up the job's algorithm; refused if the job's other choices do not go together with it."""
    found = looked_up(job)
    found = replace(found, job=settled(job, found.preset, found.conversation))
    rules.check(found.job, found.preset, found.conversation)
    return found


def looked_up(job: Job) -> Composition:
    """Return the job with its algorithm, without a check of anything else in it."""
    preset = PRESETS.get(job.algorithm)
    if preset is None:
        if (chosen := meant(job.algorithm)) is not None:
            raise JobError(
                f"algorithm: there is no {job.algorithm!r} here; {chosen!r} trains such models: use it when "
                f"{USE_IT_WHEN[chosen]}"
            )
        near = difflib.get_close_matches(job.algorithm, PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else "`colonnade algorithms` lists them"
        raise JobError(f"algorithm: there is no {job.algorithm!r}; {hint}")
    return Composition(job, preset, CONVERSATIONS[preset.conversation])


def resolve(composition: Composition, facts: Facts) -> Plan[Any]:
    """Return the plan of a job: every question answered, as all parties will agree on it."""
    job, preset, conversation = composition.job, composition.preset, composition.conversation
    _check_facts(composition, facts)
    pace = Pace(
        schedule=preset.schedule,
        epochs=job.train.epochs,
        batch=job.train.batch or conversation.usual_batch(job, preset, facts.rows),
        step=job.train.step,
        ahead=composition.ahead(len(facts.label_holders)),
        evaluate_every=job.train.evaluate_every,
        tolerance=_tolerance(job),
        fades=conversation.fades(job, preset),
    )
    objective = _objective(composition, facts)
    job = structs.replace(job, model=_models(job.model, objective.classes or 1))
    return Plan(
        algorithm=job.algorithm,
        conversation=conversation.name,
        world=job.world,
        seed=job.seed,
        parties=tuple(facts.columns),
        label_holders=facts.label_holders,
        objective=objective,
        pace=pace,
        secure_sum=job.secure.sum,
        neighbours=_neighbours(job, len(facts.columns)),
        network=job.network,
        privacy=job.privacy,
        settings=conversation.choose(job, preset, facts, pace),
        checkpoints=job.checkpoint.epochs(job.world),
        blind=blind_of(job, conversation, facts),
        value=job.value,
    )


def _neighbours(job: Job, parties: int) -> int | None:
    """Return how many parties share masks with each; None if that is all others anyway."""
    given = job.secure.neighbours
    if given == "auto":
        return neighbours_for(parties)
    return None if given is None or given >= parties - 1 else given


def _tolerance(job: Job) -> float:
    """Return the job's tolerance; by default a run is watched unless something else ends it, or nobody may
    know."""
    if job.train.tolerance is not None:
        return job.train.tolerance
    unwatched = (
        not job.train.evaluate_every or job.train.target is not None or job.privacy.mechanism != "none"
    )
    return 0.0 if unwatched else TOLERANCE


def _objective(composition: Composition, facts: Facts) -> Objective:
    train, loss = composition.job.train, composition.loss(facts.task)
    several = LOSSES[loss].task == "multiclass"
    classes = (train.classes or facts.classes) if several else 0
    if several and not classes:
        raise JobError(f"train.classes: {loss} has a score per class; say how many classes there are")
    l2 = train.l2_for(facts.rows)
    return Objective(loss=loss, regularizer=train.regularizer, l2=l2, l1=train.l1, classes=classes)


def _models(models: ModelSpecs, scores: int) -> ModelSpecs:
    """Return the models, with an output for every score where the job says nothing."""
    single = {name: structs.replace(m, outputs=m.outputs or scores) for name, m in models.parties.items()}
    return structs.replace(models, outputs=models.outputs or scores, parties=single)


def _check_facts(composition: Composition, facts: Facts) -> None:
    """Refuse names of parties that there are not, and what cannot work or leaks with these parties."""
    job, parties = composition.job, tuple(facts.columns)
    faults = job.network.faults
    named = {
        "model.parties": list(job.model.parties),
        "network.faults.crash": list(faults.crash),
        "network.faults.partitions": [party for cut in faults.partitions for party in cut["side"]],
    }
    for key, names in named.items():
        for name in names:
            if name not in parties:
                raise JobError(f"{key}: there is no party {name!r}; {suggest(str(name), parties)}")
    apart = next((party for party, columns in facts.columns.items() if not columns), None)
    neutral = job.secure.labels == "blind" and apart == job.secure.helper
    if apart is not None and not composition.has("server") and not neutral:
        raise JobError(
            f"data: {apart} holds no columns, and {job.algorithm} has no server that could do without them; "
            "give it some, or use an algorithm with a server (asyrevel-gau, czofo, ...)"
        )
    if facts.weighted and job.privacy.mechanism != "none":
        raise JobError(
            f"privacy.mechanism = {job.privacy.mechanism!r}: a row's weight scales all that is said of its "
            "label, and epsilon does not cover that; drop the weights (data.weight, train.class_weight)"
        )
    check_sum(job, len(parties))


def check_sum(job: Job, parties: int) -> None:
    """Refuse a sum that gives something away among this number of parties, unless the job accepts that."""
    kind = SUMS[job.secure.sum]
    told = kind.gives_away(parties)
    if told and not kind.baseline and not job.secure.accept_leak:
        raise JobError(f"secure.sum = {kind.name!r}: {told}; use sum = {HIDING}, or set accept_leak = true")
