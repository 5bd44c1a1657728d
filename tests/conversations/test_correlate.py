"""Correlations of several parties' columns: those of pooled columns, and told with noise and in steps."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from colonnade.conversations.correlate import Correlating, CorrelationTerms, hidden_names
from colonnade.data.table import Table
from colonnade.describe.joint import JointCorrelations
from colonnade.describe.own import UnitColumns
from colonnade.errors import ColonnadeError, DataError, ProtocolError, UndeclaredOpening
from colonnade.messages import Announce, Message, Sealed
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.openings.account import heard
from colonnade.openings.limits import OpeningLimits
from colonnade.openings.opening import Opening

ROWS = 1500
WIDTHS = {"bank": 3, "shop": 2, "telco": 4}


def columns(*names: str, rows: int = ROWS) -> dict[str, UnitColumns]:
    """Columns that go together; the bank has a label. One is rare, one has a long tail."""
    rng = np.random.default_rng(7)
    common = rng.normal(size=rows)
    found = {}
    for name in names:
        X = rng.normal(size=(rows, WIDTHS[name])) + np.outer(common, rng.normal(size=WIDTHS[name]))
        X[:, 0] = np.exp(X[:, 0])
        X[:, 1] = rng.random(rows) < 0.01 + 0.1 * (common > 1)
        y = (common + rng.normal(size=rows) > 0).astype(float) if name == "bank" else None
        titles = tuple(f"{name}{k}" for k in range(X.shape[1]))
        found[name] = UnitColumns.of(Table(name, titles, 100 * X + 7), y)
    return found


class Seen:
    def __init__(self) -> None:
        self.messages: list[tuple[str, str, Message]] = []
        self.told: list[Opening] = []


def together(
    own: dict[str, UnitColumns],
    noise: float = 0.0,
    seen: Seen | None = None,
    *,
    declared: bool = True,
    secret: str = "",
    change: Any = lambda me, message: message,
) -> dict[str, JointCorrelations]:
    watched = seen or Seen()

    class Watched(Endpoint):
        async def send(self, to: str, message: Message) -> None:
            watched.messages.append((self.me, to, message))
            await super().send(to, change(self.me, message))

    async def main() -> dict[str, JointCorrelations]:
        hub, names = LocalHub(), tuple(sorted(own))
        nets = {me: Watched(me, names, hub.wire(me), RealClock(), run=1, deadline=20) for me in names}

        async def one(me: str) -> JointCorrelations:
            limits = OpeningLimits((), me)
            nets[me].declare(limits)

            async def book(told: list[Opening]) -> None:
                watched.told += told
                for each in told if declared else ():
                    limits.allow(each)

            key = f"secret {secret} of {me}".encode()
            try:
                terms = CorrelationTerms(noise, own[me].rows)
                return await Correlating(nets[me], own[me], terms, key, book).joint()
            except ColonnadeError as error:
                for net in nets.values():
                    net.fail(error)
                raise

        try:
            done = await asyncio.gather(*(one(me) for me in names))
        finally:
            for net in nets.values():
                await net.close()
        return dict(zip(names, done, strict=True))

    return asyncio.run(main())


def pooled(own: dict[str, UnitColumns], joint: JointCorrelations) -> np.ndarray[Any, np.dtype[np.float64]]:
    by_name = {
        (party, name): each.Z[:, k] for party, each in own.items() for k, name in enumerate(each.names)
    }
    return np.asarray(np.corrcoef(np.column_stack([by_name[name] for name in joint.names]).T))


@pytest.mark.parametrize("names", [("bank", "shop"), ("bank", "shop", "telco")])
def test_what_is_computed_is_the_correlation_of_pooled_columns(names: tuple[str, ...]) -> None:
    own = columns(*names)
    found = together(own)
    for joint in found.values():
        assert joint.names[-1] == ("bank", "(label)")
        assert joint.names == found["bank"].names
        np.testing.assert_allclose(joint.R, pooled(own, joint), atol=1e-6)
        np.testing.assert_array_equal(joint.R, found["bank"].R)


def test_what_is_told_has_the_noise_that_was_declared_in_steps_no_larger_than_it() -> None:
    own, noise = columns("bank", "shop"), 0.5
    off, between = [], []
    for k in range(30):
        found = together(own, noise, secret=str(k))["shop"]
        exact = pooled(own, found)
        inside = np.array([party == "bank" for party, _ in found.names])
        difference = found.R - exact
        between.append(difference[np.ix_(inside, ~inside)].ravel())
        block = difference[np.ix_(inside, inside)]
        off.append(block[np.triu_indices(len(block), 1)])
    terms = CorrelationTerms(noise, ROWS)
    assert terms.step <= noise * ROWS**-0.5
    alone = np.hypot(terms.deviation, terms.step / 12**0.5)
    assert np.concatenate(off).std() == pytest.approx(alone, rel=0.2)
    assert np.concatenate(between).std() == pytest.approx(terms.between, rel=0.2)
    assert found.noise == terms.between
    told = found.R[np.triu_indices(len(found.R), 1)] / terms.step
    np.testing.assert_array_equal(told, np.rint(told))


def test_who_asks_again_hears_the_same_and_of_other_columns_nothing_cancels() -> None:
    own = columns("bank", "shop")
    first = together(own, 0.5)["bank"].R
    np.testing.assert_array_equal(first, together(own, 0.5)["bank"].R)
    Z = own["shop"].Z.copy()
    Z[[0, 1]] = Z[[1, 0]]  # two rows change places
    changed = {**own, "shop": UnitColumns(own["shop"].names, Z, False)}
    again = together(changed, 0.5)["bank"].R
    moved = np.abs(again - first)[:3, 3:5]
    exact = np.abs(pooled(changed, together(changed)["bank"]) - pooled(own, together(own)["bank"]))[:3, 3:5]
    assert moved.max() > 5 * exact.max()


def test_all_that_leaves_is_declared_and_nothing_else_leaves() -> None:
    seen, own = Seen(), columns("bank", "shop", "telco")
    together(own, 0.5, seen)
    found = {(each.of, each.hearer, each.about): each for each in heard(seen.told, ROWS)}
    # every one hears of the bank's 3 columns: 3 pairs of them, 3 x 2 and 3 x 4 with others', 9 with its label
    assert found["bank", "shop", "columns"].numbers == 3 + 3 * 2 + 3 * 4
    assert found["bank", "telco", "labels"].numbers == 3 + 2 + 4
    assert found["shop", "bank", "columns"].numbers == 1 + 2 * 4 + 2 * 4
    assert {type(message) for _, _, message in seen.messages} == {Announce, Sealed}
    with pytest.raises(UndeclaredOpening, match="does not open"):
        together(own, declared=False)


def test_the_party_with_fewer_columns_asks() -> None:
    own, seen = columns("shop", "telco"), Seen()
    together(own, 0.5, seen)
    long = [me for me, _, message in seen.messages if isinstance(message, Sealed) and message.body.size > 99]
    assert long[0] == "shop"


def test_what_the_asker_returns_carries_noise_also_where_none_was_asked_for() -> None:
    own = columns("shop", "telco")
    sent: list[bytes] = []
    for secret in ("a", "b"):
        seen = Seen()
        together(own, 0.0, seen, secret=secret)
        bodies = [m.body for me, _, m in seen.messages if me == "shop" and isinstance(m, Sealed)]
        sent.append(bodies[-1].tobytes())
    assert sent[0] != sent[1]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Sealed, lambda message: Sealed(message.tag, message.body[:-1])),
        (Announce, lambda message: Announce(message.tag, message.values[:-1])),
        (Announce, lambda message: Announce(message.tag, message.values + 2**40)),
    ],
)
def test_what_is_malformed_is_refused_by_name(kind: type[Message], change: Any) -> None:
    def broken(me: str, message: Message) -> Message:
        return change(message) if me == "shop" and isinstance(message, kind) else message

    with pytest.raises(ProtocolError, match="shop"):
        together(columns("bank", "shop"), change=broken)


def test_other_rows_and_few_rows_are_refused() -> None:
    own = columns("bank", "shop")
    fewer = UnitColumns(own["shop"].names, own["shop"].Z[:1000], False)
    with pytest.raises(DataError, match=r"has 1\d00 rows, \w+ has 1\d00; align them first"):
        together({**own, "shop": fewer})
    with pytest.raises(DataError, match="noise drowns correlations of fewer than 100"):
        together(columns("bank", "shop", rows=60), 0.5)


def test_categories_are_numbered_where_others_hear_of_them() -> None:
    names = ["age", "city=Bonn", "city=Ulm", "age (missing)"]
    assert hidden_names(names, ["age", "city"]) == ("age", "city #1", "city #2", "age (missing)")
