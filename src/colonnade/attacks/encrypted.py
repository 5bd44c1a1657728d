"""Gradients with noise, encrypted or by dealers: what a party makes of those it is told, and of ciphertexts.

A gradient of the own columns is one equation in theta of all rows for every column: least squares has the
theta of least length that would give it. Of the first pass theta is 1/2 - y. A column with few rows gives
those away, which is why such columns are left out, and noise is in all of them.

Sees: the gradients that one party opens, its own columns, the ciphertexts that it is sent.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats
from colonnade.attacks.case import Case, ColumnGuess, LabelGuess
from colonnade.conversations.linear.noisy.rare import dense, gram, steady
from colonnade.errors import MalformedMessage
from colonnade.messages import Sealed, Topic, topic_of
from colonnade.secure.lattice.ciphertexts import Ciphertexts, centred
from colonnade.secure.lattice.parameters import LEAN, STRICT, coefficients_beside


def gradients(case: Case) -> list[Floats]:
    """Return the gradients that a party was told, in the order of passes."""
    told = (np.asarray(total) for tag, total in case.transcript.totals if topic_of(tag) == Topic.TRAIN)
    return [total for total in told if total.size <= case.own.width]  # others are of all rows


def least_theta(case: Case, gradient: Floats) -> Floats:
    """Return the shortest theta of all rows that gives a mean gradient of the columns that train."""
    kept = steady(case.own.X) if len(gradient) < case.own.width else np.arange(case.own.width)
    table = gram(case.own.X, kept)
    solved = np.linalg.lstsq(table, gradient * case.rows, rcond=1e-10)[0]
    theta: Floats = dense(case.own.X, slice(None), kept) @ solved
    return theta


def labels_from_gradients(case: Case) -> LabelGuess:
    """Return what the first gradient says of every row's theta, and so of its label."""
    told = gradients(case)
    if not told:
        return LabelGuess(np.zeros(case.rows))
    return LabelGuess(-least_theta(case, told[0]))


def labels_from_ciphertexts(case: Case) -> LabelGuess:
    """Return theta of the first pass as its ciphertexts would have it if they were not encrypted."""
    slots = STRICT if case.plan.blind.encrypted.profile == "strict" else LEAN  # type: ignore[union-attr]
    ring = coefficients_beside(slots)
    found: list[Floats] = []
    for _, message in case.transcript.heard:
        if not isinstance(message, Sealed):
            continue
        body = message.body.tobytes()
        chunks = max(1, (len(body) - 32) * 8 // (ring.degree * ring.q.bit_length()))
        try:
            asked = Ciphertexts.read(ring, 1, chunks, body)
        except MalformedMessage:
            continue
        found.append(centred(ring.moduli[0].inverse(asked.values[0, 0, 0].copy()), ring.q).astype(np.float64))
        if len(found) == 2:  # a public key, then theta
            break
    if len(found) < 2:
        return LabelGuess(np.zeros(case.rows))
    if case.plan.blind.reveal == "never":  # type: ignore[union-attr]
        return LabelGuess(-found[1].ravel()[: case.rows])  # theta of the first pass is A's alone
    for together in (1, 2, 4, 8, 16, 32, 64, 128):
        of_a_chunk = ring.degree // together
        if len(found[1]) == -(-case.rows // of_a_chunk):
            return LabelGuess(found[1][:, :of_a_chunk].ravel()[: case.rows], oriented=False)
    return LabelGuess(np.zeros(case.rows))


def columns_from_gradients(case: Case) -> ColumnGuess:
    """Return what gradients of A's block say of theta, as a guess of each of P's columns."""
    told = gradients(case)
    theta = np.mean([least_theta(case, each) for each in told[1:]] or [np.zeros(case.rows)], axis=0)
    guess = theta[:, None]
    return ColumnGuess(np.arange(case.rows), {party: guess for party in case.widths if party != case.party})
