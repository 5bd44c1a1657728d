"""What training under encryption opens between two parties: gradients with noise, and rounded scalars."""

from __future__ import annotations

from collections.abc import Iterable
from math import log2

from colonnade.conversations.linear.encrypted.final_loss import most_stretches
from colonnade.conversations.linear.noisy.noisy_lbfgs import MEMORY
from colonnade.conversations.linear.openings import of_full
from colonnade.conversations.linear.settings import FullSettings
from colonnade.job.plan import Blind, Encrypted, Noisy, Plan
from colonnade.messages import Announce, Topic
from colonnade.openings.declaration import Declaration
from colonnade.openings.opening import DOUBLE, Extent, Kind, Opening
from colonnade.result import About

CODES = 16  # small whole numbers of a pass, or of a measurement, at the most
CODE_BITS = 12
PRODUCT_BITS = 12  # of an inner product as it is told: few digits, and an exponent
SCORE_BITS = 12  # of a part of a test row's score, in sixteenths


def of_full_runs(plan: Plan[FullSettings], extent: Extent) -> list[Opening]:
    """Return what L-BFGS on all rows opens, in clear or between two parties alone."""
    if plan.blind is None:
        return of_full(plan, extent)
    if plan.blind.encrypted is not None and plan.blind.reveal == "never":
        return of_parted(plan, extent)
    if plan.blind.encrypted is not None:
        return of_encrypted(plan, plan.blind.encrypted, extent)
    return of_dealt(plan, plan.blind, extent)


def inner_products(passes: int) -> int:
    """Return how many inner products all passes tell: of the pairs so far, a new one, a gradient and noise.

    >>> inner_products(3)
    42
    """
    pairs = (min(max(0, number - 1), MEMORY) for number in range(passes))
    return sum(3 * (2 * each + 4) for each in pairs)


def of_dealt(plan: Plan[FullSettings], blind: Blind, extent: Extent) -> list[Opening]:
    """Return what L-BFGS with dealers opens: scores, if these are open, and gradients with noise."""
    found, root, rows = Declaration(plan, extent), plan.evaluator, extent.rows
    found.gates()
    terms = blind.noisy or Noisy(passes=plan.pace.epochs, noise=0.0)
    every, products = "in every pass", 2 * inner_products(terms.passes)
    found.total("row lengths", 1, root, Topic.TRAIN, "at the start", rows=1)
    if blind.hidden is None:
        found.total("scores", terms.passes * rows, root, Topic.TRAIN, every)
    else:
        mate, masked = blind.hidden.mate, terms.passes * rows
        found.total("masked", masked, mate, Topic.TRAIN, every, about="nothing", of=())
    found.total("inner products", products, root, Topic.TRAIN, every)
    found.total("scores", rows + extent.test, root, Topic.TRAIN, "in the end")
    found.total("penalties", 2, root, Topic.TRAIN, "in the end", rows=0)
    found.told("model", 2, root, Announce, Topic.TRAIN, "at the start", about="labels")
    found.told(
        "inner products",
        products,
        root,
        Announce,
        Topic.TRAIN,
        every,
        about="columns",
        of=plan.parties,
    )
    for party in plan.parties:
        sizes = 2 * len(plan.parties)
        found.told("sizes", sizes, party, Announce, Topic.BLIND, "at the start", about="nothing", rows=0)
        if party != root:
            _gradients(found, terms, party, every, about="labels", of=plan.label_holders)
        elif blind.hidden is not None:
            passes = terms.passes  # a proof it computes by itself
            _gradients(found, terms, party, every, about="columns", of=found.others(party), times=passes)
    found.told(  # the sign of theta, drawn by chance
        "sizes",
        terms.proofs,
        root,
        Announce,
        Topic.TRAIN,
        "in the end",
        about="nothing",
        bits=1,
        carried=DOUBLE,
    )
    return found.openings


def of_encrypted(plan: Plan[FullSettings], terms: Encrypted, extent: Extent) -> list[Opening]:
    """Return what an encrypted run opens."""
    found = Declaration(plan, extent)
    found.gates()
    for party in plan.parties:
        beginning, every, ending = "at the start", "in every pass", "in the end"
        width, passes = extent.width(party), terms.passes
        _told(found, "sizes", width + 2 + 2, party, beginning, CODE_BITS)
        _told(found, "sizes", passes * CODES, party, every, CODE_BITS)
        _told(found, "inner products", inner_products(passes), party, every, PRODUCT_BITS)
        _told(found, "sizes", CODES, party, ending, CODE_BITS)
        if party != plan.evaluator:
            _told(found, "penalties", 2, party, ending, DOUBLE)
            _told(found, "scores", extent.test, party, ending, SCORE_BITS)
        # each hears the noisy gradient of its own columns, out of words that are uniform to it
        about: About = "labels" if party != plan.evaluator else "columns"
        times = passes - (party == plan.evaluator)  # the first one is its own
        _gradients(found, terms, party, every, about=about, of=found.others(party), times=times)
    _losses(found)
    return found.openings


def of_parted(plan: Plan[FullSettings], extent: Extent) -> list[Opening]:
    """Return what a run opens whose weights stay in parts: sizes, and in the end how good the model is."""
    found, root = Declaration(plan, extent), plan.evaluator
    found.gates()
    for party in plan.parties:
        _told(found, "sizes", 2 + 3 * (party == root), party, "at the start", CODE_BITS)
        _told(found, "sizes", CODES, party, "in the end", CODE_BITS)
        if party != root:
            # sums of both in one number each, in parts that are uniform but for what they add up to
            _told(found, "penalties", 3, party, "in the end", DOUBLE)
    bits = SCORE_BITS + 4  # in steps of 1/256
    found.product("scores", extent.test, root, Topic.PREDICT, "in the end", about="columns", bits=bits)
    _losses(found)
    return found.openings


def _gradients(
    found: Declaration,
    terms: Noisy,
    to: str,
    when: str,
    *,
    about: About,
    of: Iterable[str],
    times: int | None = None,
) -> None:
    """Write down the gradients of a party's own columns, with noise: as often as it is told one."""
    numbers = found.extent.width(to) * (terms.releases if times is None else times)
    bits = log2(2 + found.extent.rows / max(terms.noise, 1.0))
    found.product("column gradients", numbers, to, Topic.BLIND, when, about=about, of=of, bits=bits)


def _losses(found: Declaration) -> None:
    """Write down the sum of all rows' losses, in stretches of rows: the others' columns are in it."""
    root, stretches = found.plan.evaluator, most_stretches(found.extent.rows)
    found.product("losses", stretches, root, Topic.BLIND, "in the end", about="columns")


def _told(found: Declaration, kind: Kind, numbers: int, by: str, when: str, bits: float) -> None:
    """Write down numbers that travel in eight bytes each, with fewer bits that say anything."""
    found.told(
        kind,
        numbers,
        by,
        Announce,
        Topic.BLIND,
        when,
        about="columns",
        bits=bits,
        carried=DOUBLE,
    )
