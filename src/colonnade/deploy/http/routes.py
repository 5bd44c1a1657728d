"""The addresses of [control]: which verb each is, what its body says, and what it answers with.

The OpenAPI document is made of the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from colonnade import __version__
from colonnade.deploy.books.journal import Decision
from colonnade.deploy.daemon.commands import (
    BudgetRequest,
    DaemonStatus,
    DecideRequest,
    DeleteRequest,
    EstimateCommand,
    JournalRequest,
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
from colonnade.deploy.daemon.proposal_views import ProposalView
from colonnade.deploy.daemon.verbs import NEEDS, BudgetView
from colonnade.deploy.daemon.views import ModelView, RunView
from colonnade.deploy.models.gate import Gate
from colonnade.deploy.process.estimating import Estimate
from colonnade.deploy.programs.training import Trained
from colonnade.deploy.terms.contract import terms_from
from colonnade.errors import EXITS

Json = dict[str, Any]
Parts = Mapping[str, str]
"""What stands in the address for its {names}."""

LONGEST_WAIT_S = 50.0  # below what proxies usually allow an answer to take


class JobBody(msgspec.Struct, forbid_unknown_fields=True):
    """A job, as the tables of its file."""

    job: dict[str, Any]


class TrainBody(msgspec.Struct, forbid_unknown_fields=True):
    """A job to propose, as the tables of its file, and how; `timeout` in seconds."""

    job: dict[str, Any]
    alone: bool = False
    timeout: float | None = None
    gate: Gate | None = None
    timeline: bool = False


class ApproveBody(msgspec.Struct, forbid_unknown_fields=True):
    """The digest of the proposal that was seen."""

    digest: str


class RefuseBody(msgspec.Struct, forbid_unknown_fields=True):
    """Why a proposal is refused; its proposer reads it."""

    reason: str = ""
    digest: str | None = None


class PromoteBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whether peers are asked for their shares, and how much better the model has to be."""

    ask_peers: bool = True
    gate: Gate | None = None


class RollbackBody(msgspec.Struct, forbid_unknown_fields=True):
    """Whether peers are asked for their shares."""

    ask_peers: bool = True


class DeleteBody(msgspec.Struct, forbid_unknown_fields=True):
    """Why a model is deleted; the journal has it."""

    reason: str = ""


class ScoreBody(msgspec.Struct, forbid_unknown_fields=True):
    """Ids to score: a list for every id column. `data` is the entry in which every party looks them up."""

    model: str
    ids: list[list[str]]
    data: str | None = None


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """An empty body."""


class HttpAnswer(msgspec.Struct):
    """What was done, in words."""

    said: str


class HttpProblem(msgspec.Struct):
    """Why something was not done: in words, as one of a few kinds, and as the exit code of a command."""

    error: str
    kind: str
    code: int


@dataclass(frozen=True)
class Route:
    """One address: its method, the verb that it is, its body if it has one, and what it answers with.

    The names in the address and the fields of the body are those of the verb, where `make` does not say
    otherwise.
    """

    method: str
    path: str
    verb: type[Request]
    answer: Any
    summary: str
    body: type[msgspec.Struct] | None = None
    make: Callable[..., Request] | None = None
    query: tuple[str, ...] = ()  # fields of the verb that may stand behind the address

    def request(self, parts: Parts, body: msgspec.Struct | None) -> Request:
        """Return what is asked for at this address."""
        given: dict[str, Any] = dict(parts)
        given |= {name: getattr(body, name) for name in (body.__struct_fields__ if body is not None else ())}
        return (self.make or self.verb)(**given)


def _train(job: dict[str, Any], **how: Any) -> Request:
    return TrainRequest(terms_from(job), detach=True, **how)


def _estimate(job: dict[str, Any]) -> Request:
    return EstimateCommand(terms_from(job))


def _approve(number: str, digest: str) -> Request:
    return DecideRequest(number, approve=True, digest=digest)


def _refuse(number: str, reason: str, digest: str | None) -> Request:
    return DecideRequest(number, approve=False, reason=reason, digest=digest)


def _wait(run: str) -> Request:
    return WaitRequest(run, LONGEST_WAIT_S)


