"""What parties that collude work out from the messages of a run: derived, and not measured.

Of every sum from the graph of its messages (`coalitions`), of blind products from their polynomials
(`product_coalitions`). Both are exact for what linear algebra can do with these messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import Any

from colonnade.attacks import coalitions
from colonnade.attacks.product_coalitions import Products, hidden_messages, learnt, product_messages
from colonnade.conversations.align import most_written
from colonnade.findings import Finding
from colonnade.job.plan import Plan
from colonnade.run.registry import CONVERSATIONS

MOST = 1500  # coalitions that are looked at, the smallest first
BY_PRODUCTS = ("backward", "full")  # conversations whose blind rounds are products
DERIVED = "derived from the messages, for parties that follow the protocol and pool what they have"


def derived(plan: Plan[Any]) -> Iterator[Finding]:
    """Yield what coalitions of this run's parties learn."""
    if len(plan.parties) > 2 and "no-sum" not in CONVERSATIONS[plan.conversation].traits:
        yield _from_sums(plan)
    if len(plan.parties) > 1:
        yield from of_ids()
    if plan.blind is not None and plan.blind.dealers and plan.conversation in BY_PRODUCTS:
        yield from _from_products(_products(plan))


def of_ids(ids: int = 100_000) -> Iterator[Finding]:
    """Yield what a peer finds out about another's ids, between daemons: no audit of one machine has any.

    A follower that solves equations writes more ids into its tables than it announced. Who asks for scores
    learns which ids are held.
    """
    packed = most_written(ids, ids, "curve")
    yield Finding(
        attack="ids from packed tables",
        by="any peer",
        aim="ids",
        success=f"{packed / ids:.2f} times the {ids:,} ids that it announced",
        note="derived; it is counted by the size of its tables, so limits hold all the same",
        closed_by="limits.ids, limits.ids_ratio",
    )
    yield Finding(
        attack="ids by asking for scores",
        by="any peer",
        aim="ids",
        success="at most 1,000 ids that are not common a day, or a hundredth of the own ids if more",
        note="derived; ids that are common do not count, the same set again costs and tells nothing",
        closed_by="limits.missed_ids_a_day, policy.predict",
    )


def _from_sums(plan: Plan[Any]) -> Finding:
    """Return the smallest coalition that learns more than the totals of the run's sums."""
    attack, q = "more than the total of a sum, together", len(plan.parties)
    if plan.secure_sum not in coalitions.GRAPHS:
        return Finding(
            attack=attack,
            by="any parties",
            success="not derived",
            note=f"nobody has written down the messages of a {plan.secure_sum} sum",
        )
    root = plan.parties.index(plan.evaluator)
    graph = coalitions.GRAPHS[plan.secure_sum](q, root, plan.neighbours)
    upto = _looked_at(q)
    found = coalitions.smallest_leaking_coalition(graph, upto)
    if found is None:
        return Finding(attack=attack, by=f"any {upto} of {q} parties", success="nothing", note=DERIVED)
    names = " and ".join(plan.parties[place] for place in sorted(found))
    some = f"some {len(found)} of {q} parties"  # of a circle that is drawn again in every run
    return Finding(
        attack=attack,
        by=names if plan.neighbours is None else some,
        success="partial scores of another party, or sums of some",
        note=DERIVED,
    )


def _looked_at(q: int) -> int:
    """Return the largest size of coalitions of which, with all smaller ones, there are not too many."""
    size, tried = 1, q
    while size < q - 1 and tried + comb(q, size + 1) <= MOST:
        size += 1
        tried += comb(q, size)
    return size


def _products(plan: Plan[Any]) -> Products:
    blind = plan.blind
    if blind is None:
        raise TypeError("this run has no products")
    if blind.hidden is None:
        return product_messages(plan.evaluator, blind.dealers)
    hidden = blind.hidden
    return hidden_messages(plan.evaluator, hidden.mate, hidden.dealer, blind.dealers, hidden.dealers)


def _from_products(products: Products) -> Iterator[Finding]:
    """Yield what pairs of parties of a blind run learn, a row for every kind of number."""
    if comb(len(products.parties), 2) > MOST:
        return
    pairs = {pair: learnt(products, pair) for pair in combinations(products.parties, 2)}
    for attack, success, kind in (
        ("labels from products, together", "dL/dz of every row", "t"),
        ("scores from products, together", "the total score of every row", "z"),
        ("columns from products, together", "all columns of a third party", "X"),
    ):
        by = [" and ".join(pair) for pair, names in pairs.items() if any(n[0] == kind for n in names)]
        if any(name[0] == kind for name in products.values):
            reached = success if by else "nothing"
            yield Finding(attack=attack, by="; ".join(by) or "any two", success=reached, note=DERIVED)
