"""Weight of evidence under encryption: the numbers of clear text without noise, and nobody sees a count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.conversations.test_woe import TERMS, binned, labels
from tests.oracles import woe as oracle

from colonnade.conversations import woe_encrypted as module
from colonnade.conversations.woe import Binned, Evidenced
from colonnade.conversations.woe_encrypted import weigh_masked_as_label_holder, weigh_masked_as_party
from colonnade.errors import ColonnadeError, DataError, ProtocolError, UndeclaredOpening
from colonnade.messages import Announce, Message, Sealed
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.openings.account import heard
from colonnade.openings.limits import OpeningLimits
from colonnade.openings.opening import Opening
from colonnade.privacy.counts import CountNoise
from colonnade.secure.lattice.histograms import decrypted_sums

Change = Callable[[str, Message], Message]
ROWS = 400


class Seen:
    """What parties sent, and what they said that they would."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Message]] = []
        self.told: list[Opening] = []


def together(
    own: dict[str, Binned],
    noise: CountNoise | None = None,
    seen: Seen | None = None,
    change: Change = lambda me, message: message,
    rows: int = ROWS,
    *,
    declared: bool = True,
) -> dict[str, Evidenced]:
    y, watched = labels(rows), seen or Seen()

    class Watched(Endpoint):
        async def send(self, to: str, message: Message) -> None:
            watched.messages.append((self.me, message))
            await super().send(to, change(self.me, message))

    async def main() -> dict[str, Evidenced]:
        hub, names = LocalHub(), tuple(sorted(own))
        nets = {me: Watched(me, names, hub.wire(me), RealClock(), run=1, deadline=20) for me in names}

        async def one(me: str) -> Evidenced:
            limits = OpeningLimits((), me)
            nets[me].declare(limits)

            async def book(told: list[Opening]) -> None:
                watched.told += told
                for each in told if declared else ():
                    limits.allow(each)

            try:
                if me == "bank":
                    return await weigh_masked_as_label_holder(
                        nets[me], y, own[me], TERMS, noise or CountNoise(), book
                    )
                return await weigh_masked_as_party(nets[me], "bank", own[me], TERMS, book, b"own key")
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


@pytest.mark.parametrize("parties", [2, 4])
def test_without_noise_it_is_the_weight_of_evidence_of_clear_text(parties: int) -> None:
    names = ["bank", "post", "shop", "telco"][:parties]
    own = {name: binned(k) for k, name in enumerate(names)}
    found = together(own)
    bad = (labels() > 0).tolist()
    for name in names:
        for each, codes in zip(found[name].columns, own[name].codes, strict=True):
            joined = np.array(each.group)[codes].tolist()
            weights, iv = oracle.woe(oracle.counts(joined, bad))
            assert list(each.woe) == pytest.approx([weights[k] for k in range(len(each.woe))], abs=1e-12)
            assert each.iv == pytest.approx(iv, abs=1e-12)
            assert min(*_bads(joined, bad), *_bads(joined, [not b for b in bad])) >= TERMS.cases
    assert set(found["bank"].counts) == {"bank"}  # nobody's but its own


def _bads(joined: list[int], bad: list[bool]) -> list[int]:
    found: list[int] = np.bincount(joined, weights=np.array(bad, dtype=float)).astype(int).tolist()
    return found


def test_rows_of_several_stretches_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STRETCH", 96)  # the last stretch is shorter
    own = {"bank": binned(0), "shop": binned(1)}
    stretched = together(own)["shop"].columns
    monkeypatch.undo()
    assert stretched == together(own)["shop"].columns


def test_what_the_label_holder_reads_is_uniform_and_no_count() -> None:
    own, read = {"bank": binned(0), "shop": binned(1)}, []
    original = decrypted_sums

    def watched(*given: Any) -> Any:
        sums = original(*given)
        read.append(sums / given[1].ring.plain)
        return sums

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "decrypted_sums", watched)
        for _ in range(25):
            together(own)
    parts = np.concatenate(read)
    assert len(parts) > 200
    at = np.arange(1, len(parts) + 1) / len(parts)
    assert np.abs(np.sort(parts) - at).max() < 1.95 / np.sqrt(len(parts))  # Kolmogorov-Smirnov, 0.1%


