"""Going on with a training that was cut off, once all its parties are there again.

A session of a run ends for everybody when a party's process is killed, its daemon dies, or its line is lost.
The run is not over then, for as long as its job says (`checkpoint.wait_s`): every party waits, and its
proposer calls all together once it has a line with each.

    any party    CutOff      the session is over here: who still plays in it need not wait for a deadline
    proposer     Rejoin      listen for a new session, which has a number of its own
    all others   Rejoined    it listens, and has the common rows of before or not; or not now, and why
    proposer     GoOn        all listen
    any party    Settled     the run is over here, and its share was kept or not

A new session is a run of its own on the wire: new frames, new keys, new masks. What it goes on from is what
all parties have on disk (`unfinished`, `conversations.gates`). A share that somebody has kept was written by
all, so who was killed before it could keep its own does so when it hears of that.

A party that stays away longer is named in the error that ends the run at all others.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from colonnade.deploy.books import unfinished
from colonnade.deploy.books.journal import Interruption
from colonnade.deploy.models import stored_shares
from colonnade.deploy.policy.quotas import Quota
from colonnade.deploy.runs.run import Run
from colonnade.deploy.session.session import Event, for_peers
from colonnade.errors import Aborted, ColonnadeError, PeerUnreachable, Refused, ShareError
from colonnade.messages import Cancel, CutOff, GoOn, Rejoin, Rejoined, Settled
from colonnade.shares import Draft

if TYPE_CHECKING:
    from colonnade.deploy.runs.runs import Runs

log = logging.getLogger("colonnade.party")

LOOK_S = 0.25  # how often is looked who is there
ANSWER_S = 30.0  # how long a party may take to leave the old session
ASK_S = 5.0  # between two questions whether a run is over
GRACE_S = 15.0  # how much longer than the proposer the others wait: it says who is away
KEPT_FATES = 100  # of runs that are over
MOST_CUTS = 30  # in an hour: a run that is cut off again and again is over


@dataclass
class SaidByPeers:
    """What peers have said about a run since it was cut off here."""

    offer: Rejoin | None = None
    answers: dict[str, Rejoined] = field(default_factory=dict)
    go: GoOn | None = None
    settled: dict[str, Settled] = field(default_factory=dict)
    ended: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def more(self, seconds: float = LOOK_S) -> None:
        """Wait until something is said, but not for long."""
        self.changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.changed.wait()


@dataclass
class Resuming:
    """The trainings of one daemon that were cut off."""

    runs: Runs
    closing: bool = False
    _heard: dict[int, SaidByPeers] = field(default_factory=dict)
    _fates: dict[int, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    _cuts: Quota = field(default_factory=lambda: Quota("cuts", MOST_CUTS))

    @property
    def me(self) -> str:
        """The name of this party."""
        return self.runs.settings.name

    def heard(self, run: int) -> SaidByPeers:
        """Return what was said about a run."""
        return self._heard.setdefault(run, SaidByPeers())

    def forget(self, run: int) -> None:
        """Drop what was said about a run that is over."""
        self._heard.pop(run, None)

    def failed(self, run: Run, words: str) -> None:
        """Keep for its parties why a run is over, for those that ask later."""
        self._fates[run.id] = run.session.peers, words
        while len(self._fates) > KEPT_FATES:
            del self._fates[next(iter(self._fates))]

    async def again(self, run: Run, error: ColonnadeError) -> stored_shares.Manifest | None:
        """Wait until everybody goes on with a run that was cut off by this error, which is raised if not.

        Returns the manifest of the share if the run turns out to be over.
        """
        run.told = run.told or run.session.told
        if (kept := self._kept(run)) is not None:
            await self._tell(run, Settled(run.id, kept=True, reason=""))
            return kept
        if not run.lasts or self.closing:
            raise error
        try:
            self._cuts.take(run.number)
        except Refused:
            raise type(error)(f"{error}; it was cut off {MOST_CUTS} times within an hour") from error
        run.state = "waiting"
        self._write(run, "cut off", str(error))
        words = str(for_peers(error))[:2000]
        await self._tell(run, CutOff(run.id, run.session.number, words))
        until = asyncio.get_running_loop().time() + run.wait_s
        if run.proposer == self.me:
            found = await self._call_together(run, until)
        else:
            found = await self._follow(run, until)
        run.state = "running"
        self._write(run, "gone on" if found is None else "over", "")
        return found

    # -- the proposer -------------------------------------------------------------------------------

    async def _call_together(self, run: Run, until: float) -> stored_shares.Manifest | None:
        heard, why = self.heard(run.id), ""
        while True:
            if (found := self._over(run, heard)) is not None:
                await self._tell(run, Settled(run.id, kept=True, reason=""))
                return found
            away = self._away(run)
            if not away:
                if not (why := await self._offer(run, heard)):
                    return None
                if not heard.settled:
                    away = {"": why}
            if asyncio.get_running_loop().time() >= until and away:
                raise self._too_long(run, away)
            self._show(run, away, until)
            await heard.more()

    async def _offer(self, run: Run, heard: SaidByPeers) -> str:
        """Offer a new session to all; returns why it does not begin, nothing if it does."""
        number = self.runs.free_number()
        heard.answers.clear()
        try:
            await self.runs.renew(run, number)
        except PeerUnreachable as error:
            return str(error)
        await self._tell(run, Rejoin(run.id, number, run.terms.digest()))
        until = asyncio.get_running_loop().time() + ANSWER_S
        peers = set(run.session.peers)
        while not heard.ended and not heard.settled and asyncio.get_running_loop().time() < until:
            answers = {p: answer for p, answer in heard.answers.items() if answer.session == number}
            if refusals := [f"{p}: {answer.refusal}" for p, answer in answers.items() if answer.refusal]:
                await run.session.shut()
                return "; ".join(refusals)
            if answers.keys() == peers:
                own = unfinished.is_aligned(unfinished.folder_of(self.runs.settings, run.id))
                aligned = own and all(answer.aligned for answer in answers.values())
                await self._tell(run, GoOn(run.id, number, aligned))
                run.session.go_on(aligned=aligned)
                return ""
            if away := self._away(run):
                await run.session.shut()
                return "; ".join(away.values())
            await heard.more()
        await run.session.shut()
        silent = sorted(peers - heard.answers.keys())
        return f"{', '.join(silent) or 'somebody'} did not answer"

    # -- all others ---------------------------------------------------------------------------------

    async def _follow(self, run: Run, until: float) -> stored_shares.Manifest | None:
        heard, asked, asks = self.heard(run.id), set[str](), 0.0
        listens = False
        while True:
            if (found := self._over(run, heard)) is not None:
                return found
            there = {peer for peer in run.session.peers if peer in self.runs.peers.controls}
            now = asyncio.get_running_loop().time()
            if now >= asks:  # for whom the run was not over yet it may be by now
                asked, asks = set(), now + ASK_S
            for peer in there - asked:  # somebody who came back may know that the run is over
                await self.runs.peers.send(peer, CutOff(run.id, 0, ""))
            asked = there
            if (offer := heard.offer) is not None:
                heard.offer, listens = None, await self._rejoin(run, offer)
            if listens and heard.go is not None and heard.go.session == run.session.number:
                run.session.go_on(aligned=heard.go.aligned)
                return None
            away, now = self._away(run), asyncio.get_running_loop().time()
            if now >= until and (run.proposer in away or now >= until + GRACE_S):
                raise self._too_long(run, away or {run.proposer: f"{run.proposer} did not go on"})
            self._show(run, away, until)
            await heard.more()

    async def _rejoin(self, run: Run, offer: Rejoin) -> bool:
        """Listen for a new session, and say so; False if that cannot be now."""
        refusal = None
        await run.session.shut()
        if self.runs.is_free(offer.session):
            try:
                await self.runs.renew(run, offer.session)
            except PeerUnreachable as error:
                refusal = str(error)[:2000]
        else:
            refusal = f"session {offer.session:08x} is another's at {self.me}"
        aligned = unfinished.is_aligned(unfinished.folder_of(self.runs.settings, run.id))
        await self.runs.peers.send(run.proposer, Rejoined(run.id, offer.session, aligned, refusal))
        return refusal is None

    # -- what peers say -----------------------------------------------------------------------------

    async def cut_off(self, peer: str, message: CutOff) -> None:
        """End the session that a peer has left; tell it if there is no such run."""
        run = self.runs.live.get(message.run)
        if run is None:
            await self._answer(peer, message.run)
        elif peer in run.session.peers and run.state == "running" and run.session.number == message.session:
            run.session.cut(f"{peer} was cut off: {message.reason}")

    async def rejoin(self, peer: str, message: Rejoin) -> None:
        """Hear that the proposer calls all together; tell it if there is no such run."""
        run = self.runs.live.get(message.run)
        if run is None:
            await self._answer(peer, message.run)
            return
        if run.proposer != peer or not run.lasts or run.state == "proposed":
            return
        if message.digest != run.terms.digest():
            await self.runs.peers.send(peer, Cancel(run.id, f"{self.me} has another job under this number"))
            return
        heard = self.heard(run.id)
        heard.offer = message
        heard.changed.set()
        if run.state == "running":
            run.session.cut(f"{peer} calls all parties together again")

    async def rejoined(self, peer: str, message: Rejoined) -> None:
        """Keep an answer to this party's own call."""
        run = self.runs.live.get(message.run)
        if run is not None and peer in run.session.peers and message.run in self._heard:
            heard = self.heard(message.run)
            heard.answers[peer] = message
            heard.changed.set()

    async def go_on(self, peer: str, message: GoOn) -> None:
        """Hear that all parties listen."""
        run = self.runs.live.get(message.run)
        if run is not None and run.proposer == peer:
            self.heard(run.id).go = message
            self.heard(run.id).changed.set()

    async def settled(self, peer: str, message: Settled) -> None:
        """Hear that a run is over at a peer."""
        run = self.runs.live.get(message.run)
        if run is None or peer not in run.session.peers or run.state != "waiting":
            return
        if message.kept or self.me == run.proposer or peer == run.proposer:
            self.heard(run.id).settled[peer] = message
            self.heard(run.id).changed.set()

    # -- how it ends --------------------------------------------------------------------------------

    def _over(self, run: Run, heard: SaidByPeers) -> stored_shares.Manifest | None:
        """Return the manifest of the share if the run is over with one; raises if it is over without."""
        if heard.ended:
            raise Aborted(heard.ended)
        if any(settled.kept for settled in heard.settled.values()):
            with suppress(OSError):
                Draft(self._model(run)).keep()
            if (kept := self._kept(run)) is not None:
                return kept
            raise ShareError(f"the run is over and this party's share of {self._model(run).name} is lost")
        if heard.settled:
            said = [f"{peer} ended the run: {each.reason}" for peer, each in sorted(heard.settled.items())]
            raise Aborted(f"{'; '.join(said)} (while {self.me} was away)")
        return None

    def _away(self, run: Run) -> dict[str, str]:
        """Return the parties without a line to this one, and why."""
        peers = self.runs.peers
        lines = peers.mux.lines  # a peer that was taken out of the settings has none
        return {
            peer: f"{peer} is away ({lines[peer].reason or 'its line begins'})"
            if peer in lines
            else f"{peer} is no longer a peer"
            for peer in run.session.peers
            if peer not in peers.controls
        }

    def _too_long(self, run: Run, away: dict[str, str]) -> ColonnadeError:
        waited = f"waited checkpoint.wait_s = {run.wait_s:g} s to go on"
        return PeerUnreachable(f"{'; '.join(away.values())}; {self.me} {waited}")

    def _kept(self, run: Run) -> stored_shares.Manifest | None:
        """Return the manifest of this party's share of the run, if it was kept."""
        with suppress(ShareError):
            if run.trains is not None and self._model(run).is_dir():
                return stored_shares.find(self._model(run).parent, self._model(run).name)
        return None

    async def _answer(self, peer: str, run: int) -> None:
        """Tell a peer that asks about a run which is not here how it ended."""
        fate = await asyncio.to_thread(self._fate, peer, run)
        # a daemon that is being stopped has left its runs while it still hears its peers; those that last
        # are not over, they go on when it is started again
        if fate.kept or not self.closing:
            await self.runs.peers.send(peer, fate)

    def _fate(self, peer: str, run: int) -> Settled:
        """Return what a peer is told that asks about a run which is over here."""
        known = stored_shares.listing(self.runs.settings.state / "models")
        kept = any(each.run == f"{run:08x}" and peer in each.terms.parties for each in known)
        parties, words = self._fates.get(run, ((), ""))
        return Settled(run, kept, words if peer in parties and not kept else "")

    def _model(self, run: Run) -> Path:
        return self.runs.settings.state / "models" / f"{run.about}-{run.number}"

    # -- words --------------------------------------------------------------------------------------

    async def _tell(self, run: Run, message: CutOff | Rejoin | GoOn | Settled) -> None:
        for peer in run.session.peers:
            await self.runs.peers.send(peer, message)

    def _write(self, run: Run, what: str, reason: str) -> None:
        """Write into the journal and the log that a run was cut off, or goes on."""
        log.warning("run %s: %s%s", run.number, what, f": {reason}" if reason else "")
        self.runs.journal.note(f"run {run.number} was {what}{f': {reason}' if reason else ''}")
        try:
            self.runs.journal.interrupt(
                Interruption(when=stored_shares.now(), run=run.number, what=what, reason=reason)
            )
        except ShareError:
            log.exception("the journal cannot be written")

    def _show(self, run: Run, away: dict[str, str], until: float) -> None:
        """Show who is waited for, and until when."""
        names = ", ".join(sorted(filter(None, away))) or "all parties"
        text = f"waiting for {names}, until {stored_shares.now(until - asyncio.get_running_loop().time())}"
        if run.followed.latest is None or not run.followed.latest.what.startswith(f"waiting for {names},"):
            run.followed.tell(Event(text))
