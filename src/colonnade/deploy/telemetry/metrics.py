"""The metrics page: what a daemon counts, in Prometheus' text format. Nothing here tells about data."""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from colonnade.deploy.books.ledger import Ledger
from colonnade.deploy.books.opened import OPENED, OpenedBooks
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.expiry import ends, left_s
from colonnade.deploy.policy.membership import most_missed
from colonnade.secure.keys import release_of
from colonnade.shares import now

DAY_S = 86_400.0
STARTED = time.time()
LIMITS = ("runs", "runs_of_a_peer", "comparisons_a_day", "scored_ids_a_day", "id_sets_a_day")

Sample = tuple[Mapping[str, str], float]
"""A value, and the labels that tell it from others of the same metric."""


def page(daemon: Daemon) -> str:
    """Return the text of the page."""
    return "\n".join(_lines(daemon)) + "\n"


def _lines(daemon: Daemon) -> Iterator[str]:
    """Yield every metric after its description; one without a value now is left out."""
    for name, kind, text, samples in _metrics(daemon):
        found = [f"{name}{_labels(labels)} {value:.10g}" for labels, value in samples]
        if found:
            yield from (f"# HELP {name} {text}", f"# TYPE {name} {kind}", *found)
    name = "colonnade_request_seconds"
    yield f"# HELP {name} How long requests for scores took that were answered."
    yield f"# TYPE {name} histogram"
    yield from daemon.counts.request_s.lines(name)


def _metrics(daemon: Daemon) -> Iterator[tuple[str, str, str, Iterable[Sample]]]:
    """Yield name, kind, description and samples of all but the histogram."""
    mux, journal, counts = daemon.mux, daemon.journal, daemon.counts

    def gauge(name: str, text: str, samples: Iterable[Sample]) -> tuple[str, str, str, Iterable[Sample]]:
        return f"colonnade_{name}", "gauge", text, samples

    def counter(name: str, text: str, samples: Iterable[Sample]) -> tuple[str, str, str, Iterable[Sample]]:
        return f"colonnade_{name}_total", "counter", text, samples

    yield gauge(
        "info", "The version that runs.", [({"party": daemon.me, "version": release_of(daemon.version)}, 1)]
    )
    up = [({"peer": peer}, float(line.up)) for peer, line in mux.lines.items()]
    yield gauge("peer_up", "Whether the line to a peer stands.", up)
    yield counter("peer_sent_bytes", "Bytes sent to a peer, framing included.", _each("peer", mux.sent))
    yield counter("peer_received_bytes", "Bytes received from a peer.", _each("peer", mux.received))
    left = [({"of": name}, round(left_s(end))) for name, end in ends(daemon.settings).items()]
    yield gauge("certificate_left_seconds", "Until the first certificate of a file ends, or a list.", left)
    if daemon.no_scores is not None:
        ready = float(not daemon.no_scores)
        yield gauge("service_ready", "Whether the prediction service answers.", _one(ready))
    yield counter("requests", "Requests to the prediction service, by code.", _each("code", counts.requests))
    states = [
        ({"state": state}, float(sum(run.state == state for run in daemon.runs.values())))
        for state in ("proposed", "running", "waiting")
    ]
    yield gauge("runs_active", "Runs now, by state.", states)
    yield gauge(
        "proposals_waiting", "Proposals that wait for the operator.", _one(len(daemon.approvals.held))
    )
    ended = {state: journal.ended[state] for state in ("done", "failed", "refused", "withdrawn", "expired")}
    yield counter("runs", "Runs that ended, by how.", _each("state", ended))
    yield counter("sent_bytes", "Bytes sent in all runs, framing included.", _one(daemon.books.sent_bytes()))
    yield counter("strangers", "Connections turned away.", _one(sum(mux.strangers().values())))
    yield counter("frames_refused", "Frames refused.", _one(sum(mux.refused.values())))
    yield counter("scored_rows", "Rows scored for this party or by it for others.", _one(journal.scored_rows))
    psi = [
        ({"model": model}, found) for model, each in journal.scores.items() if (found := each.psi) is not None
    ]
    yield gauge("score_psi", "PSI of served scores against those of the test rows.", psi)
    yield gauge("limit_used", "What is used of a limit now.", _used(daemon))
    yield gauge("limit_most", "The limit.", _most(daemon))
    yield gauge("epsilon_left", "Privacy budget that is left, by label column.", _epsilon(daemon))
    done = _each("kind", counts.last_done)
    yield gauge("last_done_timestamp_seconds", "When a run last ended well, by kind.", done)
    scores = [] if counts.last_scores is None else _one(counts.last_scores)
    yield gauge("last_scores_timestamp_seconds", "When scores were last answered.", scores)
    yield from _process()


