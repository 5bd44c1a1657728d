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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import product
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
LONGEST_CHAIN = 4
LISTS = "crl.pem"
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


def issue(folder: Path | str, party: str, *, days: float = VALID_DAYS) -> None:
    """Make a party's certificate: write `PARTY.crt` and `PARTY.key`, signed by the authority there."""
    folder = Path(folder)
    _check_name(party)
    key = ec.generate_private_key(ec.SECP256R1())
    _store(folder, party, _issued(folder, party, key.public_key(), timedelta(days=days)), key)


def _issued(folder: Path, party: str, key: ec.EllipticCurvePublicKey, life: timedelta) -> x509.Certificate:
    """Return a certificate of a party's key, signed by the authority in a folder."""
    authority = _certificate(_read(folder / "ca.crt"), str(folder / "ca.crt"))
    authority_key = _key(_read(folder / "ca.key"), str(folder / "ca.key"))
    start = datetime.now(UTC)
    # a certificate that outlives its authority would look valid and be refused
    end = min(start + life, authority.not_valid_after_utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, party)])
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        _builder(name, authority.subject, key, start, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(party)]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )


def request(folder: Path | str, party: str) -> None:
    """Make a party's key, which never leaves this folder, and a request for its certificate: `PARTY.key` and
    `PARTY.csr`."""
    folder = Path(folder)
    _check_name(party)
    key = ec.generate_private_key(ec.SECP256R1())
    asked = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, party)]))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(party)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    content = asked.public_bytes(serialization.Encoding.PEM)
    _write_new(folder, [(f"{party}.key", _secret(key), 0o600), (f"{party}.csr", content, 0o644)])


def sign_request(folder: Path | str, asked: Path, *, days: int = VALID_DAYS) -> str:
    """Sign a request by the authority in a folder: write `PARTY.crt` there; returns the party's name.

    Who signs must know by another way that the request is that party's own.
    """
    folder = Path(folder)
    pem = _read(asked)
    found = _parsed(lambda: x509.load_pem_x509_csr(pem), f"{asked} is not a request for a certificate")
    key = found.public_key()
    if not found.is_signature_valid or not isinstance(key, ec.EllipticCurvePublicKey):
        raise CertificateError(f"{asked} is not signed by the elliptic-curve key that it is for")
    names = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    party = str(names[0].value) if names else ""
    _check_name(party)
    certificate = _issued(folder, party, key, timedelta(days=days))
    _write_new(folder, [(f"{party}.crt", certificate.public_bytes(serialization.Encoding.PEM), 0o644)])
    return party


def _check_name(party: str) -> None:
    """Refuse what cannot name a party."""
    if not _NAME.fullmatch(party) or party == "ca":
        raise CertificateError(
            f"{party!r} cannot name a party: use up to 63 letters, digits, '-', '_' or '.' (and not 'ca')"
        )


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
    content = certificate.public_bytes(serialization.Encoding.PEM)
    _write_new(folder, [(f"{name}.key", _secret(key), 0o600), (f"{name}.crt", content, 0o644)])


