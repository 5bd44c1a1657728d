"""Labels from the gradients that a client of a split network is told (`split`, `vafl`, `czofo-coord`).

A row's reply is dL/dh = J' theta, with theta = dL/dz of the row and J the server's derivative by the client's
outputs. With one score a row, theta is negative for one class and positive for the other, and J is (nearly)
the same for all rows: the replies lie along a line, and the side they are on is the label. The line is the
leading singular direction of the replies; the client need not know anything of the server's model. Which end
is which class, one known label says; `judge_sides` takes the end that suits the attacker best.

Several replies about a row are averaged, which is the best there is to do against noise that is drawn again
for every reply. Sees: the transcript of one client, and the job.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.attacks.transcript import Transcript
from colonnade.attacks.zeroth_order import Recovery, judge
from colonnade.compress.quantize import Quantizer
from colonnade.conversations.cascade.row_order import BatchRows, passes_of
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.job.plan import Plan
from colonnade.messages import Reply


def gradients_heard(
    transcript: Transcript, plan: Plan[CascadeSettings], rows: int
) -> Iterator[tuple[Rows, Numbers]]:
    """Yield the rows of every reply, and dL/dh of each of them; a client knows which rows its batches
    have."""
    settings, party = plan.settings, transcript.party
    walk, bits = BatchRows(passes_of(plan, party, rows)), settings.packing.backward_bits
    outputs = settings.model.of(party).width
    for _, message in transcript.heard:
        if not isinstance(message, Reply) or not message.values.size:
            continue
        batch, values = walk.batch(message.tag), message.values
        shape = (len(batch), outputs) if settings.reply == "gradient" else (outputs, len(batch))
        if bits != 32:
            values = Quantizer(bits, np.random.default_rng()).decode(values, shape)
        found = values.reshape(shape).astype(np.float64)
        # of the mean loss of the batch, so that of a row alone is as many times larger
        yield batch, len(batch) * (found if settings.reply == "gradient" else found.T)


def sides(transcript: Transcript, plan: Plan[CascadeSettings], rows: int) -> Numbers:
    """Return the place of every row along the line of the replies, 0 where there was no reply."""
    total, times = np.zeros(0), np.zeros(rows)
    for batch, gradients in gradients_heard(transcript, plan, rows):
        if not total.size:
            total = np.zeros((rows, gradients.shape[1]))
        total[batch] += gradients
        times[batch] += 1
    mean = total / np.maximum(times, 1)[:, None]
    line = np.linalg.svd(mean, full_matrices=False)[2][0]
    along: Numbers = mean @ line
    return along


def judge_sides(along: Numbers, y: Numbers) -> Recovery:
    """Return how many labels the places give away, at the threshold and the orientation that suit best."""
    return max((judge(along, y), judge(-along, y)), key=lambda found: found.accuracy)
