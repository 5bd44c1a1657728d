"""The OpenAPI document of the prediction service."""

from __future__ import annotations

from typing import Any

from colonnade import __version__
from colonnade.data.read.ids import LONGEST
from colonnade.deploy.settings import Serve

Json = dict[str, Any]

ID: Json = {
    "oneOf": [
        {"type": "string", "maxLength": LONGEST},
        {"type": "integer"},
        {"type": "array", "items": {"type": ["string", "integer"], "maxLength": LONGEST}},
    ]
}
SCORE: Json = {
    "type": "object",
    "required": ["id", "found"],
    "properties": {
        "id": ID,
        "found": {"type": "boolean", "description": "whether all parties know the id"},
        "score": {"oneOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]},
        "probability": {
            "oneOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}},
            ]
        },
        "expected": {"type": "number", "exclusiveMinimum": 0},
        "label": {"type": "string"},
    },
}
ANSWER: Json = {
    "type": "object",
    "properties": {
        "model": {"type": "string"},
        "degraded": {"type": "array", "items": {"type": "string"}},
        "scores": {"type": "array", "items": SCORE},
    },
}
PROBLEM: Json = {"type": "object", "properties": {"error": {"type": "string"}}}


def document(serve: Serve) -> Json:
    """Return the whole document, for these settings; which model answers is told by /v1/model, with a
    token."""
    security: Json = ({"token": []} if serve.token_file else {}) | (
        {"certificate": []} if serve.client_ca else {}
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Colonnade prediction service",
            "version": __version__,
            "description": "Joint scores of rows by their ids. /v1/model says which model answers.",
        },
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            }
        },
        "security": [security],
        "paths": {"/v1/score": {"post": _score(serve)}, **_others()},
    }


def _score(serve: Serve) -> Json:
    """Return POST /v1/score: its body and its answers."""
    ids = {"type": "array", "minItems": 1, "maxItems": serve.max_ids, "items": ID}
    body = {
        "type": "object",
        "required": ["ids"],
        "additionalProperties": False,
        "properties": {"ids": ids},
    }
    return {
        "summary": "Score rows by id",
        "requestBody": {"required": True, **_content(body)},
        "responses": {
            "200": {"description": "one entry per id, in the order asked", **_content(ANSWER)},
            "400": {"description": "not a question", **_content(PROBLEM)},
            "401": {"description": "no token, or another", **_content(PROBLEM)},
            "413": {"description": f"over {serve.max_bytes} bytes", **_content(PROBLEM)},
            "503": {"description": "a party is away", **_content(PROBLEM)},
        },
    }


def _others() -> Json:
    """Return the paths beside /v1/score, which take no body."""
    return {
        "/v1/model": {
            "get": {"summary": "Which model answers", "responses": {"200": {"description": "the model"}}}
        },
        "/v1/refresh": {
            "post": {
                "summary": "Align again, so that new rows are found",
                "responses": {"202": {"description": "a new session begins"}},
            }
        },
    }


def _content(schema: Json) -> Json:
    """Return a body of JSON with this schema."""
    return {"content": {"application/json": {"schema": schema}}}
