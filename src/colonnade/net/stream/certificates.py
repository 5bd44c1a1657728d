"""Credentials of one party in a real network: its certificate, its key, the authority, every peer pinned.

A party's certificate names the party in its subject alternative name. A peer is believed when three
things hold: the authority signed its certificate, the certificate names it, and the certificate is byte
for byte the one this party was given beforehand (pinned), so that not even the authority can pass
somebody else off as a peer. The key of TLS also signs what a party says about itself (its key for the
secure sum).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import product
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from colonnade.errors import CertificateError
from colonnade.net.stream import pem_files
from colonnade.net.stream.pem_files import LISTS

LONGEST_CHAIN = 4


@dataclass(frozen=True)
class Credentials:
    """What one party holds: its certificate and key, the authority, and its peers' certificates (PEM)."""

    party: str
    certificate: bytes
    key: bytes = field(repr=False)
    ca: bytes
    pinned: Mapping[str, bytes]  # by peer: its certificate, or the old one and the new one
    revoked: bytes = b""  # lists of certificates that the authority has taken back

    def __post_init__(self) -> None:
        """Check all that can be wrong with the files, before anybody is dialled."""
        authorities = self._authorities
        for authority in authorities:
            _check_dates(authority, "the authority's certificate")
        own = f"the certificate of {self.party}"
        certificate, *between = pem_files.certificates(self.certificate, own)
        _check_party(certificate, self.party, own)
        self._check_revoked([certificate, *_above(certificate, between, authorities, own)], own)
        if self._private.public_key() != certificate.public_key():
            raise CertificateError(
                f"the key of {self.party} does not match its certificate; issue both again"
            )
        for peer, pem in self.pinned.items():
            what = f"the pinned certificate of {peer}"
            for pinned in pem_files.pins(pem, peer):
                _check_party(pinned, peer, what)
                _above(pinned, pem_files.certificates(pem, what), authorities, what)

    @classmethod
    def load(cls, folder: Path | str, party: str, peers: Iterable[str]) -> Credentials:
        """Read `ca.crt`, `PARTY.crt`, `PARTY.key` and `PEER.crt` of every peer from one folder."""
        folder = Path(folder)
        pinned = {peer: pem_files.read(folder / f"{peer}.crt") for peer in peers if peer != party}
        own, key = pem_files.read(folder / f"{party}.crt"), pem_files.read(folder / f"{party}.key")
        revoked = pem_files.read(folder / LISTS) if (folder / LISTS).exists() else b""
        return cls(party, own, key, pem_files.read(folder / "ca.crt"), pinned, revoked)

    def check(self, peer: str, presented: bytes) -> None:
        """Raise CertificateError unless the certificate (DER) that was presented is `peer`'s pinned one."""
        fingerprints = self._fingerprints.get(peer)
        if fingerprints is None:
            raise CertificateError(
                f"no certificate of {peer} is pinned at {self.party}; store {peer}.crt there"
            )
        what = f"the certificate that {peer} presented to {self.party}"
        certificate = x509.load_der_x509_certificate(presented)
        _check_party(certificate, peer, what)
        if certificate.fingerprint(hashes.SHA256()) not in fingerprints:
            raise CertificateError(f"{what} is not the pinned one; exchange {peer}.crt again")
        between = pem_files.certificates(self.pinned[peer], what)
        self._check_revoked([certificate, *_above(certificate, between, self._authorities, what)], what)

    def _check_revoked(self, chain: Sequence[x509.Certificate], what: str) -> None:
        """Raise CertificateError for a certificate that was taken back, or one that signed it, or where
        nobody knows."""
        for certificate, found in product(chain, self._lists):
            if found.issuer != certificate.issuer:
                continue
            if found.next_update_utc is not None and found.next_update_utc < datetime.now(UTC):
                raise CertificateError(
                    f"crl.pem at {self.party} was good until {found.next_update_utc:%Y-%m-%d %H:%M}; "
                    "fetch the authority's new list"
                )
            if found.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None:
                signer = "" if certificate is chain[0] else "the authority that signed "
                raise CertificateError(f"{signer}{what} was revoked by its authority")

    @cached_property
    def _lists(self) -> list[x509.CertificateRevocationList]:
        """The lists of certificates that were taken back, as their authorities have signed them."""
        found, authorities = [], [*self._authorities, *self._between]
        for each in pem_files.revocation_lists(self.revoked):
            keys = [known.public_key() for known in authorities if known.subject == each.issuer]
            if not any(isinstance(k, ec.EllipticCurvePublicKey) and each.is_signature_valid(k) for k in keys):
                raise CertificateError("crl.pem is not signed by the authority in ca.crt, or one below it")
            found.append(each)
        return found

    def sign(self, data: bytes) -> bytes:
        """Return this party's signature of `data`."""
        return self._private.sign(data, ec.ECDSA(hashes.SHA256()))

    def verify(self, peer: str, data: bytes, signature: bytes) -> None:
        """Raise CertificateError unless `peer` signed `data`."""
        self.signer(peer, data, signature)

    def signer(self, peer: str, data: bytes, signature: bytes) -> bytes:
        """Return the public key (DER) of `peer` that signed `data`; CertificateError if none of its has."""
        if peer not in self.pinned:
            raise CertificateError(
                f"no certificate of {peer} is pinned at {self.party}; store {peer}.crt there"
            )
        for pinned in pem_files.pins(self.pinned[peer], peer):
            key = pinned.public_key()
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise CertificateError(f"the key of {peer} is not an elliptic-curve key; issue it again")
            with suppress(InvalidSignature):
                key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
                form = serialization.PublicFormat.SubjectPublicKeyInfo
                return key.public_bytes(serialization.Encoding.DER, form)
        raise CertificateError(f"a signature of {peer} does not fit its pinned certificate")

    @cached_property
    def _authorities(self) -> list[x509.Certificate]:
        return pem_files.certificates(self.ca, "the authority's certificate")

    @cached_property
    def _between(self) -> list[x509.Certificate]:
        """The authorities between that came with certificates of parties, all of them signed from above."""
        found = []
        for pem in (self.certificate, *self.pinned.values()):
            its = pem_files.certificates(pem, "a certificate")
            for each in its:
                with suppress(CertificateError):
                    _above(each, its, self._authorities, "an authority between")
                    found.append(each)
        return found

    @cached_property
    def _private(self) -> ec.EllipticCurvePrivateKey:
        return pem_files.private_key(self.key, f"the key of {self.party}")

    @cached_property
    def _fingerprints(self) -> dict[str, set[bytes]]:
        return {
            peer: {each.fingerprint(hashes.SHA256()) for each in pem_files.pins(pem, peer)}
            for peer, pem in self.pinned.items()
        }


