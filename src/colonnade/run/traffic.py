"""What a party sent and received in a run, as its share and the result say it."""

from __future__ import annotations

import msgspec

from colonnade.net.endpoint import Endpoint


class Traffic(msgspec.Struct, kw_only=True):
    """How many messages and bytes a party sent and received in a run."""

    messages: int
    bytes_by_kind: dict[str, int]
    bytes_by_peer: dict[str, int]
    payload_by_kind: dict[str, int]  # the part of bytes_by_kind that is arrays and not framing
    sealed_bytes: int  # what encryption adds; the rest is our own framing
    evaluation_bytes: int
    received_messages: int
    received_bytes: int
    refused: dict[str, int]

    @staticmethod
    def of(net: Endpoint, measuring: Endpoint) -> Traffic:
        """Return the counts of a party's two networks: the one for training, and the one for measuring."""
        meter = net.meter
        return Traffic(
            messages=meter.messages(),
            bytes_by_kind=meter.bytes_by_kind(),
            bytes_by_peer=meter.bytes_by_peer(),
            payload_by_kind=meter.payload_by_kind(),
            sealed_bytes=meter.sealed_bytes(),
            evaluation_bytes=measuring.meter.bytes(evaluation=True),
            received_messages=meter.received_messages,
            received_bytes=meter.received_bytes,
            refused=dict(meter.refused),
        )

    @property
    def bytes_sent(self) -> int:
        return sum(self.bytes_by_kind.values())
