"""One hostile party, one altered message: the others end with its name, or with the right result."""

from __future__ import annotations

import pytest
from tests.hostile.worlds import CASES, findings

QUICK = ("train vfb2-sgd", "train secureboost", "train vafl", "train lbfgs", "score vfb2-sgd", "weigh")


@pytest.mark.parametrize("case", QUICK)
def test_honest_parties_name_a_hostile_one_or_are_right(case: str) -> None:
    assert list(findings(case, range(12))) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_conversation_can_be_led_astray(case: str) -> None:
    assert list(findings(case, range(100, 104 if case.startswith("align") else 115))) == []
