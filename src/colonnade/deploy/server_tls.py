"""The TLS of a party's own HTTP servers, whose certificates are read again while they listen."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from colonnade.errors import CertificateError


@dataclass
class ServerTls:
    """The certificate that one server shows, and whose clients' certificates it takes, if any."""

    section: str  # of the settings
    certificate: Path
    key: Path
    client_ca: Path | None = None
    demands: ssl.VerifyMode = ssl.CERT_REQUIRED  # of clients, where there is an authority for theirs
    context: ssl.SSLContext = field(init=False)

    def __post_init__(self) -> None:
        self.context = self.read()

    def read(self) -> ssl.SSLContext:
        """Return what the files make now; CertificateError if they cannot be used."""
        try:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._load(context)
        except (OSError, ssl.SSLError) as error:
            raise CertificateError(f"{self.section}: its certificates cannot be used: {error}") from error
        return context

    def renew(self) -> None:
        """Show the certificate that the files have now, from the next handshake on; they were read before."""
        self._load(self.context)

    def _load(self, context: ssl.SSLContext) -> None:
        context.load_cert_chain(self.certificate, self.key)
        if self.client_ca is not None:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = self.demands
