"""Scores of new rows by a cascade: all parties' outputs go to the server, which applies F0.

For a request every party with columns sends its outputs for the rows that are asked for; the server puts them
side by side in the order of training, and the score goes to the asker.

What each side learns: the server learns every party's outputs of the rows, in clear, and the score, also
where somebody else asks; the asker learns the score. Where F0 is the sum of all outputs nobody needs a
server: the outputs go through the secure sum like the parts of a linear model (`predict.SummedPart`), and
only the asker learns the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.compress.protocol import Plain
from colonnade.conversations.cascade.outputs import outputs_of, receive_rows, send_rows, stretches
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.cascade.tensors import HEAD, OWN, restored
from colonnade.conversations.predict import Holding, Scorer, Session, SummedPart
from colonnade.job import Device, Job, ModelSpecs
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.messages import Announce, Embeddings
from colonnade.models.build import party_model, server_model
from colonnade.net.expect import floats
from colonnade.openings.opening import Opening
from colonnade.openings.scoring import ScoringRequest
from colonnade.optim.replies import Head


@dataclass(frozen=True, eq=False)
class CascadeClient:
    """This party's outputs for the common rows, computed once, and the server they are sent to."""

    overlaps: ClassVar[bool] = False

    outputs: Numbers  # [rows, outputs]
    server: str
    scores: int  # numbers a row that F0 gives
    precision: Literal["float32", "float64"]

    @property
    def rows(self) -> int:
        return len(self.outputs)

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        net, tag = session.net, session.next_tag()
        await send_rows(net, self.server, Plain(self.precision), tag, 0, self.outputs[rows])
        if session.asker != net.me:
            return None
        due = floats(len(rows)) if self.scores == 1 else floats(len(rows), self.scores)
        return (await net.recv(Announce, self.server, tag, values=due)).values

    def opens(self, request: ScoringRequest) -> list[Opening]:
        """Return this party's outputs for every row."""
        shape, plain = (request.rows, self.outputs.shape[1]), Plain(self.precision)
        size = sum(plain.size((some.stop - some.start, shape[1])) for some in stretches(shape))
        bits = 32 if self.precision == "float32" else 64
        told = request.told("outputs", shape[0] * shape[1], self.server, Embeddings, bits=bits, size=size)
        return [told]


@dataclass(frozen=True, eq=False)
class CascadeServer:
    """The server's own outputs for the common rows (no columns if it is only a server), and F0."""

    overlaps: ClassVar[bool] = False

    outputs: Numbers  # [rows, outputs]
    widths: dict[str, int]  # of every party with columns, in the order in which F0 takes them
    head: Head
    scores: int  # numbers a row that F0 gives
    precision: Literal["float32", "float64"]

    @property
    def rows(self) -> int:
        return len(self.outputs)

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        net, tag, plain = session.net, session.next_tag(), Plain(self.precision)
        C = [
            self.outputs[rows]
            if party == net.me
            else await receive_rows(net, party, plain, tag, 0, (len(rows), width))
            for party, width in self.widths.items()
        ]
        head, both = self.head, np.concatenate(C, axis=1)
        z: Floats = (await session.workplace.do(lambda: head.scores(head.w[None], both)))[0].astype(
            np.float64
        )
        if session.asker == net.me:
            return z
        await net.send(session.asker, Announce(tag, z))
        return None

    def opens(self, request: ScoringRequest) -> list[Opening]:
        """Return the scores, where somebody else asks."""
        if request.asker == request.me:
            return []
        return [request.told("predictions", request.rows * self.scores, request.asker, Announce)]


def widths(plan: Plan[CascadeSettings], server_columns: int) -> dict[str, int]:
    """Return how many outputs a row every party with columns has, in the order in which F0 takes them."""
    models, server = plan.settings.model, plan.evaluator
    clients = [party for party in sorted(plan.parties) if party != server or server_columns]
    return {party: models.of(party).width for party in clients}


class CascadeShares:
    """Shares of a cascade: the parameters of a client's model, and at the server those of F0."""

    name = "cascade"

    def is_sum(self, job: Job) -> bool:
        return job.model.server.kind == "sum"

    def scorer(self, holding: Holding) -> Scorer:
        plan: Plan[CascadeSettings] = holding.plan
        (rows, columns), arrays = holding.X.shape, holding.arrays
        settings, objective, models = plan.settings, plan.objective, holding.models
        outputs: Numbers = np.zeros((rows, 0))
        if models.own is not None:
            outputs = outputs_of(models.own, arrays[OWN], holding.X, settings.precision)
        scores = objective.classes or 1
        if settings.model.server.kind == "sum":
            # a sum needs no server: the asker learns the total and nobody anybody's outputs
            total = outputs.reshape(rows, -1, scores).sum(axis=1, dtype=np.float64)
            return SummedPart(total if objective.classes else total[:, 0])
        if models.head is None:
            return CascadeClient(outputs, plan.evaluator, scores, settings.precision)
        head = Head(models.head, LOSSES[objective.loss], arrays[HEAD])
        return CascadeServer(outputs, widths(plan, int(columns)), head, scores, settings.precision)

    def together(self, holdings: Mapping[str, Holding]) -> Floats:
        """Return F0 of all parties' outputs; models that are not given are made as the plan describes
        them."""
        parts = [_outputs(held) for _, held in sorted(holdings.items()) if held.X.shape[1]]
        C, head = np.concatenate(parts, axis=1), _head(holdings, [part.shape[1] for part in parts])
        z: Floats = head.scores(head.w[None], C)[0].astype(np.float64)
        return z


def _outputs(holding: Holding) -> Numbers:
    """Return a party's outputs for its rows, as it would send them."""
    plan: Plan[CascadeSettings] = holding.plan
    specs, precision = plan.settings.model, plan.settings.precision
    own = holding.models.own or restored(
        party_model(specs.of(holding.me), int(holding.X.shape[1]), _device(specs)),
        OWN,
        holding.arrays,
    )
    # the server computes on in double precision, in any precision that outputs travel in
    return outputs_of(own, holding.arrays[OWN], holding.X, precision).astype(np.float64)


def _head(holdings: Mapping[str, Holding], widths: Sequence[int]) -> Head:
    """Return F0 of these numbers of outputs of every party, with the server's parameters."""
    plan: Plan[CascadeSettings] = next(iter(holdings.values())).plan
    specs, objective, server = plan.settings.model, plan.objective, holdings[plan.evaluator]
    model = server.models.head or restored(
        server_model(specs.server, widths, objective.classes or 1, _device(specs)), HEAD, server.arrays
    )
    return Head(model, LOSSES[objective.loss], server.arrays[HEAD])


def _device(specs: ModelSpecs) -> Device:
    """Return where a trained network computes: on a GPU if it was trained on one and there is one here."""
    return "cpu" if specs.device == "cpu" else "auto"
