"""The record of the cascade: what it understands, chooses, gives away and is compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from colonnade.conversations.cascade import cascade
from colonnade.conversations.cascade.openings import of_cascade
from colonnade.conversations.cascade.output_age import delay_bound, silence_within
from colonnade.conversations.cascade.predict import CascadeShares
from colonnade.conversations.cascade.settings import CascadeSettings, Packing, Questions
from colonnade.conversations.conversation import Conversation, Space, penalty
from colonnade.conversations.pooling import AllColumns, Pooled
from colonnade.errors import JobError
from colonnade.job import Cascade, Job, ModelSpec, ModelSpecs, PrivacyTerms, ServerSpec
from colonnade.job.plan import Facts, Pace, Plan
from colonnade.job.presets import Bits, Preset
from colonnade.job.sections import USUAL_BATCH
from colonnade.openings.leaks import Leak

BLACK_BOXES = {"function", "program"}
READ_BY: dict[str, set[str]] = {
    "sum": set(),
    "linear": set(),
    "mlp": {"hidden"},
    "cnn": {"shape", "channels"},
    "torch": {"path"},
    "function": {"path", "parameters"},
    "program": {"command", "parameters"},
}
"""What describes a model beside its number of outputs, by its kind."""
DESCRIBES = set[str]().union(*READ_BY.values())
SMALLEST_BATCH = 16  # fewer rows are mostly noise


def check(job: Job, preset: Preset) -> None:
    """Refuse what this algorithm cannot do with these models, replies and mechanisms."""
    _check_models(job, preset)
    _check_reply(job, preset)
    _check_top(job, preset)
    _check_memory(job, preset)
    _check_mechanism(job, preset)


def idle(job: Job, preset: Preset) -> dict[str, str]:
    """Return keys that replies of this kind, or this server, have no use for."""
    asked, usual, found = job.cascade, Cascade(), dict[str, str]()

    def name(why: str, *keys: str) -> None:
        found.update({f"cascade.{key}": why for key in keys if getattr(asked, key) != getattr(usual, key)})

    if preset.reply in ("gradient", "embeddings"):
        name(f"{preset.name} learns from gradients and tries no directions", "directions", "mu", "two_sided")
    if preset.reply != "values":
        name(f"the server of {preset.name} learns by its own gradient in any case", "server")
    if preset.smoothing == "coordinate":
        name(f"{preset.name} asks along every output", "directions", "shared_bases")
    elif preset.reply != "deltas":
        name(f"{preset.name} moves no outputs along directions", "shared_bases")
    elif asked.per == "sample":
        name("with per = 'sample' every row has directions of its own", "shared_bases")
    if preset.two_sided:
        name(f"{preset.name} asks on both sides in any case", "two_sided")
    if job.model.server.kind == "sum":
        name("the server's model is a plain sum, which learns nothing", "server", "server_step")
    if job.train.step != "auto":
        name("the step is given by hand", "assumed_delay")
    return found | _unread(job.model)


def _unread(models: ModelSpecs) -> dict[str, str]:
    """Return keys of models that their kinds do not read."""
    named: dict[str, ModelSpec | ServerSpec] = {"model": models, "model.server": models.server}
    named |= {f"model.parties.{name}": each for name, each in models.parties.items()}
    found: dict[str, str] = {}
    for where, model in named.items():
        plain = ServerSpec() if isinstance(model, ServerSpec) else ModelSpec()
        for key in DESCRIBES - READ_BY[model.kind]:
            if getattr(model, key, None) != getattr(plain, key, None):
                kinds = ", ".join(repr(kind) for kind, read in READ_BY.items() if key in read)
                found[f"{where}.{key}"] = f"a {model.kind} model has none; it is for kind = {kinds}"
    return found


def _check_models(job: Job, preset: Preset) -> None:
    """Refuse black boxes where gradients are needed, and a GPU where no model is a network."""
    models = job.model
    named: dict[str, ModelSpec | ServerSpec] = {
        "model": models,
        **{f"model.parties.{name}": m for name, m in models.parties.items()},
    }
    if preset.reply != "values":
        for name, model in {**named, "model.server": models.server}.items():
            if model.kind in BLACK_BOXES:
                raise JobError(
                    f"{name}: {preset.name} needs gradients, and a {model.kind} is a black box "
                    "that has none; use asyrevel-gau or asyrevel-uni"
                )
    kinds = {model.kind for model in (*named.values(), models.server)}
    if models.device == "cuda" and not kinds & {"mlp", "cnn", "torch"}:
        raise JobError(
            "model.device: no model of this job is a network, and nothing else computes on a GPU; drop it "
            "(a network given as an object has its own device)"
        )
    if job.cascade.server == "first" and models.server.kind in BLACK_BOXES:
        raise JobError(
            f"cascade.server = 'first' needs the gradient of F0, and a {models.server.kind} has none; "
            "use server = 'zeroth'"
        )


def _check_mechanism(job: Job, preset: Preset) -> None:
    """Refuse mechanisms that do not protect what this algorithm replies."""
    mechanism, name = job.privacy.mechanism, preset.name
    if mechanism == "gradient" and preset.reply != "gradient":
        raise JobError(
            f"privacy.mechanism = 'gradient': {name} replies with {preset.reply}; use 'labels', or vafl-dp"
        )
    if mechanism == "scalar" and preset.reply != "values":
        what = {"gradient": "a gradient per row", "deltas": "deltas"}.get(preset.reply or "", "the labels")
        raise JobError(
            f"privacy.mechanism = 'scalar': {name} sends {what}, not a few values a batch; use 'labels' here "
            "('gradient' for gradient replies), or asyrevel-gau"
        )
    if mechanism == "scalar" and job.model.server.kind != "sum":
        raise JobError(
            "privacy: the server's own weights would carry labels into every reply; "
            "use model.server.kind = 'sum', or mechanism = 'labels'"
        )


def _check_reply(job: Job, preset: Preset) -> None:
    """Refuse keys of [cascade] that have no meaning for this kind of replies, or would spoil them."""
    asked, name = job.cascade, preset.name
    if preset.reply == "values":
        for key in ("forward_bits", "backward_bits"):
            if getattr(asked, key) not in (None, 32):
                raise JobError(
                    f"cascade.{key}: {name} learns from differences of nearly equal numbers, which "
                    "rounding to few bits wipes out; drop it or use czofo"
                )
    if (asked.local_steps or 1) > 1 and preset.reply != "embeddings":
        raise JobError(
            f"cascade.local_steps: what a client of {name} is told belongs to its outputs as they were, and "
            "says nothing after a step away from them; drop it or use c-vfl"
        )
    if asked.per is not None and preset.reply != "deltas":
        raise JobError(f"cascade.per: {name} does not reply with deltas; drop it or use czofo")
    if asked.per == "batch" and preset.smoothing == "coordinate":
        raise JobError(
            f"cascade.per = 'batch': {name} would need an evaluation for every row and output; one for every "
            "output gives all of them per sample; use per = 'sample'"
        )
    if asked.smoothing is not None and preset.smoothing in (None, "coordinate"):
        raise JobError(f"cascade.smoothing: {name} has no random directions; drop it or use czofo")
    if asked.forward_range == "column" and _bits(job, preset)[0] == 32:
        raise JobError(
            "cascade.forward_range: only outputs in few bits have a range; set forward_bits = 8, ..."
        )
    if asked.forward_rounding == "nearest" and _bits(job, preset)[0] == 32:
        raise JobError(
            "cascade.forward_rounding: only outputs in few bits are rounded; set forward_bits = 8, ..."
        )


def _check_memory(job: Job, preset: Preset) -> None:
    """Refuse a memory where nothing is left out, or where some party has none."""
    if not _memory(job, preset):
        return
    if job.cascade.forward_top:
        raise JobError("cascade.forward_memory: forward_top has a memory of its own; drop one of the two")
    if preset.reply == "embeddings":
        raise JobError(
            f"cascade.forward_memory: {preset.name} passes outputs on to parties that have none of the "
            "earlier ones; drop it"
        )
    if _bits(job, preset)[0] == 1:
        raise JobError(
            "cascade.forward_memory: of two levels the nearer may be as far away as what is to be sent, so "
            "errors would not shrink; set forward_bits = 2"
        )
    if _bits(job, preset)[0] == 32:
        raise JobError(
            "cascade.forward_memory: outputs in 32 bits leave nothing out that could be remembered; "
            "set forward_bits = 2, ..., or drop it"
        )


def _check_top(job: Job, preset: Preset) -> None:
    """Refuse top-k where no later message could make good what it leaves out."""
    asked = job.cascade
    for way in ("forward", "backward"):
        if getattr(asked, f"{way}_top") is None:
            continue
        if preset.reply == "embeddings":
            raise JobError(
                f"cascade.{way}_top: {preset.name} passes a batch's outputs on to parties that have "
                "no earlier ones to add changes to; drop it, or use forward_bits"
            )
        if preset.reply == "values" or (way == "backward" and preset.reply == "deltas"):
            raise JobError(
                f"cascade.{way}_top: what is left out of a row's outputs or their gradient is sent when "
                f"the row comes back, but {preset.name} asks for {preset.reply}; drop it or use split, vafl"
            )
        if getattr(asked, f"{way}_bits") is not None:
            raise JobError(
                f"cascade.{way}_top: the largest numbers travel whole, with their places; drop {way}_bits"
            )


def _bits(job: Job, preset: Preset) -> tuple[Bits, Bits]:
    """Return how many bits a number of a client's outputs has, and of the server's replies."""
    asked = job.cascade
    forward = 32 if asked.forward_top else asked.forward_bits or preset.forward_bits
    return forward, asked.backward_bits or preset.backward_bits


def _memory(job: Job, preset: Preset) -> bool:
    """Return whether outputs travel as changes against what the server has of their rows."""
    asked = job.cascade.forward_memory
    return preset.forward_memory if asked is None else asked


def usual_batch(job: Job, preset: Preset, rows: int) -> int:
    """Return the most rows of a batch, where the job does not say: a pass has about 100 batches, also over
    few rows.

    Steps are what trains a model, and ten passes of one batch each are ten.
    """
    return max(SMALLEST_BATCH, min(USUAL_BATCH, rows // 100))


def choose(job: Job, preset: Preset, facts: Facts, pace: Pace) -> CascadeSettings:
    """Return the settings of a cascade: what the job says, or what its algorithm does."""
    asked, (forward_bits, backward_bits) = job.cascade, _bits(job, preset)
    coordinate = preset.smoothing == "coordinate"
    clients = sum(columns > 0 for columns in facts.columns.values())
    crowd = (-(-facts.rows // pace.batch), pace.ahead, clients)
    asynchronous = pace.schedule == "async"  # else no output in the table is older than the answers from it
    silence = silence_within(*crowd, job.train.max_delay if asynchronous else None)
    return CascadeSettings(
        questions=Questions(
            reply=preset.reply or "gradient",
            smoothing="coordinate" if coordinate else asked.smoothing or preset.smoothing or "gaussian",
            directions=asked.directions,
            mu=asked.mu,
            two_sided=asked.two_sided or preset.two_sided,
            per=asked.per or "batch",
            shared_bases=asked.shared_bases,
        ),
        packing=Packing(
            precision=asked.precision,
            forward_bits=forward_bits,
            backward_bits=backward_bits,
            forward_range=asked.forward_range,
            forward_rounding="nearest" if _memory(job, preset) else asked.forward_rounding,
            forward_memory=_memory(job, preset),
            forward_top=asked.forward_top or 0.0,
            backward_top=asked.backward_top or 0.0,
        ),
        model=job.model,
        server=asked.server,
        server_step=asked.server_step,
        assumed_delay=asked.assumed_delay,
        decay=asked.decay,
        local_steps=asked.local_steps or preset.local_steps,
        optimizer=asked.optimizer,
        optimizer_options=asked.optimizer_options,
        silence=silence,
        delay_bound=delay_bound(*crowd, silence) if asynchronous else 0,
        sampling=job.train.sampling,
    )


def pooled(plan: Plan[CascadeSettings], columns: AllColumns) -> Pooled:
    """Train the same models on pooled columns (`cascade.pooled`)."""
    from colonnade.conversations.cascade.pooled import pooled as pooled_cascade

    return pooled_cascade(plan, columns)


def notes(plan: Plan[CascadeSettings]) -> list[str]:
    """Return what a cascade gives away, in words."""
    found = ["the server sees every party's outputs for every row in clear"]
    if plan.privacy.mechanism == "none":
        found.append("a client can work out the label of every row from the replies to its own questions")
        if plan.settings.reply == "deltas":
            found.append(
                "deltas are not differentially private: the client knows the directions, and given them a "
                "reply is a deterministic function of the labels"
            )
    elif plan.privacy.mechanism != "labels":
        found.append(
            "labels are differentially private against every client: epsilon is that of the label used most, "
            "for all replies together and a client that knows everything else"
        )
    return found


def leaks(privacy: PrivacyTerms) -> tuple[Leak, ...]:
    """Return what a cascade gives away, as parties' policies name it."""
    return ("labels", "outputs") if privacy.mechanism == "none" else ("outputs",)


