"""Labels from function values: the zeroth-order difference (SECURITY: AsyREVEL's Theorem 1 does not hold).

The paper argues that replies of function values protect labels because no intermediate gradient is sent.
But a client that sent c and c_hat and receives h and h_hat knows (h_hat - h) / (c_hat - c) = dL/dc, whose
sign is the label. Two ways to use it, both on the transcript of one client:

`passive`: the client only took part as it should. Every direction of every batch is one linear equation in
the derivatives of its rows, sum_i (c_hat_ik - c_i) dL/dc_i = B (h_hat_k - h); solved in least squares.
Exact for single rows; for larger batches the better the more passes there were.

`Probe`: the client is curious beyond that, and since its model is a black box, nobody can tell: instead
of its perturbed outputs it sends c plus a large number for a few rows. A row of label -1 adds that number
to the loss, one of label +1 adds nothing; numbers that double from row to row are read off one reply.

Against private replies both find what the noise leaves. Each is compared with what anybody can do
without the protocol: guess the more frequent label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsqr

from colonnade.arrays import Matrix, Numbers, Rows
from colonnade.attacks.transcript import Transcript
from colonnade.conversations.cascade.row_order import BatchRows, passes_of
from colonnade.conversations.cascade.settings import CascadeSettings
from colonnade.job.plan import Plan
from colonnade.messages import Reply, Upload
from colonnade.metrics import auc
from colonnade.optim.smoothing import Smoothing

DIGIT = 512.0  # more than the losses of the rows that share a reply can add up to
DIGITS = 16  # rows read off one reply; the largest number still is exact enough in float32
TRUST = 1e-3  # how little the least-squares solution is drawn to the mean
PATIENCE = 200


@dataclass(frozen=True, eq=False)
class Exchange:
    """One question of the client and its answer."""

    rows: Rows
    outputs: Numbers  # [vectors, rows]
    values: Numbers


@dataclass(frozen=True)
class Recovery:
    """How well an attack recovered the labels of the rows that the client had replies about.

    `covered` is the share of those rows. `accuracy` is at the threshold that suits the attacker best;
    without any information it would be `baseline`, the share of the more frequent label among these rows.
    """

    accuracy: float
    auc: float
    covered: float
    baseline: float


def exchanges(transcript: Transcript, plan: Plan[CascadeSettings], rows: int) -> Iterator[Exchange]:
    """Yield the client's questions, each with its answer; a client knows which rows its batches have."""
    walk = BatchRows(passes_of(plan, transcript.party, rows))
    replies = {m.tag: m.values for _, m in transcript.heard if isinstance(m, Reply)}
    for _, message in transcript.said:
        if isinstance(message, Upload) and replies.get(message.tag, np.zeros(0)).size:
            values = replies[message.tag]
            yield Exchange(walk.batch(message.tag), message.outputs[:, :, 0].astype(np.float64), values)


def passive(transcript: Transcript, plan: Plan[CascadeSettings], rows: int) -> Numbers:
    """Return an estimate of -dL/dc for every row, whose sign is the guess of the label; 0 without a reply."""
    asked = plan.settings.questions
    smoothing = Smoothing("gaussian", asked.directions, asked.mu, asked.two_sided)
    data, columns, ends, right = [], [], [0], []
    for exchange in exchanges(transcript, plan, rows):
        slopes = smoothing.quotients(exchange.outputs)  # [directions, rows]
        heard = exchange.values
        if plan.privacy.mechanism != "scalar":
            heard = smoothing.quotients(heard)
        for slope, answer in zip(slopes, heard * len(exchange.rows), strict=True):
            data.append(slope)
            columns.append(exchange.rows)
            ends.append(ends[-1] + len(slope))
            right.append(float(answer))
    A = csr_array((np.concatenate(data), np.concatenate(columns), ends), shape=(len(right), rows))
    b = np.array(right)
    ones = A.sum(axis=1)
    mean = float(ones @ b / max(ones @ ones, 1e-300))  # the derivative that all rows have in common
    size = np.sqrt(np.bincount(A.indices, weights=A.data**2, minlength=rows))
    scaled = csr_array((A.data / np.maximum(size, 1e-300)[A.indices], A.indices, A.indptr), shape=A.shape)
    rest = np.asarray(lsqr(scaled, b - mean * ones, damp=TRUST, iter_lim=PATIENCE)[0])
    return np.where(size > 0, -(mean + rest / np.maximum(size, 1e-300)), 0.0)


@dataclass
class Probe:
    """A client's model, without parameters, that asks about a few rows in every direction."""

    walk: BatchRows
    rows: int
    vectors: int  # how many outputs a question has
    digits: int = DIGITS  # rows asked about in one direction; one alone is best against noise
    parameters: int = 0
    asked: list[list[Rows]] = field(default_factory=list)
    known: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.known = np.zeros(self.rows, dtype=np.bool_)

    def initial(self, rng: np.random.Generator) -> Numbers:
        return np.zeros(0)

    def forward(self, W: Numbers, X: Matrix) -> Numbers:
        outputs = np.zeros((len(W), X.shape[0], 1))
        if len(W) != self.vectors:
            return outputs  # nothing is asked: the first pass, the search for a step, an evaluation
        batch = self.walk.batch(len(self.asked))
        new = np.flatnonzero(~self.known[batch])
        probes = [new[k * self.digits : (k + 1) * self.digits] for k in range(len(W) - 1)]
        for k, places in enumerate(probes):
            outputs[k + 1, places, 0] = DIGIT * 2.0 ** np.arange(len(places))
            self.known[batch[places]] = True
        self.asked.append([batch[places] for places in probes])
        return outputs


def read_off(probe: Probe, transcript: Transcript, plan: Plan[CascadeSettings]) -> Numbers:
    """Return a score for every row from the replies to a probe: positive for a positive label, 0 if never
    asked."""
    guess = np.zeros(probe.rows)
    mu = plan.settings.questions.mu
    for exchange, probes in zip(exchanges(transcript, plan, probe.rows), probe.asked, strict=False):
        values = exchange.values
        gains = values * mu if plan.privacy.mechanism == "scalar" else values[1:] - values[0]
        for gain, rows in zip(gains, probes, strict=True):
            left = float(gain) * len(exchange.rows)
            for place in reversed(range(len(rows))):
                size = DIGIT * 2.0**place
                # all smaller numbers together are DIGIT short of this one
                score = size - DIGIT / 2 - left if probe.digits > 1 else -left
                guess[rows[place]] = score
                left -= size if score < 0 else 0.0
    return guess


def judge(score: Numbers, y: Numbers) -> Recovery:
    """Return how well scores give away the labels y; the attacks themselves never see y."""
    heard = score != 0
    score, y = score[heard], y[heard]
    share = float((y > 0).mean())
    order = np.argsort(score, kind="stable")
    positive = y[order] > 0
    # rows up to each place are called negative, the rest positive
    right = np.concatenate([[0], np.cumsum(~positive)]) + np.concatenate(
        [np.cumsum(positive[::-1])[::-1], [0]]
    )
    accuracy = float(right.max()) / len(y)
    return Recovery(accuracy, auc(score, y > 0), float(heard.mean()), max(share, 1 - share))
