"""What the words of a report mean, for readers who have not read the papers: those that the page uses."""

from __future__ import annotations

import re
from typing import get_args

from colonnade.messages import AnyMessage
from colonnade.report.html import Html, section, tag
from colonnade.result import Result

ALWAYS = {
    "pooled": "the same model, trained where all columns lie in one place, which a run is measured against",
    "alone": "a model that the label holder could train today, with its own columns and nobody's help",
    "95% interval": "where the figure of other rows of the same kind would lie, 95 times in 100 "
    "(DeLong's for AUC, Wilson's for accuracy)",
    "objective": "the training loss with its penalty: what training minimises",
    "above the pooled optimum": "the objective, less the least that pooled training reaches",
    "penalty": "what is added to the loss so that weights stay small (train.l2, train.l1); losses are "
    "compared without it",
    "score": "the number that a model gives a row before it becomes a probability or a class; every party "
    "adds its part",
    "secure sum": "the parties' parts of a score are masked so that only their total can be read",
    "round": "one batch of rows, from the parts of its scores to the step of the weights",
    "framing": "bytes that say whose and which message it is",
}
NOISE = (
    "a party that is told the gradient of its columns is told it with random numbers added, as large as what "
    "that number of rows contributes: the more rows, the less a gradient says about any one of them"
)
THETA = "the derivative of the loss by the score of a row; its sign or size tells the label"
AGE = "how many steps of the weights lay between the reading of weights and the step that used them"


def _first_sentence(kind: type) -> str:
    """Return what a kind of message is, as its class says it, without names of modules."""
    said = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    plain = re.sub(r" \([^)]*`[^)]*\)|`", "", said).rstrip(".")
    return plain[:1].lower() + plain[1:]


KINDS = {kind.__name__.lower(): _first_sentence(kind) for kind in get_args(AnyMessage)}
"""What every kind of message is, by the name under which its bytes are counted."""


def words_section(result: Result) -> Html:
    """Return the words that need one, each with a sentence."""
    meant = dict(ALWAYS)
    if any("theta" in note for note in result.privacy.notes):
        meant["theta"] = THETA
    if "gradient" in result.privacy.mechanism:
        meant["noise of some rows"] = NOISE
    if result.staleness.max:
        meant["age of weights"] = AGE
    meant |= {f"{kind} (message)": KINDS[kind] for kind in result.cost.bytes_by_kind if kind in KINDS}
    terms = [part for word, text in meant.items() for part in (tag("dt", word), tag("dd", text))]
    return section("Words", tag("dl", *terms, class_="words"), id_="words")
