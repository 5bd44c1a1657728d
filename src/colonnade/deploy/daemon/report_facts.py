"""What one party of a run between daemons has to report: its share, its books and, at a label holder, scores.

    STATE/models/NAME-RUN            the share
    STATE/books/NAME-RUN.json        what the run cost this party; its history, where it measured the model
    STATE/books/NAME-RUN.scores.csv  labels and scores of the test rows, at the label holder that measures

Nothing is asked of anybody: a party's report is made from its own disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from colonnade.deploy.books.spent import total
from colonnade.deploy.models import stored_shares
from colonnade.deploy.models.stored_shares import Manifest, StoredShare
from colonnade.deploy.policy.policy import leaks
from colonnade.deploy.policy.told import notes_of
from colonnade.deploy.programs.training import RunCost, read_cost
from colonnade.deploy.settings import Settings
from colonnade.job.writing import as_toml
from colonnade.privacy.label_noise import delta_of
from colonnade.report.facts import ReportFacts, read_part
from colonnade.result import Described, Moment, Privacy, Result
from colonnade.run.gather_result import cost_of, staleness_of
from colonnade.run.party import Share
from colonnade.test_scores import TestScores
from colonnade.timeline import Timeline


def party_facts(settings: Settings, model: str) -> ReportFacts:
    """Return all that this party may report of a model; ShareError if its share or its books are missing."""
    share = stored_shares.load(settings.state / "models", model)
    manifest = share.manifest
    cost = read_cost(settings.state, manifest.model)
    scores = stored_shares.scores_file(settings.state, manifest.model)
    log_odds = share.contract.loss.link == "logit"
    return ReportFacts(
        msgspec.structs.replace(_result(share, cost), compared=cost.compared, worth=cost.train.worth),
        scores=TestScores.read(scores) if scores.is_file() else None,
        timeline=_timeline(manifest.party, cost.train),
        parts=(read_part(settings.state / "models" / manifest.model, log_odds=log_odds),),
        job=as_toml(manifest.terms),
        made=f"{datetime.fromisoformat(manifest.created).astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        seen_by=settings.name,
        command=f"colonnade train JOB.toml, with the job below (digest {manifest.digest[:16]})",
        further=(
            ("model", manifest.model),
            ("digest of the job", manifest.digest),
            ("common rows (digest)", manifest.alignment),
            ("bytes to find common rows", f"{cost.align_bytes:,} in {cost.align_seconds:.1f} s"),
            *_whole(cost),
        ),
        versions=", ".join(f"{name} {version}" for name, version in manifest.versions.items()),
    )


def _timeline(party: str, own: Share) -> Timeline | None:
    """Return when this party computed, sent and waited; None if nobody asked for it. Nobody else's is known
    here."""
    return None if own.timeline is None else Timeline(virtual=False, parties={party: own.timeline})


def _whole(cost: RunCost) -> Iterator[tuple[str, str]]:
    """Yield what the run cost from its first word to its last, where that is known."""
    if (whole := cost.total) is not None:
        cut = f", in {whole.sessions} sessions" if whole.sessions > 1 else ""
        yield "the whole run", f"{whole.seconds:.1f} s{cut}"
        yield "bytes of the whole run", f"{total(whole.sent):,} sent, {total(whole.received):,} received"


def _result(share: StoredShare, cost: RunCost) -> Result:
    """Return the run as this party knows it, in the shape that every report reads."""
    own = cost.train
    manifest, contract = share.manifest, share.contract
    terms = manifest.terms
    plan = contract.plan(manifest.party, len(share.preparation.outputs), manifest.rows["train"])
    last = (
        own.history[-1]
        if own.history
        else _last(own, terms.train.epochs if cost.total is None else cost.total.epochs)
    )
    return Result(
        algorithm=terms.algorithm,
        dataset=terms.name,
        parties=sorted(terms.parties),
        active=list(terms.active),
        world="network",
        seed=terms.seed,
        version=manifest.versions.get("colonnade", ""),
        step={manifest.party: own.step},
        metrics=manifest.metrics,
        pooled={},
        cost=cost_of({manifest.party: own}, last),
        staleness=staleness_of({manifest.party: own}),
        privacy=Privacy(
            secure_sum="none" if "no-sum" in contract.conversation.traits else terms.secure.sum,
            mechanism=terms.privacy.mechanism,
            epsilon=manifest.epsilon,
            delta=delta_of(terms.privacy, plan.objective.loss) if manifest.epsilon is not None else None,
            notes=notes_of(plan, contract),
            leaks=list(leaks(contract)),
        ),
        history=own.history,
        converged=manifest.converged,
        data=_data(manifest, share, contract.loss.task),
    )


def _data(manifest: Manifest, share: StoredShare, task: str) -> Described:
    """Return the rows, this party's own columns and what it did to them; the labels only where it holds
    them."""
    labels, preparation = share.labels, share.preparation
    done = preparation.done()
    return Described(
        rows=manifest.rows,
        columns={manifest.party: len(preparation.outputs)},
        task=task,
        classes=list(labels.classes) if labels is not None else [],
        positive=list(labels.positive) if labels is not None else [],
        base_rate=manifest.base_rate,
        done={manifest.party: done} if done else {},
        warnings=preparation.warnings,
    )


def _last(own: Share, epochs: int) -> Moment:
    """Return when the run ended at a party that did not measure it; nobody told it the loss."""
    sent, nan = own.traffic.bytes_sent, float("nan")
    return Moment(
        seconds=own.seconds, virtual_seconds=None, epoch=epochs, rounds=own.rounds, bytes=sent, loss=nan
    )
