"""Scores of rows by weights that two parties have in parts, and nobody knows (`secure.reveal = "never"`).

Each multiplies its own rows, turned as in training, by the weights of its block, of which both have a part
(`parted.both_blocks`); both then have a word of every score, and who does not ask tells its own **with
noise** of 1/256. The noise of a row follows from a secret and the row itself: who asks again hears nothing
new. It hides the asker's key as well, for which far less would do (`CoefficientParameters.least_noise`).

What each side learns: the asker the total scores of the rows it names, to 1/256. Between companies the parts
themselves are moved by chance, by half a standard error of a weight (`parties.parted`): an asker chooses its
rows, and reads the weights of its own block off their scores. Columns of few rows would tell their labels by
these even so: daemons answer no asker but a label holder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from colonnade.arrays import Arrays, Floats, Matrix, Rows, Words
from colonnade.conversations.linear.noisy.rare import dense
from colonnade.conversations.linear.parted.both_blocks import Blocks
from colonnade.conversations.linear.parted.turned_columns import SCORED
from colonnade.conversations.linear.parted.wave_theta import PERIOD
from colonnade.conversations.own_noise import OwnNoise
from colonnade.conversations.peer_line import PeerLine, parts_of
from colonnade.conversations.predict import CHUNK, Holding, Session
from colonnade.errors import DataError
from colonnade.job.plan import Encrypted, Plan
from colonnade.messages import Topic
from colonnade.openings.opening import Opening
from colonnade.openings.scoring import ScoringRequest
from colonnade.secure.lattice.ciphertexts import centred
from colonnade.secure.lattice.columns import TransformedColumns
from colonnade.secure.lattice.parameters import (
    LEAN,
    STRICT,
    CoefficientParameters,
    SlotParameters,
    coefficients_beside,
)
from colonnade.secure.streams import subkey

NOISE = 1 / 256  # of a score that is told: its deviation
SHORTER = 6  # bits, of a word: an error of 0.04 rows in a gradient, and of 1e-5 in a score
MOST = 2.0**20  # of a turned number: beyond, a column is not what it was in training
CONSTANT, ANSWER = 12.8, 8.0  # kB of a ciphertext, and of an answer
_SPREAD = 2.0**16 * np.sqrt(4 / 12)  # of four uniform numbers of 16 bits


def kept(turn: Floats, own: Words, others: Words, unit: float, start: float, secret: bytes) -> Arrays:
    """Return what a party keeps."""
    return {
        "turn": turn,
        "own": own,
        "others": others,
        "unit": np.array([unit]),
        "start": np.array([start]),
        "secret": np.frombuffer(subkey(secret, "noise of scores"), dtype=np.uint8).copy(),
    }


def weights_in(arrays: Arrays) -> tuple[Words, Words]:
    """Return the parts of weights, of the own block and of the other's."""
    return np.asarray(arrays["own"], dtype=np.uint64), np.asarray(arrays["others"], dtype=np.uint64)


def slots_of(encrypted: Encrypted) -> SlotParameters:
    """Return the ring that a run's parts count in."""
    return STRICT if encrypted.profile == "strict" else LEAN


def ring_of(encrypted: Encrypted) -> CoefficientParameters:
    """Return the ring of inner products with parts: their words are shorter than where gradients are told."""
    ring = coefficients_beside(slots_of(encrypted))
    return replace(ring, cut=ring.cut - SHORTER)


