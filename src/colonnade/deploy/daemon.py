"""A party's long-running process: keeps lines with its peers, takes part in runs, proposes them.

A run begins with a proposal. Everybody checks it against its own policy and data and answers yes, or why
not; where its policy says so its operator is asked first, and the proposer is told that it waits. When all
have said yes to the same digest the proposer tells them to begin, and each plays its part. A refusal ends it
before anything about the data was exchanged, and both ends log the reason. A party that stops a run, or loses
its line, ends it at all parties with that reason.

Beside the runs daemons tell each other versions, proposals, answers, how far training is, and which shares
they hold.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import msgspec

from colonnade import __version__
from colonnade.arrays import Digests
from colonnade.deploy import policy, scoring, shares, training
from colonnade.deploy.agreement import Agreement
from colonnade.deploy.approvals import Approvals, Held
from colonnade.deploy.holdings import Holdings
from colonnade.deploy.journal import DEADLINE, POLICY, Decision, Journal
from colonnade.deploy.ledger import Ledger, Spendable, Spending
from colonnade.deploy.peers import Handler, Peers
from colonnade.deploy.proposals import ScoringWork, consider, read_proposal
from colonnade.deploy.rows import PartyRows
from colonnade.deploy.run import Run
from colonnade.deploy.serving import Serving
from colonnade.deploy.session import Event, RunSession, Tell, endpoints, for_peers
from colonnade.deploy.settings import LONGEST_APPROVAL_S, Settings, address
from colonnade.deploy.terms import Contract, Proposal, Scoring, Terms, check_terms
from colonnade.errors import ColonnadeError, JobError, PeerUnreachable, Refused
from colonnade.messages import Answer, AskShare, Begin, Cancel, HaveShare, Message, Pending, Progress, Propose
from colonnade.net.stream.mux import Mux
from colonnade.result import Moment
from colonnade.run.party import Party

log = logging.getLogger("colonnade.party")

T = TypeVar("T")
Verdict = Literal["accepted", "approved", "refused"]
ANSWER_S = 120.0
BEGIN_S = 180.0
SCORING_S = 60.0  # how long a silent peer is waited for in a scoring session
MOST_RUNS = 16


def _no_page(who: str) -> str:
    """The link to this daemon's page, which it does not have."""
    raise JobError("there is no page; set monitor and monitor_token_file in the settings, and start again")


