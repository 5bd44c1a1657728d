"""How parties join a run: they prove who they are, and each pair agrees on a secret for the run.

Every party makes a fresh X25519 key for the run, signs it with its long-term identity, and tells every
peer. Each pair then derives a common secret that nobody else can know; the names, the run and the job
go into the derivation, so a secret is good for nothing else. A peer with another minor version or
another job is refused here, before any number is exchanged.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from colonnade.errors import CertificateError, JobError, ProtocolError
from colonnade.messages import Hello
from colonnade.net.network import Network

WORDS = "0.2"
"""The release whose words go over the wire: this one says nothing to a peer that 0.2 cannot read."""


class Identity(Protocol):
    """A party's long-term key, and those of its peers as far as this party knows them."""

    def sign(self, data: bytes) -> bytes: ...

    def verify(self, peer: str, data: bytes, signature: bytes) -> None:
        """Raise CertificateError unless `peer` signed `data`."""
        ...


@dataclass(frozen=True)
class InProcessIdentity:
    """The identity of a party that shares a process with the others: made on the spot, known to all.

    Nobody in one process can be kept from another's key, so that it signs with a keyed hash, which has the
    size of a signature and costs a hundredth of one.
    """

    key: bytes
    known: dict[str, bytes]

    @staticmethod
    def for_all(parties: tuple[str, ...]) -> dict[str, InProcessIdentity]:
        """Return a new identity for each of these parties."""
        known = {party: os.urandom(32) for party in parties}
        return {party: InProcessIdentity(key, known) for party, key in known.items()}

    def sign(self, data: bytes) -> bytes:
        return hmac.digest(self.key, data, "sha512")

    def verify(self, peer: str, data: bytes, signature: bytes) -> None:
        key = self.known.get(peer)
        if key is None or not hmac.compare_digest(hmac.digest(key, data, "sha512"), signature):
            raise _unsigned(peer)


@dataclass(frozen=True)
class FreshIdentity:
    """The identity of a party whose peers trust what they are told of each other's keys when a run begins."""

    key: Ed25519PrivateKey
    known: dict[str, Ed25519PublicKey]

    def sign(self, data: bytes) -> bytes:
        return self.key.sign(data)

    def verify(self, peer: str, data: bytes, signature: bytes) -> None:
        try:
            self.known[peer].verify(signature, data)
        except (InvalidSignature, KeyError) as error:
            raise _unsigned(peer) from error


def _unsigned(peer: str) -> CertificateError:
    return CertificateError(f"the key that {peer!r} offers is not signed by its identity")


async def agree(net: Network, identity: Identity, *, version: str, job: str) -> dict[str, bytes]:
    """Exchange signed keys with every peer; the 32-byte secret that this party shares with each."""
    key = X25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    for peer in net.peers:
        said = _statement(net, net.me, peer, Hello(version, job, public, b""))
        await net.send(peer, Hello(version, job, public, identity.sign(said)))
    secrets = {}
    for peer, hello in (await net.gather(Hello)).items():
        if not compatible(hello.version, version):
            raise JobError(
                f"{peer} runs Colonnade {release_of(hello.version)}, {net.me} runs {release_of(version)}; "
                "install the same release at both"
            )
        if hello.job != job:
            raise JobError(f"{peer} was started with another job ({hello.job[:12]} against {job[:12]})")
        identity.verify(peer, _statement(net, peer, net.me, hello), hello.signature)
        try:
            shared = key.exchange(X25519PublicKey.from_public_bytes(hello.public_key))
        except ValueError:  # not 32 bytes, or a point with which every secret is the same
            raise ProtocolError(
                f"{peer} sent a Hello with a key that nothing can be agreed on with"
            ) from None
        first, second = sorted((net.me, peer))
        secrets[peer] = HKDF(
            hashes.SHA256(), length=32, salt=None, info=f"colonnade pair {first} {second} job {job}".encode()
        ).derive(shared)
    return secrets


def spoken(release: str) -> str:
    """Return what a release says of itself to peers: whose words it speaks, and which it is.

    >>> spoken("0.3.1")
    '0.2.0+0.3.1'
    """
    return f"{WORDS}.0+{release}"


def release_of(said: str) -> str:
    """Return the release of a peer that has said this; 0.2 and older say no more than the release.

    >>> release_of("0.2.0+0.3.1"), release_of("0.2.0")
    ('0.3.1', '0.2.0')
    """
    return said.partition("+")[2] or said


def knows(said: str, release: str) -> bool:
    """Return whether a peer that says this has this release or a later one.

    >>> knows("0.2.0+0.3.1", "0.3"), knows("0.2.0", "0.3")
    (True, False)
    """
    return _numbers(release_of(said)) >= _numbers(release)


def _numbers(release: str) -> tuple[int, ...]:
    """Return the first two numbers of a release."""
    return tuple(int(number) for number in release.split(".")[:2] if number.isdigit())


def compatible(one: str, other: str) -> bool:
    """Return whether those who say these may take part in one run: the words are equal up to the last
    number.

    >>> compatible("0.1.0", "0.1.7"), compatible("0.1.0", "0.2.0")
    (True, False)
    """
    return one.split(".")[:2] == other.split(".")[:2]


def _statement(net: Network, sender: str, receiver: str, hello: Hello) -> bytes:
    """Return what a party signs with its identity: whom it tells, in which run, and everything that it
    says."""
    run = f"{net.run} of {' '.join(net.parties)}"
    texts = [b"colonnade hello", sender.encode(), receiver.encode(), run.encode()]
    return b"\0".join([*texts, hello.version.encode(), hello.job.encode(), hello.public_key])
