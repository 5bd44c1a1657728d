"""The verbs of a daemon: what its people and their programs ask it for, by command or over HTTP.

Both come here with the same requests (`commands`) and somebody who asks. `NEEDS` says which role each takes.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import numpy as np

from colonnade.arrays import Digests, Floats
from colonnade.conversations.predict import PartyValues
from colonnade.deploy.books.audit import exported
from colonnade.deploy.books.journal import Decision
from colonnade.deploy.books.ledger import Balance
from colonnade.deploy.books.opened import Account, OpenedBooks
from colonnade.deploy.daemon import aims, operators, proposal_views, views
from colonnade.deploy.daemon.aims import Aim
from colonnade.deploy.daemon.commands import (
    BudgetRequest,
    DaemonStatus,
    DecideRequest,
    DeleteRequest,
    EstimateCommand,
    FollowRequest,
    JournalRequest,
    LoginRequest,
    ModelsRequest,
    Prediction,
    PredictRequest,
    PromoteRequest,
    ProposalsRequest,
    ReloadRequest,
    Request,
    RevokeRequest,
    RollbackRequest,
    RunsRequest,
    StatusRequest,
    StopRequest,
    TrainRequest,
    WaitRequest,
)
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.proposal_views import ProposalView
from colonnade.deploy.daemon.views import ModelView, RunView
from colonnade.deploy.expiry import ends
from colonnade.deploy.models.stored_shares import Manifest, StoredShare
from colonnade.deploy.people_settings import Person, Role
from colonnade.deploy.process.estimating import Estimate
from colonnade.deploy.programs import scoring, training
from colonnade.deploy.rows.rows import digests
from colonnade.deploy.session.session import Event, Tell
from colonnade.deploy.settings import Settings
from colonnade.errors import Busy, GoesOn, JobError
from colonnade.secure.keys import release_of

CHUNK = 2**15  # rows that are asked for at once

NEEDS: dict[type[Request], Role] = {
    StatusRequest: "viewer",
    ProposalsRequest: "viewer",
    RunsRequest: "viewer",
    WaitRequest: "viewer",
    ModelsRequest: "viewer",
    BudgetRequest: "viewer",
    JournalRequest: "viewer",
    DecideRequest: "approver",
    RevokeRequest: "approver",
    EstimateCommand: "operator",
    TrainRequest: "operator",
    FollowRequest: "operator",
    PredictRequest: "operator",
    DeleteRequest: "operator",
    PromoteRequest: "operator",
    RollbackRequest: "operator",
    StopRequest: "operator",
    ReloadRequest: "operator",
    LoginRequest: "operator",
}
"""The role that a request takes."""


class BudgetView(msgspec.Struct, frozen=True):
    """What peers have heard since when, and the privacy budget of labels."""

    since: str
    heard: list[Account]
    labels: list[Balance]


Answered = (
    training.Trained
    | Prediction
    | DaemonStatus
    | list[ProposalView]
    | list[RunView]
    | list[ModelView]
    | list[dict[str, Any]]
    | RunView
    | BudgetView
    | Decision
    | Estimate
    | str
)
"""What requests are answered with."""


async def act(daemon: Daemon, request: Request, tell: Tell, who: Person) -> Answered:
    """Do what somebody asks for and return the result; NotAllowed if their role does not go that far."""
    who.need(NEEDS[type(request)])
    match request:
        case EstimateCommand(terms=terms):
            return await daemon.proposing.estimate(terms)
        case TrainRequest(detach=True):
            return await _begin(daemon, request, who)
        case TrainRequest():
            return _trained(daemon, await _train(daemon, request, tell, who))
        case FollowRequest(run=run):
            return _trained(daemon, await _follow(daemon, run, tell))
        case RunsRequest():
            return views.runs(daemon)
        case WaitRequest(run=run, timeout=timeout):
            return _trained(daemon, await _wait_for(daemon, run, timeout))
        case PredictRequest():
            return await _predict(daemon, request, tell)
        case StatusRequest():
            return status(daemon)
        case ProposalsRequest():
            return proposal_views.proposals(daemon)
        case DecideRequest(number=number, approve=True, digest=digest):
            return await operators.approve(daemon, number, who, digest)
        case DecideRequest(number=number, reason=reason, digest=digest):
            return await operators.refuse(daemon, number, who, reason, digest)
        case RevokeRequest(number=number):
            return operators.revoke(daemon, number, who)
        case ModelsRequest():
            return views.stored_models(daemon.settings)
        case BudgetRequest():
            books = OpenedBooks(daemon.settings.state)
            return BudgetView(books.since, books.accounts(), views.budgets(daemon.settings))
        case JournalRequest(since=since):
            return await asyncio.to_thread(_journal, daemon.settings, since)
        case DeleteRequest(model=model, reason=reason):
            return await operators.delete(daemon, model, str(who), reason)
        case PromoteRequest(model=model, ask_peers=ask_peers, gate=gate):
            return await operators.promote(daemon, model, who, ask_peers=ask_peers, gate=gate)
        case RollbackRequest(name=name, ask_peers=ask_peers):
            return await operators.rollback(daemon, name, who, ask_peers=ask_peers)
        case StopRequest(run=run):
            return operators.stop(daemon, run, who)
        case LoginRequest():
            return daemon.invite(who)
        case ReloadRequest():
            return await daemon.reload()


def _journal(settings: Settings, since: str) -> list[dict[str, Any]]:
    """Return the lines of the journal from a day on."""
    lines = exported(settings.name, settings.state / "journal.jsonl")
    return [line for line in lines if line["when"] >= since]


def _trained(daemon: Daemon, manifest: Manifest) -> training.Trained:
    """Return what a command is shown of a training that is over."""
    gates = [
        each.line()
        for each in daemon.journal.decisions
        if each.run == manifest.run and each.reason and each.what in ("promoted", "kept")
    ]
    return training.describe(daemon.settings.state, manifest, next(iter(gates), ""))


async def _train(daemon: Daemon, request: TrainRequest, tell: Tell, who: Person) -> Manifest:
    """Propose a training and take part in it, in the time that it has; promote its model if that is asked
    for."""
    terms = request.terms
    if request.alone and (run := _goes_on(daemon, terms.name)):
        raise Busy(f"run {run} of {terms.name} goes on or waits here; `alone` asks for one at a time")
    number, seconds = daemon.books.free_number(), request.timeout
    aim = Aim(
        run=f"{number:08x}",
        name=terms.name,
        who=who,
        seconds=seconds,
        until=None if seconds is None else time.time() + seconds,
        gate=request.gate,
    )
    if aim.is_more:
        aim.write(daemon.settings.state)
    work = daemon.train(terms, tell, number=number, timeline=request.timeline, who=str(who))
    return await aims.reach(daemon, aim, asyncio.ensure_future(work))


def _goes_on(daemon: Daemon, name: str) -> str:
    """Return the number of a training of this name that this party has proposed and is not over, if any."""
    live = [run for run in daemon.runs.values() if run.trains is not None and run.proposer == daemon.me]
    found = [run.number for run in live if run.about == name]
    waits = daemon.proposing.put_off.values()
    return next(
        iter([*found, *(f"{w.proposed.run:08x}" for w in waits if w.proposed.terms.name == name)]), ""
    )


async def _begin(daemon: Daemon, request: TrainRequest, who: Person) -> RunView:
    """Propose a training that goes on without the command, and return it once all parties are asked."""
    numbers: list[str] = []
    asked = asyncio.Event()

    def tell(event: Event) -> None:
        if event.what == "asking":
            numbers.append(event.run)
            asked.set()

    work = asyncio.ensure_future(_train(daemon, request, tell, who))
    waiting = asyncio.ensure_future(asked.wait())
    await asyncio.wait([work, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not numbers:
        work.result()  # raises why nobody was asked
    number = numbers[0]
    daemon.detached[number] = work
    work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # the journal has it
    return next(run for run in views.runs(daemon) if run.run == number)


async def _wait_for(daemon: Daemon, number: str, timeout: float | None) -> Manifest:
    """Return the manifest of a training once it is over; GoesOn if that takes longer."""
    try:
        async with asyncio.timeout(timeout):
            return await _wait(daemon, number)
    except TimeoutError:
        raise GoesOn(f"no end within {timeout:g} s; it goes on") from None


async def _wait(daemon: Daemon, number: str) -> Manifest:
    """Return the manifest of a training once it is over, or raise the error that it ended with."""
    run = next((run for run in daemon.runs.values() if run.number == number), None)
    known = run.task if run is not None else None
    if (work := daemon.detached.get(number, known)) is not None:
        await asyncio.wait([work])
        if not work.cancelled():
            work.result()  # raises why it ended, or why its model was not put to use
    return aims.outcome(daemon, number)


async def _follow(daemon: Daemon, number: str, tell: Tell) -> Manifest:
    """Show a training that goes on to its end; the manifest of its share, or the error that it ended with."""
    run = next((run for run in daemon.runs.values() if run.number == number), None)
    if run is not None and run.proposer == daemon.me:
        run.asked_by = tell
        run.followed.listeners.append(tell)
    return await _wait(daemon, number)


async def _predict(daemon: Daemon, request: PredictRequest, tell: Tell) -> Prediction:
    """Score the rows with these ids together with the other parties."""
    share = await asyncio.to_thread(daemon.serving.load, request.model)
    trained = share.manifest.terms
    keys = daemon.settings.data[request.data or trained.parties[daemon.me].data].keys
    if len(request.ids) != len(keys):
        raise JobError(f"{len(request.ids)} id columns were given, {', '.join(keys)} are needed")
    # many ids, and many scores, are work for a thread: others are answered meanwhile
    wanted = await asyncio.to_thread(digests, request.ids, trained.align.keys, keys)

    kept: list[PartyValues] = []
    if request.explain:
        scoring.check_explainable(share, daemon.me)

    async def use(ready: scoring.Ready) -> tuple[Digests, Floats, tuple[str, ...]]:
        if request.explain:
            scoring.explain(ready.session, kept)
        asked = [
            await ready.session.ask(np.arange(start, min(start + CHUNK, len(ready.ids))))
            for start in range(0, len(ready.ids), CHUNK)
        ]
        return ready.ids, np.concatenate(asked), ready.session.net.parties

    ids, z, present = await daemon.score(share, wanted, use, data=request.data, tell=tell)
    away = sorted(set(trained.parties) - set(present))
    daemon.journal.scored_rows += len(ids)
    z = scoring.with_mean_parts(share.manifest, z, away)
    rows = await asyncio.to_thread(_found, share, wanted, ids, z, kept)
    return {"model": share.manifest.model, "degraded": away, "rows": rows}


def _found(
    share: StoredShare, wanted: Digests, ids: Digests, z: Floats, kept: list[PartyValues]
) -> list[scoring.ScoredRow | None]:
    """Return the scored row of every id that was asked for, None where not all parties know it."""
    rows = scoring.outputs(share, z)
    if kept:
        scoring.add_parts(rows, share, kept)
    found = dict(zip([row.tobytes() for row in ids], rows, strict=True))
    return [found.get(row.tobytes()) for row in wanted]


def status(daemon: Daemon) -> DaemonStatus:
    """Return which peers are connected, which runs go on, and the latest events."""
    return {
        "party": daemon.me,
        "version": release_of(daemon.version),
        "peers": {
            peer.name: {
                "up": peer.up,
                "since": peer.since,
                "version": peer.version,
                "round_trip_ms": None if (trip := daemon.peers.round_trip(peer.name)) is None else trip * 1e3,
                "reason": peer.reason,
            }
            for peer in views.peers(daemon)
        },
        "runs": {run.number: run.shown for run in daemon.runs.values()},
        "waiting": [held.number for held in daemon.approvals.held.values()],
        "certificates": {name: f"{end:%FT%TZ}" for name, end in ends(daemon.settings).items()},
        "latest": daemon.journal.latest,
        "journal": daemon.journal.last,
    }
