"""Who dials a daemon's port and is no peer: says nothing, or garbage, or shows a certificate nobody knows."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path

from colonnade.net.stream.authority import issue, make_authority


def stranger(
    address: tuple[str, int], way: int, contexts: list[ssl.SSLContext], held: list[socket.socket]
) -> None:
    """One hostile connection."""
    line = socket.create_connection(address, timeout=2)
    if way == 0:
        held.append(line)  # and says nothing
    elif way == 1:
        with line:
            line.sendall(os.urandom(200))
    else:
        with contexts[0].wrap_socket(line) as sealed:
            sealed.sendall(b"\0" * 64)
            sealed.recv(1)


def unknown(folder: Path) -> ssl.SSLContext:
    """The credentials of somebody whom no daemon knows."""
    make_authority(folder)
    issue(folder, "stranger")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(folder / "stranger.crt", folder / "stranger.key")
    return context
