"""`colonnade certs`: an authority and one certificate per party, for mutual TLS."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("parties", metavar="PARTY...", nargs=-1, required=True)
@click.option(
    "--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="How long they hold."
)
def certs(folder: Path, parties: tuple[str, ...], days: int) -> None:
    """Make an authority and a certificate for each PARTY in DIR.

    An authority that is already in DIR signs the new certificates; nothing is overwritten. Give every
    party ca.crt, its own PARTY.crt and PARTY.key, and the .crt of every peer. The key files stay secret;
    ca.key is needed only to issue more.

    \b
    Example:
      colonnade certs certs bank shop telecom
    """
    from colonnade.errors import CertificateError
    from colonnade.net.certificates import issue, make_authority

    if len(set(parties)) < len(parties):
        raise CertificateError("a party is named twice; every party has one certificate")
    taken = [
        path
        for party in parties
        for path in (folder / f"{party}.crt", folder / f"{party}.key")
        if path.exists()
    ]
    if taken:
        raise CertificateError(
            f"{taken[0]} exists and is not overwritten; remove it or choose another folder"
        )
    if not (folder / "ca.crt").exists():
        make_authority(folder, days=days)
        click.echo(f"{folder / 'ca.crt'}: a new authority, its key in {folder / 'ca.key'}")
    for party in parties:
        issue(folder, party, days=days)
        click.echo(f"{folder / (party + '.crt')}: for {party}, its key in {folder / (party + '.key')}")
