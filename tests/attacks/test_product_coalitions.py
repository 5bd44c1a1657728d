"""Who must collude to learn something from the messages of products."""

from __future__ import annotations

from itertools import combinations

import pytest

from colonnade.attacks.product_coalitions import (
    Products,
    coalition_rows,
    hidden_messages,
    learnt,
    product_messages,
)
from colonnade.run.blind import dealers_of, hidden_of

OWNERS = ["card", "shop", "telco"]


def mutual() -> Products:
    return product_messages("bank", dealers_of(OWNERS, OWNERS))


def neutral() -> Products:
    return product_messages("bank", dealers_of(OWNERS, [*OWNERS, "notary"], "notary"))


@pytest.mark.parametrize("products", [mutual(), neutral()], ids=["mutual", "neutral"])
def test_nobody_alone_learns_anything(products: Products) -> None:
    assert all(not found for coalition, found in coalition_rows(products, upto=1))


def test_an_owner_and_its_dealer_learn_what_is_added_and_the_other_part_of_its_weights() -> None:
    found = learnt(mutual(), {"card", "shop"})  # the shop deals for the card
    assert found == {"t0", "t1", "s0 of card", "s1 of card"}
    assert learnt(neutral(), {"card", "notary"}) == found
    assert not learnt(neutral(), {"card", "shop"})  # owners together, with a neutral dealer


def test_the_label_holder_and_a_dealer_learn_the_columns_it_served() -> None:
    assert "X of card" in learnt(mutual(), {"bank", "shop"})
    assert "X of shop" not in learnt(mutual(), {"bank", "shop"})
    assert {"X of card", "X of shop", "X of telco"} <= learnt(neutral(), {"bank", "notary"})
    assert not learnt(neutral(), {"bank", "card"})


def test_with_a_neutral_dealer_every_harmful_pair_has_it() -> None:
    for pair in combinations(neutral().parties, 2):
        assert bool(learnt(neutral(), pair)) == ("notary" in pair)


def test_with_one_owner_the_label_holder_s_total_is_that_owner_s_score_and_no_value() -> None:
    alone = product_messages("bank", {"shop": "notary"})
    assert not learnt(alone, {"bank"})  # X (p + s) is known then; neither X nor p follows from it


def hiding(*, neutral: bool) -> Products:
    """A bank, a shop as its mate, and three more owners; a notary, or owners that deal."""
    owners, helper = ["shop", "telco", "card", "power"], "notary" if neutral else None
    others = [*owners, "notary"] if neutral else owners
    first = dealers_of(owners, others, helper)
    hidden = hidden_of("bank", first, others, helper)
    return hidden_messages("bank", hidden.mate, hidden.dealer, first, hidden.dealers)


@pytest.mark.parametrize("neutral", [True, False])
def test_where_scores_are_hidden_nobody_alone_learns_anything(neutral: bool) -> None:
    products = hiding(neutral=neutral)
    assert all(not learnt(products, {party}) for party in products.parties)


def test_the_holders_of_scores_learn_them_together_or_with_the_dealer() -> None:
    products = hiding(neutral=True)
    told = {pair: learnt(products, pair) for pair in combinations(products.parties, 2)}
    scores = {frozenset(pair) for pair, found in told.items() if {"z0", "z1"} <= found}
    assert scores == {frozenset(p) for p in (("bank", "shop"), ("bank", "notary"), ("notary", "shop"))}
    assert {"t0", "t1"} <= told["bank", "shop"]
    assert all("notary" in pair or "bank" in pair for pair, found in told.items() if found)


def test_an_owner_needs_the_dealers_of_both_askers_to_learn_theta() -> None:
    products = hiding(neutral=False)
    # power deals for the bank's products with card, telco for the shop's
    assert "t0" not in learnt(products, {"card", "power"})
    assert "t0" in learnt(products, {"card", "power", "telco"})
    assert "t0" in learnt(hiding(neutral=True), {"card", "notary"})


def test_the_label_holder_and_an_owner_follow_that_owner_s_weights() -> None:
    """And so its part of every gradient: a number stands for an array here, so that is as good as theta."""
    for owner in ("card", "power"):
        assert learnt(hiding(neutral=True), {"bank", owner}) == {"t0", "t1"}


@pytest.mark.parametrize(("word", "who"), [("r", "bank"), ("a", "shop"), ("v", "shop")])
def test_a_word_that_is_used_twice_can_give_something_away(word: str, who: str) -> None:
    products = product_messages("bank", {"shop": "telco", "telco": "shop"}, reused=frozenset(word))
    if word == "r":  # two products with the same word: M (a - a'), and A knows both a
        assert "X of shop" in learnt(products, {who})
    else:  # a difference of two values, and with any one of them the other
        assert not learnt(products, {who})
        known = Products(
            products.parties,
            products.values,
            {**products.knows, who: products.knows[who] | {"t0", "s0 of shop"}},
            products.receives,
        )
        assert {"a": "t1", "v": "s1 of shop"}[word] in learnt(known, {who})
        fresh = product_messages("bank", {"shop": "telco", "telco": "shop"})
        assert not learnt(Products(fresh.parties, fresh.values, known.knows, fresh.receives), {who})