def test_a_party_hears_its_counts_with_the_noise_of_its_columns() -> None:
    own = {"bank": binned(0), "shop": binned(1)}
    exact = np.concatenate(
        [np.bincount(codes[labels() > 0], minlength=each.count) for each, codes in _columns(own["shop"])]
    )
    off = []
    original = module._counts
    with pytest.MonkeyPatch.context() as patch:

        def watched(binned: Binned, bads: Any) -> Any:
            off.append(bads - exact)
            return original(binned, bads)

        patch.setattr(module, "_counts", watched)
        for k in range(40):
            together(own, CountNoise(2.0, bytes([k]) * 32))
    deviation = np.concatenate(off).std()
    assert deviation == pytest.approx(2 * np.sqrt(2), rel=0.12)  # two columns, and rounding


def _columns(binned: Binned) -> Any:
    return zip(binned.bins, binned.codes, strict=True)


def test_the_same_bins_are_told_with_the_same_noise_and_others_with_other() -> None:
    noise = CountNoise(2.0, b"k" * 32)
    own = {"bank": binned(0), "shop": binned(1)}
    first, again = together(own, noise)["shop"], together(own, noise)["shop"]
    assert first.columns == again.columns
    codes = [each.copy() for each in own["shop"].codes]
    codes[0][0], codes[0][1] = codes[0][1], (codes[0][0] + 1) % own["shop"].bins[0].count
    changed = {**own, "shop": replace(own["shop"], codes=codes)}
    assert together(changed, noise)["shop"].columns != first.columns


def test_all_that_leaves_is_declared_and_nothing_else_leaves() -> None:
    seen, own = Seen(), {"bank": binned(0), "shop": binned(1)}
    together(own, CountNoise(2.0), seen)
    bins = sum(each.count for each in own["shop"].bins)
    found = {(each.hearer, each.about): each for each in heard(seen.told, ROWS)}
    assert set(found) == {("shop", "labels")}  # the label holder hears nothing of anybody's columns
    assert found["shop", "labels"].numbers == bins
    assert {type(message) for _, message in seen.messages} == {Announce, Sealed}
    shown = [message.values.size for me, message in seen.messages if isinstance(message, Announce)]
    assert sorted(shown) == [2, 2, bins]
    with pytest.raises(UndeclaredOpening, match="does not open"):
        together(own, declared=False)


def test_a_party_without_columns_takes_part() -> None:
    found = together({"bank": binned(0), "notary": Binned([], []), "shop": binned(1)})
    assert found["notary"].columns == []
    assert found["shop"].columns == together({"bank": binned(0), "shop": binned(1)})["shop"].columns


def test_rows_that_are_not_the_same_are_refused() -> None:
    with pytest.raises(DataError, match="bank has 300 rows, shop has 400; align them first"):
        together({"bank": binned(0, 300), "shop": binned(1)}, rows=300)


@pytest.mark.parametrize("sender", ["bank", "shop"])
def test_what_is_malformed_is_refused_by_name(sender: str) -> None:
    def broken(me: str, message: Message) -> Message:
        if me == sender and isinstance(message, Sealed) and len(message.body) > 40:
            return Sealed(message.tag, message.body[:-9])
        return message

    with pytest.raises(ProtocolError, match=sender):
        together({"bank": binned(0), "shop": binned(1)}, change=broken)


def test_bins_of_too_few_rows_are_not_added_up() -> None:
    few = replace(binned(1), codes=[np.zeros(ROWS, dtype=np.int64) for _ in range(2)])
    with pytest.raises(DataError, match=r"shop: a bin has 0 rows, woe\.least asks for 15"):
        together({"bank": binned(0), "shop": few})
