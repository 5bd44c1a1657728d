"""A crowd at a port: newcomers are let in, the silent make way before those who speak."""

from __future__ import annotations

from colonnade.net.stream.unproven import UnprovenGuests


def test_the_silent_make_way_before_those_who_speak() -> None:
    crowd = UnprovenGuests[str](3)
    assert [crowd.enter(name) for name in ("ant", "bee", "cat")] == [None] * 3
    crowd.spoke("ant")
    assert [crowd.enter(name) for name in ("dog", "eel")] == ["bee", "cat"]
    assert sorted(crowd.everybody()) == ["ant", "dog", "eel"]
    for name in ("eel", "dog"):
        crowd.spoke(name)
    assert crowd.enter("fox") == "ant"  # all have spoken: the first of them
    crowd.leave("fox")
    assert (len(crowd), crowd.enter("gnu")) == (2, None)
    crowd.spoke("nobody")
    assert len(crowd) == 3
