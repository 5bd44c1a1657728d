"""An audit of the wire: search all that any party writes into TLS, from proposal to scores, for one row.

No raw value, no scaled value, no id and no label of a marked row is in it. Linear algorithms do not show a
part of a score either. In a cascade the outputs of a party's model cross in clear, by design; the test says
so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.companies import job as any_job
from tests.deploy.companies import lay_out, settled, together

from colonnade.deploy.daemon import commands, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.rows.rows import digests
from colonnade.net.stream import tls_channel

MARKER = "MARKER-4711-ROW"
# long enough that chance does not write them into some 100 kB of masked numbers
LABELS = {"yes": "LABEL-REPAID-IN-FULL", "no": "LABEL-STILL-OWING"}
VALUES = {"bank": ("income", 3.14159265), "shop": ("visits", 2.7182818), "telecom": ("calls", 1.4142135)}
HEAD = {"outputs": 1, "server": {"kind": "linear"}}
NETWORK = {"kind": "mlp", "hidden": [4], "outputs": 2, "server": {"kind": "mlp", "hidden": [4]}}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> bytearray:
    """A record that grows by all that any party writes into TLS, before it is encrypted."""
    record = bytearray()
    write = tls_channel.TlsChannel.write

    def recorded(self: tls_channel.TlsChannel, data: bytes) -> bool:
        record.extend(data)
        return write(self, data)

    monkeypatch.setattr(tls_channel.TlsChannel, "write", recorded)
    return record


def marked(root: Path) -> Any:
    """The three companies with one marked row in every file, and long words for labels at the bank."""
    consortium = lay_out(root)
    customers = root / "bank" / "customers.csv"
    first, *rows = customers.read_text().splitlines()
    cells = [row.rpartition(",") for row in rows]
    customers.write_text("\n".join([first, *(f"{row},{LABELS[label]}" for row, _, label in cells)]) + "\n")
    for name, (_, value) in VALUES.items():
        for entry in ("customers", "applicants"):
            path = root / name / f"{entry}.csv"
            lines = path.read_text().splitlines()
            row = ",".join([MARKER, repr(value), *lines[1].split(",")[2:]])
            path.write_text("\n".join([lines[0], row, *lines[2:]]) + "\n")
    return consortium


def as_sent(number: float) -> Iterator[bytes]:
    """The bytes of a number in every form in which it might be sent."""
    yield np.float64(number).tobytes()
    yield np.float32(number).tobytes()
    yield np.array(np.rint(number * 2**32)).astype(np.int64).tobytes()


@pytest.mark.parametrize(
    ("algorithm", "model", "shown"),
    [
        ("vfb2-svrg", {}, (False, False)),
        ("asyrevel-gau", {}, (True, False)),
        ("tig", HEAD, (True, True)),
        ("czofo", NETWORK, (None, None)),
    ],
    ids=["linear", "zeroth-order", "server-on-top", "networks"],
)
def test_no_value_id_or_label_of_a_marked_row_crosses_the_wire(
    tmp_path: Path, said: bytearray, algorithm: str, model: dict[str, Any], shown: tuple[Any, Any]
) -> None:
    if model.get("kind") == "mlp":
        pytest.importorskip("torch")
    consortium = marked(tmp_path)
    job = any_job(algorithm=algorithm, model=model, train={"epochs": 20, "batch": 32, "l2": 1e-3})
    scoring_began = []

    async def program(daemons: dict[str, Daemon]) -> Any:
        await daemons["bank"].train(job)
        for name in ("shop", "telecom"):
            await settled(daemons[name])
        scoring_began.append(len(said))
        asked = commands.PredictRequest("repaid", [[MARKER]], "applicants")
        return await verbs._predict(daemons["bank"], asked, lambda event: None)

    found = together(consortium, program)
    assert found["rows"][0] is not None
    assert len(said) > 20_000
    assert b"repaid" in said  # the job does cross, so the record is one of plain text
    assert MARKER.encode() not in said
    assert digests([np.array([MARKER])], job.align.keys, ["id"]).tobytes()[:8] not in said
    assert found["rows"][0]["label"] in LABELS.values()
    for label in LABELS.values():  # the label is only put in words at the bank
        assert label.encode() not in said
    trained, scored = bytes(said[: scoring_began[0]]), bytes(said[scoring_began[0] :])
    for name, (column, value) in VALUES.items():
        share = stored_shares.load(tmp_path / name / "runs" / "models", "repaid")
        j = share.preparation.columns.index(column)
        numbers = share.preparation.numbers
        scaled = (value - numbers.shift[j]) / numbers.divisor[j]
        assert repr(value).encode() not in said
        for secret in (value, scaled):
            assert not any(form in said for form in as_sent(secret)), (name, secret)
        if name == "telecom" and shown[0] is not None:  # one column, so its output is one product
            part = scaled * share.arrays["w"][j]
            for record, expected in zip((trained, scored), shown, strict=True):
                assert any(form in record for form in as_sent(part)) is expected
