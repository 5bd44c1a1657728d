"""Joining a run: which versions and jobs go together, and both ends of a pair get one secret."""

from __future__ import annotations

import asyncio

import pytest

from colonnade.errors import CertificateError, JobError
from colonnade.messages import Hello
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
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
        f"shop runs Colonnade {other}, bank runs 0.1.0; install the same release at both",
        f"bank runs Colonnade 0.1.0, shop runs {other}; install the same release at both",
    ]


def test_another_job_is_refused() -> None:
    errors = join(("0.1.0", "one"), ("0.1.0", "other"))
    assert all(isinstance(error, JobError) for error in errors)
    assert "shop was started with another job (other against one)" in str(errors[0])


THREE = ("bank", "shop", "telecom")


def heard(known: dict[str, InProcessIdentity], listener: str, run: int) -> Hello:
    """What the bank, an honest party, says to a listener when it joins a run of three."""

    async def main() -> Hello:
        hub = LocalHub()
        nets = {me: Endpoint(me, THREE, hub.wire(me), RealClock(), run=run) for me in THREE}
        joining = asyncio.ensure_future(agree(nets["bank"], known["bank"], version="0.1.0", job="job"))
        hello = await nets[listener].recv(Hello, "bank")
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)
        return hello

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("listener", "run", "taken"), [("shop", 1, True), ("telecom", 1, False), ("shop", 2, False)]
)
def test_a_greeting_is_good_for_one_run_and_one_receiver(listener: str, run: int, taken: bool) -> None:
    """Somebody who heard the bank's greeting says it again, to the shop in run 1."""
    known = InProcessIdentity.for_all(THREE)
    stolen = heard(known, listener, run)

    async def main() -> dict[str, bytes]:
        hub = LocalHub()
        nets = {me: Endpoint(me, THREE, hub.wire(me), RealClock(), run=1) for me in THREE}
        await nets["bank"].send("shop", stolen)
        both = (agree(nets[me], known[me], version="0.1.0", job="job") for me in ("shop", "telecom"))
        shop, telecom = (asyncio.ensure_future(each) for each in both)
        try:
            return await shop
        finally:
            telecom.cancel()
            await asyncio.gather(telecom, return_exceptions=True)

    if taken:
        assert asyncio.run(main()).keys() == {"bank", "telecom"}
    else:
        with pytest.raises(CertificateError, match="bank"):
            asyncio.run(main())
