"""VFL-CZOFO over real lines: a server and two clients as processes, and every byte of the formula."""

from __future__ import annotations

from colonnade.job import job_from
from colonnade.run.federate import federate

BATCH, EPOCHS, OUTPUTS, DIRECTIONS = 64, 8, 3, 20
RANGE = 8  # two single-precision numbers for the levels of a message


def test_payload_between_processes_is_that_of_the_formula() -> None:
    job = job_from({
        "algorithm": "czofo",
        "world": "network",
        "data": {"train": "breast-cancer", "parties": 2, "server": "apart"},
        "train": {"batch": BATCH, "epochs": EPOCHS, "step": 0.3, "evaluate_every": 0},
        "cascade": {"directions": DIRECTIONS},
        "model": {"outputs": OUTPUTS, "server": {"kind": "linear"}},
    })  # fmt: skip
    done = federate(job)
    assert done.result.world == "network"
    assert done.result.metrics["test_accuracy"] > 0.9
    server = done.shares["server"]
    clients = [done.shares[party] for party in ("party-0", "party-1")]
    rows = 569 - round(0.2 * 569)
    per_pass = -(-rows // BATCH)
    assert server.rounds == 2 * EPOCHS * per_pass
    # one byte a number and the range, down for every answer, up for every question
    assert server.traffic.payload_by_kind["reply"] == server.rounds * (DIRECTIONS + RANGE)
    for client in clients:
        # a client that is quicker than the other gets more of the answers, and the last is an empty one
        questions = client.updates + 1
        passes, more = divmod(questions, per_pass)
        assert client.traffic.payload_by_kind["upload"] == (
            questions * RANGE + OUTPUTS * (passes * rows + min(more * BATCH, rows))
        )
        assert (
            client.traffic.payload_by_kind["embeddings"] == rows * OUTPUTS + RANGE
        )  # the first pass over all rows
    assert sum(client.updates for client in clients) == server.rounds
    # what is on top: frames, TLS records and the heads of arrays
    for share, kind in ((server, "reply"), (clients[0], "upload")):
        messages = share.rounds if share is server else share.updates + 1
        on_top = share.traffic.bytes_by_kind[kind] - share.traffic.payload_by_kind[kind]
        assert 0 < on_top / messages < 100