def exchange_notes(plan: Plan[CascadeSettings]) -> list[str]:
    """Return what C-VFL gives away, in words."""
    labels = "label" if plan.privacy.mechanism == "none" else "randomised label"
    return [
        f"every party is sent the {labels} of every training row, and its weight where rows have weights",
        "every party sees every other party's outputs for every training row, and the server's model",
    ]


def exchange_leaks(privacy: PrivacyTerms) -> tuple[Leak, ...]:
    """Return what C-VFL gives away, as parties' policies name it."""
    return (*leaks(privacy), "embeddings")


def intercept(job: Job) -> bool:
    """Return whether a column of ones helps: networks have biases of their own, and so has a linear F0."""
    kinds = {job.model.kind, *(model.kind for model in job.model.parties.values())}
    return kinds == {"linear"} and job.model.server.kind == "sum"


HIDDEN = [[32], [128], [128, 32]]


def space(job: Job, preset: Preset) -> Space:
    """Return the penalty, the batch and the step; the sizes of networks that the job describes."""
    found: dict[str, list[Any] | dict[str, Any]] = dict(penalty(job, preset))
    found["train.batch"] = [32, 128, 512]
    if job.cascade.optimizer == "sgd":
        found["train.step"] = ["auto", 0.01, 0.1, 1.0]
    else:
        found["train.step"] = {"low": 1e-4, "high": 1e-1, "log": True}
    if job.model.kind == "mlp":
        found["model.hidden"] = HIDDEN
    if job.model.server.kind == "mlp":
        found["model.server.hidden"] = HIDDEN
    return found


CASCADE = Conversation(
    name="cascade",
    converse=cascade.converse,
    settings=CascadeSettings,
    choose=choose,
    pooled=pooled,
    share=CascadeShares(),
    openings=of_cascade,
    notes=notes,
    leaks=leaks,
    check=check,
    idle=idle,
    usual_batch=usual_batch,
    fades=lambda job, preset: job.cascade.decay == "linear",
    understands=frozenset(
        {"model", "privacy.replies", "train.evaluate_every", "train.sampling", "cascade.keys"}
    ),
    intercept=intercept,
    space=space,
    traits=frozenset({"counts-classes", "server", "no-sum"}),
)
# C-VFL: the same program, in which everybody is told everything
EXCHANGE = replace(CASCADE, name="exchange", notes=exchange_notes, leaks=exchange_leaks)
