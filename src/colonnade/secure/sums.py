"""The secure sums that a job may name (`secure.sum`), the default first."""

from __future__ import annotations

from colonnade.choices import Choices
from colonnade.secure.masked import MaskedSum
from colonnade.secure.plain import PlainSum
from colonnade.secure.protocol import SumKind
from colonnade.secure.tree import TreeSum

SUMS: Choices[type[SumKind]] = Choices("secure.sum", (MaskedSum, TreeSum, PlainSum))
"""By name: the kind of a sum. Jobs, their checks and notes know those of this table."""

HIDING = SUMS.named(lambda kind: kind.hides_pieces)
"""The sums that hide every piece, as a text that proposes them has it."""
