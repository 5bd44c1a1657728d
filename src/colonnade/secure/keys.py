"""Who is who, and one secret per pair of parties for one run.

Every party makes a fresh X25519 key for the run, signs it with its long-term identity, and tells every
peer. Each pair then derives a common secret that nobody else can know; the names, the run and the job
go into the derivation, so a secret is good for nothing else. A peer with another version or another job
is refused here, before any number is exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from colonnade.errors import CertificateError, JobError
from colonnade.messages import Hello
from colonnade.net.network import Network


class Identity(Protocol):
    """A party's long-term key and the known keys of its peers."""

    def sign(self, data: bytes) -> bytes: ...

    def verify(self, peer: str, data: bytes, signature: bytes) -> None:
        """Raises CertificateError unless `peer` signed `data`."""
        ...


@dataclass(frozen=True)
class InProcessIdentity:
    """Identities for parties that share a process: made on the spot, known to all."""

    key: Ed25519PrivateKey
    known: dict[str, Ed25519PublicKey]

    @staticmethod
    def for_all(parties: tuple[str, ...]) -> dict[str, InProcessIdentity]:
        keys = {party: Ed25519PrivateKey.generate() for party in parties}
        known = {party: key.public_key() for party, key in keys.items()}
        return {party: InProcessIdentity(key, known) for party, key in keys.items()}

    def sign(self, data: bytes) -> bytes:
        return self.key.sign(data)

    def verify(self, peer: str, data: bytes, signature: bytes) -> None:
        try:
            self.known[peer].verify(signature, data)
        except (InvalidSignature, KeyError) as error:
            raise CertificateError(f"the key that {peer!r} offers is not signed by its identity") from error


async def agree(net: Network, identity: Identity, *, version: str, job: str) -> dict[str, bytes]:
    """Join the run: exchange signed keys with every peer; one 32-byte secret per peer comes out."""
    key = X25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    await net.broadcast(Hello(version, job, public, identity.sign(_statement(net.me, version, job, public))))
    secrets = {}
    for peer, hello in (await net.gather(Hello)).items():
        if hello.version != version:
            raise JobError(
                f"{peer} runs Colonnade {hello.version}, {net.me} runs {version}; install the same version"
            )
        if hello.job != job:
            raise JobError(f"{peer} was started with another job ({hello.job[:12]} against {job[:12]})")
        identity.verify(peer, _statement(peer, hello.version, hello.job, hello.public_key), hello.signature)
        shared = key.exchange(X25519PublicKey.from_public_bytes(hello.public_key))
        first, second = sorted((net.me, peer))
        secrets[peer] = HKDF(
            hashes.SHA256(), length=32, salt=None, info=f"colonnade pair {first} {second} job {job}".encode()
        ).derive(shared)
    return secrets


def _statement(party: str, version: str, job: str, public: bytes) -> bytes:
    return b"\0".join([b"colonnade hello", party.encode(), version.encode(), job.encode(), public])
