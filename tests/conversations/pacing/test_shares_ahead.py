"""How many shares ahead a party gives: what a dominator uses while the party makes an update."""

import pytest

from colonnade.conversations.pacing.shares_ahead import MOST, SharesAhead


def ahead_of(uses: int, updates: int) -> list[int]:
    """The shares ahead after every update, of a dominator that launches so many rounds if it can."""
    reach, given, found = SharesAhead(1, least=1, own=None), 0, []
    for _ in range(updates):
        given = max(given, reach.state.heard[0] + reach.state.ahead[0])
        for _ in range(min(uses, given - reach.state.heard[0])):
            reach.hear(0)
        reach.look_back([given])
        found.append(reach.state.ahead[0])
    return found


@pytest.mark.parametrize("uses", [2, 5, 11, 40])
def test_a_faster_dominator_soon_gets_what_it_uses_and_one_to_spare(uses: int) -> None:
    found = ahead_of(uses, 30)
    assert max(found) <= max(2 * uses + 2, MOST)
    assert found[8:] == [uses + 1] * len(found[8:])


def test_a_dominator_as_fast_as_the_party_gets_one_share_and_two_now_and_then() -> None:
    found = ahead_of(1, 60)
    assert set(found) == {1, 2}
    assert found.count(2) < 10


def test_a_slow_dominator_never_gets_a_second_share() -> None:
    reach = SharesAhead(1, least=1, own=None)
    for update in range(50):
        if update % 5 == 4:
            reach.hear(0)
        reach.look_back([1 + reach.state.heard[0]])
        assert reach.state.ahead == [1]


def test_a_dominator_launches_one_round_an_update_of_its_own() -> None:
    reach = SharesAhead(2, least=1, own=1)
    assert reach.may_launch(base=0)
    reach.hear(1)
    assert not reach.may_launch(base=0)  # its theta waits, and no update was made since
    reach.look_back([1, 1])
    assert reach.may_launch(base=0)
    assert reach.may_launch(base=1)
