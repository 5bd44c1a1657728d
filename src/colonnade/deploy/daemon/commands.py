"""What a party's own commands ask its daemon, what it answers, and how both are written on its local socket.

A frame is a length of four bytes and JSON. A command sends one request (`ask`); events come back, then one
final reply. The daemon's side is `control`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from colonnade.deploy.models.gate import Gate
from colonnade.deploy.programs import scoring
from colonnade.deploy.session.session import Event
from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import PeerUnreachable

LIMIT = 2**28


class TrainRequest(msgspec.Struct, tag="Train"):
    """Propose this job and take part in it; `detach` answers once all are asked, and the run goes on.

    With `alone` only if no training of this name goes on that this party proposed, with a `timeout` in
    seconds it is withdrawn, or ended, if it is not over by then. With a `gate` the model takes the place of
    the one in use if it is better.
    """

    terms: Terms
    timeline: bool = False
    detach: bool = False
    alone: bool = False
    timeout: float | None = None
    gate: Gate | None = None


class EstimateCommand(msgspec.Struct, tag="Estimate"):
    """Say what a training would cost, without proposing it."""

    terms: Terms


class FollowRequest(msgspec.Struct, tag="Follow"):
    """Follow a training that this party has proposed to its end: the daemon was started again meanwhile."""

    run: str


class RunsRequest(msgspec.Struct, tag="Runs"):
    """Say which runs go on, and how the latest ended."""


class WaitRequest(msgspec.Struct, tag="Wait"):
    """Wait for the end of a training, for some seconds at most; a command that waits may go away."""

    run: str
    timeout: float | None = None


class PredictRequest(msgspec.Struct, tag="Predict"):
    """Score these ids: one list per id column. With `explain` also by party: trees, at their holder."""

    model: str
    ids: list[list[str]]
    data: str | None = None
    explain: bool = False


class StatusRequest(msgspec.Struct, tag="Status"):
    """Say who is there and what goes on."""


class ProposalsRequest(msgspec.Struct, tag="Proposals"):
    """Say which proposals wait for the operator."""


class DecideRequest(msgspec.Struct, tag="Decide"):
    """Approve or refuse a proposal that waits."""

    number: str
    approve: bool
    reason: str = ""
    digest: str | None = None  # of the proposal that was seen


class RevokeRequest(msgspec.Struct, tag="Revoke"):
    """Let what was decided about a proposal count for no later one."""

    number: str


class ModelsRequest(msgspec.Struct, tag="Models"):
    """Say which models are stored here, and which of them is in use."""


class BudgetRequest(msgspec.Struct, tag="Budget"):
    """Say what peers have heard, and what is left of the privacy budget of labels."""


class JournalRequest(msgspec.Struct, tag="Journal"):
    """Say what is in the journal, from this day on."""

    since: str = ""


class PromoteRequest(msgspec.Struct, tag="Promote"):
    """Let the name of this model stand for it; `ask_peers` whether they still have their shares.

    With a `gate` only if it is better than the one in use.
    """

    model: str
    ask_peers: bool = True
    gate: Gate | None = None


class DeleteRequest(msgspec.Struct, tag="Delete"):
    """Remove this party's share of a model for good."""

    model: str
    reason: str = ""


class RollbackRequest(msgspec.Struct, tag="Rollback"):
    """Let a name stand for the model before the last promotion."""

    name: str | None = None
    ask_peers: bool = True


class StopRequest(msgspec.Struct, tag="Stop"):
    """End a run at all its parties."""

    run: str


class LoginRequest(msgspec.Struct, tag="Login"):
    """Make a link that opens the daemon's page, once."""


class ReloadRequest(msgspec.Struct, tag="Reload"):
    """Read the settings and certificates again."""


Request = (
    TrainRequest | EstimateCommand | FollowRequest | PredictRequest | StatusRequest | ProposalsRequest
    | DecideRequest | PromoteRequest | RollbackRequest | StopRequest | LoginRequest | RunsRequest
    | WaitRequest | ReloadRequest | DeleteRequest | RevokeRequest | ModelsRequest | BudgetRequest
    | JournalRequest
)  # fmt: skip


class FinalReply(msgspec.Struct, tag="Outcome"):
    """The end of an answer: a result, or an error and the exit code of the command."""

    result: Any = None  # what JSON can hold; every request has its own
    error: str | None = None
    code: int = 0


class EventReply(msgspec.Struct, tag="Heard"):
    """Something that happened while the command waits."""

    event: Event


class Prediction(TypedDict):
    """The answer to a PredictRequest: one row per id asked for, None where not all parties know the id."""

    model: str
    degraded: list[str]
    rows: list[scoring.ScoredRow | None]


class PeerStatus(TypedDict):
    """Whether a peer is connected, since when, its version, and why it is not or cannot take part."""

    up: bool
    since: str | None
    version: str | None
    round_trip_ms: float | None
    reason: str


class DaemonStatus(TypedDict):
    """The answer to a StatusRequest."""

    party: str
    version: str
    peers: dict[str, PeerStatus]
    runs: dict[str, str]
    waiting: list[str]
    certificates: dict[str, str]  # when the first of each file ends
    latest: list[str]
    journal: str


async def ask(settings: Settings, request: Request) -> AsyncIterator[EventReply | FinalReply]:
    """Send a request to this party's daemon and yield its replies: events, then the final one."""
    reader, writer = await _connect(settings.socket, settings.name)
    try:
        write_frame(writer, request)
        while True:
            message: EventReply | FinalReply = msgspec.json.decode(
                await read_frame(reader), type=EventReply | FinalReply
            )
            yield message
            if isinstance(message, FinalReply):
                return
    except (EOFError, ConnectionError):
        raise PeerUnreachable(f"the daemon of {settings.name} ended; look at its log") from None
    finally:
        writer.close()


async def _connect(path: Path, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection with the daemon of this party; PeerUnreachable if it does not run."""
    try:
        return await asyncio.open_unix_connection(path)
    except OSError:
        raise PeerUnreachable(
            f"the daemon of {name} does not run; start it with `colonnade party --config PARTY.toml`"
        ) from None


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Return the content of the next frame."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > LIMIT:
        raise EOFError("a message that is too long")
    return await reader.readexactly(size)


def write_frame(writer: asyncio.StreamWriter, message: Request | EventReply | FinalReply) -> None:
    """Write a message as one frame."""
    content = msgspec.json.encode(message)
    writer.write(len(content).to_bytes(4, "big") + content)
