"""`[data]`: where the columns of a run on one machine come from, who holds which, how each is prepared."""

from __future__ import annotations

import re
from typing import Literal

from colonnade.job.section import Section

ScaleName = Literal["auto", "none", "zscore", "minmax", "maxabs"]
MissingName = Literal["auto", "error", "zero", "mean"]
NaValue = str | int | float
NaValues = list[NaValue] | dict[str, NaValue | list[NaValue]]  # of every column, or by column


SERVER = "server"  # the name of a party that holds the label and no columns
MEMORY = 4 * 10**9
"""The bytes that a party may use, where nobody says."""
_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MIB": 2**20, "GIB": 2**30}


def memory_of(text: str) -> int | None:
    """Return the bytes of a size such as "2GB" or "512 MB"; None where it is none.

    >>> memory_of("1.5GB"), memory_of("512 MiB"), memory_of("lots")
    (1500000000, 536870912, None)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B)\s*", text, re.IGNORECASE)
    unit = None if match is None else _UNITS.get(match[2].upper())
    return None if match is None or unit is None else int(float(match[1]) * unit)


def numbered_parties(parties: int) -> tuple[str, ...]:
    """Return names for parties of which a job gives only the number.

    >>> numbered_parties(11)[:2]
    ('party-00', 'party-01')
    """
    digits = len(str(parties - 1))
    return tuple(f"party-{k:0{digits}}" for k in range(parties))


class Key(Section, frozen=True):
    """How the values of one id column are brought into one form before they are compared."""

    kind: Literal["text", "integer", "date"] = "text"
    trim: bool = True
    case: Literal["keep", "lower"] = "keep"
    formats: tuple[str, ...] = ("%Y-%m-%d",)


class Data(Section, frozen=True):
    """Where the columns come from, who holds which, and how each party prepares its own."""

    train: str | None = None
    test: str | None = None
    test_fraction: float = 0.2  # of the rows, where no test file is given
    label: str | None = None
    id: str | list[str] | dict[str, str | list[str]] | None = None  # several columns are an id together
    keys: tuple[Key, ...] | None = None  # how each column of the id is brought into one form
    positive: list[str | int | float] | None = None
    parties: int | None = None
    columns: dict[str, list[str]] | None = None
    files: dict[str, str] | None = None
    test_files: dict[str, str] | None = None
    active: int | list[str] = 1
    server: Literal["apart"] | None = None  # with `parties`: one more, which holds the label and no columns
    separator: str | None = None  # of the fields of CSV files; this and the next three: None is found out
    decimal: Literal[".", ","] | None = None
    thousands: str | None = None
    encoding: str | None = None
    scale: ScaleName | None = None  # None: as is best for a known data set, else "auto"
    categorical: list[str] | None = None
    rare: int | Literal["auto"] | None = None  # categories of fewer rows are joined
    missing: MissingName | None = None
    na_values: NaValues | None = None  # values that stand for a gap, such as -999
    drop: list[str] | None = None
    woe: bool = False  # every column as its weight of evidence, as [woe] says
    intercept: bool | None = None  # a column of ones at the first active party; None: if the model is linear
    weight: str | None = None  # a column at the label holders: how much a row counts
    exposure: str | None = None  # a column there: for how long a row's events were counted (poisson)
    memory: str = "4GB"  # that a party may use
    store: str | None = None  # a folder for prepared columns, where they do not fit the memory

    def id_at(self, party: str | None = None) -> tuple[str, ...]:
        """Return the columns that are an id together, as a party's own file calls them.

        >>> Data(id={"bank": "customer", "shop": ["name", "born"]}).id_at("shop"), Data(id="no").id_at()
        (('name', 'born'), ('no',))
        """
        named = self.id.get(party or "") if isinstance(self.id, dict) else self.id
        return () if named is None else (named,) if isinstance(named, str) else tuple(named)

    @property
    def party_names(self) -> tuple[str, ...]:
        """The names of all parties, in the order of network.speeds.

        >>> Data(parties=2, server="apart").party_names
        ('server', 'party-0', 'party-1')
        """
        if (named := self.columns or self.files) is not None:
            return tuple(named)
        return ((SERVER,) if self.server == "apart" else ()) + numbered_parties(self.parties or 0)
