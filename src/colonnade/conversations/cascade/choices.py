"""What the words of a cascade's plan stand for: its replies, its directions, how arrays are packed."""

from __future__ import annotations

from colonnade.compress.protocol import Compressor, Plain
from colonnade.compress.quantize import Quantizer
from colonnade.compress.topk import TopK
from colonnade.conversations.cascade.client import Codec
from colonnade.conversations.cascade.exchange import Everything
from colonnade.conversations.cascade.output_table import LatestOutputs
from colonnade.conversations.cascade.replying import Answers, Replying
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.cascade.units import NO_UNIT, Unit, applies
from colonnade.conversations.context import Context
from colonnade.errors import JobError
from colonnade.models.blackbox import Differentiable, Model, free_parameters
from colonnade.optim.deltas import Deltas, DeltasClient, DeltasServer
from colonnade.optim.replies import (
    FirstStep,
    GradientClient,
    GradientServer,
    Head,
    OwnStep,
    ReplyClient,
    ReplyServer,
    Seed,
    ValuesClient,
    ValuesServer,
    ZerothStep,
)
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.mechanisms import mean_losses
from colonnade.regularizers import Penalty

# what a party's generators are for; `client` has 3, `cascade` 4 and `steps` 6
DIRECTIONS, HEAD_DIRECTIONS, ROUNDING, SHARED_DIRECTIONS = 2, 5, 7, 8

CascadeContext = Context[CascadeSettings]


def smoothing_of(context: CascadeContext) -> Smoothing:
    """Return the random directions that questions go along."""
    asked = context.plan.settings.questions
    kind = "gaussian" if asked.smoothing == "coordinate" else asked.smoothing
    return Smoothing(kind, asked.directions, asked.mu, asked.two_sided)


def deltas_of(context: CascadeContext, unit: float = 1.0) -> Deltas:
    """Return how outputs are moved where the server replies with differences of the loss; `mu` counts in
    `unit`.

    The server alone moves them: a client needs no more than the directions.
    """
    asked = context.plan.settings.questions
    mu = unit * asked.mu
    if asked.smoothing == "coordinate":
        return Deltas("coordinate", 0, mu, per="sample")
    return Deltas(asked.smoothing, asked.directions, mu, asked.two_sided, asked.per, asked.shared_bases)


def label_unit(context: CascadeContext) -> float:
    """Return what outputs are large or small beside: the deviation of labels that are numbers; or else 1.

    Beside prices a probe of 0.001 is lost in the rounding of outputs, and beside rates it is a leap. Where F0
    has a unit outputs have none.
    """
    numbers = context.loss.any_unit and not applies(context.plan)
    deviation = float(context.label_holder.labels.std()) if numbers else 1.0
    return deviation or 1.0


def codec_of(context: CascadeContext) -> Codec:
    """Return how arrays are packed: alike at every party, but each rounds with its own generator."""
    packing, rng = context.plan.settings.packing, context.rng(ROUNDING)
    backward, late, changes = packing.backward_bits, packing.backward_top, None
    # values are compared with each other, at a distance of mu: single precision would blur that
    exact = "float64" if context.plan.settings.reply == "values" else packing.precision
    up: Compressor = Plain(packing.precision)
    if packing.forward_bits != 32:
        by_chance = packing.forward_rounding == "chance"  # right on average, which changes need not be
        up = Quantizer(packing.forward_bits, rng if by_chance else None, packing.forward_range)
        changes = up if packing.forward_memory else None
    return Codec(
        up,
        TopK(late) if late else Plain(exact) if backward == 32 else Quantizer(backward, rng),
        changes=TopK(packing.forward_top) if packing.forward_top else changes,
        late=TopK(late) if late else None,
    )


def seed_of(context: CascadeContext, client: str) -> Seed:
    """Return the seed of the directions of a client's questions, known to it and to the server."""
    return (context.plan.seed, context.net.parties.index(client), SHARED_DIRECTIONS)


def asking_of(context: CascadeContext, model: Model, unit: Unit = NO_UNIT) -> ReplyClient:
    """Return the client's half of the plan's kind of replies, for a model whose outputs are in a unit."""
    reply, free = context.plan.settings.reply, free_parameters(model, context.train.free)
    penalty = unit.penalty(Penalty(context.regularizer, context.plan.objective.l2, free=free))
    if reply != "values":
        if not isinstance(model, Differentiable):
            raise JobError(f"{context.me}: {context.plan.algorithm} needs gradients, this model has none")
        if reply == "deltas":
            return DeltasClient(model, penalty, deltas_of(context))
        return GradientClient(model, penalty)
    private = context.plan.privacy.mechanism == "scalar"
    return ValuesClient(model, smoothing_of(context), penalty, context.rng(DIRECTIONS), private)


def replying_of(
    context: CascadeContext, head: Head, noisy: ReplyServer | None, codec: Codec, latest: LatestOutputs
) -> Replying:
    """Return what the server replies, packed; `noisy` answers where replies are private."""
    if context.plan.settings.reply == "embeddings":
        _differentiable_head(context, head)
        return Everything(head, codec, tuple(latest.outputs))
    downlinks = {client: codec.downlink(out) for client, out in latest.outputs.items()}
    answering = noisy or _answering(context, head)
    return Answers(
        answering, latest.columns, downlinks, lambda client: seed_of(context, client), context.loss
    )


def _differentiable_head(context: CascadeContext, head: Head) -> None:
    if not isinstance(head.model, Differentiable):
        raise JobError(f"{context.plan.algorithm} needs the gradient of F0, and this model has none")


def _answering(context: CascadeContext, head: Head) -> ReplyServer:
    """Return the server's half of the plan's kind of replies."""
    match context.plan.settings.reply:
        case "gradient" | "embeddings":
            _differentiable_head(context, head)
            return GradientServer(head)
        case "deltas":
            return DeltasServer(head, deltas_of(context, label_unit(context)))
        case "values":
            return ValuesServer(head, mean_losses)


def own_step_of(context: CascadeContext, head: Head, *, measured: bool) -> OwnStep | None:
    """Return how F0 learns; None if it has no parameters. `measured`: its step is measured before every
    step."""
    if not head.w.size:
        return None
    if context.plan.settings.reply != "values" or context.plan.settings.server == "first":
        if not isinstance(head.model, Differentiable):
            raise JobError("the server learns by back-propagation here, and this F0 has no gradient")
        return FirstStep(head)
    return ZerothStep(head, smoothing_of(context), context.rng(HEAD_DIRECTIONS), measured)
