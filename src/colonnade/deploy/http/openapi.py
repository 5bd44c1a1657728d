"""The OpenAPI document of the prediction service."""

from __future__ import annotations

from typing import Any

from colonnade import __version__
from colonnade.deploy.settings import Serve
from colonnade.deploy.shares import Manifest


def document(serve: Serve, manifest: Manifest) -> dict[str, Any]:
    identifier = {
        "oneOf": [
            {"type": "string"},
            {"type": "integer"},
            {"type": "array", "items": {"type": ["string", "integer"]}},
        ]
    }
    score = {
        "type": "object",
        "required": ["id", "found"],
        "properties": {
            "id": identifier,
            "found": {"type": "boolean", "description": "whether all parties know the id"},
            "score": {"oneOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]},
            "probability": {"type": "number", "minimum": 0, "maximum": 1},
            "label": {"type": "string"},
        },
    }
    problem = _json({"type": "object", "properties": {"error": {"type": "string"}}})
    security: list[dict[str, Any]] = [{"token": []}] if serve.token_file else [{"certificate": []}]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Colonnade prediction service",
            "version": __version__,
            "description": f"Joint scores of {manifest.model}, {manifest.terms.algorithm}.",
        },
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            }
        },
        "security": security,
        "paths": {
            "/v1/score": {
                "post": {
                    "summary": "Score rows by id",
                    "requestBody": {
                        "required": True,
                        **_json(
                            {
                                "type": "object",
                                "required": ["ids"],
                                "additionalProperties": False,
                                "properties": {
                                    "ids": {
                                        "type": "array",
                                        "minItems": 1,
                                        "maxItems": serve.max_ids,
                                        "items": identifier,
                                    }
                                },
                            }
                        ),
                    },
                    "responses": {
                        "200": {
                            "description": "one entry per id, in the order asked",
                            **_json(
                                {
                                    "type": "object",
                                    "properties": {
                                        "model": {"type": "string"},
                                        "degraded": {"type": "array", "items": {"type": "string"}},
                                        "scores": {"type": "array", "items": score},
                                    },
                                }
                            ),
                        },
                        "400": {"description": "not a question", **problem},
                        "401": {"description": "no token, or another", **problem},
                        "413": {"description": f"over {serve.max_bytes} bytes", **problem},
                        "503": {"description": "a party is away", **problem},
                    },
                }
            },
            "/v1/model": {
                "get": {"summary": "Which model answers", "responses": {"200": {"description": "the model"}}}
            },
            "/v1/refresh": {
                "post": {
                    "summary": "Align again, so that new rows are found",
                    "responses": {"202": {"description": "a new session begins"}},
                }
            },
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
