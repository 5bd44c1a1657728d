"""What a peer of an encrypted run sends that cannot be is refused by its name, wherever it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.conversations.encrypted.test_train import fit, made

from colonnade.conversations.peer_line import PeerLine
from colonnade.errors import ColonnadeError, FixedPointOverflow, ProtocolError, SumError

WRONG: dict[str, Callable[[bytes], bytes]] = {
    "short": lambda body: body[:-8],
    "long": lambda body: body + bytes(8),
    "nothing": lambda body: b"",
    "beyond": lambda body: body[:32] + b"\xff" * (len(body) - 32),
}


@pytest.mark.parametrize("party", ["party0", "party1"])
@pytest.mark.parametrize("at", [0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("wrong", WRONG)
def test_bytes_that_nobody_writes_are_refused(
    monkeypatch: pytest.MonkeyPatch, party: str, at: int, wrong: str
) -> None:
    sealing, sent = PeerLine.seal, [0]

    async def hostile(self: PeerLine, *parts: object) -> None:
        for part in parts:
            body = bytes(part)  # type: ignore[call-overload]
            if self.net.me == party:
                if sent[0] == at:
                    body = WRONG[wrong](body)
                sent[0] += 1
            await sealing(self, body)

    monkeypatch.setattr(PeerLine, "seal", hostile)
    said = ""
    try:
        fit(made(rows=200, test=0), train={"epochs": 2, "tolerance": 0.0})
    except ProtocolError as error:
        said = str(error)
    except (FixedPointOverflow, SumError):
        said = "" if wrong == "beyond" else "unnamed"  # words that may be, and that no sum can have
    assert party in said or (wrong == "beyond" and not said)  # or may be, and what they open is noise


NUMBERS: list[list[int]] = [[], [3] * 4, [10**6] * 4, [-5000, 0, 0], [2**40, 1, 1, 1, 1]]


@pytest.mark.parametrize("party", ["party0", "party1"])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_numbers_that_nobody_tells_end_the_run(
    monkeypatch: pytest.MonkeyPatch, party: str, at: int, numbers: list[int]
) -> None:
    telling, sent = PeerLine.tell, [0]

    async def hostile(self: PeerLine, *told: int) -> None:
        if self.net.me == party:
            if sent[0] == at:
                told = tuple(numbers)
            sent[0] += 1
        await telling(self, *told)

    monkeypatch.setattr(PeerLine, "tell", hostile)
    with pytest.raises(ColonnadeError) as refused:
        fit(made(rows=200, test=0), train={"epochs": 3, "tolerance": 0.0})
    assert party in str(refused.value)


def test_numbers_within_their_range_end_in_words_or_in_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reaches and bits at the ends of what may be: no crash of another kind."""
    telling = PeerLine.tell
    rng = np.random.default_rng(0)
    for party in ("party0", "party1"):
        for at in range(1, 7):
            sent = [0]

            async def hostile(
                self: PeerLine, *told: int, party: str = party, at: int = at, sent: list[int] = sent
            ) -> None:
                if self.net.me == party and len(told) < 4:
                    if sent[0] == at:
                        told = tuple(int(each) for each in rng.choice([-60, 0, 60], len(told)))
                    sent[0] += 1
                await telling(self, *told)

            monkeypatch.setattr(PeerLine, "tell", hostile)
            try:
                fit(made(rows=200, test=0), train={"epochs": 3, "tolerance": 0.0})
            except ColonnadeError as error:
                said: Any = str(error)
                assert said
