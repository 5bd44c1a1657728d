"""What a coalition of parties can work out from the messages of products (`secure.product`).

Every message is a polynomial in numbers that somebody knows: columns X, what is added t, parts of weights p
and s, and words M, a, v, r. What a coalition's members know are constants to it; products of what they do not
know are unknowns of their own. What is left are linear forms, and a number is learnt if it is a combination
of them. That is exact for what linear algebra can do with the messages of some rounds; each number stands for
a whole array, and the sum of scores is taken as an ideal one (`attacks.coalitions` looks into it).

Computed modulo a prime, with the members' numbers drawn at random: a wrong answer has a chance of 2^-50.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from colonnade.secure.streams import Roles

PRIME = 2**61 - 1

Monomial = tuple[str, ...]
Polynomial = dict[Monomial, int]
"""A sum of products of named numbers, each with its coefficient."""


@dataclass(frozen=True)
class Products:
    """The messages of some rounds of a blind run: what every party knows by itself, and what it is sent.

    `values` are the numbers that are worth something to somebody; all others are random words.
    """

    parties: tuple[str, ...]
    values: tuple[str, ...]
    knows: Mapping[str, frozenset[str]]
    receives: Mapping[str, tuple[Polynomial, ...]]


class _Record:
    """Collects who knows and who is sent what."""

    def __init__(self, *parties: str) -> None:
        self.knows: dict[str, set[str]] = {party: set() for party in parties}
        self.receives: dict[str, list[Polynomial]] = {party: [] for party in parties}
        self.values: list[str] = []

    def known(self, name: str, *parties: str) -> str:
        """Return a word that these parties know."""
        for party in parties:
            self.knows[party].add(name)
        return name

    def value(self, name: str, *parties: str) -> str:
        """Return a number that is worth something, and who has it."""
        if name not in self.values:
            self.values.append(name)
        return self.known(name, *parties)

    def veiled(self, roles: Roles, first: bool) -> tuple[str, str]:
        """Return the names of a block's X and of M, which its owner and one dealer know; its asker is sent
        the difference once."""
        X = self.value(f"X of {roles.owner}", roles.owner)
        M = self.known(f"M of {roles.owner} for {roles.asker}", roles.owner, roles.dealer)
        if first:
            self.receives[roles.asker].append({(X,): 1, (M,): -1})
        return X, M

    def products(self) -> Products:
        return Products(
            tuple(sorted(self.knows)),
            tuple(self.values),
            {party: frozenset(names) for party, names in self.knows.items()},
            {party: tuple(forms) for party, forms in self.receives.items()},
        )


def product_messages(
    asker: str, dealers: Mapping[str, str], rounds: int = 2, reused: frozenset[str] = frozenset()
) -> Products:
    """Return all messages of some rounds in which scores are asked for and something is added, for every
    owner.

    `reused` are kinds of words (a, v, r) that do not change from one round to the next, as they must.
    """
    record = _Record(asker, *dealers, *dealers.values())
    for k in range(rounds):
        t = record.value(f"t{k}", asker)
        total: Polynomial = {}
        for owner, dealer in dealers.items():
            roles = Roles(asker, owner, dealer)
            X, M = record.veiled(roles, first=not k)
            p = record.value(f"p{k} of {owner}", owner)
            s = record.value(f"s{k} of {owner}", asker)
            a, v, r = (f"{kind}{0 if kind in reused else k} of {owner}" for kind in "avr")
            record.known(a, asker, dealer)
            record.known(v, asker, dealer)
            record.known(r, owner, dealer)
            record.receives[owner] += [{(t,): 1, (a,): -1}, {(s,): 1, (v,): -1}]
            record.receives[asker].append({_times(M, a): 1, (r,): 1})
            total |= {_times(X, p): 1, _times(X, s): 1}
        record.receives[asker].append(total)
    return record.products()


def hidden_messages(
    asker: str, mate: str, dealer: str, first: Mapping[str, str], second: Mapping[str, str], rounds: int = 2
) -> Products:
    """Return the same for runs that hide scores z as well; `first` and `second` are dealers of the two
    askers.

    t is A's t1 plus B's part of it. What is dealt for sines are words of the phase r = r1 + r2; the
    division of a penalty hides in the same way, with words of its own.
    """
    record = _Record(asker, mate, dealer, *first, *first.values(), *second.values())
    for k in range(rounds):
        t, z = record.value(f"t{k}"), record.value(f"z{k}")
        t1, rho = record.known(f"t1 {k}", asker), record.known(f"rho{k}", mate)
        r1, r2 = record.known(f"r1 {k}", asker, dealer), record.known(f"r2 {k}", mate, dealer)
        record.receives[mate] += [{(t,): 1, (t1,): -1}, {(z,): 1, (rho,): -1, (r1,): -1}]
        record.receives[asker] += [{(z,): 1, (rho,): -1}, {(rho,): 1, (r2,): -1}]
        parts: tuple[Polynomial, Polynomial] = ({(t1,): 1}, {(t,): 1, (t1,): -1})
        for who, dealers, part in zip((asker, mate), (first, second), parts, strict=True):
            for owner, helper in dealers.items():
                roles = Roles(who, owner, helper)
                X, M = record.veiled(roles, first=not k)
                names = [f"{kind}{k} of {owner} for {who}" for kind in "avrn"]
                a, v = (record.known(name, who, helper) for name in names[:2])
                r, n = record.known(names[2], owner, helper), record.known(names[3], asker, mate)
                record.receives[owner].append({**part, (a,): -1})
                record.receives[who].append({_times(M, a): 1, (r,): 1})
                record.value(f"p{k} of {owner}", owner)
                if who == mate and owner != asker:
                    record.receives[owner].append({_times(X, a): 1, (r,): 1, (n,): -1})
                else:
                    s = record.value(f"s{k} of {owner}", who)
                    record.receives[owner].append({(s,): 1, (v,): -1})
    return record.products()


def _times(one: str, other: str) -> Monomial:
    return (one, other) if one < other else (other, one)


def learnt(products: Products, coalition: Iterable[str]) -> frozenset[str]:
    """Return the values that a coalition works out, beside those that its members have by themselves.

    >>> graph = product_messages("bank", {"shop": "telco", "telco": "shop"})
    >>> [sorted(learnt(graph, {party})) for party in graph.parties]
    [[], [], []]
    >>> sorted(learnt(graph, {"bank", "telco"}))[:1]
    ['X of shop']
    """
    members = frozenset(coalition)
    own = frozenset[str]().union(*(products.knows[party] for party in members))
    drawn = random.Random(0)  # noqa: S311  any numbers will do
    constant = {name: drawn.randrange(1, PRIME) for name in sorted(own)}
    rows: dict[Monomial, dict[Monomial, int]] = {}
    for party in sorted(members):
        for form in products.receives[party]:
            _insert(rows, _reduced(form, constant), frozenset(products.values))
    return frozenset(
        name
        for name in products.values
        if name not in own and not _remainder(rows, {(name,): 1}, frozenset(products.values))
    )


def _reduced(form: Polynomial, constant: Mapping[str, int]) -> dict[Monomial, int]:
    """Return a polynomial in what the coalition does not know; what it knows is a constant, and () the number
    1."""
    found: dict[Monomial, int] = {}
    for monomial, coefficient in form.items():
        left = tuple(name for name in monomial if name not in constant)
        for name in monomial:
            coefficient = coefficient * constant.get(name, 1) % PRIME
        found[left] = (found.get(left, 0) + coefficient) % PRIME
    found.pop((), None)
    return {monomial: c for monomial, c in found.items() if c}


def _lead(row: Mapping[Monomial, int], values: frozenset[str]) -> Monomial:
    """Return what is eliminated first: anything with a random word in it, then products, then single
    values."""
    return max(row, key=lambda m: (any(name not in values for name in m), len(m), m))


def _remainder(
    rows: Mapping[Monomial, Mapping[Monomial, int]], row: dict[Monomial, int], values: frozenset[str]
) -> dict[Monomial, int]:
    """Return what is left of a form once all that the rows explain is taken away."""
    done: dict[Monomial, int] = {}
    while row:
        lead = _lead(row, values)
        if lead not in rows:
            done[lead] = row.pop(lead)
            continue
        pivot, factor = rows[lead], row[lead] * pow(rows[lead][lead], -1, PRIME) % PRIME
        row = {
            m: c
            for m in row.keys() | pivot.keys()
            if (c := (row.get(m, 0) - factor * pivot.get(m, 0)) % PRIME)
        }
    return done


def _insert(
    rows: dict[Monomial, dict[Monomial, int]], row: dict[Monomial, int], values: frozenset[str]
) -> None:
    left = _remainder(rows, row, values)
    if left:
        rows[_lead(left, values)] = left


def coalition_rows(products: Products, upto: int = 2) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Yield every coalition of at most `upto` parties, and the values that it works out."""
    for size in range(1, upto + 1):
        for coalition in combinations(products.parties, size):
            yield frozenset(coalition), learnt(products, coalition)
