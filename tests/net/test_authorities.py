"""Certificates: requests, chains, several authorities, and lists of what was taken back."""

from __future__ import annotations

import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.net.test_tls import Unchecked

from colonnade.cli.certificates import certs
from colonnade.errors import CertificateError
from colonnade.net.stream.authority import issue, make_authority, request, sign_request
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.pem_files import der, end_of, end_of_lists
from colonnade.net.stream.tls import _context

PEM = serialization.Encoding.PEM


def key_of(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def revoke(folder: Path, certificate: Path, *, good_for: timedelta = timedelta(days=1)) -> bytes:
    """Return the list of the authority in a folder on which a certificate is."""
    issuer = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    taken = x509.load_pem_x509_certificate(certificate.read_bytes())
    now = datetime.now(UTC)
    entry = x509.RevokedCertificateBuilder().serial_number(taken.serial_number).revocation_date(now)
    made = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.subject)
        .last_update(now - timedelta(days=2))
        .next_update(now + good_for)
        .add_revoked_certificate(entry.build())
    )
    return made.sign(key_of(folder / "ca.key"), hashes.SHA256()).public_bytes(PEM)


def authority(folder: Path, above: Path | None = None, *, signs: int | None = 0, days: int = 1) -> Path:
    """Make an authority, signed by the one in another folder or by itself; returns its folder.

    Below it there may be `signs` others one after the other, any number if None.
    """
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
    issuer, signer = name, key
    if above is not None:
        issuer = x509.load_pem_x509_certificate((above / "ca.crt").read_bytes()).subject
        signer = key_of(above / "ca.key")
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=signs), critical=True)
        .sign(signer, hashes.SHA256())
    )
    folder.mkdir()
    (folder / "ca.crt").write_bytes(made.public_bytes(PEM))
    secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.key").write_bytes(secret)
    return folder


def read(*files: Path) -> bytes:
    return b"".join(file.read_bytes() for file in files)


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Do a handshake of TLS in memory; raises what either end has against it."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)]
    for _ in range(5):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    for end in ends:
        with suppress(ssl.SSLWantReadError):
            end.read()  # in TLS 1.3 a client hears only now what the server has against it
        assert end.version() == "TLSv1.3"


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
    assert timedelta(days=364) < end_of(found.certificate) - datetime.now(UTC) < timedelta(days=366)
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


@pytest.mark.parametrize(
    ("depth", "signs", "fits"), [(1, None, True), (1, 0, False), (2, 2, True), (2, 1, False)]
)
def test_chains_are_those_that_tls_takes(tmp_path: Path, depth: int, signs: int | None, fits: bool) -> None:
    """The bank has an authority of its own; the shop's certificate hangs from another one by others between,
    of which the first may sign as many others as it says."""
    other = tmp_path / "other"
    make_authority(other)
    issue(other, "bank")
    chain = [authority(tmp_path / "root", signs=signs)]
    for k in range(depth):
        chain.append(authority(tmp_path / f"between{k}", chain[-1], signs=None))
    last = chain[-1]
    issue(last, "shop")
    shop = read(last / "shop.crt", *(folder / "ca.crt" for folder in reversed(chain[1:])))
    both = read(chain[0] / "ca.crt", other / "ca.crt")
    bank = read(other / "bank.crt")

    def bank_with(kind: type[Credentials], authorities: bytes = both) -> Credentials:
        return kind("bank", bank, read(other / "bank.key"), authorities, {"shop": shop})

    def shop_with(kind: type[Credentials]) -> Credentials:
        return kind("shop", shop, read(last / "shop.key"), both, {"bank": bank})

    def shake(kind: type[Credentials], authorities: bytes = both) -> None:
        client = _context(ssl.PROTOCOL_TLS_CLIENT, bank_with(kind, authorities))
        shake_hands(client, _context(ssl.PROTOCOL_TLS_SERVER, shop_with(kind)))

    if fits:
        shake(Credentials)
        bank_with(Credentials).check("shop", der(shop))
        nearest = read(chain[1] / "ca.crt", other / "ca.crt")
        shake(Credentials, nearest)  # what is in ca.crt is trusted, also where the root is not there
    else:
        for of_party in (bank_with, shop_with):
            with pytest.raises(CertificateError, match="not signed by the authority"):
                of_party(Credentials)
        with pytest.raises(ssl.SSLCertVerificationError):
            shake(Unchecked)


