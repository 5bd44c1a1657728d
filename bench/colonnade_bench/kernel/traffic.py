"""What FDSKL's parties send: on digits pass by pass, on other data with projections of 16 and of 32 bits.

An angle of a projection travels in 16 bits, or in 32. What it would cost as a number of 64 bits, as in other
sums, is computed from the two.
"""

from __future__ import annotations

from collections.abc import Sequence

from colonnade.run.federate import Tables
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.kernel.made_up import some_tables
from colonnade_bench.kernel.runs import ACTIVE, job_for, rows_in, tables_of, train_federated

COMPARED = ("digits-odd", "phishing", "uci-credit", "22 columns")
BITS = (16, 32)


def traffic(bench: Bench, say: Say) -> None:
    """Bytes of the first and the second pass, where projections are kept and where every visit asks again."""
    tables = tables_of("digits-odd", 0, parties=4)
    n, q, m = rows_in(tables), 4, ACTIVE

    def sent(epochs: int, cache: bool, features: int) -> int:
        options = {"features": features, "cache": cache, "block": 64}
        job = job_for(tables, "fdskl-capped", 0, train={"epochs": epochs}, kernel=options)
        return train_federated(job, tables).run.result.cost.bytes_sent

    rows = []
    for features in (128, 384):  # all of them come within the first pass
        for cache in (True, False):
            first, both = sent(1, cache, features), sent(2, cache, features)
            kind = "kept" if cache else "asked again"
            pairs = 1024 * 1023 // 2
            formula = (q - 1) * (8 * pairs + 2 * n * features + 8 * n * (m > 1)) if cache else None
            rows.append([f"{features} features, {kind}", first, formula, both - first])
            say(f"{features} features, {kind}: {first} bytes in the first pass, {both - first} in the second")
    heads = ["digits, 4 parties, 2 active", "first pass", "(q-1) (2 n D + 8 n + 8 pairs)", "second pass"]
    bench.grids.append(Grid("Bytes sent by all parties", heads, rows))


def bits_compared(names: Sequence[str], rows: int | None, say: Say, algorithm: str = "fdskl-capped") -> Grid:
    """Test error and bytes with 16 and with 32 bits an angle, all else being equal."""
    table = [_compared(some_tables(name, rows), algorithm, say) for name in names]
    heads = ["data set", "training rows", "error, 16 bits", "32 bits", "loss, 16 bits", "32 bits"]
    heads += ["MB, 16 bits", "32 bits", "64 bits (computed)"]
    note = f"{algorithm}. The same features and the same order of rows. "
    return Grid("Bits of a projection", heads, table, note)


def _compared(tables: Tables, algorithm: str, say: Say) -> list[object]:
    errors, losses, sent = [], [], []
    for bits in BITS:
        done = train_federated(job_for(tables, algorithm, 0, kernel={"bits": bits}), tables)
        errors.append(done.error)
        losses.append(done.run.result.metrics["objective"])
        sent.append(done.run.result.cost.bytes_sent / 1e6)
        say(f"{tables.dataset}, {bits} bits: test error {errors[-1]:.4f}, {sent[-1]:.0f} MB")
    # 32 bits more cost as much as twice the 16 bits between the two
    computed = sent[1] + 2 * (sent[1] - sent[0])
    return [tables.dataset, rows_in(tables), *errors, *losses, *sent, computed]
