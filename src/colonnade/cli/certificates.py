"""`colonnade certs`: make an authority and one certificate per party, for mutual TLS."""

from __future__ import annotations

from pathlib import Path

import click

from colonnade.cli.machine import JSON, print_json


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("parties", metavar="PARTY...", nargs=-1)
@click.option("--request", is_flag=True, help="Make PARTY.key and PARTY.csr, for an authority to sign.")
@click.option(
    "--sign",
    "asked",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Sign this request (PARTY.csr) by the authority in DIR.",
)
@click.option(
    "--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="Days until they expire."
)
@JSON
def certs(
    folder: Path, parties: tuple[str, ...], request: bool, asked: Path | None, days: int, as_json: bool
) -> None:
    """Make an authority and a certificate for each PARTY in DIR.

    An authority that is already in DIR signs the new certificates; nothing is overwritten. Give every
    party ca.crt, its own PARTY.crt and PARTY.key, and the .crt of every peer. The key files stay secret;
    ca.key is needed only to issue more.

    So that no key leaves its owner: each party makes a request, the authority signs it, and PARTY.crt
    goes back.

    \b
    Example:
      colonnade certs certs bank shop telecom
      colonnade certs certificates shop --request
      colonnade certs authority --sign shop.csr
    """
    from colonnade.errors import CertificateError

    if len(set(parties)) < len(parties):
        raise CertificateError("a party is named twice; every party has one certificate")
    before = set(folder.iterdir()) if folder.is_dir() else set()
    try:
        _make(folder, parties, days, asked, request=request)
    except CertificateError:
        # all or nothing: half a set of certificates would have to be told from a whole one
        for path in set(folder.iterdir()) - before if folder.is_dir() else ():
            path.unlink()
        raise
    made = sorted(set(folder.iterdir()) - before)
    if as_json:
        print_json([{"file": str(path), "secret": path.suffix == ".key"} for path in made])
        return
    for path in made:
        click.echo(f"{path}{' (secret)' if path.suffix == '.key' else ''}")


def _make(folder: Path, parties: tuple[str, ...], days: int, asked: Path | None, *, request: bool) -> None:
    """Make requests, sign one, or issue certificates, after making the authority if there is none yet."""
    from colonnade.net.stream import authority
    from colonnade.net.stream.authority import issue, make_authority

    if bool(parties) == (asked is not None) or (request and asked is not None):
        raise click.UsageError("name parties, or give --sign PARTY.csr")
    if request:
        for party in parties:
            authority.request(folder, party)
        return

    if not (folder / "ca.crt").exists():
        make_authority(folder, days=days)
    if asked is not None:
        authority.sign_request(folder, asked, days=days)
    for party in parties:
        issue(folder, party, days=days)
