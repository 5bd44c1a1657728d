"""WOE across parties is that of pooled columns, and nobody hears more than the conversation says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from tests.oracles import woe as oracle

from colonnade.conversations import woe as module
from colonnade.conversations.woe import Binned, Evidenced, weigh_as_label_holder, weigh_as_party
from colonnade.data.prepare.bins import category_bins, number_bins
from colonnade.errors import ColonnadeError, DataError, ProtocolError
from colonnade.job import Woe
from colonnade.messages import Evidence, Message, SealedLabels, Sealing, Tally
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.privacy.counts import CountNoise
from colonnade.run.party import first_cause

TERMS = Woe(bins=6, least=15, cases=5, most=4)
Change = Callable[[Message], Message]


def binned(seed: int, rows: int = 400) -> Binned:
    rng = np.random.default_rng(seed)
    plain = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows))
    text = rng.choice(["red", "green", "blue"], size=rows).astype(object)
    bins = [number_bins("plain", plain, 6, 15), category_bins("text", text, 15)]
    return Binned(bins, [bins[0].codes(plain), bins[1].codes(text)])


def labels(rows: int = 400) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.where(np.random.default_rng(9).random(rows) < 0.3, 1.0, -1.0)


def together(
    own: dict[str, Binned],
    y: np.ndarray[tuple[int], np.dtype[np.float64]],
    terms: Woe = TERMS,
    change: Change = lambda message: message,
) -> dict[str, Evidenced]:
    """Weigh in one process; `change` alters what parties send."""

    class Changing(Endpoint):
        async def send(self, to: str, message: Message) -> None:
            await super().send(to, change(message))

        async def broadcast(self, message: Message) -> None:
            await super().broadcast(change(message))

    async def main() -> dict[str, Evidenced]:
        hub, names = LocalHub(), tuple(sorted(own))
        nets = {me: Changing(me, names, hub.wire(me), RealClock(), run=1, deadline=20) for me in names}

        async def one(me: str) -> Evidenced:
            try:
                if me == "bank":
                    return await weigh_as_label_holder(nets[me], y, own[me], terms, CountNoise())
                return await weigh_as_party(nets[me], "bank", own[me], terms)
            except BaseException as error:
                cause = first_cause(error)
                if isinstance(cause, ColonnadeError):
                    for net in nets.values():
                        net.fail(cause)
                raise cause from error

        try:
            done = await asyncio.gather(*(one(me) for me in names))
        finally:
            for net in nets.values():
                await net.close()
        return dict(zip(names, done, strict=True))

    return asyncio.run(main())


def test_every_party_has_the_woe_of_pooled_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 64)
    own = {name: binned(k) for k, name in enumerate(("bank", "post", "shop"))}
    y = labels()
    done = together(own, y)
    for name, evidenced in done.items():
        for weighed, codes in zip(evidenced.columns, own[name].codes, strict=True):
            joined = [weighed.group[code] for code in codes.tolist()]
            expected, iv = oracle.woe(oracle.counts(joined, (y > 0).tolist()))
            np.testing.assert_allclose(
                weighed.woe, [expected[k] for k in range(len(weighed.woe))], atol=1e-12
            )
            assert weighed.iv == pytest.approx(iv, abs=1e-12)
            assert 2 <= len(weighed.woe) <= TERMS.most + 1  # gaps keep their own bin
    counts = done["bank"].counts
    assert done["post"].counts == {}
    for name, each in counts.items():
        for tally, codes in zip(each, own[name].codes, strict=True):
            naive = oracle.counts(codes.tolist(), (y > 0).tolist())
            assert [(r - b, b) for r, b in zip(tally.rows, tally.bads, strict=True)] == [
                naive[k] for k in range(len(naive))
            ]


def test_a_party_without_columns_takes_part() -> None:
    done = together({"bank": binned(0), "shop": Binned([], [])}, labels())
    assert done["shop"].columns == []


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        (Tally, lambda m: replace_(m, rows=m.rows + 1), "every row once"),
        (Tally, lambda m: replace_(m, rows=m.rows.astype(float)), "int64 were due"),
        (Tally, lambda m: replace_(m, sealed=m.sealed[:-1]), "fit together"),
        (Tally, lambda m: replace_(m, ordered=m.bins + 1), "fit together"),
        (Tally, lambda m: replace_(m, sealed=m.sealed[::-1]), "no count|of shape"),
        (Evidence, lambda m: replace_(m, woe=m.woe[:-1]), "were due"),
        (Evidence, lambda m: replace_(m, woe=m.woe + np.inf), "values from inf"),
        (Evidence, lambda m: replace_(m, group=m.group + 1), "not numbered"),
        (SealedLabels, lambda m: replace_(m, sealed=m.sealed[:-1]), "were due"),
        (SealedLabels, lambda m: replace_(m, sealed=m.sealed * 0), "no point"),
        (Sealing, lambda m: replace_(m, rows=m.rows + 1), "align them first"),
    ],
)
def test_what_is_malformed_is_refused(
    kind: type[Message], change: Callable[..., Message], words: str
) -> None:
    def changed(message: Message) -> Message:
        return change(message) if isinstance(message, kind) else message

    skewed = binned(1)
    skewed.codes[1][:200] = 0  # so that counts in another order are too large for some bin
    with pytest.raises((ProtocolError, DataError), match=words):
        together(
            {"bank": binned(0), "shop": skewed}, np.where(np.arange(400) < 200, 1.0, -1.0), change=changed
        )


def replace_(message: Message, **changes: object) -> Message:
    return msgspec.structs.replace(message, **changes)


def test_a_party_shows_no_bin_of_too_few_rows() -> None:
    with pytest.raises(DataError, match=r"woe\.least asks for 60"):
        together({"bank": binned(0), "shop": binned(1)}, labels(), Woe(least=60, cases=5))


def test_labels_of_which_one_is_rare_are_not_weighed() -> None:
    y = labels()
    y[:] = -1.0
    y[:4] = 1.0
    with pytest.raises(DataError, match="only 4 of one of the two labels"):
        together({"bank": binned(0), "shop": binned(1)}, y)
