"""Measures the weights of a blind run against vectors drawn by chance, before anybody is told them.

Weights are X'C, and C is the label holder's. Of random D it hears X X'D, which say of C what the scores X X'C
say of D: a word that was wrong in any round, a dealer's or an owner's, or is wrong in these, shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from colonnade.conversations.blind.all_rows import add_all, all_scores

if TYPE_CHECKING:
    from colonnade.conversations.linear.parties.blind import BlindParty


async def prove(training: BlindParty) -> None:
    """Make as many random measurements as the plan says; SumError at the label holder if one does not fit."""
    blind, products, label_holder = training.context.plan.blind, training.products, training.label_holder
    for number in range(0 if blind is None else blind.proofs):
        await products.flush()
        training.since = 0
        products.clear(training.q)
        drawn = None if label_holder is None else label_holder.drawn(number)
        await add_all(products, training.q, drawn)
        total = await all_scores(products, "train", training.both)
        if label_holder is not None and total is not None:
            label_holder.proves(total)
