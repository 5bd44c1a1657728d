"""A function of ids that only its key holder can compute, for others without seeing their ids.

F(x) = hash(K, x, k H(x)), with H a hash to the curve (the Diffie-Hellman OPRF, "2HashDH" of Jarecki,
Kiayias and Krawczyk 2014). A party that wants F(x) sends H(x) + bG with a new random b for every id (the
blinding that Jarecki, Krawczyk and Xu 2021 call multiplicative), gets k H(x) + bK back, and takes bK off, K
= kG being the key holder's public key. G and K are fixed, so both steps are additions from tables
(`curve.Comb`).

What each side learns: a blinded id is a uniformly random point, which tells the key holder nothing, however
much it can compute. The other side learns F at exactly as many ids as it has sent points, if the one-more
Diffie-Hellman problem is hard on secp256k1. A key holder that shows a K other than kG makes F come out as
noise that it can predict for one guessed id at one guessed place, less than by holding the id.
"""

from __future__ import annotations

from functools import lru_cache

from colonnade.arrays import Digests, Words
from colonnade.secure.curve import (
    Comb,
    Digits,
    Points,
    base_times,
    hashed,
    hashed_times,
    negative,
    read,
    times,
)
from colonnade.secure.hashes import hashes

WIDTHS = {300_000: 12, 4096: 8, 0: 4}  # of tables, by the ids from which one is worth making
_ONE = (1).to_bytes(32, "big")


def draw(count: int, width: int) -> Digits:
    """Return new secrets to blind this number of ids with."""
    return _base_comb(width).draw(count)


def width_for(ids: int) -> int:
    """Return the width of the tables for this many ids: wider ones are longer to make, and spare additions.

    >>> width_for(100), width_for(100_000), width_for(1_000_000)
    (4, 8, 12)
    """
    return next(width for many, width in WIDTHS.items() if ids >= many)


def blind(ids: Digests, blinding: Digits, width: int) -> Points:
    """Return ids as points that tell nothing without the blinding."""
    return _base_comb(width).added(hashed(ids), blinding)


def evaluate(points: Points, key: bytes) -> Points:
    """Return the key holder's answer to blinded ids."""
    return times(points, key)


def unblind(ids: Digests, answers: Points, blinding: Digits, width: int, public: bytes) -> Words:
    """Return F of ids, from the key holder's answers."""
    return _hashes(public, ids, _unblinding_comb(public, width).added(read(answers), blinding))


def forget_keys() -> None:
    """Drop the tables of peers' keys, which live for one alignment; who still needs one makes it again."""
    _unblinding_comb.cache_clear()


def compute(ids: Digests, key: bytes) -> Words:
    """Return F of ids, by the key holder itself."""
    return _hashes(public_key(key), ids, hashed_times(ids, key))


def public_key(key: bytes) -> bytes:
    """Return what others need to take their blinding off."""
    return base_times(key)


def _hashes(public: bytes, ids: Digests, points: Points) -> Words:
    return hashes(public[1:], ids, points)  # the first byte is the same in all points


@lru_cache(maxsize=3)
def _base_comb(width: int) -> Comb:
    return Comb(base_times(_ONE), width)


@lru_cache(maxsize=16)  # keys of peers, which live for one alignment
def _unblinding_comb(public: bytes, width: int) -> Comb:
    return Comb(negative(public), width)
