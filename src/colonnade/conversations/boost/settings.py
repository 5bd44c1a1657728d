"""What a plan says to boosted trees alone."""

from __future__ import annotations

from colonnade.job import Section, Trees


class BoostSettings(Section, frozen=True):
    """How trees grow; `additive`: every tree uses the columns of one party alone."""

    trees: Trees
    additive: bool
