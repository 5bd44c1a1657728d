"""Whether the other parties still hold their shares of a model, asked before it is put to use.

A peer is told only about models that it trained itself, and of those what it knows already: the digest of
the job and that of the common rows. Anything else looks the same to it: no usable share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

from colonnade.deploy.models import party_models, stored_shares
from colonnade.deploy.models.stored_shares import Manifest
from colonnade.deploy.policy.policy import rule_for
from colonnade.deploy.session.session import for_peers
from colonnade.deploy.settings import Settings
from colonnade.errors import ColonnadeError, Refused, ShareError
from colonnade.messages import AskShare, HaveShare, Message
from colonnade.net.endpoint import REASON_LIMIT

ANSWER_S = 20.0

Send = Callable[[str, Message], Awaitable[None]]


@dataclass
class SharesHeld:
    """The questions that one daemon asks about shares, and its answers to those of its peers."""

    settings: Settings
    send: Send
    numbers: count[int] = field(default_factory=lambda: count(1))
    waiting: dict[tuple[str, int], asyncio.Future[HaveShare]] = field(default_factory=dict)

    async def check(self, manifest: Manifest) -> None:
        """Raise ShareError unless every other party has its share of this very run, and can use it."""
        others = sorted(set(manifest.terms.parties) - {self.settings.name})
        problems = await asyncio.gather(*(self._problem(peer, manifest) for peer in others))
        if found := [problem for problem in problems if problem]:
            raise ShareError("; ".join(found))

    async def asked(self, peer: str, message: AskShare) -> None:
        """Answer a peer's question."""
        try:
            manifest = await asyncio.to_thread(usable, self.settings, peer, message.model)
            said = HaveShare(message.number, manifest.digest, manifest.alignment, None)
        except ColonnadeError as error:
            said = HaveShare(message.number, "", "", str(for_peers(error))[:REASON_LIMIT])
        await self.send(peer, said)

    async def answered(self, peer: str, message: HaveShare) -> None:
        """Pass a peer's answer to the question that waits for it."""
        future = self.waiting.get((peer, message.number))
        if future is not None and not future.done():
            future.set_result(message)

    async def _problem(self, peer: str, manifest: Manifest) -> str:
        """Return why the model cannot be used with this peer; empty if it can."""
        number = next(self.numbers)
        future: asyncio.Future[HaveShare] = asyncio.get_running_loop().create_future()
        self.waiting[peer, number] = future
        try:
            await self.send(peer, AskShare(number, manifest.model))
            async with asyncio.timeout(ANSWER_S):
                answer = await future
        except TimeoutError:
            return f"{peer} did not say within {ANSWER_S:g} s whether it has its share of {manifest.model}"
        finally:
            del self.waiting[peer, number]
        if answer.refusal is not None:
            return f"{peer} has no usable share of {manifest.model}: {answer.refusal}"
        if (answer.digest, answer.alignment) != (manifest.digest, manifest.alignment):
            return f"{peer} holds a share of another run under the name {manifest.model}"
        return ""


def usable(settings: Settings, peer: str, model: str) -> Manifest:
    """Return the manifest of this party's share of a model, if the peer may ask for it and it can be used."""
    if not rule_for(settings.policy, peer).predict:
        raise Refused(f"{peer} may not ask for scores here")
    share = stored_shares.load(settings.state / "models", model)
    manifest = share.manifest
    if manifest.model != model or peer not in manifest.terms.parties:
        raise ShareError(f"{peer} has no part in {model}")
    party_models.check_unchanged(settings, manifest.terms, manifest.code)
    return manifest
