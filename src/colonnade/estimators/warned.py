"""What `fit` and `predict` warn of: the data, new values, and what a run would open between companies."""

from __future__ import annotations

from collections.abc import Mapping

from colonnade.data.prepare.prepare import Preparation
from colonnade.data.table import RawTable
from colonnade.errors import DataWarning, PrivacyWarning, warn
from colonnade.report.privacy import learnt
from colonnade.result import Described, Result
from colonnade.run.offline import column_problems


def warn_of_data(data: Described) -> None:
    """Warn of all that the owners of the columns should look at, and of columns that were left out."""
    for sentence in data.warnings:
        warn(sentence, DataWarning)
    known = " ".join(data.warnings)
    for party, sentences in data.done.items():
        for sentence in sentences:
            if "left out" in sentence and "text column" not in sentence and sentence not in known:
                warn(f"{party}: {sentence}", DataWarning)


def warn_of_strangers(preparations: Mapping[str, Preparation], tables: Mapping[str, RawTable]) -> None:
    """Warn of values in new rows that training has not seen."""
    for party, preparation in preparations.items():
        raw = tables[party]
        for name in () if raw.sparse else preparation.categories:
            for problem in column_problems(preparation, raw, name):
                if not problem.stops:
                    warn(f"{party}: {problem.what}", DataWarning)


def warn_of_openings(result: Result) -> None:
    """Say in one line what a run would open between companies, if it would open anything."""
    if any(learnt(result).values()):
        warn(f"{openings_of(result)}. See result_.privacy", PrivacyWarning)


def openings_of(result: Result) -> str:
    """Return in one line what a run would open between companies: the worst that each would learn."""
    found: dict[str, list[str]] = {}
    for party, words in learnt(result).items():
        for sentence in words[:1]:
            found.setdefault(sentence, []).append(party)
    told = [f"{', '.join(p)}{':' * (len(p) > 1)} {sentence}" for sentence, p in found.items()]
    return f"between companies this run would tell: {'; '.join(told) or 'no number of a training row'}"
