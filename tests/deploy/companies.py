"""Three companies in this process: their daemons on loopback, small files, and jobs for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from tests.deploy.consortium import Consortium, people, write_csv
from tests.patience import PATIENCE_S, until

from colonnade.deploy.books.journal import Comparison, Decision, read_journal
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.negotiate.proposals import read_proposal, signed_digest
from colonnade.deploy.people_settings import Person
from colonnade.deploy.settings import read_settings
from colonnade.deploy.terms.contract import check_terms
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import Refused
from colonnade.messages import Propose

NO_VERSIONS: Mapping[str, str] = MappingProxyType({})
ADA = Person("ada", "command")
NAMES = ("bank", "shop", "telecom")
COLUMNS = {"bank": {"income": 0, "age": 1}, "shop": {"visits": 2}, "telecom": {"calls": 3}, "notary": {}}
ROWS = 400
APPLICANTS = 60


def lay_out(root: Path, names: tuple[str, ...] = NAMES, **policies: str) -> Consortium:
    """Write every company's files and settings: 90% of the rows overlap, and the bank has the label."""
    consortium = Consortium(root, names)
    ids, X, y = people(ROWS + APPLICANTS)
    for k, name in enumerate(names):
        rng = np.random.default_rng([5, k])
        old = rng.permutation([i for i in range(ROWS) if rng.random() < 0.9 or i == 0])
        for entry, rows in (
            ("customers", old),
            ("applicants", rng.permutation(range(ROWS, ROWS + APPLICANTS))),
        ):
            held: dict[str, Any] = {c: [repr(float(X[i, j])) for i in rows] for c, j in COLUMNS[name].items()}
            if name == "bank" and entry == "customers":
                held["repaid"] = [y[i] for i in rows]
            write_csv(consortium.folder(name) / f"{entry}.csv", [ids[i] for i in rows], held)
        settle(consortium, name, policies.get(name, ""))
    return consortium


def settle(consortium: Consortium, name: str, policy: str = "", more: str = "") -> None:
    label = 'label = "repaid"\n' if name == "bank" else ""
    data = f'[data.customers]\nfile = "customers.csv"\nid = "id"\n{label}'
    data += '[data.applicants]\nfile = "applicants.csv"\nid = "id"\n'
    consortium.settle(name, data, policy, more)


def job(names: tuple[str, ...] = NAMES, **changes: Any) -> Terms:
    plain: dict[str, Any] = {
        "name": "repaid",
        "algorithm": "vfb2-svrg",
        "parties": {name: {"data": "customers", "label": name == "bank"} for name in names},
        "train": {"epochs": 6, "batch": 32, "l2": 1e-3},
        "network": {"deadline_s": PATIENCE_S},
        "checkpoint": {"wait_s": 0.0},  # a party that dies ends the run at once, unless a test says otherwise
        **changes,
    }
    terms = msgspec.convert(plain, Terms)
    check_terms(terms, "job")
    return terms


@asynccontextmanager
async def running(
    consortium: Consortium, *, apart: bool = False, versions: Mapping[str, str] = NO_VERSIONS
) -> AsyncIterator[dict[str, Daemon]]:
    """Start all daemons of the consortium, wait until they are connected, and stop them in the end.

    With `apart` their trainings get processes of their own, as those of real daemons do.
    """
    daemons = {
        name: Daemon(read_settings(consortium.config(name)), apart=apart, **_version(versions.get(name)))
        for name in consortium.names
    }
    try:
        for daemon in daemons.values():
            await daemon.open()
        await connected(daemons)
        yield daemons
    finally:
        for daemon in daemons.values():
            await daemon.close()


def _version(version: str | None) -> dict[str, Any]:
    return {} if version is None else {"version": version}


async def connected(daemons: dict[str, Daemon]) -> None:
    await until(
        lambda: all(len(daemon.peers.controls) == len(daemon.settings.peers) for daemon in daemons.values())
    )


def together(
    consortium: Consortium, program: Callable[[dict[str, Daemon]], Awaitable[Any]], **versions: str
) -> Any:
    """Run a program with all daemons connected, and return its result."""

    async def main() -> Any:
        async with running(consortium, versions=versions) as daemons:
            return await program(daemons)

    logging.getLogger("colonnade").setLevel(logging.DEBUG)
    return asyncio.run(main())


async def propose(daemon: Daemon, peer: str, number: int, content: bytes) -> None:
    """Propose something by hand, signed as daemons sign it."""
    digest = ""
    with suppress(Refused):  # what cannot be read is refused unread
        digest = signed_digest(read_proposal(content))
    await daemon.books.signed.say(peer, number, "proposes", digest)
    await daemon.peers.send(peer, Propose(number, content))


async def considered(daemon: Daemon, peer: str, number: int, content: bytes) -> str | None:
    """What a daemon makes of a proposal that a peer has signed."""
    proposal = read_proposal(content)
    daemon.books.signed._signed[peer, number, "proposes"] = signed_digest(proposal)
    return await daemon.answering._consider(peer, number, proposal, None)


async def settled(daemon: Daemon) -> None:
    """Wait until no run is left at a daemon."""
    await until(lambda: not daemon.runs)


def comparisons(daemon: Daemon) -> int:
    """How many comparisons of ids a daemon has written down."""
    return sum(isinstance(each, Comparison) for each in read_journal(daemon.journal.path)[0])


def read_decisions(path: Path) -> list[Decision]:
    """The decisions in a journal, the oldest first."""
    return [each for each in read_journal(path)[0] if isinstance(each, Decision)]
