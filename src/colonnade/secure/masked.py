"""The default secure sum: pairwise masks that cancel.

Every pair of parties shares a secret. For every sum the two derive the same random ring elements from
it; one adds them to its piece, the other subtracts them. The root adds all pieces: the masks cancel and
the exact fixed-point total remains. One message per party and sum.

What each side learns: the root learns the total. Whoever sees some of the pieces sees uniformly random
numbers, as long as two parties outside its coalition are honest. With two parties in all, the total
itself gives the other's piece away: masking protects nothing there.

The masks are the AES-256 key stream in counter mode; the counter block is (tag, position), so masks of
different sums never overlap, may be made in any order, and need no set-up per sum. Keys are new in every
run and a frame that is sent again has the same bytes, so no mask is ever used for two different values.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from colonnade.errors import SumError
from colonnade.messages import Piece
from colonnade.net.transport import Network
from colonnade.secure import ring
from colonnade.secure.protocol import Floats, UsedTags

_BLOCK = 16


class MaskedSum:
    def __init__(self, net: Network, secrets: dict[str, bytes]) -> None:
        self._net = net
        self._used = UsedTags()
        # ECB over explicit counter blocks is counter mode, without a new cipher context per tag
        streams = {
            peer: Cipher(algorithms.AES(secrets[peer]), modes.ECB()).encryptor()  # noqa: S305
            for peer in net.peers
        }
        self._pads: dict[int, _Pad] = {}
        self._added = [stream for peer, stream in streams.items() if net.me < peer]
        self._subtracted = [stream for peer, stream in streams.items() if net.me > peer]

    async def sum(self, piece: Floats, *, root: str, tag: int) -> Floats | None:
        self._used.use(tag)
        share = ring.encode(piece, len(self._net.parties)).ravel()
        self._mask(share, tag)
        if root != self._net.me:
            await self._net.send(root, Piece(tag, share))
            return None
        for peer, received in (await self._net.gather(Piece, tag)).items():
            if received.values.dtype != np.uint64 or received.values.shape != share.shape:
                raise SumError(
                    f"{peer} sent {received.values.shape} {received.values.dtype} values for sum {tag}, "
                    f"{share.shape} uint64 were due"
                )
            share += received.values
        return ring.decode(share).reshape(piece.shape)

    async def settle(self) -> None:
        """Nothing is done for others here."""

    async def close(self) -> None:
        """Nothing is under way between two sums."""

    def _mask(self, share: ring.Ring, tag: int) -> None:
        if not share.size:
            return
        pad = self._pads.get(share.size)
        if pad is None:
            pad = self._pads[share.size] = _Pad(share.size)
        pad.counters[:, 0] = tag
        for encryptor in self._added:
            encryptor.update_into(pad.blocks, pad.stream)
            share += pad.mask
        for encryptor in self._subtracted:
            encryptor.update_into(pad.blocks, pad.stream)
            share -= pad.mask


class _Pad:
    """Room for the counter blocks and the key stream of masks of one size; batches repeat few sizes."""

    def __init__(self, size: int) -> None:
        blocks = -(-size // 2)
        self.counters = np.empty((blocks, 2), dtype=np.uint64)
        self.counters[:, 1] = np.arange(blocks, dtype=np.uint64)
        self.blocks = self.counters.data.cast("B")
        self.stream = bytearray(blocks * _BLOCK + _BLOCK - 1)
        self.mask = np.frombuffer(self.stream, dtype=np.uint64, count=size)
