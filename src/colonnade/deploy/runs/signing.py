"""Signed statements about runs: made for every proposal and answer, checked and kept where they come."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from colonnade.deploy.books.statements import Stated, Statement, words
from colonnade.deploy.models import stored_shares
from colonnade.deploy.policy.quotas import Quota
from colonnade.errors import CertificateError, Refused
from colonnade.messages import Said

if TYPE_CHECKING:
    from colonnade.deploy.runs.runs import Runs

log = logging.getLogger("colonnade.party")

A_PROPOSAL = 4  # statements that may come for each
STATED_S = 10.0  # how long after a proposal or answer its statement may come
KEPT = 256  # statements that nobody has asked for yet


@dataclass
class SignedStatements:
    """What this daemon signs for its peers, and what they have signed."""

    runs: Runs

    def __post_init__(self) -> None:
        most = A_PROPOSAL * self.runs.settings.limits.proposals_an_hour
        self._heard = Quota("proposals_an_hour", most)
        # by peer, run and what is said of it: the digest of the job that it is said of
        self._signed: dict[tuple[str, int, str], str] = {}
        self._more = asyncio.Event()

    async def say(self, peer: str, run: int, what: Stated, digest: str) -> None:
        """Tell a peer what this party says of a run, signed, with the head of its journal."""
        head = self.runs.journal.on_disk
        said = Said(run, what, digest, stored_shares.now(), head.count, head.last, b"")
        signature = self.runs.credentials.sign(words(self.runs.settings.name, peer, said))
        await self.runs.peers.add(peer, msgspec.structs.replace(said, signature=signature))

    async def hear(self, peer: str, said: Said) -> None:
        """Write down what a peer has signed, if it has; what it says beyond its proposals is dropped."""
        if not self._heard.has_room(peer):
            return
        self._heard.take(peer)
        text = words(peer, self.runs.settings.name, said)
        try:
            key = self.runs.credentials.signer(peer, text, said.signature)
        except CertificateError as error:
            log.warning("%s", error)
            self.runs.journal.note(str(error))
            return
        self.runs.journal.witness(
            Statement(
                when=stored_shares.now(),
                peer=peer,
                to=self.runs.settings.name,
                run=f"{said.run:08x}",
                what=said.what,
                digest=said.digest,
                said=said.when,
                count=said.count,
                head=said.head,
                signature=said.signature.hex(),
                key=key.hex(),
            )
        )
        self._signed[peer, said.run, said.what] = said.digest
        if len(self._signed) > KEPT:
            del self._signed[next(iter(self._signed))]
        self._more.set()

    async def require(self, peer: str, run: int, what: Stated, digest: str) -> None:
        """Return once a peer has signed what it says of this job; Refused if it does not, or signs another.

        Peers of version 0.2 sign nothing.
        """
        if not self.runs.peers.knows(peer):
            return
        try:
            async with asyncio.timeout(STATED_S):
                while (peer, run, what) not in self._signed:
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            raise Refused(f"{peer} has not signed that it {what} run {run:08x}") from None
        if (signed := self._signed.pop((peer, run, what))) != digest:
            raise Refused(f"read another job ({digest[:12]} against {signed[:12]}) than {peer} has signed")
