"""What a training will cost, before anybody has agreed to it: rounds, bytes and minutes.

A process of its own rehearses the job on made-up rows (`run.rehearse`), over a line as slow as the slowest to
a peer has been measured. What a party does not know of its peers, their columns and how many rows are common,
is assumed: as many as its own, or as the proposer says of its own. So the figures are for all rows in common.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import msgspec

from colonnade.deploy.settings import Settings
from colonnade.deploy.terms.terms import Proposal, Terms
from colonnade.errors import JobError

LONGEST_S = 120.0


class EstimateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """To the process: the settings and the job, sizes of the parties, and the line between them."""

    settings: Settings
    terms: bytes
    rows: int
    columns: dict[str, int]
    round_trip_s: float
    mbps: float


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a training is expected to cost, with what that was reckoned from.

    `bytes` are those that all parties send together, `passes` those until the loss stops falling. `seconds`
    are those of waiting for lines, and of computing where there is as much other work as at the rehearsal.
    """

    rows: int
    columns: dict[str, int]
    passes: int
    most_passes: int
    rounds: int
    bytes: int
    seconds: float
    waiting_s: float
    computing_s: float  # on a processor of one's own
    round_trip_s: float
    mbps: float

    def line(self) -> str:
        """Return the estimate in a sentence."""
        passes = (
            f"{self.passes} of at most {self.most_passes}"
            if self.passes < self.most_passes
            else f"{self.passes}"
        )
        return (
            f"about {_time(self.seconds)}, {_size(self.bytes)} sent by all parties together, "
            f"{self.rounds:,} rounds in {passes} passes, for {self.rows:,} common rows over lines of "
            f"{self.round_trip_s * 1e3:.3g} ms there and back and {self.mbps:g} Mbit/s"
        )


def _time(seconds: float) -> str:
    """Return a time in words.

    >>> _time(41.3), _time(900)
    ('41 s', '15 min')
    """
    return f"{max(1, round(seconds))} s" if seconds < 120 else f"{round(seconds / 60)} min"


def _size(count: float) -> str:
    """Return a number of bytes in words.

    >>> _size(41_300_000), _size(2_500_000_000)
    ('41.3 MB', '2.5 GB')
    """
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{max(count, 1e4) / 1e6:.3g} MB"


def requested(
    settings: Settings,
    terms: Terms,
    own: tuple[int, int],
    proposer: tuple[str, int, int] | None,
    trip_s: float,
) -> EstimateRequest:
    """Return what to rehearse: by the rows and columns of this party, and those that the proposer says it
    has. What others bring is taken to be as much as this party's."""
    rows, columns = own
    of = {party: 0 if member.columns == () else columns for party, member in terms.parties.items()}
    if proposer is not None:
        name, its_rows, of[name] = proposer
        rows = min(rows, its_rows)
    return EstimateRequest(
        settings=settings,
        terms=Proposal(train=terms).written(),
        rows=rows,
        columns=of,
        round_trip_s=trip_s,
        mbps=settings.line_mbps,
    )


async def estimated(request: EstimateRequest) -> Estimate:
    """Return what a training will cost; JobError where that cannot be told beforehand."""
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "colonnade.deploy.programs.rehearsal",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LONGEST_S):
            said, _ = await program.communicate(msgspec.json.encode(request))
    except TimeoutError:
        raise JobError(f"no estimate: a rehearsal of it takes longer than {LONGEST_S:g} s") from None
    finally:
        with suppress(ProcessLookupError):
            program.kill()
        await program.wait()
    if program.returncode or not said:
        raise JobError("no estimate: the rehearsal failed; the log says why")
    found = msgspec.json.decode(said, type=Estimate | str)
    if isinstance(found, str):
        raise JobError(f"no estimate: {found}")
    return found
