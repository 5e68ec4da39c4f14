"""Write docs/http.md from the API's own OpenAPI document: `make docs`."""

import textwrap
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from counterfoil.api.app import create_app
from counterfoil.api.limits import BODY_SECONDS, LARGER_BODIES, MAX_BODY_BYTES, MAX_URL_BYTES, READ_SECONDS
from counterfoil.api.openapi import operations
from counterfoil.api.problems import KINDS, MAX_DETAIL, urn
from counterfoil.receipt_store import ReceiptStore
from indexer.query import Store

PATH = Path(__file__).resolve().parents[1] / "docs" / "http.md"
Document = dict[str, Any]

_LARGER = "".join(f"; of `{path}` {size:,}" for path, size in LARGER_BODIES.items())
_INTRODUCTION = f"""\
# The HTTP API

Made from the endpoints of `counterfoil/api/` by `make docs`; a test fails when it is stale. A server gives the same,
with the form and an example of every answer, at `/openapi.json`.

Amounts are decimal strings in base units, ratios are exact text such as `7/8`, what is unknown is null. Every answer of
the index names the block that it is the state after in `as_of`, and carries an `ETag` of it: sent again as
`If-None-Match`, it is answered with 304 while nothing changed. Pages go on where `Link` with `rel="next"` says.

## Limits

| what | bound | beyond it |
|---|---|---|
| path and query | {MAX_URL_BYTES:,} bytes | 414 |
| body | {MAX_BODY_BYTES:,} bytes{_LARGER} | 413, unread where its length is declared |
| a body on its way | {BODY_SECONDS:g} seconds | 408 |
| the database at work for one request | {READ_SECONDS:g} seconds; in PostgreSQL each statement | 503 |

What is kept in memory of the newest block is read for everybody and has no such limit, as after a reorganisation;
whoever waits for it has. How long a request's head takes, and how many connections are open, is not bounded: put a
proxy in front before strangers may connect.
`python -m scripts.bad_input URL` prints what a server answers to every kind of bad input.
"""
_PROBLEMS = f"""\
## Problems

What cannot be answered is a document of `application/problem+json` (RFC 9457) with `type`, `title`, `status` and
`detail`, a sentence of at most {MAX_DETAIL} characters that says what to do, and, where the table says so, `rule`,
`block` and `replacement`. Types are stable: branch on them.

| status | type | when |
|---|---|---|
"""


def document() -> str:
    """Give the page's text."""
    described = app_document()
    parts = [_operation(*found) for found in operations(described)]
    problems = "\n".join(f"| {kind.status} | `{urn(name)}` | {kind.when} |" for name, kind in KINDS.items())
    return "\n".join([_INTRODUCTION, "## Endpoints\n", *parts, _PROBLEMS + problems + "\n"])


def app_document() -> Document:
    """Give the OpenAPI document, which needs no index."""
    nowhere = cast(Store, SimpleNamespace(label=""))
    return create_app(nowhere, ReceiptStore(Path("receipts"))).openapi()


def _operation(path: str, method: str, operation: Document) -> str:
    rows = [_parameter(item) for item in operation.get("parameters", ())]
    table = ["| parameter | where | form | what |", "|---|---|---|---|", *rows, ""] if rows else []
    body = [_filled(f"Body: {operation['requestBody']['description']}"), ""] if "requestBody" in operation else []
    lines = [f"### {method} {path}", "", _filled(operation["description"]), "", *table, *body]
    return "\n".join([*lines, _filled(f"Answers {_answers(operation['responses'])}."), ""])


def _parameter(item: Document) -> str:
    schema = item["schema"]
    needed = " (needed)" if item["required"] and item["in"] == "query" else ""
    (example,) = schema["examples"]
    what = f"{item['description']}; such as `{str(example).lower() if isinstance(example, bool) else example}`"
    return f"| `{item['name']}`{needed} | {item['in']} | {form(schema)} | {what} |"


def form(schema: Document) -> str:
    """Say in words which values a schema takes."""
    (one,) = [part for part in schema.get("anyOf", [schema]) if part["type"] != "null"]
    if one["type"] == "boolean":
        return "`true` or `false`"
    if "enum" in one:
        return " or ".join(f"`{value}`" for value in one["enum"])
    if one["type"] == "string":
        return f"`{schema['pattern']}`" if "pattern" in schema else f"at most {one['maxLength']} characters"
    most = f"to {one['maximum']}" if "maximum" in one else f"and below {_power(one['exclusiveMaximum'])}"
    return f"a whole number from {one['minimum']} {most}"


def _power(bound: float) -> str:
    whole = int(bound)
    minus = " - 1" if whole & 1 else ""
    return f"2^{(whole + (whole & 1)).bit_length() - 1}{minus}"


def _answers(responses: Document) -> str:
    names = [status for status, found in responses.items() if not _is_problem(found)]
    problems = [status for status, found in responses.items() if _is_problem(found)]
    return f"{_listed(names)}, or a problem: {_listed(problems)}"


def _is_problem(response: Document) -> bool:
    return "application/problem+json" in response.get("content", {})


def _listed(statuses: Iterable[str]) -> str:
    return ", ".join(sorted(statuses))


def _filled(words: str) -> str:
    return textwrap.fill(" ".join(words.split()), 119, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    """Write the page."""
    PATH.write_text(document())


if __name__ == "__main__":
    main()