def _process() -> Iterator[tuple[str, str, str, Iterable[Sample]]]:
    """Yield what the system says of this process, under the names that all exporters give it."""
    used, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    resident = []
    if (statm := Path("/proc/self/statm")).exists():
        resident = _one(int(statm.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    yield "process_resident_memory_bytes", "gauge", "Memory of the daemon, without those of runs.", resident
    own = used.ru_utime + used.ru_stime
    yield "process_cpu_seconds_total", "counter", "Processor time of the daemon.", _one(own)
    yield "process_start_time_seconds", "gauge", "When the daemon was started.", _one(STARTED)
    runs = (
        "colonnade_runs_cpu_seconds_total",
        "counter",
        "Processor time of processes of runs that have ended.",
    )
    yield *runs, _one(children.ru_utime + children.ru_stime)


def _used(daemon: Daemon) -> Iterator[Sample]:
    """Yield what peers have used of limits that stop them one day."""
    since, compared = now(-DAY_S), daemon.journal.compared
    going = daemon.answering.going
    yield {"limit": "runs", "peer": ""}, len(going)
    entries = list(daemon.settings.data)
    for peer in daemon.settings.peers:
        yield {"limit": "runs_of_a_peer", "peer": peer}, going.count(peer)
        times = max((compared.times(peer, entry, since) for entry in entries), default=0)
        yield {"limit": "comparisons_a_day", "peer": peer}, times
        missed = max((compared.missed(peer, entry, since) for entry in entries), default=0)
        yield {"limit": "missed_ids_a_day", "peer": peer}, missed
        sets = max((len(compared.sets(peer, entry, since)) for entry in entries), default=0)
        yield {"limit": "id_sets_a_day", "peer": peer}, sets
        yield {"limit": "scored_ids_a_day", "peer": peer}, compared.scored(peer, since)
    heard: dict[tuple[str, str], float] = {}  # of the entry of which most was heard, as limits go by entry
    for account in OpenedBooks(daemon.settings.state).accounts():
        for limit, figure in account.limited.items():
            key = limit, account.peer
            heard[key] = max(heard.get(key, 0.0), figure)
    for (limit, peer), figure in heard.items():
        yield {"limit": limit, "peer": peer}, figure


def _most(daemon: Daemon) -> Iterator[Sample]:
    """Yield these limits."""
    limits = daemon.settings.limits
    for limit in (*LIMITS, *OPENED):
        if (most := getattr(limits, limit)) is not None:
            yield {"limit": limit}, most
    own_ids = max((each.own_ids for each in daemon.journal.trained.values()), default=0)
    if own_ids or limits.missed_ids_a_day is not None:  # as it comes it goes by how many there are
        yield {"limit": "missed_ids_a_day"}, most_missed(daemon.settings, own_ids)


def _epsilon(daemon: Daemon) -> Iterator[Sample]:
    """Yield what is left of the budget of every label column that has one."""
    settings = daemon.settings
    if settings.policy.epsilon is None:
        return
    ledger = Ledger(settings.state)
    for label in sorted({entry.label for entry in settings.data.values() if entry.label is not None}):
        if (left := ledger.balance(settings.policy, label).left) is not None:
            yield {"label": label}, left


def _one(value: float) -> list[Sample]:
    return [({}, value)]


def _each(label: str, values: Mapping[str, float]) -> list[Sample]:
    return [({label: each}, value) for each, value in values.items()]


def _labels(labels: Mapping[str, str]) -> str:
    """Return labels as they stand behind a metric's name."""
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return re.sub(r'[\\"]', r"\\\g<0>", value).replace("\n", r"\n")
