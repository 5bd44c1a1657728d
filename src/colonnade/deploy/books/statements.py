"""Statements that daemons sign for each other: what one has proposed, accepted or refused, and its journal.

A line is encrypted and its two ends are known, but that proves nothing to anybody else. So with every
proposal and answer goes a signature over who tells whom what, over the job's digest and over the head of
the sender's journal. The receiver checks it and writes it into its own journal, with the key that it fits.
So neither can deny later what it said, and nobody can replace a journal without its peers' journals saying so
(`colonnade journal verify --witness`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_der_public_key

from colonnade.deploy.books.hash_chain import ChainEnd
from colonnade.messages import Said

Stated = Literal["proposes", "accepts", "refuses"]
KEPT = 1024  # runs of which it is remembered what was said about them


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="statement"):
    """What a peer has signed: that it proposes, accepts or refuses the job with this digest, and the head of
    its journal at that time. `odd` says where that head contradicts an earlier one."""

    when: str
    peer: str
    to: str
    run: str
    what: Stated
    digest: str
    said: str  # when, by the peer's clock
    count: int
    head: str
    signature: str
    key: str
    odd: str = ""

    def fits(self) -> bool:
        """Return whether the signature is of these words and this key."""
        key = load_der_public_key(bytes.fromhex(self.key))
        if not isinstance(key, ec.EllipticCurvePublicKey):
            return False
        said = Said(int(self.run, 16), self.what, self.digest, self.said, self.count, self.head, b"")
        try:
            key.verify(
                bytes.fromhex(self.signature), words(self.peer, self.to, said), ec.ECDSA(hashes.SHA256())
            )
        except (InvalidSignature, ValueError):
            return False
        return True


def words(sender: str, receiver: str, said: Said) -> bytes:
    """Return what is signed."""
    texts = ["colonnade statement", sender, receiver, f"{said.run:08x}", said.what, said.digest]
    texts += [said.when, str(said.count), said.head]
    return "\0".join(texts).encode()


@dataclass
class Witnessed:
    """The heads of peers' journals as they have signed them, the latest of each."""

    latest: dict[str, ChainEnd] = field(default_factory=dict)
    _known: dict[tuple[str, str, str, str], None] = field(default_factory=dict)

    def is_new(self, statement: Statement) -> bool:
        """Return whether a peer says this of a run and its job for the first time."""
        key = statement.peer, statement.run, statement.what, statement.digest
        if key in self._known:
            return False
        self._known[key] = None
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return True

    def oddness(self, peer: str, head: ChainEnd) -> str:
        """Return how the head of a peer's journal contradicts the one before; empty if it does not."""
        before = self.latest.get(peer)
        if before is None or head.count > before.count or head == before:
            return ""
        return (
            f"the journal of {peer} had {before.count} lines and now has {head.count}, or others; "
            "ask its operator why"
        )

    def keep(self, statement: Statement) -> None:
        """Remember the head of a journal."""
        self.latest[statement.peer] = ChainEnd(statement.count, statement.head)
