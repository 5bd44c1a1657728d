"""Random words: an AES-256 key stream in counter mode, keyed by a hash of a seed and a purpose.

Secrets come from seeds of the operating system that nobody sees (`Source.fresh`). What both parties must
know, the uniform halves of ciphertexts, comes from a seed that is sent. Its words pass through a hash and a
cipher, so that a sender cannot choose them.
"""

from __future__ import annotations

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from colonnade.arrays import Words
from colonnade.errors import SumError
from colonnade.secure.lattice.arithmetic import code
from colonnade.secure.streams import subkey

SEED = 32  # bytes
_ZEROS = memoryview(bytes(2**16))
_SPARE = 32  # words beyond those that are asked for: some are no number below p


class Source:
    """Words of one seed for one purpose, each given out once."""

    def __init__(self, seed: bytes, purpose: str) -> None:
        if len(seed) != SEED:
            raise SumError(f"a seed has {SEED} bytes, not {len(seed)}")
        key = subkey(seed, f"lattice {purpose}")
        # a new key for every seed and purpose: the counter may begin at zero
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    @staticmethod
    def fresh() -> Source:
        """Return words that nobody else can make."""
        return Source(os.urandom(SEED), "secret")

    def seed(self) -> bytes:
        """Return a seed for a source that others may know."""
        return self.words(SEED // 8).tobytes()

    def words(self, *shape: int) -> Words:
        """Return the next words."""
        count = int(np.prod(shape))
        made = np.empty(count + 2, dtype=np.uint64)  # an encryptor wants room for nearly a block more
        room = made.view(np.uint8).data
        for start in range(0, 8 * count, len(_ZEROS)):
            self._encryptor.update_into(_ZEROS[: 8 * count - start], room[start:])
        return made[:count].reshape(shape)

    def uniform(self, out: Words, p: int) -> Words:
        """Fill an array with uniform numbers below p, and return it."""
        flat, found = out.reshape(-1), 0
        while found < flat.size:
            words = self.words(flat.size - found + _SPARE)
            found += code().uniform(words, flat[found:], p)
        return out
