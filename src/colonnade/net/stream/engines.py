"""Which engine carries the frames of the network world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.channel import Address, Engine
from colonnade.net.stream.tls import TlsEngine
from colonnade.net.stream.wire import CONNECT_S, NetworkWire


def network_wire(
    transport: Literal["tls", "grpc"],
    me: str,
    addresses: Mapping[str, Address],
    credentials: Credentials,
    deadline: float,
) -> NetworkWire:
    """A wire of the kind the job names; a peer that goes away may come back within the deadline."""
    connect = max(deadline, CONNECT_S)  # the others may still be starting, on a busy machine
    engine = _engine(transport, credentials)
    return NetworkWire(me, addresses, credentials, engine, connect_s=connect, reconnect_s=deadline)


def _engine(transport: Literal["tls", "grpc"], credentials: Credentials) -> Engine:
    if transport == "tls":
        return TlsEngine(credentials)
    # gRPC starts threads of its own, so it is imported only where it is used
    from colonnade.net.stream.grpc import GrpcEngine

    return GrpcEngine(credentials)
