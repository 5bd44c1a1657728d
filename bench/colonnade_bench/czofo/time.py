"""Tables 2 and 11: what an epoch costs the server and the clients, on a CPU.

Every party is a process of its own, and its CPU time is the system's: propagation, as the paper counts it,
and all the rest too: drawing directions, packing, TLS, the first pass over all rows and the measurement at
the end. Loading data and libraries is not counted.
"""

from __future__ import annotations

from colonnade.data.datasets.loading import available
from colonnade.job import SERVER
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.czofo.case import Case, Sections
from colonnade_bench.czofo.paper import TIMES, TIMES_OF_CLIENTS
from colonnade_bench.czofo.records import Measure
from colonnade_bench.czofo.steps import MLP, ONE

ROWS = 60_000
HUNDRED: Sections = {"directions": 100}
RADEMACHER: Sections = {**HUNDRED, "smoothing": "rademacher"}


def times(bench: Bench, measure: Measure, say: Say, *, quick: bool) -> None:
    """Add Tables 2 and 11."""
    if not available("mnist"):
        say("mnist is not on this machine, left out")
        return
    rows = 3_000 if quick else 12_000
    ways: list[tuple[str, str, Sections]] = [
        ("split", "split", {}),
        ("syn-zoo-vfl", "syn-zoo-vfl", ONE),
        ("c-vfl", "c-vfl", {}),
        ("vafl", "vafl", {}),
        ("zoo-vfl", "zoo-vfl", ONE),
        ("czofo", "czofo", HUNDRED),
        ("czofo, Rademacher", "czofo", RADEMACHER),
    ]
    table = [
        [name, *TIMES.get(name, (None, None)), *epoch(measure, name, how, 2, rows, cascade)]
        for name, how, cascade in ways
    ]
    note = (
        "128 hidden units, 64 outputs a client, batch 64, q = 100. The paper has propagation only; "
        f"ours are all CPU seconds of a party's process, of {rows} rows and scaled up, clients added up."
    )
    heads = ["framework", "paper: clients, s", "paper: server, s", "clients, s", "server, s"]
    bench.grids.append(
        Grid("Table 2: CPU time of an epoch of 60,000 MNIST rows", heads, table, f"2 clients. {note}")
    )
    table = [
        [clients, *paper, *epoch(measure, f"czofo, {clients} clients", "czofo", clients, rows, HUNDRED)]
        for clients, paper in TIMES_OF_CLIENTS.items()
    ]
    bench.grids.append(Grid("Table 11: the same with more clients", ["clients", *heads[1:]], table, note))


def epoch(
    measure: Measure, name: str, how: str, clients: int, rows: int, cascade: Sections
) -> tuple[float, float]:
    """CPU seconds of 60,000 rows, of all clients and of the server."""
    case = Case(
        part="time", name=name, algorithm=how, dataset="mnist", clients=clients, rows=rows, world="network",
        train={"epochs": 1, "step": 0.01, "evaluate_every": 0}, cascade=cascade, model=MLP,
    )  # fmt: skip
    spent = {party: s * ROWS / rows for party, s in measure([case])[case.name].cpu_seconds.items()}
    return sum(s for party, s in spent.items() if party != SERVER), spent[SERVER]
