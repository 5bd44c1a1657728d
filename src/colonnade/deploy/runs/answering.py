"""Answers peers' proposals: looks at each, accepts or refuses it, and takes part when its proposer says go.

Where the policy says so operators are asked first, and the proposer is told that it waits. What they approve
counts for this very proposal, whenever it comes again: its proposer, or this daemon, may have been away. It
counts for later ones as well where the job says how often it is to be run, and for all scores of one model.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from colonnade.deploy.agreed import LONGEST
from colonnade.deploy.books.journal import DEADLINE, POLICY, Decision
from colonnade.deploy.books.statements import Stated
from colonnade.deploy.models import stored_shares
from colonnade.deploy.negotiate.approvals import Approvals, Held, digest_of
from colonnade.deploy.negotiate.proposals import ScoringWork, consider, read_proposal, signed_digest, work_of
from colonnade.deploy.policy import policy
from colonnade.deploy.policy.quotas import Quota
from colonnade.deploy.programs import describing, scoring
from colonnade.deploy.runs.expected_costs import ExpectedCosts
from colonnade.deploy.runs.run import Run
from colonnade.deploy.runs.runs import Runs
from colonnade.deploy.session.session import RunSession, for_peers
from colonnade.deploy.settings import LONGEST_APPROVAL_S
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Proposal
from colonnade.errors import ColonnadeError, Refused, ShareError
from colonnade.messages import Answer, Begin, Cancel, Pending, Propose, Sizes
from colonnade.net.endpoint import REASON_LIMIT

log = logging.getLogger("colonnade.party")

Verdict = Literal["accepted", "approved", "refused"]
BEGIN_S = 180.0
FORGOTTEN = "waits no more, its proposer is back and does not ask again"
READING_S = 30.0  # between two words that data is still read
WITHDRAWN = 64  # of one peer, that are remembered
LAST_RUN = 2**32 - 1


@dataclass
class Answering:
    """What peers propose to this party, and what waits for its operator."""

    runs: Runs

    def __post_init__(self) -> None:
        self.costs = ExpectedCosts(self.runs)
        self.approvals = Approvals(self.runs.settings.state / "waiting")
        self.limit_proposals(self.runs.settings.limits.proposals_an_hour)
        self._withdrawn: dict[str, deque[int]] = {}  # by peer, before they were looked at

    def limit_proposals(self, most: int) -> None:
        """Take this many proposals of one peer an hour from now on."""
        self._proposals = Quota("proposals_an_hour", most)
        self._told = Quota("proposals_an_hour", 2 * most)  # refusals in the log

    async def sized(self, peer: str, message: Sizes) -> None:
        """Keep what the proposer of a run says that it brings."""
        self.costs.said(peer, message)

    async def proposed(self, peer: str, message: Propose) -> None:
        """Answer a proposal, or tell the proposer that this party's operator is asked first."""
        proposal, wrong = Proposal(), None
        try:
            proposal = read_proposal(message.terms)
        except Refused as error:
            wrong = error
        await self.answer(peer, message.run, proposal, self._consider(peer, message.run, proposal, wrong))

    async def answer(
        self, peer: str, run: int, proposal: Proposal, considered: Awaitable[str | None]
    ) -> str | None:
        """Answer with the digest that is considered, or why not; returns the reason for a refusal.

        While an operator is asked there is no digest yet, and no answer.
        """
        digest, refusal = None, None
        reading = asyncio.create_task(self._keep_waiting(peer, run))
        try:
            digest = await considered
        except ColonnadeError as error:
            refusal = str(for_peers(error))
            if self._told.has_room(peer):  # a peer that proposes without end does not fill the log
                self._told.take(peer)
                log.warning("refused run %08x of %s: %s", run, peer, error)
                self._write_refusal(peer, run, proposal, str(error))
            self.runs.journal.ended["refused"] += 1
        except Exception:  # no proposal ends the line or other runs
            refusal = "it failed to look at the proposal; its operator sees why"
            log.exception("could not consider run %08x of %s", run, peer)
            self.runs.journal.ended["refused"] += 1
        finally:
            reading.cancel()
        if digest is not None or refusal is not None:
            said = None if refusal is None else self._with_contact(peer, refusal)
            what: Stated = "accepts" if said is None else "refuses"
            await self.runs.signed.say(peer, run, what, digest or signed_digest(proposal))
            await self.runs.peers.send(peer, Answer(run, digest or "", said))
        return refusal

    def _write_refusal(self, peer: str, run: int, proposal: Proposal, reason: str) -> None:
        """Write down that a proposal was refused without anybody being asked."""
        readable = proposal.train is not None or proposal.score is not None
        try:
            self.runs.journal.decide(
                Decision(
                    when=stored_shares.now(),
                    what="refused",
                    who=POLICY,
                    about="a proposal",
                    run=f"{run:08x}",
                    proposer=peer,
                    digest=digest_of(proposal) if readable else "",
                    reason=reason[:REASON_LIMIT],
                )
            )
        except ShareError:  # it is refused all the same
            log.exception("the refusal of run %08x is not in the journal", run)

    async def _keep_waiting(self, peer: str, run: int) -> None:
        """Tell a proposer now and then that this party still reads its data, which may be large."""
        while True:
            await asyncio.sleep(READING_S)
            await self.runs.peers.send(peer, Pending(run, 0.0))

    async def _consider(
        self, peer: str, number: int, proposal: Proposal, wrong: Refused | None
    ) -> str | None:
        """Return the digest of the proposed terms if this party accepts them; raises the reason if it does
        not.

        None if the policy leaves it to the operator: then the proposal is held.
        """
        self.runs.peers.check_version(peer)
        self._proposals.take(peer)
        self._check_room(peer)
        if wrong is not None:
            raise wrong
        await self.runs.signed.require(peer, number, "proposes", signed_digest(proposal))
        if await self._came_again(peer, number, proposal):
            return None
        rule = policy.rule_for(self.runs.settings.policy, peer)
        if (rule.approval if proposal.train is not None else rule.predict_approval) == "policy":
            return await self.accept(peer, number, proposal, POLICY)
        self._check_free(number, peer)
        self._check_scores(peer, proposal)
        found = await consider(self.runs.settings, self.runs.peers, peer, proposal)
        self._check_free(number, peer)
        self._check_times(peer, proposal)
        held = Held.of(number, peer, proposal, found, rule.approval_s, rule.approvals)
        if standing := self._approved(held, rule.approvals):
            return await self.accept(peer, number, proposal, standing)
        self.approvals.check_room(peer)
        self.hold(held)
        log.warning("%s proposes %s: run %s waits for approval", peer, held.about, held.number)
        self.runs.journal.note(f"{held.about} of {peer} waits for approval: proposal {held.number}")
        await self.runs.peers.send(peer, Pending(number, rule.approval_s))
        self.costs.find_out(held, self.approvals.expect)
        return None

    def _check_scores(self, peer: str, proposal: Proposal) -> None:
        """Raise Refused for scores that an operator has refused: a service asks for them again and again."""
        if proposal.score is None:
            return
        same = peer, digest_of(proposal)
        if (said := self.runs.journal.decided.refused.get(same)) is not None:
            raise Refused(said.reason)
        for run, held in list(self.approvals.held.items()):
            if (held.waiting.proposer, held.digest) == same:
                self.approvals.drop(run)  # asked for by a session that is over

    def hold(self, held: Held) -> None:
        """Let a proposal wait for operators."""
        self.approvals.hold(held, self._unapproved)

    def restore(self) -> None:
        """Let proposals wait again that did when this daemon ended."""
        for waiting in self.approvals.read():
            try:
                self.hold(Held(waiting, work_of(self.runs.settings, waiting.proposal)))
            except ColonnadeError as error:
                log.warning("proposal %08x of %s waits no more: %s", waiting.run, waiting.proposer, error)
                self.runs.journal.note(f"proposal {waiting.run:08x} waits no more: {error}")

    async def _came_again(self, peer: str, run: int, proposal: Proposal) -> bool:
        """Answer a proposal that was proposed before, if it waits; Refused if it was refused meanwhile.

        One that was accepted and has not begun is looked at again.
        """
        held, live = self.approvals.held.get(run), self.runs.live.get(run)
        if held is not None and (held.waiting.proposer, held.digest) == (peer, digest_of(proposal)):
            held.asked_again = True
            await self.runs.peers.send(peer, Pending(run, max(1.0, held.left())))
            if run not in self.approvals.estimates:
                self.costs.find_out(held, self.approvals.expect)
            return True
        if live is not None and live.proposer == peer and live.state == "proposed":
            await self.runs.forget(live, "withdrawn", f"{peer} proposes it again")
        decided = self.runs.journal.decided.by_run.get(f"{run:08x}")
        same = decided is not None and (decided.proposer, decided.digest) == (peer, digest_of(proposal))
        if decided is not None and same and decided.what == "refused":
            raise Refused(decided.reason)
        return False

    def _approved(self, held: Held, needs: int) -> str:
        """Return what stands for an approval, given before and still good for a proposal; empty if nothing
        does."""
        waiting = held.waiting
        found = self.runs.journal.decided.approved.get((waiting.proposer, held.digest))
        if found is None or found.columns != waiting.columns or max(1, len(found.people)) < needs:
            return ""
        again = waiting.proposal.train is None or held.terms.runs_of_a_job is not None
        return f"approval of run {found.run}" if again or found.run == held.number else ""

    def _check_times(self, peer: str, proposal: Proposal) -> None:
        """Raise Refused if a job was run as often as it says itself, or as this party's policy allows."""
        if (terms := proposal.train) is None:
            return
        rule = policy.rule_for(self.runs.settings.policy, peer)
        policy.check_times(rule, terms, self.runs.journal.decided.times(peer, terms.name, terms.digest()))

    async def accept(
        self, peer: str, number: int, proposal: Proposal, who: str, *, noted: bool = False
    ) -> str:
        """Look at a proposal with its data and begin to listen for its run; returns the digest of its terms.

        That is written down as the decision of `who`, unless it is `noted` already.
        Raises the reason if this party does not take part after all.
        """
        self._check_free(number, peer)
        found = await consider(self.runs.settings, self.runs.peers, peer, proposal)
        self._check_free(number, peer)  # another peer may have taken it while the data was read
        self._check_room(peer)
        self._check_times(peer, proposal)
        run = self.runs.begin(number, peer, found.work, found.own_rows, found.minimum)
        try:
            self.runs.reserve(run)
            if not noted and (run.trains is not None or who != POLICY):
                self.runs.journal.decide(self._accepted(run, peer, proposal, who))
        except ColonnadeError as error:
            await self.runs.forget(run, "refused", str(error))
            raise
        self._expect_begin(run, BEGIN_S)
        log.info("accepted run %08x of %s", number, peer)
        return run.terms.digest()

    def _accepted(self, run: Run, peer: str, proposal: Proposal, who: str) -> Decision:
        """Return the decision that a run is accepted, by the policy or by an approval."""
        return Decision(
            when=stored_shares.now(),
            what="accepted",
            who=who,
            about=run.about,
            run=run.number,
            proposer=peer,
            digest=digest_of(proposal),
        )

    def decision(self, what: Verdict, who: str, held: Held) -> Decision:
        """Return a decision about a proposal that was held, to be written into the journal."""
        return Decision(
            when=stored_shares.now(),
            what=what,
            who=who,
            about=held.about,
            run=held.number,
            proposer=held.waiting.proposer,
            digest=held.digest,
        )

    def _unapproved(self, held: Held) -> None:
        """Refuse a proposal whose time is up."""
        reason = f"its operator did not approve it before {held.waiting.until}"
        self.runs.spawn(self.refuse(held, DEADLINE, reason))

    async def refuse(self, held: Held, who: str, reason: str) -> None:
        """Refuse a proposal that was held, and write down who did."""
        said = self.decision("refused", who, held)
        self.runs.journal.decide(msgspec.structs.replace(said, reason=reason))
        self.runs.journal.ended["refused"] += 1
        answer = Answer(held.waiting.run, "", self._with_contact(held.waiting.proposer, reason))
        digest = signed_digest(held.waiting.proposal)
        await self.runs.signed.say(held.waiting.proposer, held.waiting.run, "refuses", digest)
        await self.runs.peers.send(held.waiting.proposer, answer)

    def _with_contact(self, peer: str, reason: str) -> str:
        """Return a refusal as a peer reads it, with whom it may ask."""
        contact = policy.rule_for(self.runs.settings.policy, peer).contact
        return f"{reason[: REASON_LIMIT - LONGEST - 10]}{f'; ask {contact}' if contact else ''}"

    def wait_longer(self, run: Run, seconds: float) -> None:
        """Give the proposer of an accepted run its time, since an operator of somebody else is asked."""
        if run.state == "proposed" and math.isfinite(seconds):
            self._expect_begin(run, min(max(seconds, 0.0), LONGEST_APPROVAL_S) + BEGIN_S)

    def left(self, peer: str, reason: str) -> None:
        """Drop what a peer that went away proposed and did not begin; what waits for operators waits on."""
        for run in list(self.runs.live.values()):
            if run.proposer == peer and run.state == "proposed":
                self.runs.spawn(self.runs.forget(run, "withdrawn", f"{peer} is away: {reason}"))

    def came(self, peer: str) -> None:
        """Give a peer that is back its time to ask again for what waits; what it does not ask for is
        dropped."""
        self.approvals.came(peer, lambda held: self.runs.journal.note(f"{held.about} of {peer}: {FORGOTTEN}"))

    def _expect_begin(self, run: Run, seconds: float) -> None:
        """Forget a run that is accepted here unless its proposer says go in time."""
        if run.expires is not None:
            run.expires.cancel()
        run.expires = asyncio.get_running_loop().call_later(seconds, self._expire, run, seconds)

    def _expire(self, run: Run, seconds: float) -> None:
        """Forget a run that this party accepted and that its proposer never began."""
        run.task = asyncio.ensure_future(
            self.runs.forget(run, "expired", f"{run.proposer} never said go within {seconds:g} s")
        )

    @property
    def going(self) -> list[str]:
        """The proposers of all runs that go on or wait here."""
        going = [run.proposer for run in self.runs.live.values()]
        return going + [held.waiting.proposer for held in self.approvals.held.values()]

    def _check_room(self, peer: str) -> None:
        """Raise Refused if as many runs go on or wait here as this party's settings allow."""
        limits, going = self.runs.settings.limits, self.going
        its = going.count(peer)
        # a peer without one may have one: others cannot take up all the room
        for name, count in (("runs", len(going) if its else 0), ("runs_of_a_peer", its)):
            if count >= (most := getattr(limits, name)):
                raise Refused(f"{count} runs go on or wait here, limits.{name} = {most}; try again later")

    def _check_free(self, number: int, peer: str) -> None:
        """Raise Refused unless a new run may have this number; 0 is what daemons say beside the runs."""
        if number in self._withdrawn.get(peer, ()):
            raise Refused(f"{peer} has withdrawn run {number:08x}")
        taken = number in self.runs.live or number in self.approvals.held
        if taken or number & 0xF or not 0 < number <= LAST_RUN:
            raise Refused(f"run {number:08x} is not a free number")

    async def begun(self, peer: str, message: Begin) -> None:
        """Take part, now that the proposer says that everybody has accepted."""
        run = self.runs.live.get(message.run)
        if run is None or run.proposer != peer or run.state != "proposed":
            return
        if run.expires is not None:
            run.expires.cancel()
        if message.digest != run.terms.digest():
            run.session.stop(f"{peer} says go to another job than {self.runs.settings.name} accepted")
        run.followed.listeners.append(run.log)
        run.task = asyncio.ensure_future(self.play_alone(run))

    async def play_alone(self, run: Run) -> None:
        """Play this party's part in a run that nobody here waits for; failures are logged and not raised."""
        program: Callable[[RunSession], Awaitable[object]]
        match run.work:
            case Contract():
                program = describing.program_of(run.work, lambda moment: self.runs.report(run, moment))
            case ScoringWork():
                program = scoring.answering(run.work.share, run.work.terms)
        try:
            await self.runs.remember(run)
            await self.runs.play(run, program)
        except ColonnadeError:
            pass  # logged and noted; there is nobody here to raise it to
        except Exception:
            log.exception("run %s of %s failed", run.number, run.proposer)

    async def cancelled(self, peer: str, message: Cancel) -> None:
        """Forget a proposal that was withdrawn, or end a run that a party ended."""
        held = self.approvals.held.get(message.run)
        if held is not None and held.waiting.proposer == peer:
            self.approvals.drop(message.run)
            self.runs.journal.note(f"{held.about}: withdrawn by {peer}: {message.reason}")
            return
        run = self.runs.live.get(message.run)
        if run is None:  # perhaps its data is being read
            self._withdrawn.setdefault(peer, deque(maxlen=WITHDRAWN)).append(message.run)
        elif peer not in run.session.parties:
            return
        elif run.state == "proposed":
            await self.runs.forget(run, "withdrawn", f"withdrawn by {peer}: {message.reason}")
        else:
            self.runs.end(run, f"{peer} ended the run: {message.reason}")
