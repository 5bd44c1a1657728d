"""What a run leaves behind: result.json, a contract that other tools rely on."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the history."""

    seconds: float
    virtual_seconds: float | None
    epoch: int
    rounds: int
    bytes: int
    loss: float
    test: dict[str, float] = {}  # metrics of the test rows, where they were scored at that moment


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    virtual_seconds: float | None
    epochs: int
    rounds: int
    messages: int
    bytes_sent: int
    payload_bytes: int = 0  # of bytes_sent: the arrays
    sealed_bytes: int = 0  # of bytes_sent: TLS records; the rest is our own framing
    bytes_by_kind: dict[str, int]
    bytes_by_party: dict[str, int]
    bytes_by_pair: dict[str, dict[str, int]]
    evaluation_bytes: int
    updates_by_party: dict[str, int]
    refused: dict[str, int]


class Staleness(msgspec.Struct, frozen=True, kw_only=True):
    mean: float
    p95: int
    max: int


class Privacy(msgspec.Struct, frozen=True, kw_only=True):
    secure_sum: str
    mechanism: str
    epsilon: float | None
    delta: float | None
    notes: list[str]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    algorithm: str
    dataset: str
    parties: list[str]
    active: list[str]
    world: str
    seed: int
    version: str
    step: dict[str, float]
    metrics: dict[str, float]
    pooled: dict[str, float]
    cost: Cost
    staleness: Staleness
    privacy: Privacy
    history: list[Moment]

    def write(self, path: Path) -> None:
        """Written whole or not at all."""
        draft = path.with_suffix(".part")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2))
        draft.replace(path)


def read_result(path: Path) -> Result:
    return msgspec.json.decode(path.read_bytes(), type=Result)