@dataclass
class Daemon:
    """One party's process between companies: its lines with the peers, and the runs that wait or go on."""

    settings: Settings
    version: str = __version__
    runs: dict[int, Run] = field(default_factory=dict)
    approvals: Approvals = field(default_factory=Approvals)

    def __post_init__(self) -> None:
        settings = self.settings
        self.me = settings.name
        self.journal = Journal(settings.state / "journal.jsonl")
        self.credentials = settings.credentials()
        self.ledger = Ledger(settings.state)
        self.serving = Serving(settings.state)
        self.holdings = Holdings(settings, lambda peer, message: self.peers.send(peer, message))
        self.invite: Callable[[str], str] = _no_page
        self._background: set[asyncio.Future[None]] = set()
        peers = {peer: address(text, f"peers.{peer}") for peer, text in settings.peers.items()}
        listen = address(settings.listen, "listen")
        self.mux = Mux(self.me, listen, peers, self.credentials, settings.reconnect_s)
        handlers: dict[type[Message], Handler] = {
            Propose: self._proposed,
            Answer: self._answered,
            Begin: self._begun,
            Cancel: self._cancelled,
            Progress: self._progressed,
            Pending: self._pending,
            AskShare: self.holdings.asked,
            HaveShare: self.holdings.answered,
        }
        self.peers = Peers(self.mux, self.version, handlers, self._left)

    async def open(self) -> None:
        """Listen, and begin to connect with every peer."""
        self.settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        await self.peers.open()
        log.info("%s listens on %s", self.me, self.settings.listen)

    async def close(self) -> None:
        """End every run at all its parties, then hang up."""
        for run in list(self.runs.values()):
            run.session.stop(f"{self.me} was stopped by its operator")
        tasks = [run.task for run in self.runs.values() if run.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        await self.peers.close()

    # -- proposing ----------------------------------------------------------------------------------

    async def train(self, terms: Terms, tell: Tell = lambda event: None) -> shares.Manifest:
        """Propose a training run, take part in it, and return the manifest of this party's share.

        Raises Refused with everybody's reasons if not all accept.
        """
        contract = check_terms(terms, "job")
        if self.me not in terms.parties:
            raise JobError(f"parties: {self.me} proposes this job and is not one of its parties")
        self.peers.require(tuple(terms.parties))
        policy.check_training(self.settings, self.me, contract)
        tell(Event("reading data"))
        own = await asyncio.to_thread(training.read_rows, self.settings, contract)
        run = self._begin(self._free_number(), self.me, contract, own)
        program = training.training(contract, lambda moment: self._report(run, moment))
        return await self._propose(run, Proposal(train=terms), program, tell)

    async def score(
        self,
        share: shares.StoredShare,
        wanted: Digests | None,
        use: Callable[[scoring.Ready], Awaitable[T]],
        *,
        data: str | None = None,
        service: bool = False,
        tell: Tell = lambda event: None,
    ) -> T:
        """Open a scoring session with everybody who holds a share of the model; return what `use` returns.

        `wanted` are the ids to score, as digests, or None for all that are common.
        """
        trained = share.manifest.terms
        if self.me not in trained.active:
            raise JobError(f"{self.me} holds no label of {share.manifest.model}; ask at {trained.active[0]}")
        terms = Scoring(
            model=share.manifest.model,
            asker=self.me,
            parties=self.present(share.manifest),
            data=data,
            service=service,
            nonce=os.urandom(8).hex(),
        )
        own = await asyncio.to_thread(scoring.read_rows, self.settings, share, terms, wanted)
        run = self._begin(self._free_number(), self.me, ScoringWork(terms, share), own)
        return await self._propose(run, Proposal(score=terms), scoring.asking(share, terms, use), tell)

    def present(self, manifest: shares.Manifest) -> tuple[str, ...]:
        """The parties that score: all of them, or those that are connected if the job allows that."""
        parties = tuple(sorted(manifest.terms.parties))
        try:
            self.peers.require(parties)
        except PeerUnreachable as away:
            there = tuple(p for p in parties if p == self.me or p in self.peers.controls)
            if not manifest.terms.use.degraded or len(there) < 2:
                raise PeerUnreachable(f"{away}; {manifest.model} needs all its parties") from None
            self.peers.require(there)
            return there
        return parties

    def _free_number(self) -> int:
        """A random number for a new run.

        Its low bits are free for the stretches of the run; number 0 is the daemons' own talk.
        """
        return int.from_bytes(os.urandom(4), "big") & 0xFFFFFFF0 | 0x10

    async def _propose(
        self, run: Run, proposal: Proposal, program: Callable[[RunSession], Awaitable[T]], tell: Tell
    ) -> T:
        """Ask everybody, and play this party's part once all have agreed."""
        run.asked_by = tell
        run.followed.listeners.append(tell)
        peers = run.session.align.peers
        run.agreement = Agreement.of(peers, run.terms.digest(), ANSWER_S)
        encoded = msgspec.json.encode(proposal, order="deterministic")
        try:
            self._reserve(run)
            run.followed.tell(Event("asking", 0, len(peers)))
            for peer in peers:
                await self.peers.controls[peer].send(peer, Propose(run.id, encoded))
            await run.agreement.reached()
        except BaseException as error:
            reason = str(error) or f"{self.me} withdrew it"
            for peer in peers:
                await self.peers.send(peer, Cancel(run.id, reason[:2000]))
            await self._forget(run, "refused" if isinstance(error, Refused) else "failed", reason)
            raise
        for peer in peers:
            await self.peers.send(peer, Begin(run.id, run.terms.digest()))
        return await self._play(run, program)

    # -- being asked --------------------------------------------------------------------------------

    async def _proposed(self, peer: str, message: Propose) -> None:
        """Answer a proposal, or tell the proposer that this party's operator is asked first."""
        await self.answer(peer, message.run, self._consider(peer, message))

    async def answer(self, peer: str, run: int, considered: Awaitable[str | None]) -> str | None:
        """Answer with the digest that is considered, or why not; returns the reason for a refusal.

        While an operator is asked there is no digest yet, and no answer.
        """
        digest, refusal = None, None
        try:
            digest = await considered
        except ColonnadeError as error:
            refusal = str(for_peers(error))
            log.warning("refused run %08x of %s: %s", run, peer, error)
            self.journal.note(f"refused a proposal of {peer}: {error}")
            self.journal.ended["refused"] += 1
        except Exception:  # whatever a proposal brings about, the line and the other runs go on
            refusal = "it failed to look at the proposal; its operator sees why"
            log.exception("could not consider run %08x of %s", run, peer)
            self.journal.ended["refused"] += 1
        if digest is not None or refusal is not None:
            await self.peers.send(peer, Answer(run, digest or "", refusal))
        return refusal

    async def _consider(self, peer: str, message: Propose) -> str | None:
        """The digest of the proposed terms if this party accepts them; raises the reason if it does not.

        None if the policy leaves it to the operator: then the proposal is held.
        """
        self.peers.check_version(peer)
        proposal = read_proposal(message.terms)
        if len(self.runs) + len(self.approvals.held) >= MOST_RUNS:
            raise Refused(f"{MOST_RUNS} runs go on or wait here already; try again later")
        rule = policy.rule_for(self.settings.policy, peer)
        if proposal.train is None or rule.approval == "policy":
            return await self.accept(peer, message.run, proposal, POLICY)
        self._check_free(message.run)
        self.approvals.check_room(peer)
        found = await consider(self.settings, self.peers, peer, proposal)
        self._check_free(message.run)
        if isinstance(found.work, Contract):
            held = Held.of(message.run, peer, found.work, found.own_rows, rule.approval_s)
            self.approvals.hold(held, rule.approval_s, self._unapproved)
            log.warning("%s proposes %s: run %s waits for approval", peer, held.terms.name, held.number)
            self.journal.note(f"{held.terms.name} of {peer} waits for approval: proposal {held.number}")
            await self.peers.send(peer, Pending(held.run, rule.approval_s))
        return None

    async def accept(self, peer: str, number: int, proposal: Proposal, who: str) -> str:
        """Look at a proposal with its data and begin to listen for its run; returns the digest of its terms.

        Raises the reason if this party does not take part after all.
        """
        self._check_free(number)
        found = await consider(self.settings, self.peers, peer, proposal)
        self._check_free(number)  # another peer may have taken it while the data was read
        run = self._begin(number, peer, found.work, found.own_rows, found.minimum)
        try:
            self._reserve(run)
            if run.trains is not None and who == POLICY:
                self.journal.decide(self.decision("accepted", who, run.trains, run.number, peer))
        except ColonnadeError as error:
            await self._forget(run, "refused", str(error))
            raise
        self._expect_begin(run, BEGIN_S)
        log.info("accepted run %08x of %s", number, peer)
        return run.terms.digest()

    def decision(self, what: Verdict, who: str, terms: Terms, run: str, proposer: str) -> Decision:
        """A decision about a proposed job, to be written into the journal."""
        return Decision(
            when=shares.now(),
            what=what,
            who=who,
            about=terms.name,
            run=run,
            proposer=proposer,
            digest=terms.digest(),
        )

    def _unapproved(self, held: Held) -> None:
        """Refuse a proposal whose time is up."""
        self._spawn(self.refuse(held, DEADLINE, f"its operator did not approve it before {held.until}"))

    async def refuse(self, held: Held, who: str, reason: str) -> None:
        """Refuse a proposal that was held, and write down who did."""
        said = self.decision("refused", who, held.terms, held.number, held.proposer)
        self.journal.decide(msgspec.structs.replace(said, reason=reason))
        self.journal.ended["refused"] += 1
        await self.peers.send(held.proposer, Answer(held.run, "", reason))

    def _expect_begin(self, run: Run, seconds: float) -> None:
        """Forget a run that is accepted here unless its proposer says go in time."""
        if run.expires is not None:
            run.expires.cancel()
        run.expires = asyncio.get_running_loop().call_later(seconds, self._expire, run, seconds)

    def _check_free(self, number: int) -> None:
        """Raise Refused unless a new run may have this number."""
        if number in self.runs or number in self.approvals.held or number & 0xF:
            raise Refused(f"run {number:08x} is not a free number")

    def _begin(
        self,
        id_: int,
        proposer: str,
        work: Contract | ScoringWork,
        own: PartyRows,
        minimum: int | None = None,
    ) -> Run:
        """Make a run and its endpoints: from now on this party listens to what its peers say in it."""
        deadline = work.terms.network.deadline_s if isinstance(work, Contract) else SCORING_S
        nets = endpoints(self.mux, id_, tuple(sorted(work.terms.parties)), deadline)
        party = Party(self.credentials, nets, self.version, for_peers)
        demanded = self.settings.policy.min_rows if minimum is None else minimum
        session = RunSession(id_, self.settings, party, own, demanded)
        run = self.runs[id_] = Run(proposer, work, session)
        session.tell = run.followed.tell
        return run

    def _reserve(self, run: Run) -> None:
        """Reserve in the ledger what a run may tell about this party's labels, before anything begins."""
        if not isinstance(contract := run.work, Contract):
            return
        terms, member = contract.terms, contract.terms.parties[self.me]
        label = self.settings.data[member.data].label if member.label else None
        if label is None:
            return
        asked = Spendable.of(contract)
        # once more, since another run may have been accepted while the data was read
        self.ledger.check(self.settings.policy, label, asked)
        self.ledger.reserve(
            Spending(run.number, terms.name, label, asked.epsilon, asked.delta, "reserved", shares.now())
        )

    def _left(self, peer: str, reason: str) -> None:
        """Take a peer that went away as one that refuses what it was asked, and withdraws what it asked."""
        for held in self.approvals.drop_all(peer):
            self.journal.note(f"{held.terms.name} of {peer} waits no more: {peer} is away")
        for run in list(self.runs.values()):
            if run.agreement is not None:
                run.agreement.lose(peer, reason)
            if run.proposer == peer and run.state == "proposed":
                self._spawn(self._forget(run, "withdrawn", f"{peer} is away: {reason}"))

    async def _answered(self, peer: str, message: Answer) -> None:
        """Keep a peer's answer to this party's own proposal."""
        run = self.runs.get(message.run)
        if run is not None and run.agreement is not None:
            run.agreement.hear(peer, message)
            await self._ask_for_patience(run, run.agreement)

    async def _pending(self, peer: str, message: Pending) -> None:
        """Wait longer: a peer's operator is asked, or the proposer says that somebody else's is."""
        run = self.runs.get(message.run)
        if run is None:
            return
        if run.agreement is not None:
            if run.agreement.extend(peer, message.seconds):
                minutes = max(1, round(message.seconds / 60))
                run.followed.tell(Event(f"waiting for {peer}'s approval, for {minutes} min at most"))
                await self._ask_for_patience(run, run.agreement)
        elif run.proposer == peer and run.state == "proposed":
            self._expect_begin(run, min(max(message.seconds, 0.0), LONGEST_APPROVAL_S) + BEGIN_S)

    async def _ask_for_patience(self, run: Run, agreement: Agreement) -> None:
        """Tell those who have accepted that an operator of somebody else is still asked."""
        if seconds := agreement.patience:
            for peer in agreement.accepted:
                await self.peers.send(peer, Pending(run.id, seconds))

    async def _begun(self, peer: str, message: Begin) -> None:
        """Take part, now that the proposer says that everybody has accepted."""
        run = self.runs.get(message.run)
        if run is None or run.proposer != peer or run.state != "proposed":
            return
        if run.expires is not None:
            run.expires.cancel()
        if message.digest != run.terms.digest():
            run.session.stop(f"{peer} says go to another job than {self.me} accepted")
        run.followed.listeners.append(run.log)
        run.task = asyncio.ensure_future(self._play_for_peer(run))

    async def _play_for_peer(self, run: Run) -> None:
        """Play this party's part in somebody else's run; failures are logged and not raised."""
        program: Callable[[RunSession], Awaitable[object]]
        match run.work:
            case Contract():
                program = training.training(run.work, lambda moment: self._report(run, moment))
            case ScoringWork():
                program = scoring.answering(run.work.share, run.work.terms)
        try:
            await self._play(run, program)
        except ColonnadeError:
            pass  # logged and noted; there is nobody here to raise it to
        except Exception:
            log.exception("run %s of %s failed", run.number, run.proposer)

    async def _cancelled(self, peer: str, message: Cancel) -> None:
        """Forget a proposal that was withdrawn, or end a run that a party ended."""
        held = self.approvals.held.get(message.run)
        if held is not None and held.proposer == peer:
            self.approvals.drop(held.run)
            self.journal.note(f"{held.terms.name}: withdrawn by {peer}: {message.reason}")
            return
        run = self.runs.get(message.run)
        if run is None or peer not in run.session.parties:
            return
        if run.state == "proposed":
            await self._forget(run, "withdrawn", f"withdrawn by {peer}: {message.reason}")
        else:
            run.session.stop(f"{peer} ended the run: {message.reason}")

    async def _progressed(self, peer: str, message: Progress) -> None:
        """Show how far training is, as a label holder tells it."""
        run = self.runs.get(message.run)
        if run is not None and peer in run.session.parties and run.trains is not None:
            run.followed.tell(Event("training", message.epoch, run.trains.train.epochs, message.loss))

    # -- playing ------------------------------------------------------------------------------------

    async def _play(self, run: Run, program: Callable[[RunSession], Awaitable[T]]) -> T:
        """Play this party's part, settle the budget, and write down how the run ended."""
        run.state = "running"
        state, reason = "failed", ""
        try:
            result = await run.session.play(program)
            state = "done"
            if isinstance(result, shares.Manifest):
                self.ledger.settle(result.run, result.epsilon)
        except ColonnadeError as error:
            reason = str(error)
            raise
        except BaseException as error:
            reason = type(error).__name__
            raise
        else:
            return result
        finally:
            await self._forget(run, state, reason)

    def _report(self, run: Run, moment: Moment) -> None:
        """Show a measured loss here, and to the others as far as the job allows; label holders call this."""
        if (terms := run.trains) is None:
            return
        run.followed.tell(training.as_event(moment, terms.train.epochs))
        for peer in run.session.align.peers:
            seen = terms.use.loss_seen_by == "all" or peer in terms.active
            said = Progress(run.id, moment.epoch, moment.loss if seen else None)
            self._spawn(self.peers.send(peer, said))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def stop_for(self, listener: Tell, reason: str) -> None:
        """End the runs of a command that is gone; `listener` is the function that showed it events."""
        for run in list(self.runs.values()):
            if run.asked_by is listener:
                run.session.stop(reason)

    def _expire(self, run: Run, seconds: float) -> None:
        """Forget a run that this party accepted and that its proposer never began."""
        run.task = asyncio.ensure_future(
            self._forget(run, "expired", f"{run.proposer} never said go within {seconds:g} s")
        )

    def sent_bytes(self) -> int:
        """The bytes sent in all runs so far, framing included."""
        return self.journal.sent_bytes + sum(run.session.sent_bytes() for run in self.runs.values())

    async def _forget(self, run: Run, state: str, reason: str) -> None:
        """Drop a run that is over and write down how it ended; one that never began costs no budget."""
        if self.runs.pop(run.id, None) is None:
            return
        self.journal.sent_bytes += run.session.sent_bytes()
        if run.expires is not None:
            run.expires.cancel()
        if run.state == "proposed":
            self.ledger.release(run.number)
            for net in run.session.party.nets:
                await net.close()
        self.journal.end(run.over(state, reason))
        text = f"run {run.number} of {run.proposer}: {state}{f': {reason}' if reason else ''}"
        (log.info if state == "done" else log.warning)("%s", text)
        self.journal.note(text)
