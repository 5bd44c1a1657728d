"""Certificates: requests, chains, several authorities, and lists of what was taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from colonnade.cli.certificates import certs
from colonnade.errors import CertificateError
from colonnade.net.stream.certificates import Credentials, der, issue, make_authority, request, sign_request

PEM = serialization.Encoding.PEM


def key_of(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def revoke(folder: Path, party: str, *, good_for: timedelta = timedelta(days=1)) -> bytes:
    """Return the authority's list on which a party's certificate is."""
    authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    certificate = x509.load_pem_x509_certificate((folder / f"{party}.crt").read_bytes())
    now = datetime.now(UTC)
    entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number).revocation_date(now)
    made = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.subject)
        .last_update(now - timedelta(days=2))
        .next_update(now + good_for)
        .add_revoked_certificate(entry.build())
    )
    return made.sign(key_of(folder / "ca.key"), hashes.SHA256()).public_bytes(PEM)


def below(root: Path, folder: Path) -> None:
    """Make an authority between: it signs for parties, and the root has signed it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    above = x509.load_pem_x509_certificate((root / "ca.crt").read_bytes())
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "between")]))
        .issuer_name(above.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key_of(root / "ca.key"), hashes.SHA256())
    )
    folder.mkdir()
    (folder / "ca.crt").write_bytes(made.public_bytes(PEM))
    secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.key").write_bytes(secret)


def test_a_key_never_leaves_its_owner(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "authority"
    make_authority(theirs)
    run = CliRunner()
    assert run.invoke(certs, [str(mine), "shop", "--request"]).exit_code == 0
    assert sorted(path.name for path in mine.iterdir()) == ["shop.csr", "shop.key"]
    assert (mine / "shop.key").stat().st_mode & 0o777 == 0o600
    assert run.invoke(certs, [str(theirs), "--sign", str(mine / "shop.csr")]).exit_code == 0
    assert not (theirs / "shop.key").exists()
    own = (theirs / "shop.crt").read_bytes()
    found = Credentials("shop", own, (mine / "shop.key").read_bytes(), (theirs / "ca.crt").read_bytes(), {})
    assert found.days_left()["shop"] in (364, 363)
    with pytest.raises(CertificateError, match="exists and is not overwritten"):
        sign_request(theirs, mine / "shop.csr")


def test_a_request_that_its_key_did_not_sign_is_refused(tmp_path: Path) -> None:
    make_authority(tmp_path)
    request(tmp_path / "mine", "shop")
    asked = tmp_path / "mine" / "shop.csr"
    content = x509.load_pem_x509_csr(asked.read_bytes()).public_bytes(serialization.Encoding.DER)
    broken = x509.load_der_x509_csr(content[:-1] + bytes([content[-1] ^ 1]))
    asked.write_bytes(broken.public_bytes(PEM))
    with pytest.raises(CertificateError, match="not signed by the elliptic-curve key"):
        sign_request(tmp_path, asked)


def test_chains_and_several_authorities(tmp_path: Path) -> None:
    root, other, between = tmp_path / "root", tmp_path / "other", tmp_path / "between"
    make_authority(root)
    make_authority(other)
    issue(other, "bank")
    below(root, between)
    issue(between, "shop")
    chain = (between / "shop.crt").read_bytes() + (between / "ca.crt").read_bytes()
    both = (root / "ca.crt").read_bytes() + (other / "ca.crt").read_bytes()
    bank, key = (other / "bank.crt").read_bytes(), (other / "bank.key").read_bytes()
    held = Credentials("bank", bank, key, both, {"shop": chain})
    held.check("shop", der((between / "shop.crt").read_bytes()))
    with pytest.raises(CertificateError, match="not signed by the authority"):
        Credentials("bank", bank, key, both, {"shop": (between / "shop.crt").read_bytes()})
    with pytest.raises(CertificateError, match="not signed by the authority"):
        Credentials("bank", bank, key, (other / "ca.crt").read_bytes(), {"shop": chain})
    # a party's certificate signs nobody
    issue(root, "evil")
    forged = (between / "shop.crt").read_bytes() + (root / "evil.crt").read_bytes()
    with pytest.raises(CertificateError, match="not signed by the authority"):
        Credentials("bank", bank, key, both, {"shop": forged})


def test_what_an_authority_took_back_opens_nothing(tmp_path: Path) -> None:
    make_authority(tmp_path)
    for party in ("bank", "shop"):
        issue(tmp_path, party)
    presented = der((tmp_path / "shop.crt").read_bytes())
    Credentials.load(tmp_path, "bank", ["shop"]).check("shop", presented)
    (tmp_path / "crl.pem").write_bytes(revoke(tmp_path, "shop"))
    held = Credentials.load(tmp_path, "bank", ["shop"])
    with pytest.raises(CertificateError, match="was revoked by its authority"):
        held.check("shop", presented)
    with pytest.raises(CertificateError, match="certificate of shop was revoked"):
        Credentials.load(tmp_path, "shop", [])
    (tmp_path / "crl.pem").write_bytes(revoke(tmp_path, "shop", good_for=timedelta(seconds=-1)))
    with pytest.raises(CertificateError, match="fetch the authority's new list"):
        Credentials.load(tmp_path, "bank", ["shop"])
    stranger = tmp_path / "stranger"
    make_authority(stranger)
    issue(stranger, "shop")
    (tmp_path / "crl.pem").write_bytes(revoke(stranger, "shop"))
    with pytest.raises(CertificateError, match="not signed by the authority"):
        Credentials.load(tmp_path, "bank", ["shop"])
