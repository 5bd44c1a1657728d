"""What operators are told: metrics for Prometheus, logs with the run's number, one trace of all parties."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.deploy.companies import job, lay_out, settled, together

from colonnade.deploy.books.counts import Histogram
from colonnade.deploy.books.opened import OpenedBooks
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http import monitor
from colonnade.deploy.process.logs import AsJson, in_log, with_run
from colonnade.deploy.telemetry import metrics
from colonnade.deploy.telemetry.traces import Tracer
from colonnade.deploy.telemetry_settings import Telemetry, check_telemetry
from colonnade.errors import JobError
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.port import free_ports

EXAMPLES = Path(__file__).parents[3] / "examples" / "deploy"
TOKEN = "a-token-of-some-length"  # noqa: S105


def values(text: str) -> dict[str, float]:
    """The samples of a metrics page, by name and labels."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


class Collector:
    """An OTLP collector: keeps what is posted to it."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        bodies = self.bodies

        class Takes(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                assert self.headers["Content-Type"] == "application/json"
                bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Takes)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Told(logging.Handler):
    """Keeps the run's number of every record."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        with_run(record)
        self.runs[record.getMessage()] = vars(record)["run"]


def test_of_one_training(tmp_path: Path) -> None:
    """One trace with one id at all parties, bytes that both ends count the same, and the run in the log."""
    told, pages = Told(), dict[str, str]()
    log = logging.getLogger("colonnade")
    log.addHandler(told)

    async def program(daemons: dict[str, Daemon]) -> None:
        tracers = {name: Tracer(name, collector.url) for name in daemons}
        for name, daemon in daemons.items():
            daemon.books.watchers.append(tracers[name].watch)
        await daemons["bank"].train(job())
        for name, daemon in daemons.items():
            await settled(daemon)
            await tracers[name].close()
        for _ in range(100):
            counted = [daemons["bank"].mux.received["shop"], daemons["shop"].mux.sent["bank"]]
            if counted[0] == counted[1]:
                break
            await asyncio.sleep(0.02)
        daemons["bank"].no_scores = ""
        pages.update({name: metrics.page(daemon) for name, daemon in daemons.items()})
        names = {name for name, *_ in metrics._metrics(daemons["bank"])}
        names |= {f"colonnade_request_seconds_{each}" for each in ("bucket", "sum", "count")}
        for file in ("alerts.yml", "dashboard.json"):
            text = (EXAMPLES / "telemetry" / file).read_text("utf-8")
            used = set(re.findall(r"\b(?:colonnade|process)_[a-z_]+(?=[{\[ )<>=]|\\n|$)", text, re.M))
            assert used <= names | {"colonnade_request_seconds_bucket"}, used - names

    try:
        with Collector() as collector:
            together(lay_out(tmp_path), program)
    finally:
        log.removeHandler(told)

    # traces
    pieces = [body["resourceSpans"][0] for body in collector.bodies]
    parties = {piece["resource"]["attributes"][1]["value"]["stringValue"]: piece for piece in pieces}
    assert parties.keys() == {"bank", "shop", "telecom"}
    found = {name: piece["scopeSpans"][0]["spans"] for name, piece in parties.items()}
    assert len({span["traceId"] for spans in found.values() for span in spans}) == 1
    assert len({span["spanId"] for spans in found.values() for span in spans}) == sum(
        map(len, found.values())
    )
    bank, *stages = found["bank"]
    assert "parentSpanId" not in bank
    assert bank["status"] == {"code": 1}
    assert {found[name][0]["parentSpanId"] for name in ("shop", "telecom")} == {bank["spanId"]}
    assert {span["parentSpanId"] for span in stages} == {bank["spanId"]}
    assert "training" in {span["name"] for span in stages}
    for span in (bank, *stages):
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert (
            int(bank["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        )

    # logs
    (run,) = {number for number in told.runs.values() if number}
    assert bank["attributes"][0]["value"]["stringValue"] == run
    assert any("training" in text for text in told.runs)
    assert all(number == run for text, number in told.runs.items() if text.startswith(f"run {run}"))
    assert any(number == "" and "listens on" in text for text, number in told.runs.items())

    # metrics
    seen = {name: values(text) for name, text in pages.items()}
    sent = seen["shop"]['colonnade_peer_sent_bytes_total{peer="bank"}']
    assert seen["bank"]['colonnade_peer_received_bytes_total{peer="shop"}'] == sent > 1000
    assert seen["bank"]['colonnade_runs_total{state="done"}'] == 1
    assert seen["bank"]['colonnade_last_done_timestamp_seconds{kind="train"}'] > 1e9
    assert seen["bank"]["process_resident_memory_bytes"] > 1e7
    assert seen["shop"]['colonnade_limit_used{limit="comparisons_a_day",peer="bank"}'] == 1
    shops = seen["shop"]
    for limit, times in (("missed_ids_a_day", 0), ("id_sets_a_day", 1)):
        assert shops[f'colonnade_limit_used{{limit="{limit}",peer="bank"}}'] == times
    assert shops['colonnade_limit_most{limit="missed_ids_a_day"}'] == 1000
    heard = OpenedBooks(tmp_path / "shop" / "runs").accounts()
    (columns,) = [each for each in heard if (each.peer, each.about) == ("bank", "columns")]
    used = shops['colonnade_limit_used{limit="opened_column_bits_per_cell",peer="bank"}']
    assert used == pytest.approx(columns.per_cell, rel=1e-6)
    assert 'colonnade_limit_used{limit="opened_label_bits_per_row",peer="shop"}' in seen["bank"]
    assert seen["bank"]['colonnade_limit_most{limit="opened_label_numbers_per_row"}'] == 2.5
    assert 364 < seen["bank"]['colonnade_certificate_left_seconds{of="shop"}'] / 86400 < 366
    if (promtool := shutil.which("promtool")) is not None:
        checked = subprocess.run(
            [promtool, "check", "metrics"], input=pages["bank"], text=True, capture_output=True
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_collector_that_is_not_there_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    tracer = Tracer("bank", f"http://127.0.0.1:{free_ports(1)[0]}/v1/traces")
    tracer._send(b"{}")
    tracer._send(b"{}")
    assert [each.message for each in caplog.records if "takes no spans" in each.message] != []
    assert len(caplog.records) == 1


def test_metrics_elsewhere_need_a_token_and_are_encrypted(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    folder = consortium.folder("bank")
    make_authority(folder / "web")
    issue(folder / "web", "localhost")
    (folder / "scrape-token").write_text(TOKEN + "\n", "utf-8")
    (folder / "scrape-token").chmod(0o600)
    port = free_ports(1)[0]
    given = Telemetry(
        listen=f"127.0.0.1:{port}",
        token_file="scrape-token",  # noqa: S106
        certificate="web/localhost.crt",
        key="web/localhost.key",
    )
    trusted = ssl.create_default_context(cafile=str(folder / "web" / "ca.crt"))

    async def get(path: str, *heads: str, tls: ssl.SSLContext | None = trusted) -> tuple[str, str]:
        name = "localhost" if tls is not None else None
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
        writer.write("\r\n".join([f"GET {path} HTTP/1.1", *heads, "", ""]).encode())
        text = (await reader.read()).decode(errors="replace")
        writer.close()
        return text.partition("\r\n")[0], text.partition("\r\n\r\n")[2]

    async def program(daemons: dict[str, Daemon]) -> None:
        daemon = daemons["bank"]
        daemon.settings = msgspec.structs.replace(daemon.settings, telemetry=given)
        server = await monitor.serve_telemetry(daemon)
        try:
            for heads in ((), ("Authorization: Bearer another",), (f"X-Authorization: Bearer {TOKEN}",)):
                status, body = await get("/metrics", *heads)
                assert status == "HTTP/1.1 401 Unauthorized"
                assert "colonnade_" not in body
            status, body = await get("/metrics", f"authorization: bearer {TOKEN}")
            assert status == "HTTP/1.1 200 OK"
            assert values(body)['colonnade_peer_up{peer="shop"}'] == 1
            assert (await get("/health"))[0] == "HTTP/1.1 200 OK"
            assert "colonnade_" not in (await get("/metrics", f"authorization: bearer {TOKEN}", tls=None))[1]
        finally:
            server.close()

    together(consortium, program)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"listen": "0.0.0.0:9464"}, "can be reached from elsewhere; give token_file, certificate and key"),
        ({"listen": "10.0.0.5:9464", "token_file": "t"}, "can be reached from elsewhere"),
        ({"certificate": "a.crt"}, "certificate and key go together"),
        ({"token_file": "t"}, "telemetry.listen: is missing"),
        ({"traces": "127.0.0.1:4318"}, "is not an http:// or https:// address"),
    ],
)
def test_settings_that_would_show_metrics_to_anybody_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(JobError, match=re.escape(said)):
        check_telemetry(Telemetry(**given), "party.toml")  # type: ignore[arg-type]
    check_telemetry(Telemetry(listen="127.0.0.1:9464"), "party.toml")


def test_a_line_of_the_log_is_one_object_whatever_a_peer_says() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(AsJson("bank"))
    log = logging.Logger("colonnade.party")
    log.addHandler(handler)
    with in_log("0000abc0"):
        handler.addFilter(with_run)
        log.warning("shop says %s", 'x"\n{"level": "info"}\ud800')
        try:
            int("no")
        except ValueError:
            log.exception("failed")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["level"], first["run"], first["party"]) == ("warning", "0000abc0", "bank")
    assert first["message"] == 'shop says x"\n{"level": "info"}\\ud800'
    assert "ValueError: invalid" in second["error"]
    assert "error" not in first


