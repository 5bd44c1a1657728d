"""Certificates for a real network: one small authority, one certificate per party, every peer's pinned.

A party's certificate names the party in its subject alternative name. A peer is believed when three
things hold: the authority signed its certificate, the certificate names it, and the certificate is byte
for byte the one this party was given beforehand (pinned), so that not even the authority can pass
somebody else off as a peer. Keys are ECDSA on P-256, the kind that every TLS library takes; the same key
signs what a party says about itself (its key for the secure sum).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from colonnade.errors import CertificateError

T = TypeVar("T")

VALID_DAYS = 365
CLOCK_SKEW = timedelta(minutes=5)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")

# -- making -----------------------------------------------------------------------------------------


def make_authority(folder: Path | str, *, days: int = VALID_DAYS) -> None:
    """Make a new authority: write `ca.crt` and `ca.key`. The key never needs to leave this folder."""
    folder = Path(folder)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Colonnade authority")])
    start = datetime.now(UTC)
    certificate = (
        _builder(name, name, key.public_key(), start, start + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(ca=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    _store(folder, "ca", certificate, key)


def issue(folder: Path | str, party: str, *, days: int = VALID_DAYS) -> None:
    """Make a party's certificate: write `PARTY.crt` and `PARTY.key`, signed by the authority there."""
    folder = Path(folder)
    if not _NAME.fullmatch(party) or party == "ca":
        raise CertificateError(
            f"{party!r} cannot name a party: use up to 63 letters, digits, '-', '_' or '.' (and not 'ca')"
        )
    authority = _certificate(_read(folder / "ca.crt"), str(folder / "ca.crt"))
    authority_key = _key(_read(folder / "ca.key"), str(folder / "ca.key"))
    key = ec.generate_private_key(ec.SECP256R1())
    start = datetime.now(UTC)
    # a certificate that outlives its authority would look valid and be refused
    end = min(start + timedelta(days=days), authority.not_valid_after_utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, party)])
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        _builder(name, authority.subject, key.public_key(), start, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(party)]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    _store(folder, party, certificate, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(start, end) - CLOCK_SKEW)  # the peers' clocks may be a little behind
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _store(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = [
        (folder / f"{name}.key", secret, 0o600),
        (folder / f"{name}.crt", certificate.public_bytes(pem), 0o644),
    ]
    for path, _, _ in files:
        if path.exists():
            raise CertificateError(
                f"{path} exists and is not overwritten; remove it or choose another folder"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content, mode in files:
            # the mode is set as the file is made: a key must not be readable even for a moment
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
    except OSError as error:
        raise CertificateError(f"{folder} cannot be written: {error.strerror or error}") from error


# -- using ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Credentials:
    """What one party holds: its certificate and key, the authority, and its peers' certificates (PEM)."""

    party: str
    certificate: bytes
    key: bytes = field(repr=False)
    ca: bytes
    pinned: Mapping[str, bytes]  # by peer: its certificate, or the old one and the new one

    def __post_init__(self) -> None:
        """Check all that can be wrong with the files, before anybody is dialled."""
        authority = _certificate(self.ca, "the authority's certificate")
        _check_dates(authority, "the authority's certificate")
        own = f"the certificate of {self.party}"
        certificate = _certificate(self.certificate, own)
        _check_party(certificate, self.party, own)
        _check_issued(certificate, authority, own)
        if self._private.public_key() != certificate.public_key():
            raise CertificateError(
                f"the key of {self.party} does not match its certificate; issue both again"
            )
        for peer, pem in self.pinned.items():
            what = f"the pinned certificate of {peer}"
            for pinned in _pins(pem, peer):
                _check_party(pinned, peer, what)
                _check_issued(pinned, authority, what)

    @classmethod
    def load(cls, folder: Path | str, party: str, peers: Iterable[str]) -> Credentials:
        """Read `ca.crt`, `PARTY.crt`, `PARTY.key` and `PEER.crt` of every peer from one folder."""
        folder = Path(folder)
        pinned = {peer: _read(folder / f"{peer}.crt") for peer in peers if peer != party}
        own, key = _read(folder / f"{party}.crt"), _read(folder / f"{party}.key")
        return cls(party, own, key, _read(folder / "ca.crt"), pinned)

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
        for pinned in _pins(self.pinned[peer], peer):
            key = pinned.public_key()
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise CertificateError(f"the key of {peer} is not an elliptic-curve key; issue it again")
            with suppress(InvalidSignature):
                key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
                form = serialization.PublicFormat.SubjectPublicKeyInfo
                return key.public_bytes(serialization.Encoding.DER, form)
        raise CertificateError(f"a signature of {peer} does not fit its pinned certificate")

    def days_left(self) -> dict[str, int]:
        """Return for how many days each certificate holds, by party; the authority is called ca."""
        held = {
            "ca": [_certificate(self.ca, "the authority's certificate")],
            self.party: [_certificate(self.certificate, f"the certificate of {self.party}")],
            **{peer: _pins(pem, peer) for peer, pem in self.pinned.items()},
        }
        now = datetime.now(UTC)
        return {
            name: max((each.not_valid_after_utc - now).days for each in its) for name, its in held.items()
        }

    @cached_property
    def _private(self) -> ec.EllipticCurvePrivateKey:
        return _key(self.key, f"the key of {self.party}")

    @cached_property
    def _fingerprints(self) -> dict[str, set[bytes]]:
        return {
            peer: {each.fingerprint(hashes.SHA256()) for each in _pins(pem, peer)}
            for peer, pem in self.pinned.items()
        }


def names_in(certificate: bytes) -> list[str]:
    """Return the parties that a certificate (DER) names."""
    return _names(x509.load_der_x509_certificate(certificate))


def der(pem: bytes) -> bytes:
    """Return a certificate as DER."""
    return _certificate(pem, "a certificate").public_bytes(serialization.Encoding.DER)


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return names.get_values_for_type(x509.DNSName)


def _check_party(certificate: x509.Certificate, party: str, what: str) -> None:
    names = _names(certificate)
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


def _check_issued(certificate: x509.Certificate, authority: x509.Certificate, what: str) -> None:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        raise CertificateError(f"{what} is not signed by the authority in ca.crt") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(
            f"{path} cannot be read: {error.strerror or error}; `colonnade certs` makes what a party needs"
        ) from error


def _certificate(pem: bytes, what: str) -> x509.Certificate:
    return _parsed(lambda: x509.load_pem_x509_certificate(pem), f"{what} is not a PEM certificate")


def _pins(pem: bytes, peer: str) -> list[x509.Certificate]:
    """Return the certificates in a peer's file: one or, while it changes over to a new one, several.

    Of several those that have expired count no more.
    """
    what = f"the pinned certificate of {peer} is not a PEM certificate"
    found = _parsed(lambda: x509.load_pem_x509_certificates(pem), what)
    now = datetime.now(UTC)
    return [each for each in found if each.not_valid_after_utc >= now] or found[-1:]


def _key(pem: bytes, what: str) -> ec.EllipticCurvePrivateKey:
    key = _parsed(
        lambda: serialization.load_pem_private_key(pem, None), f"{what} is not an unencrypted PEM key"
    )
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"{what} is not an elliptic-curve key; issue it again")
    return key


def _parsed(load: Callable[[], T], complaint: str) -> T:
    try:
        return load()
    except (ValueError, TypeError) as error:
        raise CertificateError(complaint) from error
