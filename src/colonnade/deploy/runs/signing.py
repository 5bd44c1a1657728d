"""Signed statements about runs: made for every proposal and answer, checked and kept where they come."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from colonnade.deploy.books.statements import Stated, Statement, words
from colonnade.deploy.models import stored_shares
from colonnade.deploy.policy.quotas import Quota
from colonnade.errors import CertificateError
from colonnade.messages import Said

if TYPE_CHECKING:
    from colonnade.deploy.runs.runs import Runs

log = logging.getLogger("colonnade.party")

A_PROPOSAL = 4  # statements that may come for each


@dataclass
class SignedStatements:
    """What this daemon signs for its peers, and what they have signed."""

    runs: Runs

    def __post_init__(self) -> None:
        most = A_PROPOSAL * self.runs.settings.limits.proposals_an_hour
        self._heard = Quota("proposals_an_hour", most)

    async def say(self, peer: str, run: int, what: Stated, digest: str) -> None:
        """Tell a peer what this party says of a run, signed, with the head of its journal."""
        head = self.runs.journal.on_disk
        said = Said(run, what, digest, stored_shares.now(), head.count, head.last, b"")
        signature = self.runs.credentials.sign(words(self.runs.settings.name, peer, said))
        await self.runs.peers.add(peer, msgspec.structs.replace(said, signature=signature))

    async def hear(self, peer: str, said: Said) -> None:
        """Write down what a peer has signed, if it has."""
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
