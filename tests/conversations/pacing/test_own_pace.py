"""Dominators at their own pace: everybody makes the same rounds, pauses at the same points, and no theta is
later than the bound, whatever order messages arrive in and whoever is slow."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.conversations.pacing.delay_bound import UNBOUNDED, bound, each_ahead, lead_within
from colonnade.conversations.pacing.delays import Delays
from colonnade.conversations.pacing.own_pace import OwnPace
from colonnade.errors import JobError, ProtocolError
from colonnade.messages import Enough, Message

Action = tuple[str, int, int]


@dataclass
class Net:
    """Keeps what the keeper tells, for everybody to take later."""

    told: list[Enough] = field(default_factory=list)

    async def broadcast(self, message: Message) -> None:
        assert isinstance(message, Enough)
        self.told.append(message)


@dataclass
class Play:
    """Parties that give shares, launch rounds and apply thetas in a random order; the first `m` dominate."""

    parties: list[OwnPace]
    m: int
    extra: int
    random: Random
    shares: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    launched: list[int] = field(default_factory=list)
    lines: defaultdict[tuple[int, int], deque[tuple[int, tuple[int, ...]]]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    heard: Counter[int] = field(default_factory=Counter)
    pauses: defaultdict[int, list[tuple[int, tuple[int, ...]]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def __post_init__(self) -> None:
        self.launched = [0] * self.m
        self.delays = [Delays(0) for _ in self.parties]
        self.net = Net()
        self.barrier = asyncio.Barrier(len(self.parties))

    def possible(self) -> list[Action]:
        """What may happen next, apart from shares, which are tried."""
        own = [("launch", j, j) for j in range(self.m) if self._complete(self.launched[j] * self.m + j)]
        thetas = [
            ("apply", p, j)
            for (j, p), line in self.lines.items()
            if line and self.parties[p].is_due(line[0][0])
        ]
        words = [("hear", p, 0) for p in range(1, len(self.parties)) if self.heard[p] < len(self.net.told)]
        return own + thetas + words

    def _complete(self, number: int) -> bool:
        return len(self.shares[number]) == len(self.parties)

    def give(self, p: int, j: int) -> bool:
        """A party gives a dominator its share of the next round, if it may."""
        tickets = self.parties[p]
        number = tickets.state.counts.begun[j] * self.m + j
        if not tickets.open_to(number, self.extra):
            return False
        tickets.read([number])
        self.delays[p].read(number, tickets.finished)
        self.shares[number].add(p)
        return True

    def act(self, action: Action) -> None:
        kind, p, j = action
        match kind:
            case "launch":
                number, seen = self.launched[j] * self.m + j, self.parties[j].done
                self.launched[j] += 1
                for each in range(len(self.parties)):
                    self.lines[j, each].append((number, seen))
            case "apply":
                number, seen = self.lines[j, p].popleft()
                tickets = self.parties[p]
                tickets.heard(number, seen)
                self.delays[p].apply([number], tickets.finished)
                tickets.finish([number])
            case "hear":
                message = self.net.told[self.heard[p]]
                self.heard[p] += 1
                self.parties[p].stages.close(message.tag, message.counts, last=message.last)

    async def pausing(self, p: int) -> None:
        """Make every pause: nobody leaves it before all have come, and each at its own time."""
        async for gate in self.parties[p].gates():
            before = self.parties[p].done
            await self.barrier.wait()
            for _ in range(self.random.choice([0, 3, 300])):
                await asyncio.sleep(0)
            assert self.parties[p].done == before
            self.pauses[p].append((gate, before))

    async def run(self, weights: list[int]) -> None:
        """Play to the end; `weights` are how often every party gets its turn."""
        net: Any = self.net
        background = [asyncio.ensure_future(self.pausing(p)) for p in range(len(self.parties))]
        background.append(asyncio.ensure_future(self.parties[0].stages.announce(net)))
        ends = [asyncio.ensure_future(each.ends()) for each in self.parties]
        idle = 0
        while not all(end.done() for end in ends):
            p = self.random.choices(range(len(self.parties)), weights)[0]
            mine = [action for action in self.possible() if action[1] == p]
            if self.random.random() < 0.5 or not mine:
                moved = self.give(p, self.random.randrange(self.m))
            else:
                self.act(self.random.choice(mine))
                moved = True
            await asyncio.sleep(0)
            idle = 0 if moved else idle + 1
            assert idle < 5000, "nobody can go on"
        for task in background:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def play(
    m: int, passive: int, ahead: int, stale: int, lead: int, rounds: int, gates: set[int], seed: int
) -> Play:
    random = Random(seed)  # noqa: S311 - a game
    parties = [
        OwnPace(m, ahead, rounds, gates, keeper=p == 0, stale=stale, lead=lead, own=p if p < m else None)
        for p in range(m + passive)
    ]
    game = Play(parties, m, stale, random)
    weights = [random.choice([1, 4, 30]) for _ in parties]
    asyncio.run(game.run(weights))
    return game


@given(
    m=st.integers(2, 4),
    passive=st.integers(0, 2),
    ahead=st.integers(1, 3),
    stale=st.integers(0, 3),
    lead=st.sampled_from([1, 2, 5, UNBOUNDED]),
    gates=st.sets(st.integers(1, 39), max_size=3),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=25, deadline=None)
def test_all_make_the_same_rounds_and_pauses_and_no_theta_is_later_than_the_bound(
    m: int, passive: int, ahead: int, stale: int, lead: int, gates: set[int], seed: int
) -> None:
    game = play(m, passive, ahead, stale, lead, 40, gates, seed)
    counts = game.parties[0].done
    assert sum(counts) == 40
    for p, tickets in enumerate(game.parties):
        assert tickets.done == counts
        assert [gate for gate, _ in game.pauses[p]] == sorted(gates)
        assert game.pauses[p] == game.pauses[0]
        assert [sum(done) for _, done in game.pauses[p]] == sorted(gates)
        most = bound(m, ahead, stale, lead)
        if most is not None:
            assert max(game.delays[p].counts) <= most
            assert max(tickets.state.tau_1, tickets.state.tau_2) <= most


def test_without_a_bound_a_slow_dominator_is_later_than_any_bound_would_allow() -> None:
    """Or the test above would say nothing of the bound."""
    late = max(
        max(max(delays.counts) for delays in play(3, 0, 1, 0, UNBOUNDED, 200, set(), k).delays)
        for k in range(5)
    )
    assert late > (bound(3, 1, 0, 1) or 0)


@pytest.mark.parametrize("at", [0, 7, 30])
def test_a_run_that_is_ended_early_ends_with_what_the_keeper_has_given(at: int) -> None:
    async def main() -> None:
        keeper = OwnPace(2, 2, 60, {20}, keeper=True)
        net: Any = Net()
        pauses: list[int] = []

        async def pausing() -> None:
            pauses.extend([gate async for gate in keeper.gates()])

        tasks = [asyncio.ensure_future(pausing()), asyncio.ensure_future(keeper.stages.announce(net))]
        while keeper.finished < at:
            for j in range(2):
                number = keeper.state.counts.begun[j] * 2 + j
                if keeper.open_to(number):
                    keeper.read([number])
                    keeper.heard(number, keeper.done)
                    keeper.finish([number])
            await asyncio.sleep(0)
        await keeper.end_early(net)
        await asyncio.wait_for(keeper.ends(), 30)
        assert keeper.stop == sum(net.told[-1].counts) == keeper.finished < 60
        assert net.told[-1].last
        for task in tasks:
            await task
        assert pauses == ([20] if at >= 20 else [])

    asyncio.run(main())


def test_only_the_next_leg_can_be_closed_and_never_with_fewer_rounds() -> None:
    tickets = OwnPace(2, 1, 60, {20, 40})
    with pytest.raises(ProtocolError, match=r"stage 1 .* was not due"):
        tickets.stages.close(1, [10, 10], last=False)
    with pytest.raises(ProtocolError, match="3 numbers of rounds was not due"):
        tickets.stages.close(0, [10, 5, 5], last=False)
    tickets.stages.close(0, [12, 8], last=False)
    with pytest.raises(ProtocolError, match="fewer rounds than the one before"):
        tickets.stages.close(1, [11, 29], last=False)


@given(m=st.integers(2, 6), ahead=st.integers(1, 12), stale=st.integers(0, 3), more=st.integers(0, 500))
def test_a_bound_is_kept_by_the_largest_lead_that_keeps_it(m: int, ahead: int, stale: int, more: int) -> None:
    least = bound(m, ahead, stale, 1) or 0
    lead = lead_within(m, ahead, stale, least + more)
    assert lead >= 1
    assert (bound(m, ahead, stale, lead) or 0) <= least + more < (bound(m, ahead, stale, lead + 1) or 0)
    with pytest.raises(JobError, match=f"set max_delay = {least}, or ahead = 1"):
        lead_within(m, ahead, stale, least - 1)


@given(ahead=st.integers(1, 100), m=st.integers(1, 9))
def test_every_dominator_has_its_part_of_the_batches_in_flight(ahead: int, m: int) -> None:
    assert ahead <= m * each_ahead(ahead, m) < ahead + m
