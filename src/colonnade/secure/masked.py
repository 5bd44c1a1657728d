"""The default secure sum: pairwise masks that cancel.

Every pair of parties shares a secret. For every sum the two derive the same random ring elements from
it; one adds them to its piece, the other subtracts them. The root adds all pieces: the masks cancel and
the exact fixed-point total remains. One message per party and sum.

What each side learns: the root learns the total. A party that sees some of the pieces sees uniformly random
numbers, as long as two parties outside its coalition are honest; where only neighbours share masks, as
long as these connect all parties outside it (`secure.neighbours`). With two parties in all, the total
itself gives the other's piece away: masking protects nothing there.

The masks are streams of words by (tag, position), under a key that the pair uses for sums alone
(`secure.streams`): masks of different sums never overlap, may be made in any order, and need no set-up per
sum. Keys are new in every run and a frame that is sent again has the same bytes, so no mask is ever used for
two different values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from colonnade.arrays import Floats, Words
from colonnade.messages import Piece
from colonnade.net.expect import words
from colonnade.net.network import Network
from colonnade.secure import ring
from colonnade.secure.protocol import N, SumKind, UsedTags, is_words, no_sum
from colonnade.secure.streams import Masks, Stream, subkey


class MaskedSum(SumKind):
    """A `SecureSum` with a secret (`keys.agree`) for every peer that shares masks with this party."""

    name = "masked"
    hides_pieces = True
    masks_pairs = True
    metered = True

    def __init__(self, net: Network, secrets: Mapping[str, bytes]) -> None:
        self._net = net
        self._parties = len(net.parties)
        self._used = UsedTags()
        streams = {peer: Stream(subkey(secret, "sum")) for peer, secret in secrets.items()}
        self._masks = Masks(
            added=[stream for peer, stream in streams.items() if net.me < peer],
            subtracted=[stream for peer, stream in streams.items() if net.me > peer],
            less=int(ring.OFFSET),
        )

    @staticmethod
    def gives_away(parties: int) -> None:
        return None

    @classmethod
    def among(cls, net: Network, secrets: Mapping[str, bytes]) -> Self:
        return cls(net, secrets)

    async def give(self, piece: Floats | Words, *, root: str, tag: int) -> None:
        masked = self._masked(piece, tag)
        masked.setflags(write=False)  # so that a party in this process may have it as it is
        await self._net.send(root, Piece(tag, masked))

    async def collect(self, piece: N, *, tag: int) -> N:
        share = self._masked(piece, tag)
        pieces = await self._net.gather(Piece, tag, values=words(share.size))
        received = [each.values for each in pieces.values()]
        if is_words(piece):
            return sum(received, share).reshape(piece.shape)
        total = ring.total_of(share, received)
        if total is None:
            raise no_sum(pieces, tag)
        return total.reshape(piece.shape)

    def _masked(self, piece: Floats | Words, tag: int) -> Words:
        """Return the piece as elements of the ring, with all masks of this tag added or subtracted."""
        self._used.use(tag)
        mask = self._masks.of(tag, piece.size)
        if is_words(piece):
            return (piece + ring.OFFSET).ravel() + mask[: piece.size]
        return ring.masked(piece, mask, self._parties)