P, M = "/v1/proposals", "/v1/models"
WAIT = f"Wait for the end of a run, {LONGEST_WAIT_S:g} s at most"
ROUTES: tuple[Route, ...] = (
    Route("GET", "/v1/status", StatusRequest, DaemonStatus, "Who is there and what goes on"),
    Route("GET", "/v1/runs", RunsRequest, list[RunView], "Runs that go on, then those that ended"),
    Route("POST", "/v1/runs", TrainRequest, RunView, "Propose a training", TrainBody, _train),
    Route("GET", "/v1/runs/{run}/result", WaitRequest, Trained, WAIT, make=_wait),
    Route("POST", "/v1/runs/{run}/stop", StopRequest, Decision, "End a run at all parties", Nothing),
    Route("POST", "/v1/estimates", EstimateCommand, Estimate, "What a job costs", JobBody, _estimate),
    Route("GET", P, ProposalsRequest, list[ProposalView], "Proposals that wait, and what each would tell"),
    Route("POST", P + "/{number}/approve", DecideRequest, Decision, "Approve", ApproveBody, _approve),
    Route("POST", P + "/{number}/refuse", DecideRequest, Decision, "Refuse", RefuseBody, _refuse),
    Route("POST", P + "/{number}/revoke", RevokeRequest, Decision, "Take a decision back", Nothing),
    Route("GET", M, ModelsRequest, list[ModelView], "Stored models, and which is in use"),
    Route("POST", M + "/{model}/promote", PromoteRequest, Decision, "Put a model to use", PromoteBody),
    Route("POST", M + "/{name}/rollback", RollbackRequest, Decision, "Use the one before", RollbackBody),
    Route("POST", M + "/{model}/delete", DeleteRequest, Decision, "Delete a share for good", DeleteBody),
    Route("GET", "/v1/journal", JournalRequest, list[Json], "Lines of the journal", query=("since",)),
    Route("POST", "/v1/scores", PredictRequest, Prediction, "Score rows by id", ScoreBody),
    Route("GET", "/v1/budget", BudgetRequest, BudgetView, "What peers have heard, and what labels may tell"),
    Route("POST", "/v1/reload", ReloadRequest, HttpAnswer, "Read settings and certificates again", Nothing),
)


def document(*, tokens: bool, certificates: bool) -> Json:
    """Return the OpenAPI document."""
    kinds = (
        [route.answer for route in ROUTES] + [route.body for route in ROUTES if route.body] + [HttpProblem]
    )
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    answers = schemas[: len(ROUTES)]
    bodies = dict(zip([r.body for r in ROUTES if r.body], schemas[len(ROUTES) : -1], strict=True))
    paths: dict[str, Json] = {}
    for route, answer in zip(ROUTES, answers, strict=True):
        said: Json = {
            "summary": route.summary,
            "description": f"Takes the role {NEEDS[route.verb]}.",
            "responses": {
                "200": {"description": "done", **_content(answer)},
                **{
                    str(code): {"description": what, **_content(schemas[-1])}
                    for code, what in PROBLEMS.items()
                },
            },
        }
        names = [(part[1:-1], "path") for part in route.path.split("/") if part.startswith("{")]
        if names := names + [(name, "query") for name in route.query]:
            said["parameters"] = [
                {"name": name, "in": where, "required": where == "path", "schema": {"type": "string"}}
                for name, where in names
            ]
        if route.body is not None:
            said["requestBody"] = {"required": True, **_content(bodies[route.body])}
        paths.setdefault(route.path, {})[route.method.lower()] = said
    ways: Json = {"token": {"type": "http", "scheme": "bearer"}} if tokens else {}
    ways |= {"certificate": {"type": "mutualTLS"}} if certificates else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Colonnade: control of a party's daemon", "version": __version__},
        "components": {"schemas": components, "securitySchemes": ways},
        "security": [{way: []} for way in ways],
        "paths": paths,
    }


PROBLEMS = {
    202: "it goes on; ask again",
    400: EXITS[2],
    401: "nobody who is known here asks",
    403: "the role does not allow it",
    409: EXITS[3],
    500: EXITS[1],
    503: EXITS[4],
}
"""The codes of answers that are no result, in words."""


def _content(schema: Json) -> Json:
    """Return a body of JSON with this schema."""
    return {"content": {"application/json": {"schema": schema}}}
