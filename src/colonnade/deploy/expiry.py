"""When the certificates of a party end: its own, those of its peers and authorities, and of its servers.

The files are read as they are now, which is before a daemon is told to read them again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from colonnade.deploy.settings import Settings
from colonnade.errors import CertificateError
from colonnade.net.stream.pem_files import LISTS, end_of, end_of_lists

SOON_DAYS = 30  # before a certificate ends that is said


def ends(settings: Settings) -> dict[str, datetime]:
    """Return when the first certificate of each file ends, by the file; what cannot be read is left out.

    Files of parties have their names, without the folder. The list of what was taken back ends when
    there has to be another one.
    """
    folder = settings.path(settings.certificates)
    files = {"ca": folder / "ca.crt", settings.name: folder / f"{settings.name}.crt"}
    files |= {file: settings.path(file) for file in server_certificates(settings)}
    found = {name: _end(path) for name, path in files.items()}
    found |= {peer: _end(folder / f"{peer}.crt", of_peer=True) for peer in settings.peers}
    if (folder / LISTS).exists():
        found[LISTS] = end_of_lists((folder / LISTS).read_bytes())
    return {name: end for name, end in found.items() if end is not None}


def server_certificates(settings: Settings) -> list[str]:
    """Return the files of certificates that servers of this party show to its own people and programs."""
    servers = settings.serve, settings.control, settings.telemetry
    return [each.certificate for each in servers if each is not None and each.certificate is not None]


def left_s(end: datetime) -> float:
    """Return how many seconds are left until then."""
    return (end - datetime.now(UTC)).total_seconds()


def _end(path: Path, *, of_peer: bool = False) -> datetime | None:
    try:
        return end_of(path.read_bytes(), of_peer=of_peer)
    except (OSError, CertificateError):  # the lines and servers say what is wrong with it
        return None