def test_what_hangs_from_no_authority_is_refused(tmp_path: Path) -> None:
    root, other = authority(tmp_path / "root", signs=None), tmp_path / "other"
    make_authority(other)
    issue(other, "bank")
    between = authority(tmp_path / "between", root)
    issue(between, "shop")
    bank, key = read(other / "bank.crt"), read(other / "bank.key")
    both, chain = read(root / "ca.crt", other / "ca.crt"), read(between / "shop.crt", between / "ca.crt")
    issue(root, "evil")  # a party's certificate signs nobody
    forged = read(between / "shop.crt", root / "evil.crt")
    Credentials("bank", bank, key, both, {"shop": chain})
    for authorities, shop in (
        *((both, read(between / "shop.crt")), (read(other / "ca.crt"), chain), (both, forged)),
    ):
        with pytest.raises(CertificateError, match="not signed by the authority"):
            Credentials("bank", bank, key, authorities, {"shop": shop})


def test_an_authority_between_takes_back_and_is_taken_back(tmp_path: Path) -> None:
    root = authority(tmp_path / "root", signs=None)
    between = authority(tmp_path / "between", root)
    issue(root, "bank")
    issue(between, "shop")
    bank, key, ca = read(root / "bank.crt"), read(root / "bank.key"), read(root / "ca.crt")
    shop = {"shop": read(between / "shop.crt", between / "ca.crt")}
    presented = der(shop["shop"])
    for revoked, said in (
        (revoke(between, between / "shop.crt"), "that shop presented to bank was revoked"),
        (revoke(root, between / "ca.crt"), "the authority that signed the certificate that shop presented"),
    ):
        held = Credentials("bank", bank, key, ca, shop, revoked)
        with pytest.raises(CertificateError, match=said):
            held.check("shop", presented)
    stranger = authority(tmp_path / "stranger")  # is in no file of anybody
    with pytest.raises(CertificateError, match=r"crl\.pem is not signed by the authority"):
        Credentials("bank", bank, key, ca, shop, revoke(stranger, between / "shop.crt"))


def test_the_first_certificate_of_a_file_that_ends_counts(tmp_path: Path) -> None:
    soon, late = authority(tmp_path / "soon", days=3), authority(tmp_path / "late", days=30)
    issue(late, "shop", days=20)
    issue(soon, "shop", days=2)
    for files, days in (
        ([late / "ca.crt", soon / "ca.crt"], 3),  # of several authorities
        ([late / "shop.crt", soon / "ca.crt"], 3),  # of a chain
        ([late / "shop.crt", soon / "shop.crt"], 2),  # while a peer changes over
    ):
        for of_peer in (True, False):
            left = end_of(read(*files), of_peer=of_peer) - datetime.now(UTC)
            assert timedelta(days=days, hours=-1) < left <= timedelta(days=days)
    (soon / "shop.crt").unlink()
    (soon / "shop.key").unlink()
    issue(soon, "shop", days=-1)
    both = read(late / "shop.crt", soon / "shop.crt")
    assert end_of(both, of_peer=True) > datetime.now(UTC) > end_of(both)
    until = end_of_lists(revoke(late, late / "shop.crt"))
    assert until is not None
    assert until > datetime.now(UTC)
    assert end_of_lists(b"") is end_of_lists(b"no list") is None


def test_what_an_authority_took_back_opens_nothing(tmp_path: Path) -> None:
    make_authority(tmp_path)
    for party in ("bank", "shop"):
        issue(tmp_path, party)
    presented = der((tmp_path / "shop.crt").read_bytes())
    Credentials.load(tmp_path, "bank", ["shop"]).check("shop", presented)
    (tmp_path / "crl.pem").write_bytes(revoke(tmp_path, tmp_path / "shop.crt"))
    held = Credentials.load(tmp_path, "bank", ["shop"])
    with pytest.raises(CertificateError, match="was revoked by its authority"):
        held.check("shop", presented)
    with pytest.raises(CertificateError, match="certificate of shop was revoked"):
        Credentials.load(tmp_path, "shop", [])
    (tmp_path / "crl.pem").write_bytes(
        revoke(tmp_path, tmp_path / "shop.crt", good_for=timedelta(seconds=-1))
    )
    with pytest.raises(CertificateError, match="fetch the authority's new list"):
        Credentials.load(tmp_path, "bank", ["shop"])
    stranger = tmp_path / "stranger"
    make_authority(stranger)
    issue(stranger, "shop")
    (tmp_path / "crl.pem").write_bytes(revoke(stranger, stranger / "shop.crt"))
    with pytest.raises(CertificateError, match="not signed by the authority"):
        Credentials.load(tmp_path, "bank", ["shop"])