def test_a_histogram_counts_what_is_at_most_its_bounds() -> None:
    found = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 3.0):
        found.add(value)
    assert list(found.lines("x")) == [
        'x_bucket{le="1"} 2', 'x_bucket{le="2"} 4', 'x_bucket{le="+Inf"} 5', "x_sum 8", "x_count 5",
    ]  # fmt: skip


RULES_TESTED = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'colonnade_certificate_left_seconds{{instance="a", of="shop"}}', values: '600000x10'}}
      - series: 'colonnade_limit_used{{instance="a", limit="runs_of_a_peer", peer="shop"}}'
        values: '7x10'
      - series: 'colonnade_limit_used{{instance="a", limit="scored_ids_a_day", peer="shop"}}'
        values: '7x10'
      - {{series: 'colonnade_limit_most{{instance="a", limit="runs_of_a_peer"}}', values: '8x10'}}
    alert_rule_test:
      - {{eval_time: 8m, alertname: CertificateEndsNow}}
      - eval_time: 8m
        alertname: LimitNearlyReached
        exp_alerts:
          - exp_labels: {{severity: warning, instance: a, limit: runs_of_a_peer, peer: shop}}
            exp_annotations:
              summary: "shop has used 87.5% of limits.runs_of_a_peer; beyond it is refused"
"""


def test_the_rules_of_alerts_are_prometheus_s(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install prometheus")
    rules, tested = EXAMPLES / "telemetry" / "alerts.yml", tmp_path / "tested.yml"
    tested.write_text(RULES_TESTED.format(rules=rules), "utf-8")
    config = str(EXAMPLES / "telemetry" / "prometheus.yml")
    for words in (["check", "rules", str(rules)], ["test", "rules", str(tested)],
                  ["check", "config", "--syntax-only", config]):  # fmt: skip
        done = subprocess.run([promtool, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_of_systemd_is_confined() -> None:
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("no systemd-analyze: apt-get install systemd")
    unit = str(EXAMPLES / "colonnade-party.service")
    done = subprocess.run([analyse, "security", "--offline=true", unit], capture_output=True, text=True)
    exposure = re.search(r"exposure level for .*: ([\d.]+)", done.stdout)
    assert exposure is not None, done.stderr
    assert float(exposure[1]) < 3
