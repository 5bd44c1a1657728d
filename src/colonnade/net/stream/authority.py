"""The small authority of a consortium: its own certificate, one for every party, and requests that it signs.

Keys are ECDSA on P-256, the kind that every TLS library takes. With a request a party's key never leaves
the party.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from colonnade.errors import CertificateError
from colonnade.net.stream import pem_files

VALID_DAYS = 365
CLOCK_SKEW = timedelta(minutes=5)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


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
    authority = pem_files.certificate(pem_files.read(folder / "ca.crt"), str(folder / "ca.crt"))
    authority_key = pem_files.private_key(pem_files.read(folder / "ca.key"), str(folder / "ca.key"))
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
    pem = pem_files.read(asked)
    found = pem_files.parsed(
        lambda: x509.load_pem_x509_csr(pem), f"{asked} is not a request for a certificate"
    )
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
