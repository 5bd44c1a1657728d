"""One training run at one party: align, split, prepare, train, measure, store the share.

The program is the same at every party. Only at label holders are labels read and the metrics known; the loss
is seen there too, and elsewhere if the job allows that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import numpy as np

from colonnade.arrays import Arrays, Floats
from colonnade.conversations.align import Alignment
from colonnade.conversations.context import GivenModels
from colonnade.conversations.predict import Session, SummedPart
from colonnade.deploy.books import unfinished
from colonnade.deploy.books.journal import Ended
from colonnade.deploy.books.spent import ByPeer, total
from colonnade.deploy.books.unfinished import AlignCost, cost_of_alignment
from colonnade.deploy.models import party_models, stored_shares
from colonnade.deploy.policy.cost_limits import check_limits
from colonnade.deploy.policy.forgotten_rows import forgotten_rows, remember_rows
from colonnade.deploy.policy.membership import ComparisonRequest
from colonnade.deploy.programs.scoring import scorer
from colonnade.deploy.session.aligning import common_rows
from colonnade.deploy.session.booking import book, books_of
from colonnade.deploy.session.prepared import Aligned, prepared
from colonnade.deploy.session.session import Event, RunSession
from colonnade.deploy.terms.contract import Contract
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import JobError, ProtocolError, ShareError
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.messages import Announce, Seal, Topic, tag_of
from colonnade.metrics import metrics_of
from colonnade.net.endpoint import CUT_OFF
from colonnade.net.expect import floats
from colonnade.net.recorder import recorded
from colonnade.openings.opening import Opening, most_columns, sent
from colonnade.openings.scoring import ScoringRequest
from colonnade.result import Compared, Moment
from colonnade.run.coalitions import train, whole_openings
from colonnade.run.compared import compared
from colonnade.run.party import Kept, Share, Work, held_to
from colonnade.secure.streams import PairStreams
from colonnade.test_scores import TestScores


class RunTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What a run cost this party over all its sessions: a run that was cut off goes on in another one."""

    seconds: float
    sessions: int
    epochs: int
    sent: ByPeer
    received: ByPeer


class RunCost(msgspec.Struct, kw_only=True):
    """What a run cost this party: for finding common rows, and for training.

    `total` is of all sessions, also of what was done again; version 0.2 did not write it.
    """

    align_bytes: int
    align_seconds: float
    train: Share
    total: RunTotal | None = None
    compared: list[Compared] = []  # at the label holder that measures the model: what it reaches alone


def training(
    contract: Contract, report: Callable[[Moment], None]
) -> Callable[[RunSession], Awaitable[stored_shares.Manifest]]:
    """Return the program of one training run; it returns the manifest of the share that it stored.

    `report` is called with every measurement, at label holders.
    """

    async def program(session: RunSession) -> stored_shares.Manifest:
        terms, settings = contract.terms, session.settings
        async with session.train.computing():  # others may have less to prepare, and wait there
            found = await find_common(session, contract)
            align_cost = _align_cost(session)
            rows = await prepared(session, contract, found.rows)
        session.tell(Event("training", 0, terms.train.epochs))
        train_table, test_table = rows.table("train"), rows.table("test")
        check_limits(settings.limits, contract, session.me, train_table.width)
        plan = contract.plan(session.me, train_table.width, train_table.rows)
        given, code = GivenModels(), {}
        if contract.asks_for_models:
            code = party_models.fingerprints(settings, terms)
            given = await asyncio.to_thread(party_models.models_for, settings, terms, plan, train_table.X)
        work = Work(
            plan,
            train_table,
            test_table,
            models=given,
            progress=report,
            digest=terms.digest(),
            memory=settings.memory_bytes,
            engine=settings.engine,
            kept=_kept(session, contract),
            widest=most_columns(train_table.rows),
            apart=True,
        )
        openings = whole_openings(plan, work.openings(session.me), work.extent(session.me))
        await book(session, contract, openings, train_table.rows, max(1, train_table.width))
        session.begin_to_tell()
        share = await _recorded_training(session, work)
        metrics, means = await _close(session, contract, plan, share.weights, rows)
        manifest = msgspec.structs.replace(
            _manifest(session, contract, share, rows),
            alignment=found.digest,
            metrics={**share.metrics, **metrics},
            means=means,
            code=code,
        )
        await store(session, manifest, share.weights)
        own, entry = session.own_rows.ids[found.rows], terms.parties[session.me].data
        await asyncio.to_thread(remember_rows, settings, entry, own)
        beside = await asyncio.to_thread(_compared, work, share)  # the others are not kept waiting
        _save_cost(session, manifest, share, align_cost, beside)
        _save_test_scores(session, manifest, share, work)
        return manifest

    return program


async def _recorded_training(session: RunSession, work: Work) -> Share:
    """Train, and write down when this party computed, sent and waited, where that is wanted."""
    recorder = session.recorder
    if recorder is None:
        return await train(session.party, work, session.train)
    recorder.begin()
    share = await recorded(recorder, train(session.party, work, session.train))
    share.timeline = recorder.finish(recorder.now())
    return share


