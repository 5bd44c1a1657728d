"""Data sets are fetched whole, checked, and refused by name: from a server on this machine."""

from __future__ import annotations

import bz2
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.data.datasets import catalogue, loading
from colonnade.data.datasets.fetch import fetch
from colonnade.errors import DataError

ROWS = b"+1 1:0.5 3:1\n-1 2:0.25\n"


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("COLONNADE_DATA", str(tmp_path / "data"))
    served = tmp_path / "served"
    served.mkdir()
    (served / "a9a").write_bytes(ROWS)
    (served / "a9a.t.bz2").write_bytes(bz2.compress(ROWS))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_files_are_fetched_plain_or_packed_and_checked(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(ROWS).hexdigest()
    monkeypatch.setitem(catalogue.SHA256, "libsvm", {"a9a": digest, "a9a.t": digest})
    said: list[str] = []
    files = fetch("a9a", said.append, base)
    assert [path.name for path in files] == ["a9a", "a9a.t.bz2"]
    assert len(said) == 2
    assert loading.verify("a9a") == {"a9a": "ok", "a9a.t": "ok"}
    assert fetch("a9a", said.append, base) == files  # they are here: nothing is fetched again
    assert len(said) == 2


def test_what_is_not_what_was_recorded_is_not_kept(base: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not the recorded one; it was not kept"):
        fetch("a9a", base=base)
    assert not list((tmp_path / "data" / "libsvm").iterdir())


def test_refusals_are_one_line(base: str) -> None:
    for name, said in (
        ("a9b", "did you mean 'a9a'"),
        ("wine", "comes with scikit-learn"),
        ("uci-credit", "fetch it by hand"),
    ):
        done = CliRunner().invoke(main, ["datasets", "--get", name])
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    with pytest.raises(DataError, match="is not there any more"):
        fetch("phishing", base=base)
    with pytest.raises(DataError, match="cannot be reached"):
        fetch("a9a", base="http://127.0.0.1:9")
    with pytest.raises(DataError, match="colonnade datasets --get phishing"):
        loading.load_dataset("phishing")
