"""What a cascade opens: every client's outputs to the server, and the server's replies to every client."""

from __future__ import annotations

import numpy as np

from colonnade.compress.protocol import Compressor, Plain
from colonnade.compress.quantize import Quantizer
from colonnade.compress.topk import TopK
from colonnade.conversations.cascade.outputs import stretches
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.conversations.cascade.units import applies
from colonnade.job.plan import Plan
from colonnade.messages import Announce, Embeddings, Reply, Topic, Upload
from colonnade.models.build import server_model
from colonnade.openings.declaration import Declaration
from colonnade.openings.opening import Extent, Opening
from colonnade.optim.deltas import Deltas
from colonnade.optim.smoothing import Smoothing

OBJECTS = {"torch", "function", "program"}  # models whose outputs the plan does not know
WIDEST = 64  # outputs of such a model, for every one that the plan says
PARAMETERS = 2**22  # of an F0 that the plan does not know, at the most
BEGINNING, MARKS = "at the start", "when the model is measured"


def of_cascade(plan: Plan[CascadeSettings], extent: Extent) -> list[Opening]:
    """Return what a cascade opens."""
    cascade = _Cascade(plan, extent)
    cascade.gates()
    server = plan.evaluator
    everybody = plan.settings.reply == "embeddings"
    for client in cascade.clients:
        if client != server:
            cascade.of_client(client)
            cascade.replies(client, everybody=everybody)
    unit = 2 * applies(plan)
    cascade.told("model", 3 + unit, server, Announce, Topic.TUNE, BEGINNING, about="labels")
    if everybody:
        cascade.everything()
    return cascade.openings


