"""Seeds that were transferred, extended to rows of any number, and the check that they are rows of codewords.

The asker has both seeds of every column, the key holder one. `cover` hides codewords under the noise of both;
`uncovered` gives the key holder rows Q = T + (codeword and s). Rows of one lot are made once: its number is
in the counter of the cipher that makes noise of a seed.

An asker that covers anything but codewords could find out bits of s. So the last rows of every lot are of
random codewords, and the key holder asks for 64 random sums, each of half the rows and one of the last, of T
and of the messages: they must agree with its own sums of Q. Rows that are none of the code's pass with
probability 2^-64, or by guessing bits of s, each of which is wrong half the time.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from colonnade.arrays import Words
from colonnade.errors import AlignmentError
from colonnade.secure.ot.base import Seeds
from colonnade.secure.ot.bits import SUMS, combined, transposed
from colonnade.secure.ot.code import LENGTH, WIDTH, encoded, message

CHALLENGE = 4  # words
PROOF = WIDTH + 2  # words of one sum: of a row, and of its message


def rows_for(wanted: int) -> int:
    """Return how many rows give this many after the check has had its own; whole bytes of columns."""
    return -(-wanted // 8) * 8 + SUMS


def cover(seeds: tuple[Seeds, Seeds], lot: int, messages: Words) -> tuple[Words, Words]:
    """Return what the asker sends for the messages of a lot, and its own rows T."""
    zero, one = (transposed(_noise(each, lot, len(messages))) for each in seeds)
    one ^= zero
    one ^= encoded(messages)
    return one, zero


def uncovered(seeds: Seeds, choices: Words, lot: int, covered: Words) -> Words:
    """Return the key holder's rows Q."""
    rows = transposed(_noise(seeds, lot, len(covered)))
    rows ^= covered & choices
    return rows


def proof(rows: Words, messages: Words, challenge: Words) -> Words:
    """Return the asker's answer to a challenge: sums of its rows, beside sums of its messages."""
    return _sums(np.concatenate([rows, messages], axis=1), challenge)


def check(rows: Words, choices: Words, challenge: Words, proven: Words) -> None:
    """Check that the asker's sums agree with those of the key holder's rows; AlignmentError if not."""
    words = encoded(np.ascontiguousarray(message(proven[:, WIDTH:]))) & choices
    if (_sums(rows, challenge) != proven[:, :WIDTH] ^ words).any():
        raise AlignmentError("sums of rows that are no words of the code")


def packed(choices: NDArray[np.bool_]) -> Words:
    """Return choices as the words of a row."""
    return np.packbits(choices, bitorder="little").view(np.uint64)


def _sums(rows: Words, challenge: Words) -> Words:
    """Return random sums of all rows but the last, each plus one of the last."""
    coefficients = _stream(challenge.tobytes(), 0, 8 * (len(rows) - SUMS)).view(np.uint64)
    return combined(rows[:-SUMS], coefficients) ^ rows[-SUMS:]


def _noise(seeds: Seeds, lot: int, rows: int) -> NDArray[np.uint8]:
    """Return a column of this many bits from every seed."""
    columns = np.empty((LENGTH, rows // 8), dtype=np.uint8)
    for column, seed in zip(columns, seeds, strict=True):
        column[:] = _stream(seed.tobytes(), lot, rows // 8)
    return columns


def _stream(key: bytes, number: int, size: int) -> NDArray[np.uint8]:
    """Return bytes of AES-256 in counter mode, which starts where no other number's does."""
    start = number.to_bytes(8, "big") + bytes(8)
    made = Cipher(algorithms.AES(key), modes.CTR(start)).encryptor().update(bytes(size))
    return np.frombuffer(made, dtype=np.uint8).copy()
