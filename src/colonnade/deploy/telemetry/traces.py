"""Traces of runs for an OTLP collector: a span for this party's part in a run, and one for each stage of it.

The trace of a run has the same id at all its parties, and their spans hang below the proposer's, without a
word between them: ids are hashes of the run's number, the digest of its terms and a party's name. Each party
tells its own collector of its own part alone; put together they are the whole run.

Spans go as JSON by HTTP once a run is over. A collector that does not answer costs its spans and nothing
else.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field

import msgspec

from colonnade.deploy.runs.run import Run
from colonnade.deploy.session.session import Event

log = logging.getLogger("colonnade.party")

PATIENCE_S = 5.0
MOST_STAGES = 100
OK, FAILED = 1, 2


@dataclass
class RunPart:
    """This party's part in one run: when it began, and the stages that were seen of it."""

    began: int
    stages: list[tuple[str, int]] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        """Take an event of another stage as the end of the one before."""
        if len(self.stages) < MOST_STAGES and (not self.stages or self.stages[-1][0] != event.what):
            self.stages.append((event.what, time.time_ns()))


class Tracer:
    """Follows the runs of one daemon and tells a collector of those that ended."""

    def __init__(self, party: str, url: str) -> None:
        self._party, self._url = party, url
        self._parts: dict[int, RunPart] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._silent = False  # whether the last spans did not arrive, which was said

    def watch(self, run: Run, state: str) -> None:
        """Take note that a run began here, or ended in this state."""
        if state == "running":
            begun = self._parts[run.id] = RunPart(time.time_ns())
            run.followed.listeners.append(begun.tell)
        elif (part := self._parts.pop(run.id, None)) is not None:
            body = spans(self._party, run, state, part)
            task = asyncio.ensure_future(asyncio.to_thread(self._send, body))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def close(self) -> None:
        """Wait until all that was to be told is told, or was not taken."""
        await asyncio.gather(*self._sending)

    def _send(self, body: bytes) -> None:
        """Post spans; say once that nobody takes them."""
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S):  # noqa: S310 http(s), as settings say
                self._silent = False
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            if not self._silent:
                log.warning("telemetry.traces: %s takes no spans: %s", self._url, error)
            self._silent = True


def trace_of(run: Run) -> bytes:
    """Return the id of a run's trace, the same at all its parties."""
    return _hash(b"trace", run.id.to_bytes(4, "big"), run.terms.digest().encode())[:16]


def spans(party: str, run: Run, state: str, part: RunPart) -> bytes:
    """Return a party's spans of a run that is over, as OTLP has them in JSON."""
    trace, ended = trace_of(run), time.time_ns()
    own, above = (_hash(b"part", trace, name.encode())[:8] for name in (party, run.proposer))
    kind = "train" if run.trains is not None else "score"
    about = {"colonnade.run": run.number, "colonnade.about": run.about, "colonnade.state": state}
    whole = _span(trace, own, f"{kind} {run.about}", part.began, ended, about)
    whole |= {"status": {"code": OK if state == "done" else FAILED}}
    whole |= {} if own == above else {"parentSpanId": above.hex()}
    ends = [*(began for _, began in part.stages[1:]), ended]
    stages = [
        _span(trace, _hash(own, bytes([k]))[:8], what, began, end, {}) | {"parentSpanId": own.hex()}
        for k, ((what, began), end) in enumerate(zip(part.stages, ends, strict=True))
    ]
    resource = {"attributes": _attributes({"service.name": "colonnade", "service.instance.id": party})}
    scope = {"scope": {"name": "colonnade"}, "spans": [whole, *stages]}
    return msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


def _span(
    trace: bytes, own: bytes, name: str, began: int, ended: int, about: dict[str, str]
) -> dict[str, object]:
    return {
        "traceId": trace.hex(),
        "spanId": own.hex(),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(ended),
        "attributes": _attributes(about),
    }


def _attributes(given: dict[str, str]) -> list[dict[str, object]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in given.items()]


def _hash(*parts: bytes) -> bytes:
    return hashlib.sha256(b"colonnade " + b"\0".join(parts)).digest()
