"""A small client of a daemon's [control], for schedulers and pipelines; it needs Python alone.

    from colonnade.client import DaemonClient

    daemon = DaemonClient("https://colonnade.bank.example:8410", token_file="token", ca="ca.crt")
    run = daemon.propose("credit.toml", alone=True, if_better="auc")
    print(daemon.wait(run["run"], timeout=3600)["gate"])

Every verb is an address of the daemon (`GET /openapi.json` has them all). An error of the daemon is raised as
`ControlError`, with the exit code that a command would have: 2 usage, 3 refused, 4 away or later, 1 failed.
"""

from __future__ import annotations

import json
import ssl
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from colonnade.errors import ColonnadeError

AGAIN_S = 60.0  # how long one request takes at most


class ControlError(ColonnadeError):
    """The daemon did not do what was asked, or could not be reached; `exit_code` says which kind that is."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.exit_code = code


class DaemonClient:
    """The verbs of one daemon, asked over HTTP."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        ca: str | Path | None = None,
        certificate: str | Path | None = None,
        key: str | Path | None = None,
    ) -> None:
        if token is None and token_file is not None:
            token = Path(token_file).read_text(encoding="utf-8").strip()
        self._url, self._token = url.rstrip("/"), token
        self._tls = None
        if url.startswith("https:"):
            self._tls = ssl.create_default_context(cafile=ca)
            if certificate is not None:
                self._tls.load_cert_chain(certificate, key)

    def propose(
        self,
        job: str | Path | dict[str, Any],
        *,
        alone: bool = False,
        timeout: float | None = None,
        if_better: str | None = None,
        by: float = 0.0,
    ) -> Any:
        """Propose a job, a file or its tables; returns the run, which goes on by itself.

        With `if_better` its model takes the place of the one in use if that metric of test rows is better by
        more than `by`.
        """
        gate = None if if_better is None else {"metric": if_better, "by": by}
        body = {"job": _tables(job), "alone": alone, "timeout": timeout, "gate": gate}
        return self._ask("POST", "/v1/runs", body)[1]

    def wait(self, run: str, timeout: float | None = None) -> Any:
        """Return what came of a run once it is over; ControlError with code 4 if that takes longer."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            status, found = self._ask("GET", f"/v1/runs/{run}/result")
            if status == 200:
                return found
            if until is not None and time.monotonic() >= until:
                raise ControlError(f"run {run}: no end within {timeout:g} s; it goes on", 4)

    def stop(self, run: str) -> Any:
        """End a run at all its parties."""
        return self._ask("POST", f"/v1/runs/{run}/stop", {})[1]

    def estimate(self, job: str | Path | dict[str, Any]) -> Any:
        """Return what a job would cost; nobody is asked."""
        return self._ask("POST", "/v1/estimates", {"job": _tables(job)})[1]

    def approve(self, number: str, digest: str) -> Any:
        """Approve the proposal with this digest."""
        return self._ask("POST", f"/v1/proposals/{number}/approve", {"digest": digest})[1]

    def refuse(self, number: str, reason: str = "") -> Any:
        """Refuse a proposal; its proposer reads the reason."""
        return self._ask("POST", f"/v1/proposals/{number}/refuse", {"reason": reason})[1]

    def revoke(self, number: str) -> Any:
        """Let what was decided about a proposal count for no later one."""
        return self._ask("POST", f"/v1/proposals/{number}/revoke", {})[1]

    def promote(self, model: str, *, if_better: str | None = None, by: float = 0.0) -> Any:
        """Put a model to use, or only if it is better than the one in use."""
        gate = None if if_better is None else {"metric": if_better, "by": by}
        return self._ask("POST", f"/v1/models/{model}/promote", {"gate": gate})[1]

    def rollback(self, name: str) -> Any:
        """Go back to the model before."""
        return self._ask("POST", f"/v1/models/{name}/rollback", {})[1]

    def delete(self, model: str, reason: str = "") -> Any:
        """Delete this party's share of a model for good."""
        return self._ask("POST", f"/v1/models/{model}/delete", {"reason": reason})[1]

    def journal(self, since: str = "") -> Any:
        """Return the lines of the journal, from a day on, as 2026-01-31."""
        return self._ask("GET", f"/v1/journal?since={quote(since)}")[1]

    def scores(self, model: str, ids: list[list[str]], data: str | None = None) -> Any:
        """Score rows by their ids: a list for every id column."""
        return self._ask("POST", "/v1/scores", {"model": model, "ids": ids, "data": data})[1]

    def reload(self) -> Any:
        """Let the daemon read its settings and certificates again."""
        return self._ask("POST", "/v1/reload", {})[1]

    def get(self, what: str) -> Any:
        """Return `status`, `runs`, `proposals`, `models` or `budget`."""
        return self._ask("GET", f"/v1/{what}")[1]

    def _ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the code and the content of an answer; ControlError for one that is an error."""
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        content = None if body is None else json.dumps(body, default=str).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self._url + path, content, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=AGAIN_S, context=self._tls) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise _error(error) from None
        except OSError as error:
            raise ControlError(f"{self._url}: {getattr(error, 'reason', error)}", 4) from None


def _tables(job: str | Path | dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a job, or of its file."""
    return job if isinstance(job, dict) else tomllib.loads(Path(job).read_text(encoding="utf-8"))


def _error(error: urllib.error.HTTPError) -> ControlError:
    """Return the error that a daemon, or something before it, has answered with."""
    try:
        said = json.load(error)
        return ControlError(said["error"], said["code"])
    except (ValueError, KeyError, TypeError):
        return ControlError(f"{error.url}: {error.code} {error.reason}", 1)
