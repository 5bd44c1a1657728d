"""Garbage is looked for seldom while runs go on, and as before afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from colonnade.run.garbage import YOUNG, looked_for_seldom


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_as_before_once_the_last_of_several_runs_is_over_in_whatever_order() -> None:
    gc.set_threshold(600, 7, 8)
    _, *older = gc.get_threshold()  # without the interpreter lock there are not as many generations
    first, second = ExitStack(), ExitStack()
    first.enter_context(looked_for_seldom())
    second.enter_context(looked_for_seldom())
    assert gc.get_threshold() == (YOUNG, *older)
    first.close()
    assert gc.get_threshold() == (YOUNG, *older)
    second.close()
    assert gc.get_threshold() == (600, *older)


@pytest.mark.parametrize("usual", [0, 3 * YOUNG])
def test_who_never_looks_or_more_seldom_is_left_alone(usual: int) -> None:
    gc.set_threshold(usual)
    with looked_for_seldom():
        assert gc.get_threshold()[0] == usual
