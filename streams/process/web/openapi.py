"""The OpenAPI description of the System One endpoint, served at /openapi.json.

It says what our server takes, which is what the protocol allows: an unknown field is ignored, so none is forbidden
here. JSON Schema cannot say all: duplicate keys, numbers beyond 64 bits, nesting beyond 64 and size are refused too.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from ticketgate.codecs.systemone.protocol import PATH
from ticketgate.codecs.systemone.questions import MAX_OPTIONS, MAX_SCORE_LEVELS, MIN_OPTIONS, MIN_SCORE_LEVELS
from ticketgate.codecs.values.strict import JsonValue

Schema = dict[str, Any]


@cache
def document() -> JsonValue:
    """The description, OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ticketgate: System One",
            "description": "Questions in, answers with probabilities out, by a local model.",
            "version": version("ticketgate"),
        },
        "paths": {
            PATH: {
                "post": {
                    "operationId": "systemone",
                    "summary": "Answer questions about a state",
                    "security": [{}, {"key": []}],
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": _ref("Request")}},
                    },
                    "responses": {
                        "200": _json("the answers", _ref("Response")),
                        "422": _json("the request is wrong, and where", _ref("ValidationError")),
                        **{status: _json(what, _ref("Error")) for status, what in _ERRORS.items()},
                    },
                }
            },
            "/v1/models": {
                "get": {
                    "operationId": "models",
                    "summary": "The model that answers",
                    "security": [{}, {"key": []}],
                    "responses": {
                        "200": _json("the models", _ref("Models")),
                        "401": _json(_ERRORS["401"], _ref("Error")),
                    },
                }
            },
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


_ERRORS = {
    "400": "a model is named that is not here, or the body broke off",
    "401": "a key is required and none, or a wrong one, was sent",
    "403": "pages of that Origin may not ask",
    "408": "the body did not arrive in time",
    "413": "the body is too large",
    "415": "the body is compressed, or does not say that it is application/json",
    "421": "this server does not go by that Host",
    "429": "the key asks too often, or too much at once; retry-after says when to ask again",
    "502": "the model's answers do not hold together",
    "503": "no answer in time, or no room for the body; retry-after says when to ask again",
    "529": "overloaded; retry-after says when to ask again",
}


def _schemas() -> Schema:
    text: Schema = {"type": ["string", "object", "array"]}
    text_or_null: Schema = {"type": ["string", "object", "array", "null"]}
    chance: Schema = {"type": "number", "minimum": 0, "maximum": 1}
    chances: Schema = {"type": "object", "additionalProperties": chance}
    return {
        "Request": _object(
            {
                "state": {**text, "description": "what the model reads"},
                "questions": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": {"minLength": 1},
                    "additionalProperties": {
                        "oneOf": [_ref(name) for name in ("Noul", "Choice", "Score")],
                    },
                },
                "model": {
                    "type": ["string", "null"],
                    "description": "an alias of the settings, or any name: answered by the default model then",
                },
                "x_plain": {
                    "type": "boolean",
                    "description": "whether the answers shall bear answer_confidence too, without x_ before it",
                },
            },
            required=["state", "questions"],
        ),
        "Noul": _question(
            "noul",
            {
                "type": ["object", "null"],
                "properties": {"true": text_or_null, "false": text_or_null},
                "additionalProperties": False,
                "description": "without instructions, true or false must be described",
            },
            text_or_null,
        ),
        "Choice": _question(
            "choice",
            {
                "type": "object",
                "minProperties": MIN_OPTIONS,
                "maxProperties": MAX_OPTIONS,
                "propertyNames": {"minLength": 1},
                "additionalProperties": text_or_null,
            },
            text_or_null,
            required=["type", "criteria"],
        ),
        "Score": _question(
            "score",
            {
                "type": "array",
                "minItems": MIN_SCORE_LEVELS,
                "maxItems": MAX_SCORE_LEVELS,
                "items": text,
                "description": "the lowest level first",
            },
            text_or_null,
            required=["type", "criteria"],
        ),
        "Response": _object(
            {
                "model": {"type": "string"},
                "x_model_asked_for": {
                    "type": "string",
                    "description": "the request's model, where it is another name than that of the model that answered",
                },
                "answers": {
                    "type": "object",
                    "additionalProperties": {
                        "oneOf": [_ref(f"{name}Answer") for name in ("Noul", "Choice", "Score")],
                    },
                },
                "usage": _object(
                    {
                        "input_tokens": {"type": "integer", "minimum": 0},
                        "output_tokens": {"type": "integer", "minimum": 0},
                        "x_truncated": {
                            "type": "array",
                            "items": {"type": "string"},
                            "description": "questions answered without reading all of the state or question",
                        },
                        "x_abstention": {
                            "type": "string",
                            "description": "why the model does not stand by its answers, where it does not",
                        },
                    },
                    required=["input_tokens", "output_tokens"],
                ),
            },
            required=["model", "answers", "usage"],
        ),
        "NoulAnswer": _answer("noul", {"noul": chance}),
        "ChoiceAnswer": _answer(
            "choice", {"choice": {"type": "string"}, "confidence": chance, "probabilities": chances}
        ),
        "ScoreAnswer": _answer(
            "score",
            {
                "score": {"type": "number", "minimum": 0},
                "confidence": chance,
                "legend": {"type": "object", "additionalProperties": text},
                "probabilities": chances,
            },
        ),
        "Models": _object(
            {
                "models": {
                    "type": "array",
                    "items": _object(
                        {name: {"type": "string"} for name in ("name", "description", "release_date")},
                        required=["name", "description", "release_date"],
                    ),
                }
            },
            required=["models"],
        ),
        "ValidationError": _object(
            {
                "detail": {
                    "type": "array",
                    "minItems": 1,
                    "items": _object(
                        {
                            "loc": {"type": "array", "items": {"type": ["string", "integer"]}},
                            "msg": {"type": "string"},
                            "type": {"type": "string"},
                        },
                        required=["loc", "msg", "type"],
                    ),
                }
            },
            required=["detail"],
        ),
        "Error": _object(
            {
                "detail": _object(
                    {"error_type": {"type": "string"}, "message": {"type": "string"}},
                    required=["error_type", "message"],
                )
            },
            required=["detail"],
        ),
    }


def _object(properties: Schema, *, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def _question(
    kind: str, criteria: Schema, instructions: Schema, *, required: list[str] | None = None
) -> Schema:
    return _object(
        {"type": {"const": kind}, "instructions": instructions, "criteria": criteria},
        required=required or ["type"],
    )


def _answer(kind: str, properties: Schema) -> Schema:
    share: Schema = {"type": "number", "minimum": 0, "maximum": 1}
    ours: Schema = {"x_answer_confidence": share, "x_certainty": share, "answer_confidence": share}
    return _object({"type": {"const": kind}, **properties, **ours}, required=["type", *properties])


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
