"""The bound on the age of the server's table holds whatever order questions come in."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from colonnade.conversations.cascade.answer_order import AnswerOrder
from colonnade.conversations.cascade.output_age import delay_bound
from colonnade.messages import Upload

ANSWERS, SPEEDS = 400, (1.0, 0.1, 1e-3, 1e-6)


class Arrivals:
    """Clients that ask as often as `ahead` allows, in an order that is drawn; their speeds change."""

    def __init__(self, clients: tuple[str, ...], ahead: int, rng: np.random.Generator) -> None:
        self.under_way = dict.fromkeys(clients, 0)
        self.ahead, self.rng = ahead, rng
        self.speeds = dict(zip(clients, rng.choice(SPEEDS, len(clients)), strict=True))

    async def next(self) -> tuple[str, Upload]:
        ready = [client for client, count in self.under_way.items() if count < self.ahead]
        speeds = np.array([self.speeds[each] for each in ready])
        client = str(self.rng.choice(ready, p=speeds / speeds.sum()))
        self.under_way[client] += 1
        return client, Upload(0, None)  # type: ignore[arg-type]  # nobody reads it

    def answer(self, client: str) -> None:
        self.under_way[client] -= 1
        self.speeds[str(self.rng.choice(list(self.speeds)))] = self.rng.choice(SPEEDS)


async def answered(
    clients: tuple[str, ...], ahead: int, silence: int, rng: np.random.Generator
) -> dict[str, list[int]]:
    """How many answers were given before each answer of every client; the first client is the server's."""
    inbox: Any = Arrivals(clients, ahead, rng)
    waves, found = (
        AnswerOrder(clients[0], inbox, clients, 1, silence, ANSWERS),
        defaultdict[str, list[int]](list),
    )
    async for ((client, _),) in waves:
        found[client].append(waves.state.answered)
        waves.state.answered += 1
        waves.state.turns[client] += 1
        inbox.answer(client)
        if waves.state.answered == ANSWERS:
            break
    return found


def ages(at: list[int], per_pass: int, ahead: int) -> list[int]:
    """How old a client's entries become: the first ones, and those of each of its questions.

    An entry counts from the answer before which it was computed, and is used until the row comes again.
    """
    ends = [*at, *[ANSWERS] * (2 * per_pass)]
    begins = [at[max(0, number - ahead + 1)] for number in range(len(at))]
    return [
        ends[per_pass - 1] - 1,
        *(ends[number + 2 * per_pass - 1] - 1 - begin for number, begin in enumerate(begins)),
    ]


@pytest.mark.parametrize("ahead", [1, 2, 3])
@pytest.mark.parametrize("silence", [1, 6, 20])
@pytest.mark.parametrize("per_pass", [1, 2, 5])
def test_no_entry_is_used_later_than_the_bound(per_pass: int, silence: int, ahead: int) -> None:
    clients = ("server", "bank", "shop")
    runs = [asyncio.run(answered(clients, ahead, silence, np.random.default_rng(seed))) for seed in range(20)]
    oldest = max(age for found in runs for at in found.values() for age in ages(at, per_pass, ahead))
    bound = delay_bound(per_pass, ahead, len(clients), silence)
    assert bound / 5 < oldest <= bound
