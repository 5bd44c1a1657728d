"""What a party reads whose software is not this one: the limit of a protocol for parties that follow it.

docs/two.md says so. Nothing of it applies to weights in parts, of which no answer is given back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.conversations.encrypted.test_parted import between

from colonnade.conversations.linear.encrypted.encrypted_products import Asked, GradientAsker, modulo
from colonnade.conversations.linear.encrypted.home_columns import length_for, theta_bits
from colonnade.conversations.own_noise import STEPS, OwnNoise
from colonnade.conversations.peer_line import parts_of
from colonnade.secure.lattice.ciphertexts import Ciphertexts, centred, residues
from colonnade.secure.lattice.columns import CoefficientAnswer, TransformedColumns, opened
from colonnade.secure.lattice.parameters import LEAN, coefficients_beside

ROWS, S = 20_000, 3.0
RING = coefficients_beside(LEAN)
BITS = 2 * theta_bits(LEAN, ROWS)  # of theta
USUAL = length_for(LEAN, ROWS) / np.sqrt(ROWS)  # number of a column
LABELS = np.random.default_rng(0).choice([-1, 1], ROWS)
STEP = round(0.5 * 2**BITS)  # theta before the first step, without its sign


def asked(width: int) -> tuple[Asked, Any]:
    """What the owner tells of this many columns, as small as they may be; and the noise that follows."""
    codes = np.full(width, int(np.floor(STEPS * np.log2(USUAL))))
    return Asked(ROWS, width, 1, codes), OwnNoise(bytes(32)).gaussian(RING, codes, S, BITS, "", 0)


def told_to(width: int, owner: Any) -> Any:
    """What a modified owner makes of the first pass: the label holder asks with labels alone."""
    shape, noise = asked(width)

    async def holder(line: Any) -> None:
        asker = GradientAsker(line, RING, shape)
        await asker.ask(modulo(STEP * LABELS, LEAN.plain))
        await asker.give_back(noise)

    return between(holder, owner)[1]


def test_columns_larger_than_they_are_said_to_be_tell_labels_of_single_rows() -> None:
    width = 40
    whole = np.zeros((ROWS, width), dtype=np.int64)
    whole[np.arange(width), np.arange(width)] = LEAN.plain // (4 * STEP)
    table = TransformedColumns(RING, whole, STEP)

    async def owner(line: Any) -> Any:
        public = await line.opened(lambda data: Ciphertexts.read(RING, 1, 1, data))
        vector = await line.opened(lambda data: Ciphertexts.read(RING, 1, table.chunks, data))
        answer, own = table.gradient(public, vector)
        await line.seal(answer)
        return opened(RING, own, await line.opened(lambda data: parts_of(data, width)))

    assert np.array_equal(np.sign(told_to(width, owner)), LABELS[:width])


def test_answers_that_are_none_tell_the_key_of_a_pass_and_so_all_labels() -> None:
    """Digits of the key, of -1, 0 and 1, next to each other in every number that comes back."""
    _, noise = asked(1)
    least = int(12 * S * USUAL * 2.0**BITS / RING.unit)  # six deviations either way
    digits = int(np.log(1 + 2.0**RING.cut / least) / np.log(3))
    width = -(-RING.degree // digits)
    assert abs(int(noise[0])) < least / 2
    assert 200 < width < 350  # so many columns it takes

    async def owner(line: Any) -> Any:
        await line.opened(bytes)
        vector = await line.opened(lambda data: Ciphertexts.read(RING, 1, -(-ROWS // RING.degree), data))
        crafted = np.zeros((width, RING.degree), dtype=np.int64)
        for place in range(RING.degree):  # coefficient 0 of the product with s: s_0 - s_j X^(N - j) ...
            weight = least * 3 ** (place % digits)
            crafted[place // digits, -place % RING.degree] = weight if place == 0 else -weight
        words = (crafted % 2**RING.cut).astype(np.uint64)
        await line.seal(CoefficientAnswer(RING, words))
        back = centred(await line.opened(lambda data: parts_of(data, width)), 2**RING.cut)
        rest, key = np.rint(back / least).astype(np.int64), np.zeros((width, digits), dtype=np.int64)
        for digit in range(digits):
            key[:, digit] = (rest + 1) % 3 - 1
            rest = (rest - key[:, digit]) // 3
        p, m = RING.q, RING.moduli[0]
        s = m.forward(residues(key.reshape(-1)[: RING.degree], p)[None])
        c_0, c_1 = vector.values[0, 0]
        product = np.zeros((1, *c_1.shape), dtype=np.uint64)
        m.add_products(s[None], c_1, product)
        phase = m.inverse((c_0 + product[0]) % np.uint64(p))
        return centred(phase, p).reshape(-1)[:ROWS]

    assert np.array_equal(np.sign(told_to(width, owner)), LABELS)