class _Cascade(Declaration):
    """The openings of one cascade, client by client."""

    def __init__(self, plan: Plan[CascadeSettings], extent: Extent) -> None:
        super().__init__(plan, extent)
        self.settings = plan.settings
        server = plan.evaluator
        # a server of which nothing is said may be a client of its own, which makes for more answers
        self.clients = tuple(party for party in plan.parties if party != server or extent.width(server))
        per_pass = -(-extent.rows // plan.pace.batch)
        self.total_answers = plan.pace.epochs * per_pass * len(self.clients)
        own = plan.pace.epochs * per_pass if plan.pace.schedule == "sync" else self.total_answers
        self.questions = own + plan.pace.ahead
        known = server in extent.columns
        counts = {len(self.clients), len(self.clients) - (not known)}
        self.measurements = max(self._measurements(count * per_pass) for count in counts)

    def _measurements(self, answers: int) -> int:
        """Return how often the model is measured, by the number of answers in a pass."""
        epochs, total = self.plan.pace.evaluate_every, self.plan.pace.epochs * answers
        every = max(1, round(epochs * answers)) if epochs else max(1, total)
        return -(-total // every)

    def outputs(self, party: str) -> int:
        """Return how many outputs a row has at a party, at the most."""
        spec = self.settings.model.of(party)
        return spec.width * (WIDEST if spec.kind in OBJECTS or self.extent.objects else 1)

    @property
    def up(self) -> Compressor:
        """How a client's outputs are packed."""
        packing = self.settings.packing
        if packing.forward_bits == 32:
            return Plain(packing.precision)
        return Quantizer(packing.forward_bits, None, packing.forward_range)

    @property
    def down(self) -> Compressor:
        """How the server's replies are packed."""
        packing = self.settings.packing
        if packing.backward_top:
            return TopK(packing.backward_top)
        exact = "float64" if self.settings.reply == "values" else packing.precision
        return Plain(exact) if packing.backward_bits == 32 else Quantizer(packing.backward_bits, None)

    @property
    def vectors(self) -> int:
        """For how many parameter vectors a question has outputs."""
        asked = self.settings.questions
        if self.settings.reply != "values":
            return 1
        kind = "gaussian" if asked.smoothing == "coordinate" else asked.smoothing
        return Smoothing(kind, asked.directions, asked.mu, asked.two_sided).points_per_step

    def of_client(self, client: str) -> None:
        """Write down what a client tells the server: of all rows, of batches, at measurements."""
        server, width, rows = self.plan.evaluator, self.outputs(client), self.extent.rows
        batch = min(self.plan.pace.batch, rows)
        packing = self.settings.packing
        self.told("sizes", 1, client, Announce, Topic.TRAIN, BEGINNING, about="nothing", to=(server,))
        self._rows(client, server, Embeddings, Topic.TRAIN, self.up, (rows, width), 1, BEGINNING)
        question = (self.vectors, batch, width)
        size = (TopK(packing.forward_top) if packing.forward_top else self.up).size(question)
        numbers = self.questions * int(np.prod(question))
        self._packed(
            "outputs", client, server, Upload, "in every batch", numbers, self.questions * size, "columns"
        )
        self.told("sizes", 1, client, Announce, Topic.TUNE, BEGINNING, about="columns", to=(server,))
        plain = Plain(packing.precision)
        for table in (rows, self.extent.test):
            if table:
                shape, times = (table, width), self.measurements
                self._rows(client, server, Embeddings, Topic.EVALUATE, plain, shape, times, MARKS)
        self.told(
            "penalties",
            2 * self.measurements,
            client,
            Announce,
            Topic.EVALUATE,
            MARKS,
            about="columns",
            to=(server,),
        )

    def replies(self, client: str, *, everybody: bool) -> None:
        """Write down what the server answers a client."""
        server, asked, width = self.plan.evaluator, self.settings.questions, self.outputs(client)
        batch = min(self.plan.pace.batch, self.extent.rows)
        match self.settings.reply:
            case "values":
                shape: tuple[int, ...] = (self.vectors,)
            case "deltas" if asked.smoothing == "coordinate":
                shape = Deltas("coordinate", 0, asked.mu, per="sample").shape(batch, width)
            case "deltas":
                deltas = Deltas(asked.smoothing, asked.directions, asked.mu, asked.two_sided, asked.per)
                shape = deltas.shape(batch, width)
            case "gradient" | "embeddings":
                shape = (batch, width)
        count, size = int(np.prod(shape)), self.down.size(shape)
        if everybody:
            others = [self.outputs(name) for name in self.clients if name != client]
            count = batch * sum(others) + self.head
            size = sum(self.up.size((1, batch, each)) for each in others)
            size += self.down.size((self.head,)) if self.head else 0
        numbers, when = self.questions * count, "in every batch"
        kind = "outputs" if everybody else "replies"
        about = "columns" if everybody else "labels"
        self._packed(kind, server, client, Reply, when, numbers, self.questions * size, about)
        if not everybody:
            self.follows("outputs", numbers, self.others(client), (client,), when, about="columns")

    @property
    def head(self) -> int:
        """How many parameters F0 has."""
        specs, outputs = self.settings.model, self.plan.objective.classes or 1
        widths = [self.outputs(name) for name in self.clients]
        if specs.server.kind in OBJECTS or self.extent.objects:
            return specs.server.parameters or PARAMETERS
        return server_model(specs.server, widths, outputs, specs.device).parameters

    def everything(self) -> None:
        """Write down what C-VFL tells every client before the first round: labels, and weights of rows."""
        server, rows = self.plan.evaluator, self.extent.rows
        self.told(
            "sizes", len(self.plan.parties) + 2, server, Announce, Topic.TRAIN, BEGINNING, about="nothing"
        )
        self.told("labels", 2 * rows, server, Embeddings, Topic.TRAIN, BEGINNING, about="labels")

    def _rows(
        self,
        by: str,
        to: str,
        message: type[Embeddings],
        topic: Topic,
        packed: Compressor,
        shape: tuple[int, int],
        times: int,
        when: str,
    ) -> None:
        """Write down outputs of all rows of a table."""
        parts = (packed.size((rows.stop - rows.start, shape[1])) for rows in stretches(shape))
        numbers = times * shape[0] * shape[1]
        self._packed("outputs", by, to, message, when, numbers, times * sum(parts), "columns", topic)

    def _packed(
        self,
        kind: str,
        by: str,
        to: str,
        message: type,
        when: str,
        numbers: int,
        size: int,
        about: str,
        topic: Topic = Topic.TRAIN,
    ) -> None:
        """Write down numbers that take this many bytes."""
        bits = 8 * size / max(1, numbers)
        of = self.plan.parties if by == self.plan.evaluator and about == "columns" else (by,)
        self.told(kind, numbers, by, message, topic, when, about=about, to=(to,), of=of, bits=bits)  # type: ignore[arg-type]
