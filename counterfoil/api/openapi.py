"""What the framework does not know of the operations: every problem they answer, and an example of every answer."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from fastapi import FastAPI

from counterfoil.api import examples
from counterfoil.api.problems import KINDS, MAX_DETAIL, MEDIA_TYPE, problem, urn
from counterfoil.receipts.canonical import document as receipt_document

Document = dict[str, Any]

PROBLEM: Final = "Problem"
ALWAYS: Final = ("bad-question", "slow-body", "too-large", "too-long", "internal")
"""What every operation may answer."""
OF_THE_INDEX: Final = ("unknown-block", "misconfigured", "empty-index", "not-ready", "too-slow")
OF_RECEIPTS: Final = ("bad-receipt", "uncommitted")
OF_RECORDS: Final = ("bad-parameter", "refused", "chain-unavailable")
WITHOUT_INDEX: Final = ("/health", "/metrics")
_UNCONDITIONAL: Final = ("GET /ready",)


def install(app: FastAPI) -> None:
    """Give an application the completed document."""
    plain = app.openapi

    @cache
    def completed() -> Document:
        document = plain()
        complete(document)
        return document

    app.openapi = completed  # type: ignore[method-assign]


def complete(document: Document) -> None:
    """Add to a framework's document what it lacks."""
    schemas = document["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas[PROBLEM] = _schema()
    answered = examples.answered()
    for path, method, operation in operations(document):
        name = f"{method} {path}"
        responses = operation["responses"]
        responses.pop("422", None)  # a bad parameter is answered with 400
        _show(responses, answered.get(name))
        if name not in _UNCONDITIONAL:
            _show_headers(responses, answered.get(name))
        responses |= _described(kinds_of(path, method, operation))
    for status in ("200", "201"):
        kept = document["paths"]["/receipts"]["post"]["responses"][status]
        kept["headers"] = {"Location": _header("Where the receipt can be read.")}
    signed = "A record as its client signed it (EIP-712 `Experience` of the ExperienceLedger), with the signature."
    document["paths"]["/experience"]["post"]["requestBody"]["description"] = signed
    body = {"schema": {"type": "object"}, "example": receipt_document(examples.example_receipt())}
    document["paths"]["/receipts"]["post"]["requestBody"] = {
        "required": True,
        "description": "A receipt in canonical JSON (RFC 8785); its bytes are what the digest is of.",
        "content": {"application/json": body},
    }


def operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    """Every operation with its path and method (in capitals)."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def kinds_of(path: str, method: str, operation: Document) -> list[str]:
    """The kinds of problems that an operation may answer, in the order of KINDS."""
    found = {*ALWAYS}
    names = {parameter["name"] for parameter in operation.get("parameters", ())}
    if names:
        found.add("bad-parameter")
    if "at" in names:
        found.add("replaced-block")
    if path not in WITHOUT_INDEX:
        found |= {*OF_THE_INDEX}
    if "{" in path:
        found.add("not-found")
    if (method, path) == ("POST", "/receipts"):
        found |= {*OF_RECEIPTS}
    if (method, path) == ("POST", "/experience"):
        found |= {*OF_RECORDS}
    return [kind for kind in KINDS if kind in found]


def _show(responses: Document, example: object) -> None:
    for status in ("200", "201"):
        for content in responses.get(status, {}).get("content", {}).values():
            content["example"] = example


def _show_headers(responses: Document, example: object) -> None:
    if isinstance(example, dict) and "as_of" in example:
        responses["304"] = {"description": "The answer is the one whose `ETag` was sent as `If-None-Match`."}
        headers = {"ETag": _header("The block of the answer, and whether it is final.")}
        if "next" in example:
            headers["Link"] = _header('The next page, with `rel="next"`, where there is one.')
        responses["200"]["headers"] = headers


def _header(description: str) -> Document:
    return {"description": description, "schema": {"type": "string"}}


def _described(kinds: Iterable[str]) -> Document:
    by_status: dict[int, list[str]] = {}
    for kind in kinds:
        by_status.setdefault(KINDS[kind].status, []).append(kind)
    return {str(status): _response(of_status) for status, of_status in by_status.items()}


def _response(kinds: list[str]) -> Document:
    example = json.loads(bytes(problem(kinds[0], KINDS[kinds[0]].when).body))
    return {
        "description": " ".join(f"`{urn(kind)}`: {KINDS[kind].when}" for kind in kinds),
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{PROBLEM}"}, "example": example}},
    }


def _schema() -> Document:
    statuses = sorted({kind.status for kind in KINDS.values()})
    fields: Document = {
        "type": {"type": "string", "enum": [urn(kind) for kind in KINDS], "description": "Stable; branch on it."},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer", "enum": statuses},
        "detail": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_DETAIL,
            "description": "A sentence for people: what is wrong, and what to do.",
        },
    }
    return {
        "title": PROBLEM,
        "description": "Why a request was not answered (RFC 9457).",
        "type": "object",
        "properties": fields | _additions(),
        "required": list(fields),
        "additionalProperties": False,
    }


def _additions() -> Document:
    """What some kinds add."""
    return {
        "rule": {"type": "string", "description": "The rule that a record breaks, with `refused`."},
        "block": {
            "type": "integer",
            "description": "The number of the block that was replaced, with `replaced-block`.",
        },
        "replacement": {"type": ["string", "null"], "description": "The hash of what is there now, if anything is."},
    }
