"""Files of certificates and keys in PEM form: read, with one clear error where they are something else."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from colonnade.errors import CertificateError

T = TypeVar("T")

LISTS = "crl.pem"


def read(path: Path) -> bytes:
    """Return what is in a file of a party's credentials."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(
            f"{path} cannot be read: {error.strerror or error}; `colonnade certs` makes what a party needs"
        ) from error


def certificate(pem: bytes, what: str) -> x509.Certificate:
    """Return the first certificate of a file."""
    return parsed(lambda: x509.load_pem_x509_certificate(pem), f"{what} is not a PEM certificate")


def certificates(pem: bytes, what: str) -> list[x509.Certificate]:
    """Return all certificates of a file."""
    return parsed(lambda: x509.load_pem_x509_certificates(pem), f"{what} is not a PEM certificate")


def private_key(pem: bytes, what: str) -> ec.EllipticCurvePrivateKey:
    """Return the key of a file: of an elliptic curve, and not encrypted."""
    key = parsed(
        lambda: serialization.load_pem_private_key(pem, None), f"{what} is not an unencrypted PEM key"
    )
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"{what} is not an elliptic-curve key; issue it again")
    return key


def revocation_lists(pem: bytes) -> list[x509.CertificateRevocationList]:
    """Return the lists of a file; CertificateError where it has none, unless it is empty."""
    found = re.findall(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----", pem, re.DOTALL)
    if pem and not found:
        raise CertificateError(f"{LISTS} has no list of certificates in PEM form")
    return [
        parsed(partial(x509.load_pem_x509_crl, each), f"{LISTS} is not a list of certificates")
        for each in found
    ]


def pins(pem: bytes, peer: str) -> list[x509.Certificate]:
    """Return the certificates in a peer's file: one or, while it changes over to a new one, several.

    Of several those that have expired count no more.
    """
    found = certificates(pem, f"the pinned certificate of {peer}")
    now = datetime.now(UTC)
    found = [each for each in found if names_of(each)] or found  # others are of authorities between
    return [each for each in found if each.not_valid_after_utc >= now] or found[-1:]


def names_of(certificate: x509.Certificate) -> list[str]:
    """Return the parties that a certificate names."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return names.get_values_for_type(x509.DNSName)


def names_in(certificate: bytes) -> list[str]:
    """Return the parties that a certificate (DER) names."""
    return names_of(x509.load_der_x509_certificate(certificate))


def der(pem: bytes) -> bytes:
    """Return a certificate as DER."""
    return certificate(pem, "a certificate").public_bytes(serialization.Encoding.DER)


def end_of(pem: bytes, *, of_peer: bool = False) -> datetime:
    """Return when the first certificate of a file ends.

    In the file of a peer that changes over to a new one, those that have ended count no more.
    """
    dates = sorted(each.not_valid_after_utc for each in certificates(pem, "a file of certificates"))
    now = datetime.now(UTC)
    return ([date for date in dates if date >= now] or dates[-1:])[0] if of_peer else dates[0]


def end_of_lists(pem: bytes) -> datetime | None:
    """Return until when the lists of a file are good; None where no list says that, or there is none."""
    with suppress(CertificateError):
        return min(
            (each.next_update_utc for each in revocation_lists(pem) if each.next_update_utc), default=None
        )
    return None


def parsed(load: Callable[[], T], complaint: str) -> T:
    """Return what a library makes of bytes; CertificateError with this complaint where it makes nothing."""
    try:
        return load()
    except (ValueError, TypeError) as error:
        raise CertificateError(complaint) from error