def _manifest(session: RunSession, contract: Contract, share: Share, rows: Aligned) -> stored_shares.Manifest:
    """Return the manifest of a share, as far as it is known when training ends."""
    terms, run = contract.terms, f"{session.run:08x}"
    return stored_shares.Manifest(
        model=f"{terms.name}-{run}",
        run=run,
        party=session.me,
        kind=contract.conversation.share.name,
        terms=terms,
        digest=terms.digest(),
        columns=list(rows.columns),
        preparation=rows.preparation.to_dict(),
        labels=rows.labels.to_dict() if rows.labels else None,
        rows=rows.counts,
        alignment="",
        created=stored_shares.now(precision="milliseconds"),  # the newest model of two in one second is known
        versions=stored_shares.versions(),
        epsilon=share.epsilon,
        base_rate=rows.base_rate(),
        converged=share.converged,
        tensors=share.tensors,
        weights="",
    )


def _compared(work: Work, share: Share) -> list[Compared]:
    """Return what this party reaches by itself, where it measured the model; from its own columns alone."""
    return compared(work.plan, work.train, work.test, share.test_scores, None)


def _save_cost(
    session: RunSession,
    manifest: stored_shares.Manifest,
    share: Share,
    align: AlignCost,
    beside: list[Compared],
) -> None:
    """Write what the run cost this party; the weights are stored already, and no part of the cost."""
    cost = RunCost(
        align_bytes=align.bytes,
        align_seconds=align.seconds,
        train=share.counts(),
        compared=beside,
    )
    stored_shares.save_cost(session.settings.state, manifest.model, msgspec.json.encode(cost))


def read_cost(state: Path, model: str) -> RunCost:
    """Return what the run of a model cost this party; ShareError if that is not known."""
    path = stored_shares.cost_file(state, model)
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunCost)
    except (OSError, msgspec.MsgspecError) as error:
        raise ShareError(f"{path}: the books of {model} cannot be read: {error}") from error


def note_total(state: Path, ended: Ended) -> None:
    """Add to the books of a model what all sessions of its run cost, as its daemon has counted."""
    cost = read_cost(state, ended.model)
    cost.total = RunTotal(
        seconds=ended.seconds,
        sessions=ended.sessions,
        epochs=ended.epochs,
        sent=ended.sent,
        received=ended.received,
    )
    stored_shares.save_cost(state, ended.model, msgspec.json.encode(cost))


def _save_test_scores(
    session: RunSession, manifest: stored_shares.Manifest, share: Share, work: Work
) -> None:
    """Write labels and scores of the test rows, at the party that has both."""
    if session.settings.test_scores == "drop":
        return
    if share.test_scores is None or work.test is None or work.test.y is None:
        return
    likely = LOSSES[work.plan.objective.loss].link == "logit"
    kept = TestScores(work.test.y, share.test_scores, with_probabilities=likely)
    stored_shares.save_scores(session.settings.state, manifest.model, kept)


def _kept(session: RunSession, contract: Contract) -> Kept | None:
    """Return where checkpoints go, if the run goes on after it was cut off."""
    if not contract.goes_on:
        return None
    folder = unfinished.folder_of(session.settings, session.run) / unfinished.CHECKPOINTS
    return Kept(folder, resume=True, run=f"{session.run:08x}")


def _align_cost(session: RunSession) -> AlignCost:
    """Return what it cost to find the common rows, in whichever session of the run that was."""
    if session.aligned:
        return cost_of_alignment(unfinished.folder_of(session.settings, session.run))
    return AlignCost(session.align.meter.bytes(), session.align.clock.now())


async def find_common(session: RunSession, contract: Contract) -> Alignment:
    """Return the common rows: those that all parties stored in another session of the run, or as they are
    found."""
    folder, ids = unfinished.folder_of(session.settings, session.run), session.own_rows.ids
    if session.aligned:
        found = await asyncio.to_thread(unfinished.kept_alignment, folder, ids)
    else:
        found = await _align(session, contract.terms)
        if contract.goes_on:
            await asyncio.to_thread(unfinished.keep_alignment, folder, found, ids, _align_cost(session))
    session.tell(Event("aligned", len(found.rows), len(ids)))
    return found


async def _align(session: RunSession, terms: Terms) -> Alignment:
    """Find the common rows."""
    entry = terms.parties[session.me].data
    asked = ComparisonRequest(
        run=f"{session.run:08x}",
        purpose="train",
        entry=entry,
        proposer="",
        changed=terms.align.changed == "accept",
        read=session.own_rows.table.reading.digest,
        forgotten=await asyncio.to_thread(forgotten_rows, session.settings, entry, session.own_rows.ids),
    )
    minimum, method = max(terms.align.minimum, session.minimum), terms.align.method
    return await common_rows(session, terms.digest(), terms.align.keys, asked, minimum=minimum, method=method)


