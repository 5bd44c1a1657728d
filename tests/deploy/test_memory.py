"""Daemons that train and score again and again keep nothing of it but what their limits ask about."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest
from tests.deploy.companies import job, lay_out, settled, together

from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.secure import oprf

FIRST, MORE = 2, 6
ENDS_BY_ITSELF = {
    "colonnade.deploy.books.daily_comparisons.Kind",  # counts of a day, one for a minute
    "asyncio.events.TimerHandle",  # cancelled ones, which the event loop drops by the hundred
}


def kinds() -> Counter[str]:
    """How many objects there are of each kind that this package or the event loop makes."""
    gc.collect()
    found = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return Counter(
        {kind: n for kind, n in found.items() if kind.startswith(("colonnade.", "asyncio.", "_asyncio."))}
    )


def test_what_is_over_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kind of object becomes more by one for every training."""
    monkeypatch.setattr("colonnade.deploy.books.journal.SHOWN", 2)
    monkeypatch.setattr("colonnade.deploy.books.journal.KEPT", 2)
    names = ("bank", "shop")
    consortium = lay_out(tmp_path, names)
    terms = job(names, train={"epochs": 1, "batch": 128, "l2": 1e-3}, secure={"labels": "clear"})
    lines = (consortium.folder("bank") / "applicants.csv").read_text().splitlines()
    rows = [line.split(",")[0] for line in lines[1:6]]

    async def program(daemons: dict[str, Daemon]) -> Counter[str]:
        async def train_and_score() -> None:
            await daemons["bank"].train(terms)
            asked = commands.PredictRequest("repaid", [rows], "applicants")
            await verbs._predict(daemons["bank"], asked, lambda event: None)
            for daemon in daemons.values():
                await settled(daemon)

        for _ in range(FIRST):
            await train_and_score()
        before = kinds()
        for _ in range(MORE):
            await train_and_score()
        return kinds() - before

    grown = together(consortium, program)
    assert not {kind: more for kind, more in grown.items() if more >= MORE and kind not in ENDS_BY_ITSELF}
    assert not oprf._unblinding_comb.cache_info().currsize  # tables of keys that nobody will use again
