"""The bench of products by dealers and under encryption, in small: it checks gradients, and bytes add up."""

from __future__ import annotations

import numpy as np
import pytest

from colonnade_bench.micro import dealt, products


@pytest.mark.parametrize("hidden", [False, True])
def test_a_pass_is_counted_both_ways(hidden: bool) -> None:
    sent = {}
    for parties in (3, 4):
        tables = dealt.tables_of("1200x12", parties)
        seconds, sent[parties] = products.encrypted(tables, hidden=hidden, repeat=1)
        assert seconds > 0
        _, megabytes = products.by_dealers(tables, hidden=hidden, repeat=1)
        # every owner is at least sent a word of every row
        assert megabytes >= 8e-6 * 1200 * (parties - 1)
    # of one owner more the label holder asks one product more, and its mate another one
    assert sent[4] > sent[3]


def test_a_wrong_part_is_found() -> None:
    one = products.EncryptedPass(dealt.tables_of("1200x12", 3), hidden=True)
    gradients, _ = one.run()
    one.check(gradients)
    one.mates = one.mates ^ np.uint64(2 ** (products.RING.cut - 3))
    with pytest.raises(AssertionError):
        one.check(one.run()[0])
