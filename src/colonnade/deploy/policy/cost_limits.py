"""What a job may cost this party: its own limits, checked before any data is read or any memory set aside.

Every limit is a setting of the party (`[limits]`), so that no proposal and no peer can move it; a refusal
names it. What is counted over time (proposals, ids) is counted in `quotas.py`.
"""

from __future__ import annotations

import math
from itertools import pairwise

from colonnade.deploy.settings import Limits
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.model_terms import HeadModel, OwnModel
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import Refused
from colonnade.job import Section
from colonnade.run.blind import NOISE, gradients_of, labels_of, noise_left


def check_limits(limits: Limits, contract: Contract, me: str, columns: int = 1) -> None:
    """Raise Refused, naming the limit, if a job asks for more than this party is ready to do.

    `columns` is how many this party has, once that is known.
    """
    terms = contract.terms
    asked = {
        "epochs": terms.train.epochs * (terms.cascade.local_steps or 1),
        "classes": terms.train.classes or 0,
        "deadline_s": terms.network.deadline_s,
        "wait_s": terms.checkpoint.wait_s,
        "parameters": _parameters(contract, me, columns),
    }
    for name, value in asked.items():
        limit = getattr(limits, name)
        if not value <= limit:  # NaN is not either
            raise Refused(f"{name} = {value:g} is over limits.{name} = {limit:g} here")


def check_floors(limits: Limits, terms: Terms) -> None:
    """Raise Refused, naming the limit, if weight of evidence, trees or gradients with noise would tell more
    than this party lets any job tell."""
    if terms.prepare.woe:
        _check_each("woe", ("least", "cases", "noise"), terms.woe, limits)
    elif terms.statistics_only:
        _check_each("describe", ("noise",), terms.describe, limits)
    if terms.statistics_only:
        return
    _check_gradients(limits, terms)
    if "trees.keys" in Contract.of(terms).conversation.understands and not limits.trees_exact:
        if not terms.trees.bits:
            raise Refused(
                "trees.bits = 0 asks for exact histograms, off which bins are read row by row; give 3 "
                "to 8, or set limits.trees_exact = true here"
            )
        _check_each("trees", ("bin_rows", "node_rows", "noise"), terms.trees, limits)


def _check_gradients(limits: Limits, terms: Terms) -> None:
    """Refuse noise that many passes together would take off."""
    conversation = Contract.of(terms).conversation
    blind = labels_of(terms, conversation, len(terms.parties)) == "blind"
    if not blind or "encrypts" not in conversation.traits:
        return
    left = noise_left(terms)
    if left < limits.gradients_noise:
        asked = (
            f"secure.epsilon = {terms.secure.epsilon:g}"
            if terms.secure.epsilon is not None
            else f"noise of {terms.secure.noise or NOISE:g} rows in {gradients_of(terms)} gradients"
        )
        raise Refused(
            f"{asked} leaves {left:.2g} rows in the mean of all gradients, below limits.gradients_noise = "
            f"{limits.gradients_noise:g} here; ask for more noise (secure.noise), or for fewer "
            "train.epochs or secure.proofs"
        )


def _check_each(section: str, keys: tuple[str, ...], asked: Section, limits: Limits) -> None:
    """Refuse keys of a section that are below the limits of the same names."""
    for key in keys:
        value, floor = getattr(asked, key), getattr(limits, f"{section}_{key}")
        if value is not None and value < floor:
            raise Refused(
                f"{section}.{key} = {value:g} is below limits.{section}_{key} = {floor:g} here; a job may "
                "raise it"
            )


def _parameters(contract: Contract, me: str, columns: int) -> int:
    """Return how many numbers this party would train for the job."""
    terms = contract.terms
    if not contract.asks_for_models:
        features = [n for n in (terms.kernel.features, terms.kernel.block) if isinstance(n, int)]
        return terms.scores * max(columns, *features, 0)
    own = terms.model_of(me)
    size = _network(own, columns, terms.width_of(me))
    if contract.is_bare(me):
        size += _network(terms.model.server, sum(map(terms.width_of, terms.parties)), terms.scores)
    return size


def _network(model: OwnModel | HeadModel, inputs: int, outputs: int) -> int:
    """Return how many parameters a network has; one that is code has as many as its owner's settings say."""
    convolutions = 0
    if isinstance(model, OwnModel) and model.kind == "cnn" and model.shape is not None:
        convolutions = sum(
            9 * before * after for before, after in pairwise((model.shape[0], *model.channels))
        )
        inputs = math.prod(size >> len(model.channels) for size in model.shape[1:]) * model.channels[-1]
    widths = [inputs, *(model.hidden if model.kind in ("mlp", "cnn") else ()), outputs]
    return convolutions + sum((before + 1) * after for before, after in pairwise(widths))
