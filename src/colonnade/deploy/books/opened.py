"""What runs have opened to peers, by table and peer, over all of them together: booked before it is sent.

Of every run there are the figures that its conversation declares (`openings`): what a peer hears of this
party's labels and columns at the most. A run that goes on after it was cut off is booked once; one that is
proposed again is another one, and adds up. What a peer says of its own columns lowers nothing. A run that
ended early, or failed, has told less than is booked, and nobody can say how much less.

Of each entry, peer and subject the latest lines are kept, and what was before them as one sum. What comes
again is one of the latest; a set of ids or a model that comes back after that many others counts once more.

The file is replaced as a whole and flushed before a call returns. A party that was there before there was
such a file begins with nothing in it: `since` says when.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from colonnade.deploy.settings import Limits
from colonnade.disk import replace_file
from colonnade.errors import Refused, ShareError
from colonnade.openings.account import together
from colonnade.result import About, Heard
from colonnade.shares import now

SLACK = 1e-9  # sums of floats
LATEST = 500  # lines of an entry, a peer and a subject that are kept apart
OPENED = {
    "opened_label_bits_per_row": "bits",
    "opened_label_numbers_per_row": "linear statistics",
    "opened_column_bits_per_cell": "bits",
}
"""Limits of what peers hear over all runs, and what each counts."""


_Key = tuple[str, str, About]


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may have told a peer about the labels, columns or rows of an entry of the catalogue.

    `columns` are how many columns of this party's took part. `epsilon` bounds what it tells of a label, where
    noise does. `linear` is how many of the numbers are linear statistics of labels that no noise bounds.
    """

    run: str
    job: str
    entry: str
    peer: str
    about: About
    kinds: tuple[str, ...]
    numbers: int
    bits: float
    rows: int
    columns: int
    when: str
    epsilon: float | None = None
    linear: int | None = None  # None: written before these were told apart

    @property
    def key(self) -> _Key:
        """What lines are summed by."""
        return self.entry, self.peer, self.about

    @property
    def leverage(self) -> float:
        """Linear statistics a row: how much of a label is in them, in the mean over rows and at the most."""
        if self.about != "labels" or self.epsilon is not None:
            return 0.0
        return (self.numbers if self.linear is None else self.linear) / max(1, self.rows)

    @property
    def per_row(self) -> float:
        """Bits a row: of labels, bits a label."""
        return self.bits / max(1, self.rows)

    @property
    def per_cell(self) -> float:
        """Bits a row and column."""
        return self.per_row / max(1, self.columns)

    @staticmethod
    def of(heard: Heard, run: str, job: str, entry: str, columns: int, epsilon: float | None) -> Opened:
        """Return the line of the books about what a peer hears in a run."""
        return Opened(
            run=run,
            job=job,
            entry=entry,
            peer=heard.hearer,
            about=heard.about,
            kinds=tuple(heard.kinds),
            numbers=heard.numbers,
            bits=heard.bits,
            rows=heard.rows,
            columns=columns,
            when=now(),
            epsilon=(epsilon if heard.epsilon is None else heard.epsilon)
            if heard.about == "labels"
            else None,
            linear=heard.linear,
        )


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What a peer has heard of an entry over all runs."""

    entry: str
    peer: str
    about: About
    runs: int
    numbers: int
    bits: float
    per_row: float
    per_cell: float
    leverage: float
    epsilon: float | None  # None: of some run nothing bounds it

    @property
    def key(self) -> _Key:
        """What accounts are told apart by."""
        return self.entry, self.peer, self.about

    @property
    def limited(self) -> dict[str, float]:
        """What of it limits go by, by the name of the limit."""
        if self.about == "labels":
            return {
                "opened_label_bits_per_row": self.per_row,
                "opened_label_numbers_per_row": self.leverage,
            }
        return {"opened_column_bits_per_cell": self.per_cell} if self.about == "columns" else {}


class _Books(msgspec.Struct, kw_only=True):
    since: str
    lines: list[Opened]
    earlier: list[Account] = []  # what was before these

    def folded(self) -> _Books:
        """Return the same with no more lines than are kept."""
        latest: dict[_Key, list[Opened]] = {}
        for each in self.lines:
            latest.setdefault(each.key, []).append(each)
        old = [each for some in latest.values() for each in some[:-LATEST]]
        if not old:
            return self
        kept = [each for some in latest.values() for each in some[-LATEST:]]
        return _Books(since=self.since, lines=kept, earlier=combined([*self.earlier, *sums(old)]))


class OpenedBooks:
    """The books of one party."""

    def __init__(self, state: Path) -> None:
        self._path = state / "opened.json"

    def _read(self) -> _Books:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Books)
        except FileNotFoundError:
            return _Books(since=now(), lines=[])
        except (OSError, msgspec.MsgspecError) as error:
            raise ShareError(f"{self._path}: cannot be read: {error}; restore a backup") from error

    @property
    def since(self) -> str:
        """From when on runs are in these books."""
        return self._read().since

    def lines(self) -> list[Opened]:
        """Return the latest lines, the oldest first."""
        return self._read().lines

    def accounts(self, without: Collection[str] = ()) -> list[Account]:
        """Return what every peer has heard of every entry, in all runs but these."""
        books = self._read()
        return combined([*books.earlier, *sums(each for each in books.lines if each.run not in without)])

    def check(self, limits: Limits, asked: Iterable[Opened]) -> None:
        """Raise Refused, with what was heard so far, if a run would tell a peer more than limits allow."""
        asked = list(asked)
        runs = {each.run for each in asked}
        before = {each.key: each for each in self.accounts(without=runs)}
        for added in sums(asked):
            known = before.get(added.key)
            heard = {} if known is None else known.limited
            for key, more in added.limited.items():
                most, so_far = getattr(limits, key), heard.get(key, 0.0)
                if most is None or not more or so_far + more <= most * (1 + SLACK):
                    continue
                raise Refused(
                    f"{added.peer} has heard {so_far:.3g} {OPENED[key]} a {UNITS[added.about]} of "
                    f"{added.entry} and would hear {more:.3g} more, over limits.{key} = {most:g}; "
                    "nothing was told"
                )

    def book(self, limits: Limits, asked: Iterable[Opened]) -> None:
        """Write down what a run may tell, unless that is over the limits; when this returns it is on disk.

        What is booked of the same run already takes the place of what it was: it tells the same again.
        """
        asked = list(asked)
        self.check(limits, asked)
        books = self._read()
        known = {(each.run, each.peer, each.about, each.kinds) for each in asked}
        kept = [each for each in books.lines if (each.run, each.peer, each.about, each.kinds) not in known]
        books.lines = [*kept, *asked]
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(books.folded()), indent=1))


UNITS: dict[About, str] = {
    "labels": "label",
    "columns": "cell",
    "membership": "row",
    "nothing": "row",
}
"""What bits are counted of."""


def sums(lines: Iterable[Opened]) -> list[Account]:
    """Return what every peer hears of every entry in all these runs together."""
    found: dict[_Key, list[Opened]] = {}
    for each in lines:
        found.setdefault(each.key, []).append(each)
    return [
        Account(
            entry=entry,
            peer=peer,
            about=about,
            runs=len({each.run for each in some}),
            numbers=sum(each.numbers for each in some),
            bits=sum(each.bits for each in some),
            per_row=sum(each.per_row for each in some),
            per_cell=sum(each.per_cell for each in some),
            leverage=sum(each.leverage for each in some),
            epsilon=together(each.epsilon for each in some),
        )
        for (entry, peer, about), some in sorted(found.items())
    ]


def combined(accounts: Iterable[Account]) -> list[Account]:
    """Return one account for each entry, peer and subject, of all these runs."""
    found: dict[_Key, list[Account]] = {}
    for each in accounts:
        found.setdefault(each.key, []).append(each)
    return [
        msgspec.structs.replace(
            some[0],
            runs=sum(each.runs for each in some),
            numbers=sum(each.numbers for each in some),
            bits=sum(each.bits for each in some),
            per_row=sum(each.per_row for each in some),
            per_cell=sum(each.per_cell for each in some),
            leverage=sum(each.leverage for each in some),
            epsilon=together(each.epsilon for each in some),
        )
        for _, some in sorted(found.items())
    ]
