"""What a run tells about its data: rows, columns, labels, and what every party did to its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from colonnade.data.prepare.prepare import Preparation
from colonnade.data.split.assign import Assigned
from colonnade.result import Described


def described(assigned: Assigned) -> Described:
    """Return what is known before the parties have prepared their columns."""
    holder = assigned.parties[assigned.label_holders[0]]
    labels, y = assigned.labels, holder.train.y
    rows = {"train": holder.train.rows, "test": 0 if holder.test is None else holder.test.rows}
    for party, data in assigned.parties.items():
        rows |= {f"{party}: {why}": lost for why, lost in data.train.reading.left_out.items()}
    said = [f"the label is {labels.said()}"] if assigned.guessed else []
    said += [assigned.chosen] if assigned.chosen else []
    return Described(
        rows=rows,
        task=labels.task,
        classes=list(labels.classes),
        positive=list(labels.positive),
        base_rate=float(np.mean(y > 0)) if labels.task == "binary" and y is not None else None,
        done={assigned.label_holders[0]: said} if said else {},
        digests=assigned.digests,
    )


def with_parties(known: Described, preparations: Mapping[str, dict[str, Any] | None]) -> Described:
    """Return the same with what the parties told of their own columns; None: a party's columns were ready."""
    made = {party: Preparation.from_dict(plain) for party, plain in preparations.items() if plain is not None}
    done = {party: known.done.get(party, []) + each.done() for party, each in made.items()}
    return Described(
        rows=known.rows,
        columns={party: len(each.outputs) for party, each in made.items()},
        task=known.task,
        classes=known.classes,
        positive=known.positive,
        base_rate=known.base_rate,
        done={party: said for party, said in done.items() if said},
        warnings=[
            *known.warnings,
            *(f"{party}: {text}" for party, each in made.items() for text in each.warnings),
        ],
        digests=known.digests,
    )
