"""A Flight SQL server gives what a file of its rows gives; users, tokens and certificates are referred to."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.servers import PASSWORD
from tests.sources.conftest import TOKEN

from colonnade.data.read.databases import check_writable
from colonnade.data.read.facts import facts_of
from colonnade.data.read.files import load
from colonnade.data.read.source import size_of
from colonnade.errors import DataError
from colonnade.job.source import Address, source_of
from colonnade.net.stream.authority import issue, make_authority

pytest.importorskip("adbc_driver_flightsql", reason="no driver: pip install 'colonnade[flightsql]'")


@pytest.fixture(autouse=True)
def _tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_TOKEN", TOKEN)
    monkeypatch.setenv("WRONG", "Walrus-99")


@pytest.mark.parametrize(("user", "end"), [("bank:{DB_PASSWORD}@", ""), ("", "&token={DB_TOKEN}")])
def test_a_table_is_read_as_a_file_of_its_rows(
    flight: str, customers: Any, tmp_path: Path, user: str, end: str
) -> None:
    pq.write_table(customers, tmp_path / "x.parquet")
    file = load(tmp_path / "x.parquet", label="bad", id="id")
    address = f"flightsql://{user}{flight}?tls=false{end}"
    found = load(f"{address}#customers", label="bad", id="id")
    assert found.columns == file.columns
    for name in file.columns:
        np.testing.assert_array_equal(found.column(name), file.column(name))
    assert size_of(Address(address, "customers")) == (400, 6)
    older = load(f"{address}#select id, age from customers where age > 50", id="id")
    assert older.rows == sum(age > 50 for age in customers["age"].to_pylist())
    types, *_ = facts_of(source_of(f"{address}#customers"))
    assert types == "types: string id, since, town; int64 age, bad; double income"


@pytest.mark.parametrize(
    ("user", "end", "said"),
    [
        ("bank:{WRONG}@", "?tls=false#customers", "unauthorized"),
        ("", "?tls=false&token={WRONG}#customers", "invalid token"),
        ("", "?tls=false#customers", "token not found"),
        ("bank:{DB_PASSWORD}@", "#customers", "handshake failed"),
        ("bank:{DB_PASSWORD}@", "?tls=false#none", "not found"),
        ("bank:{DB_PASSWORD}@", "?tls=false#select id frm customers", "SQL error"),
        ("bank:{DB_PASSWORD}@", "?ca=none.pem#customers", "ca=none.pem cannot be read"),
    ],
)
def test_what_is_refused_is_one_line(flight: str, user: str, end: str, said: str) -> None:
    with pytest.raises(DataError) as caught:
        load(f"flightsql://{user}{flight}{end}")
    text = str(caught.value)
    assert text.startswith(f"flightsql://{user}{flight}")
    assert said in text
    assert not any(each in text for each in (PASSWORD, TOKEN, "Walrus", "\n"))


def test_scores_do_not_go_there() -> None:
    with pytest.raises(DataError, match="scores go to postgresql"):
        check_writable(Address("flightsql://127.0.0.1:9", "scores"))


@contextmanager
def before(server: str, context: ssl.SSLContext) -> Iterator[int]:
    """The port of what speaks TLS with the driver and passes on what it says to a server that does not."""

    def pass_on(come: ssl.SSLSocket | socket.socket, go: ssl.SSLSocket | socket.socket) -> None:
        with suppress(OSError):
            while data := come.recv(1 << 16):
                go.sendall(data)

    def serve() -> None:
        while True:
            try:
                given, _ = listening.accept()
            except OSError:
                return
            try:
                outer = context.wrap_socket(given, server_side=True)
            except OSError:  # a driver that has no certificate, or trusts another authority
                given.close()
                continue
            inner = socket.create_connection((server.partition(":")[0], int(server.rpartition(":")[2])))
            opened.extend([outer, inner])
            for pair in ((outer, inner), (inner, outer)):
                threading.Thread(target=pass_on, args=pair, daemon=True).start()

    opened: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    for each in opened:
        each.close()


def test_certificates_are_files(flight: str, tmp_path: Path) -> None:
    """Of the server's authority, and the asker's own where the server insists."""
    make_authority(tmp_path)
    issue(tmp_path, "localhost")
    issue(tmp_path, "bank")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "localhost.crt", tmp_path / "localhost.key")
    context.load_verify_locations(tmp_path / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    with before(flight, context) as port:
        address = f"flightsql://bank:{{DB_PASSWORD}}@localhost:{port}?ca={tmp_path}/ca.crt"
        own = f"&cert={tmp_path}/bank.crt&key={tmp_path}/bank.key"
        assert load(f"{address}{own}#customers", id="id").rows == 400
        for wrong in (f"{address}#customers", f"{address.partition('?')[0]}#customers"):
            with pytest.raises(DataError):
                load(wrong)
