"""The errors that this package raises on purpose.

Every failure a user can meet is one of these classes. Its text is one line that says what is wrong,
where, and how to put it right. `exit_code` is what the command line returns (`EXITS`): 2 when the input or
the set-up must change, 3 when a party refused, 4 when somebody is away, so that the same may work later, 1
when something else went wrong.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

EXITS = {0: "done", 1: "failed", 2: "usage", 3: "refused", 4: "away", 130: "stopped"}
"""What the exit codes of commands mean, in the words of their JSON."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the end of a "there is no such name" sentence: the nearest name, or the first few there are."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"there is {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"


class DataWarning(UserWarning):
    """Something in the data that its owner should look at: a copy of the label, a column left out."""


class PrivacyWarning(UserWarning):
    """What a run would open between companies, said where all parties are one's own."""


def warn(text: str, category: type[Warning]) -> None:
    """Warn of something at the line of the caller's own code that led here."""
    ours, frame, level = str(Path(__file__).parent), sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


class ColonnadeError(Exception):
    """The base of every error that this package raises on purpose."""

    exit_code = 1


class JobError(ColonnadeError, ValueError):
    """The job file asks for something that does not exist or does not go together."""

    exit_code = 2


class DataError(ColonnadeError, ValueError):
    """A data file or array cannot be used as it is."""

    exit_code = 2


class ModelError(ColonnadeError):
    """A party's own model ended, said nothing, or said something that is not an answer."""

    exit_code = 2


class EngineError(ColonnadeError):
    """The workers that compute for a party cannot be had, or keep dying."""

    exit_code = 2


class CertificateError(ColonnadeError):
    """A certificate or key is missing, does not fit its party, or is not trusted."""

    exit_code = 2


class PeerUnreachable(ColonnadeError):
    """A peer could not be reached within the deadline."""

    exit_code = 4


class NetworkError(ColonnadeError):
    """Something failed between two parties."""


class PeerLost(NetworkError):
    """A peer was there and went away, and did not come back within the deadline."""

    exit_code = 4


class DeadlineExceeded(NetworkError):
    """A message that was due did not arrive in time."""

    exit_code = 4


class GoesOn(DeadlineExceeded):
    """What somebody waits for is not over yet, and goes on."""


class Aborted(NetworkError):
    """Another party ended the run and said why."""


class Interrupted(Aborted):
    """Another party ended the run since somebody is away or silent: it can go on once all are there again."""

    exit_code = 4


class RefusedMessage(NetworkError):
    """A message was refused; the party counts it and goes on."""


class MalformedMessage(RefusedMessage):
    """The bytes of a message are truncated, corrupt, or do not fit the schema."""


class OversizedMessage(RefusedMessage):
    """The message is larger than the size limit."""


class UnknownParty(RefusedMessage):
    """The message comes from, or is meant for, a party that is not part of the run."""


class WrongRun(RefusedMessage):
    """The message belongs to another run."""


class ProtocolError(NetworkError):
    """A peer sent what it may not send, or not now; the run cannot go on with it."""


class SumError(ColonnadeError):
    """The secure sum cannot give a right answer, so it gives none."""


class UndeclaredOpening(ColonnadeError):
    """A party would tell a peer something that its run has not declared."""


class FixedPointOverflow(SumError):
    """A value is too large (or not a number) for the fixed-point range."""

    exit_code = 2


class TagReused(SumError):
    """A tag was used twice; a second use would cancel its mask."""


class Diverged(ColonnadeError):
    """Training left the finite numbers; the step is too large for this delay."""

    exit_code = 2


class AlignmentError(ColonnadeError):
    """The parties' ids cannot be brought together as they are."""

    exit_code = 2


class DuplicateIds(AlignmentError):
    """Two rows of one party have the same id."""


class EmptyIntersection(AlignmentError):
    """No id, or too few, are common to all parties."""


class ChangedIds(AlignmentError):
    """A party brings other ids than it brought to the run before."""


class WorkerError(ColonnadeError):
    """The process in which a party trains ended by itself, or over one of the party's limits."""


class WorkerLost(WorkerError):
    """The process in which a party trains was killed, and said nothing."""


class Refused(ColonnadeError):
    """A party refused to take part, and said why."""

    exit_code = 3


class NotAllowed(Refused):
    """Somebody asked this party's own daemon for what their role does not allow."""


class Busy(Refused):
    """The same is under way already; it may be asked for again later."""

    exit_code = 4


class ShareError(ColonnadeError):
    """A stored share of a model is missing, damaged, or of another version."""

    exit_code = 2


class CheckpointError(ShareError):
    """A stored state of a run is damaged, or of another job or other data."""
