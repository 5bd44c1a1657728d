"""Of every field of every message: whether it can tell anything about anybody's data.

    masked    words that are uniform to those who hear them, or encrypted, or keys and hashes
    control   what the protocol says of itself: tags, counts of rounds, words of daemons
    opened    numbers that may tell something; how many of them leave is declared and counted

A field that is not in the table cannot be sent: who adds one must say here what it is. Numbers that are
`opened` are masked in some runs (histograms, in blind ones); then the declaration says so, and counts them
all the same.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from colonnade.errors import UndeclaredOpening
from colonnade.messages import Message

Nature = Literal["masked", "control", "opened"]

FIELDS: dict[str, dict[str, Nature]] = {}
"""By the name of a message: what each of its fields is."""


def _message(name: str, *, opened: str = "", masked: str = "", control: str = "") -> None:
    natures: tuple[tuple[Nature, str], ...] = (("opened", opened), ("masked", masked), ("control", control))
    FIELDS[name] = {field: nature for nature, fields in natures for field in fields.split()}


# joining, sums, rounds
_message("Hello", control="version job", masked="public_key signature")
_message("Coin", masked="commitment")
_message("CoinShown", masked="value seen")
_message(
    "Piece", control="tag", masked="values"
)  # a sum that masks nothing declares its pieces beside totals
_message("Branch", control="tag tree node", masked="values")
_message("Backward", opened="theta", control="tag seen")
_message("Announce", opened="values", control="tag")
_message("Stop", control="at")
_message("Enough", control="tag counts last")
_message("Ask", control="tag")
_message("Decay", control="tag")
_message("Abort", control="error reason")
_message("Bye")
_message("Alive")
_message("Relay", control="origin below", masked="payload")  # what is passed on is counted by its own name
# common rows, weight of evidence
_message("Roster", control="size minimum rules method", masked="commitment")
_message("Points", control="tag", masked="points")
_message("Transfer", control="tag seed", masked="rows")
_message("Hints", control="tag seed", masked="table")
_message("Found", opened="names", control="tag total")
_message("Seal", masked="digest")
_message("Sealing", control="rows", masked="public")
_message("SealedLabels", control="tag", masked="sealed")
_message("Tally", opened="bins ordered chained rows", masked="sealed")
_message("Evidence", opened="group woe iv")
# cascades
_message("Upload", opened="outputs", control="tag")
_message("Reply", opened="values", control="tag answered")
_message("Embeddings", opened="outputs", control="tag")
_message("Measure", control="tag final")
# blind runs, encrypted ones
_message("Sealed", control="tag", masked="body")
_message("Veiled", control="tag", masked="values")
_message("Veil", control="tag version", masked="moved weights")
_message("Dealt", control="tag", masked="values")
_message("Unveil", opened="values", control="tag unit")
# trees
_message("Bins", opened="ordered gaps rises")
_message("Gradients", opened="words", control="tag kept deals turn")
_message("Histograms", opened="sums spots", control="tag sent")
_message("Joined", opened="sums ends spots", control="tag sent")
_message("Sets", opened="left", control="tag")
_message("VeiledBins", control="tag", masked="words")
_message("DealtSums", control="tag", masked="sums")
_message("Divide", opened="party column bin gaps_left stays", control="tag")
_message("Sides", opened="left", control="tag")
_message("Outcomes", opened="left", control="tag")
_message("Grown", opened="nodes kind split left right value")
_message("Shuffled", control="tag", masked="words order")
_message("Rest", opened="values", control="tag")
# daemons
_message("Present", control="version")
_message("Propose", control="run terms")
_message("Answer", control="run digest refusal")
_message("Begin", control="run digest")
_message("Cancel", control="run reason")
_message("Progress", opened="loss", control="run epoch")
_message("Score", opened="rows", control="tag")
_message("Pending", control="run seconds")
_message("Echo", control="number back")
_message("Said", control="run what digest when count head", masked="signature")
_message("Sizes", control="run rows columns")
_message("AskShare", control="number model")
_message("HaveShare", control="number digest alignment refusal")
_message("CutOff", control="run session reason")
_message("Rejoin", control="run session digest")
_message("Rejoined", control="run session aligned refusal")
_message("GoOn", control="run session aligned")
_message("Settled", control="run kept reason")


@cache
def opened_fields(kind: type[Message]) -> tuple[str, ...]:
    """Return the fields of a message that may tell something; refused if it has one of which nothing is
    said."""
    known = FIELDS.get(kind.__name__, {})
    fields = [field.name for field in msgspec.structs.fields(kind)]
    if unsaid := [name for name in fields if name not in known]:
        raise UndeclaredOpening(
            f"{kind.__name__}.{unsaid[0]}: nothing says whether this field tells anybody anything, so it is "
            "not sent; add it to openings.wire"
        )
    return tuple(name for name in fields if known[name] == "opened")