async def _close(
    session: RunSession, contract: Contract, plan: Plan[Any], weights: Arrays, rows: Aligned
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the validation metrics, at the first label holder, and the others' mean parts, at all label
    holders.

    Mean parts are exchanged only if the job allows scores without a party.
    """
    net, terms = session.close, contract.terms
    books = books_of(session, terms, rows.counts["train"], max(1, rows.table("train").width))
    declare = held_to(net, books)
    secrets = await session.party.join(net, terms.digest())
    metrics: dict[str, float] = {}
    if rows.counts["validation"]:
        table = rows.table("validation")
        part = scorer(session.settings, contract, plan, weights, table.X)
        secure = session.party.secure_sum(net, secrets, terms.secure.sum)
        streams = PairStreams(session.me, secrets)
        request = ScoringRequest(session.me, net.parties, terms.active[0], part.rows)
        await books(part.opens(request))
        limits = net.meter.limits
        z = await Session(net, secure, terms.active[0], part, streams, limits=limits).score_all()
        if z is not None and table.labels is not None:
            found = metrics_of(contract.loss, z, table.labels)
            metrics = {key.replace("test_", "validation_"): value for key, value in found.items()}
    means: dict[str, list[float]] = {}
    if terms.use.degraded:
        part = scorer(session.settings, contract, plan, weights, rows.table("train").X)
        if not isinstance(part, SummedPart):
            raise JobError("use.degraded: these scores are not a sum over parties")
        mean = np.atleast_1d(part.part.mean(axis=0))
        await declare(
            [
                Opening(
                    kind="mean parts",
                    about="columns",
                    of=(session.me,),
                    to=tuple(party for party in terms.active if party != session.me),
                    numbers=mean.size,
                    rows=rows.counts["train"],
                    when="when a share is stored",
                    by=session.me,
                    channel=sent(Announce, Topic.PREDICT),
                )
            ]
        )
        means = await _mean_parts(session, terms, mean)
    return metrics, means


async def store(
    session: RunSession, manifest: stored_shares.Manifest, weights: Arrays, place: str = "models"
) -> None:
    """Store this party's share once every party has written its own: all shares are kept, or none."""
    net = session.close
    draft = await asyncio.to_thread(stored_shares.draft, session.settings.state / place, manifest, weights)
    try:
        await net.broadcast(Seal(bytes.fromhex(manifest.digest)))
        _check_seals(await net.gather(Seal), manifest)
    except CUT_OFF:
        raise  # it is kept or dropped once it is known what the others have done
    except BaseException:
        draft.drop()
        raise
    draft.keep()
    await session.party.leave(net)


def _check_seals(seals: Mapping[str, Seal], manifest: stored_shares.Manifest) -> None:
    """Raise unless every peer has written its share of this very job."""
    for peer, seal in seals.items():
        if seal.digest != bytes.fromhex(manifest.digest):
            raise ProtocolError(f"{peer} stores its share of another job than this")


async def _mean_parts(session: RunSession, terms: Terms, mean: Floats) -> dict[str, list[float]]:
    """Return every other party's mean part of a score, at label holders; elsewhere only the own one is
    sent."""
    net, tag = session.close, tag_of(Topic.PREDICT, 0)
    for peer in terms.active:
        if peer != session.me:
            await net.send(peer, Announce(tag, mean))
    if session.me not in terms.active:
        return {}
    told = await net.gather(Announce, tag, values=floats(*mean.shape))
    return {peer: announced.values.tolist() for peer, announced in told.items()}


def as_event(moment: Moment, epochs: int) -> Event:
    """Return the event that shows a measurement to operators."""
    return Event("training", moment.epoch, epochs, moment.shown)


class Trained(TypedDict):
    """What an operator is shown of a finished training run: some fields of its manifest and its books.

    Seconds, bytes and sessions are of the whole run, as this party has seen it.
    """

    run: str
    model: str
    party: str
    digest: str
    rows: dict[str, int]
    metrics: dict[str, float]
    alignment: str
    created: str
    converged: bool | None
    seconds: float | None
    rounds: int | None
    epochs: int | None
    sessions: int | None
    bytes_sent: int | None
    bytes_received: int | None
    gate: str  # whether it took the place of the model in use, and why; empty where nobody asked


def describe(state: Path, manifest: stored_shares.Manifest, gate: str = "") -> Trained:
    """Return what an operator is shown of the training run that this manifest is from."""
    try:
        cost = read_cost(state, manifest.model)
    except ShareError:  # its books are lost; the model is not
        cost = None
    whole = None if cost is None else cost.total
    return {
        "run": manifest.run,
        "seconds": None if whole is None else whole.seconds,
        "rounds": None if cost is None else cost.train.rounds,
        "epochs": None if whole is None else whole.epochs,
        "sessions": None if whole is None else whole.sessions,
        "bytes_sent": None if whole is None else total(whole.sent),
        "bytes_received": None if whole is None else total(whole.received),
        "model": manifest.model,
        "party": manifest.party,
        "digest": manifest.digest,
        "rows": manifest.rows,
        "metrics": manifest.metrics,
        "alignment": manifest.alignment,
        "created": manifest.created,
        "converged": manifest.converged,
        "gate": gate,
    }
