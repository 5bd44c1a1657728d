"""Certificates: everything that can be wrong with them is found by name before anybody is dialled."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from colonnade.errors import CertificateError
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.pem_files import der, names_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_authority(tmp_path)
    for party in ("bank", "shop"):
        issue(tmp_path, party)
    return tmp_path


def test_a_party_loads_what_was_issued(folder: Path) -> None:
    bank = Credentials.load(folder, "bank", ["bank", "shop"])
    assert set(bank.pinned) == {"shop"}
    bank.check("shop", der((folder / "shop.crt").read_bytes()))
    assert names_in(der(bank.certificate)) == ["bank"]
    assert "PRIVATE" not in repr(bank)


def test_a_certificate_says_what_it_may_be_used_for(folder: Path) -> None:
    leaf = x509.load_pem_x509_certificate((folder / "bank.crt").read_bytes())
    authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(purposes) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    for certificate, ca in ((leaf, False), (authority, True)):
        assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is ca
        assert certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign is ca
    assert 364 <= (leaf.not_valid_after_utc - leaf.not_valid_before_utc).days <= 366


def test_keys_are_for_their_owner_and_are_never_overwritten(folder: Path) -> None:
    for name in ("ca.key", "bank.key"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    before = (folder / "bank.key").read_bytes()
    with pytest.raises(CertificateError, match=r"bank\.key exists and is not overwritten"):
        issue(folder, "bank")
    with pytest.raises(CertificateError, match=r"ca\.key exists"):
        make_authority(folder)
    assert (folder / "bank.key").read_bytes() == before


@pytest.mark.parametrize("name", ["", "ca", "../etc", "a b", "-x", "x" * 64, "a/b", "ä"])
def test_a_name_that_cannot_be_a_party_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(CertificateError, match="cannot name a party"):
        issue(folder, name)


@pytest.mark.parametrize("name", ["ca.crt", "bank.crt", "bank.key", "shop.crt"])
def test_a_missing_or_broken_file_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("nonsense")
    with pytest.raises(CertificateError, match="PEM"):
        Credentials.load(folder, "bank", ["shop"])
    (folder / name).unlink()
    with pytest.raises(CertificateError, match=f"{name} cannot be read: No such file"):
        Credentials.load(folder, "bank", ["shop"])


def test_a_key_that_does_not_match_is_found(folder: Path) -> None:
    shutil.copy(folder / "shop.key", folder / "bank.key")
    with pytest.raises(CertificateError, match="the key of bank does not match its certificate"):
        Credentials.load(folder, "bank", ["shop"])


@pytest.mark.parametrize("party", ["bank", "shop"])
def test_an_expired_certificate_is_found(folder: Path, party: str) -> None:
    for end in ("crt", "key"):
        (folder / f"{party}.{end}").unlink()
    issue(folder, party, days=-1)
    with pytest.raises(CertificateError, match=rf"certificate of {party} expired on \d{{4}}-"):
        Credentials.load(folder, "bank", ["shop"])


@pytest.mark.parametrize("party", ["bank", "shop"])
def test_a_certificate_of_somebody_else_is_found(folder: Path, party: str) -> None:
    issue(folder, "eve")
    shutil.copy(folder / "eve.crt", folder / f"{party}.crt")
    with pytest.raises(CertificateError, match=f"certificate of {party} is made out to eve, not to {party}"):
        Credentials.load(folder, "bank", ["shop"])


@pytest.mark.parametrize("party", ["bank", "shop"])
def test_a_certificate_of_another_authority_is_found(folder: Path, tmp_path: Path, party: str) -> None:
    other = tmp_path / "other"
    make_authority(other)
    issue(other, party)
    for end in ("crt", "key"):
        shutil.copy(other / f"{party}.{end}", folder)
    with pytest.raises(CertificateError, match=f"certificate of {party} is not signed by the authority"):
        Credentials.load(folder, "bank", ["shop"])


def test_only_the_pinned_certificate_passes(folder: Path) -> None:
    bank = Credentials.load(folder, "bank", ["shop"])
    for end in ("crt", "key"):
        (folder / f"shop.{end}").unlink()
    issue(folder, "shop")  # the authority signs a second one, which nobody has pinned
    with pytest.raises(CertificateError, match="is not the pinned one"):
        bank.check("shop", der((folder / "shop.crt").read_bytes()))
    with pytest.raises(CertificateError, match="made out to bank, not to shop"):
        bank.check("shop", der(bank.certificate))
    with pytest.raises(CertificateError, match="no certificate of eve is pinned at bank"):
        bank.check("eve", der(bank.certificate))


def test_a_signature_holds_for_its_signer_and_its_words_only(folder: Path) -> None:
    bank = Credentials.load(folder, "bank", ["shop"])
    shop = Credentials.load(folder, "shop", ["bank"])
    signature = bank.sign(b"key of this run")
    shop.verify("bank", b"key of this run", signature)
    for data, mark in ((b"another key", signature), (b"key of this run", shop.sign(b"key of this run"))):
        with pytest.raises(CertificateError, match="a signature of bank does not fit"):
            shop.verify("bank", data, mark)
    for mark in (b"", b"nonsense"):
        with pytest.raises(CertificateError):
            shop.verify("bank", b"key of this run", mark)
    with pytest.raises(CertificateError, match="no certificate of eve"):
        shop.verify("eve", b"", signature)