@dataclass(eq=False)
class PartedScorer:
    """One party's parts, applied to its rows."""

    overlaps: ClassVar[bool] = False

    arrays: Arrays
    ring: CoefficientParameters
    me: str
    peer: str
    X: Matrix | None = None
    _line: PeerLine | None = field(default=None, init=False)

    @staticmethod
    def of(arrays: Arrays, plan: Plan[Any], me: str, X: Matrix | None = None) -> PartedScorer:
        """Return what scores rows with what a party keeps."""
        if plan.blind is None or plan.blind.encrypted is None:
            raise DataError("these weights are in parts, and the plan does not say so")
        peer = next(party for party in plan.parties if party != me)
        return PartedScorer(arrays, ring_of(plan.blind.encrypted), me, peer, X)

    @property
    def rows(self) -> int:
        return 0 if self.X is None else int(self.X.shape[0])

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        if self._line is None:
            self._line = PeerLine(session.net, self.peer)
        X = self.X if self.X is None else self.X[rows]
        return None if X is None else await self._some(self._line, X, session.asker)

    def opens(self, request: ScoringRequest) -> list[Opening]:
        """Return the totals: each party's word of a row's score says nothing else."""
        return [request.product(request.rows)]

    async def total(self, line: PeerLine, X: Matrix, asker: str) -> Floats | None:
        """Return the total scores of all rows at the asker, None at the other."""
        count = int(X.shape[0])
        cuts = [slice(at, min(at + CHUNK, count)) for at in range(0, count, CHUNK)]
        found = [await self._some(line, X[cut], asker) for cut in cuts]
        told = [each for each in found if each is not None]
        return np.concatenate(told) if told else None

    async def _some(self, line: PeerLine, X: Matrix, asker: str) -> Floats | None:
        numbers = self._whole(X)
        words = await self._words(line, numbers)
        cut = self.ring.cut
        mask, start = np.uint64(2**cut - 1), np.asarray(self.arrays["start"], dtype=np.float64)
        if self.me != asker:
            words += self._noise(numbers).view(np.uint64) + self._fresh(len(words))
            line.let_open(len(words), Topic.PREDICT)
            await line.seal((words & mask).astype("<u8").tobytes() + start.astype("<f8").tobytes())
            return None
        told = await line.opened(lambda data: parts_of(data, len(words) + 1))
        z = centred((words + told[:-1]) & mask, 2**cut).astype(np.float64) * (PERIOD * 0.5**cut)
        return z * float(self.arrays["unit"][0]) + float(start[0] + told[-1:].view(np.float64)[0])

    def _whole(self, X: Matrix) -> Rows:
        turned = dense(X, slice(None)) @ np.asarray(self.arrays["turn"])
        if not float(np.abs(turned).max(initial=0.0)) < MOST:
            raise DataError(f"{self.me}: a row is much longer than any of training; its score would not fit")
        found: Rows = np.rint(turned * 2.0**SCORED).astype(np.int64)
        return found

    async def _words(self, line: PeerLine, numbers: Rows) -> Words:
        """Return the own words of scores: few rows are sent as columns of weights, many as rows."""
        own, others = weights_in(self.arrays)
        rows, widest = len(numbers), max(len(own), len(others))
        together = max(1, 2 ** int(np.log2(max(1, self.ring.degree // widest))))
        chunks = -(-widest * together // self.ring.degree)
        few = CONSTANT * chunks + ANSWER * -(-rows // together)
        if few < CONSTANT * widest + ANSWER * -(-rows // self.ring.degree):
            table = TransformedColumns(self.ring, np.ascontiguousarray(numbers.T), 0, together)
            blocks = Blocks(line, self.ring, [table], [], rows, together)
            mine, theirs = await blocks.gradients([own], [others])
        else:
            blocks = Blocks(line, self.ring, [TransformedColumns(self.ring, numbers, 0)], [rows], len(others))
            mine, theirs = await blocks.scores(own, others)
        found: Words = mine + theirs
        return found

    def _noise(self, numbers: Rows) -> Rows:
        """Return noise that follows from the own rows, in words."""
        key = np.asarray(self.arrays["secret"], dtype=np.uint8).tobytes()
        digests = [hashlib.blake2b(row.tobytes(), key=key, digest_size=8).digest() for row in numbers]
        drawn = np.frombuffer(b"".join(digests), dtype="<u2").reshape(-1, 4).astype(np.float64)
        size = NOISE / PERIOD * 2.0**self.ring.cut / _SPREAD
        found: Rows = np.rint((drawn.sum(axis=1) - 2.0 * (2**16 - 1)) * size).astype(np.int64)
        return found

    def _fresh(self, count: int) -> Words:
        """Return a little noise, other each time: that of a row cancels where a request names it twice, and
        what is left would be equations of the key."""
        deviation = np.full(count, self.ring.least_noise / self.ring.unit)
        return OwnNoise(os.urandom(32)).words(deviation, "key", 0).view(np.uint64)


def scorer(holding: Holding) -> PartedScorer:
    """Return one party's parts, applied to the common rows."""
    return PartedScorer.of(holding.arrays, holding.plan, holding.me, holding.X)


def together(holdings: Mapping[str, Holding]) -> Floats:
    """Return the scores where one process holds all parts, as in an experiment."""
    first, second = holdings.values()
    plan = first.plan
    blind = plan.blind
    if blind is None or blind.encrypted is None:
        raise DataError("these weights are in parts, and the plan does not say so")
    t = slots_of(blind.encrypted).plain
    z = np.zeros(int(first.X.shape[0]))
    for held, other in ((first, second), (second, first)):
        parts = weights_in(held.arrays)[0] + weights_in(other.arrays)[1]
        w = centred(parts % np.uint64(t), t) * (PERIOD / t * 2.0**SCORED)
        z = z + np.asarray(held.X @ (np.asarray(held.arrays["turn"]) @ w))
    start = float(first.arrays["start"][0] + second.arrays["start"][0])
    return np.asarray(z * float(first.arrays["unit"][0]) + start)