def _secret(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a key as a file has it."""
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _write_new(folder: Path, named: Iterable[tuple[str, bytes, int]]) -> None:
    """Write files with their contents and modes; CertificateError where there is one already."""
    files = [(folder / name, content, mode) for name, content, mode in named]
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
    revoked: bytes = b""  # lists of certificates that the authority has taken back

    def __post_init__(self) -> None:
        """Check all that can be wrong with the files, before anybody is dialled."""
        authorities = self._authorities
        for authority in authorities:
            _check_dates(authority, "the authority's certificate")
        own = f"the certificate of {self.party}"
        certificate, *between = _certificates(self.certificate, own)
        _check_party(certificate, self.party, own)
        self._check_revoked([certificate, *_above(certificate, between, authorities, own)], own)
        if self._private.public_key() != certificate.public_key():
            raise CertificateError(
                f"the key of {self.party} does not match its certificate; issue both again"
            )
        for peer, pem in self.pinned.items():
            what = f"the pinned certificate of {peer}"
            for pinned in _pins(pem, peer):
                _check_party(pinned, peer, what)
                _above(pinned, _certificates(pem, what), authorities, what)

    @classmethod
    def load(cls, folder: Path | str, party: str, peers: Iterable[str]) -> Credentials:
        """Read `ca.crt`, `PARTY.crt`, `PARTY.key` and `PEER.crt` of every peer from one folder."""
        folder = Path(folder)
        pinned = {peer: _read(folder / f"{peer}.crt") for peer in peers if peer != party}
        own, key = _read(folder / f"{party}.crt"), _read(folder / f"{party}.key")
        revoked = _read(folder / LISTS) if (folder / LISTS).exists() else b""
        return cls(party, own, key, _read(folder / "ca.crt"), pinned, revoked)

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
        between = _certificates(self.pinned[peer], what)
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
        for each in _crls(self.revoked):
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
        for pinned in _pins(self.pinned[peer], peer):
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
        return _certificates(self.ca, "the authority's certificate")

    @cached_property
    def _between(self) -> list[x509.Certificate]:
        """The authorities between that came with certificates of parties, all of them signed from above."""
        found = []
        for pem in (self.certificate, *self.pinned.values()):
            its = _certificates(pem, "a certificate")
            for each in its:
                with suppress(CertificateError):
                    _above(each, its, self._authorities, "an authority between")
                    found.append(each)
        return found

    @cached_property
    def _private(self) -> ec.EllipticCurvePrivateKey:
        return _key(self.key, f"the key of {self.party}")

    @cached_property
    def _fingerprints(self) -> dict[str, set[bytes]]:
        return {
            peer: {each.fingerprint(hashes.SHA256()) for each in _pins(pem, peer)}
            for peer, pem in self.pinned.items()
        }


def end_of(pem: bytes, *, of_peer: bool = False) -> datetime:
    """Return when the first certificate of a file ends.

    In the file of a peer that changes over to a new one, those that have ended count no more.
    """
    dates = sorted(each.not_valid_after_utc for each in _certificates(pem, "a file of certificates"))
    now = datetime.now(UTC)
    return ([date for date in dates if date >= now] or dates[-1:])[0] if of_peer else dates[0]


def end_of_lists(pem: bytes) -> datetime | None:
    """Return until when the lists of a file are good; None where no list says that, or there is none."""
    with suppress(CertificateError):
        return min((each.next_update_utc for each in _crls(pem) if each.next_update_utc), default=None)
    return None


def _crls(pem: bytes) -> list[x509.CertificateRevocationList]:
    """Return the lists of a file; CertificateError where it has none, unless it is empty."""
    found = re.findall(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----", pem, re.DOTALL)
    if pem and not found:
        raise CertificateError(f"{LISTS} has no list of certificates in PEM form")
    return [
        _parsed(partial(x509.load_pem_x509_crl, each), f"{LISTS} is not a list of certificates")
        for each in found
    ]


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


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(
            f"{path} cannot be read: {error.strerror or error}; `colonnade certs` makes what a party needs"
        ) from error


def _certificate(pem: bytes, what: str) -> x509.Certificate:
    return _parsed(lambda: x509.load_pem_x509_certificate(pem), f"{what} is not a PEM certificate")


def _certificates(pem: bytes, what: str) -> list[x509.Certificate]:
    """Return all certificates of a file."""
    return _parsed(lambda: x509.load_pem_x509_certificates(pem), f"{what} is not a PEM certificate")


def _pins(pem: bytes, peer: str) -> list[x509.Certificate]:
    """Return the certificates in a peer's file: one or, while it changes over to a new one, several.

    Of several those that have expired count no more.
    """
    what = f"the pinned certificate of {peer} is not a PEM certificate"
    found = _parsed(lambda: x509.load_pem_x509_certificates(pem), what)
    now = datetime.now(UTC)
    found = [each for each in found if _names(each)] or found  # others are of authorities between
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
