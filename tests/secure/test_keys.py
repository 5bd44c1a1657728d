"""Joining a run: which versions and jobs go together, and both ends of a pair get one secret."""

from __future__ import annotations

import asyncio

import pytest

from colonnade.errors import JobError
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.inprocess.local import LocalHub
from colonnade.secure.keys import InProcessIdentity, agree

PAIR = ("bank", "shop")


def join(bank: tuple[str, str], shop: tuple[str, str]) -> list[dict[str, bytes] | BaseException]:
    """What `agree` comes to at both parties, each with its version and job: secrets, or an error."""

    async def main() -> list[dict[str, bytes] | BaseException]:
        hub = LocalHub()
        known = InProcessIdentity.for_all(PAIR)
        nets = [Endpoint(me, PAIR, hub.wire(me), RealClock(), run=1) for me in PAIR]
        both = zip(nets, (bank, shop), strict=True)
        joining = (agree(net, known[net.me], version=version, job=job) for net, (version, job) in both)
        return await asyncio.gather(*joining, return_exceptions=True)

    return asyncio.run(main())


@pytest.mark.parametrize("versions", [("0.1.0", "0.1.0"), ("0.1.0", "0.1.7"), ("0.1.7", "0.1.0")])
def test_versions_that_differ_in_the_last_number_agree(versions: tuple[str, str]) -> None:
    bank, shop = join((versions[0], "job"), (versions[1], "job"))
    assert isinstance(bank, dict)
    assert isinstance(shop, dict)
    assert bank["shop"] == shop["bank"]
    assert len(bank["shop"]) == 32


@pytest.mark.parametrize("other", ["0.2.0", "1.1.0", "0.10.0", ""])
def test_versions_that_differ_in_more_are_refused_with_the_remedy(other: str) -> None:
    errors = join(("0.1.0", "job"), (other, "job"))
    assert all(isinstance(error, JobError) for error in errors)
    assert [str(error) for error in errors] == [
        f"shop runs Colonnade {other}, bank runs 0.1.0; install the same minor version at both",
        f"bank runs Colonnade 0.1.0, shop runs {other}; install the same minor version at both",
    ]


def test_another_job_is_refused() -> None:
    errors = join(("0.1.0", "one"), ("0.1.0", "other"))
    assert all(isinstance(error, JobError) for error in errors)
    assert "shop was started with another job (other against one)" in str(errors[0])