def _check_party(certificate: x509.Certificate, party: str, what: str) -> None:
    names = pem_files.names_of(certificate)
    if party not in names:
        raise CertificateError(f"{what} is made out to {', '.join(names) or 'nobody'}, not to {party}")
    _check_dates(certificate, what)


def _check_dates(certificate: x509.Certificate, what: str) -> None:
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        raise CertificateError(
            f"{what} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; issue a new one"
        )
    if now < certificate.not_valid_before_utc:
        raise CertificateError(
            f"{what} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M}; check the clock"
        )


def _above(
    certificate: x509.Certificate,
    between: Sequence[x509.Certificate],
    authorities: Sequence[x509.Certificate],
    what: str,
) -> list[x509.Certificate]:
    """Return those between that lead from a certificate to an authority, as TLS would follow them.

    Raises CertificateError where none do.
    """
    found: list[x509.Certificate] = []
    for below in range(LONGEST_CHAIN):
        if any(_is_issued_by(certificate, authority, below) for authority in authorities):
            return found
        above = [each for each in between if each != certificate and _is_issued_by(certificate, each, below)]
        if not above:
            break
        certificate = above[0]
        found.append(certificate)
        _check_dates(certificate, f"what signed {what}")
    raise CertificateError(f"{what} is not signed by the authority in ca.crt, as far as each may sign others")


def _is_issued_by(certificate: x509.Certificate, authority: x509.Certificate, below: int) -> bool:
    """Return whether an authority signed a certificate, and may, with this many others between it and the
    party's."""
    try:
        may = authority.extensions.get_extension_for_class(x509.BasicConstraints).value
        if not may.ca or (may.path_length is not None and may.path_length < below):
            return False
        with suppress(x509.ExtensionNotFound):
            if not authority.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign:
                return False
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return True
