"""What the API answers to bad input: `python -m scripts.bad_input http://127.0.0.1:8700` prints a table of it.

The rows are made from the OpenAPI document, so that an endpoint cannot be forgotten: a parameter or a body for which
no bad input is known is an error. tests/api/test_bad_input.py sends the same rows.
"""

import http.client
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from counterfoil.api.examples import example_receipt, example_record
from counterfoil.api.limits import LARGER_BODIES, MAX_BODY_BYTES, MAX_URL_BYTES
from counterfoil.api.openapi import operations
from counterfoil.receipts import canonical

Document = dict[str, Any]
Inputs = tuple[tuple[str, str], ...]

_SECONDS: Final = 30
_SHOWN: Final = 60
_CHUNK: Final = 65536
_NO_WORD: Final = "0x" + "00" * 32
_NO_NUMBER: Final = "9" * 18
_TOO_LONG: Final = "x" * 201

_NUMBERS: Final = (
    ("0", "bad-parameter"), ("-1", "bad-parameter"), ("x", "bad-parameter"), ("1.5", "bad-parameter"),
    ("9" * 30, "bad-parameter"), (_NO_NUMBER, "not-found"),
)  # fmt: skip
_SESSIONS: Final = (
    ("zz", "bad-question"), ("0x7", "bad-question"), ("%00", "bad-question"), ("x" * 67, "bad-parameter"),
    (_NO_NUMBER, "not-found"), (_NO_WORD, "not-found"),
)  # fmt: skip
PARAMETERS: Final[Mapping[str, Inputs]] = {
    "after": (("-1", "bad-parameter"), (str(2**63), "bad-parameter"), ("first", "bad-parameter")),
    "at": (
        ("nothing", "bad-question"), ("-1", "bad-question"), ("1e9", "bad-question"), ("1" * 70, "bad-parameter"),
        (_NO_NUMBER, "unknown-block"), (_NO_WORD, "unknown-block"),
    ),
    "cap": (("-1", "bad-parameter"), (str(2**256 - 1), "bad-parameter"), ("cheap", "bad-parameter")),
    "category": ((_TOO_LONG, "bad-parameter"),),
    "client": (("0x" + "0" * 41, "bad-parameter"), ("me", "bad-question")),
    "digest": (
        ("0x12", "bad-question"), ("0X" + "0" * 64, "bad-question"), ("0x" + "%00" * 64, "bad-question"),
        (_NO_WORD, "not-found"),
    ),
    "limit": (("0", "bad-parameter"), ("-1", "bad-parameter"), ("1001", "bad-parameter"), ("", "bad-parameter")),
    "need": ((_TOO_LONG, "bad-parameter"),),
    "node": (("0", "bad-parameter"), ("-1", "bad-parameter"), (str(2**63), "bad-parameter"), ("x", "bad-parameter")),
    "node_id": _NUMBERS,
    "nonce": (("-1", "bad-parameter"), (str(2**53), "bad-parameter")),
    "operator": (("0x" + "0" * 41, "bad-parameter"), ("me", "bad-question")),
    "routable": (("perhaps", "bad-parameter"),),
    "service": (("0", "bad-parameter"), ("first", "bad-parameter")),
    "service_id": _NUMBERS,
    "session_id": _SESSIONS,
    "status": (("none", "bad-parameter"), ("", "bad-parameter"), ("OPEN", "bad-parameter")),
    "task": ((_TOO_LONG, "bad-parameter"),),
    "which": _SESSIONS,
}  # fmt: skip
"""Bad values of every parameter, each with the kind of its problem: in paths as they are sent, in queries unquoted."""
GOOD: Final[Mapping[str, str]] = {
    "category": "data:crypto-price", "digest": _NO_WORD, "node_id": "1", "service_id": "1", "session_id": "1",
    "task": "x", "which": "1",
}  # fmt: skip
"""A value of each parameter that a question may need while another of its parameters is bad."""
_NEEDED: Final = {"GET /services/best": ("task",)}


@dataclass(frozen=True, slots=True)
class Row:
    """One bad request, and the problem that it has to be answered with.

    `declared` is a length that is announced while the body is never sent.
    """

    operation: str
    wrong: str
    method: str
    path: str
    kind: str
    body: bytes | None = None
    chunked: bool = False
    declared: int | None = None

    def __str__(self) -> str:
        """What was sent, short."""
        path = self.path if len(self.path) <= _SHOWN else f"{self.path[:_SHOWN]}... ({len(self.path)} characters)"
        return f"{self.method} {path}{self._body_in_words()}"

    def _body_in_words(self) -> str:
        if self.declared is not None:
            return f" with {self.declared} bytes declared"
        if self.body is None:
            return ""
        return f" with {len(self.body)} bytes{' in chunks' if self.chunked else ''}"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status_code: int
    headers: http.client.HTTPMessage
    content: bytes

    def json(self) -> Any:  # noqa: ANN401
        """The body's JSON."""
        return json.loads(self.content)


def _bodies() -> Mapping[str, tuple[tuple[bytes, str], ...]]:
    whole = canonical(example_receipt())
    return {
        "POST /receipts": (
            (b"", "bad-receipt"),
            (b"{}", "bad-receipt"),
            (b"\xff\xfe", "bad-receipt"),
            (b"[" * 5000, "bad-receipt"),
            (whole[:-1], "bad-receipt"),
            (whole + b"\n", "uncommitted"),
            (whole.replace(b'"attempt":0', b'"attempt":1'), "uncommitted"),
            (whole, "uncommitted"),
        ),
        "POST /experience": (
            (b"", "bad-parameter"),
            (b"{", "bad-parameter"),
            (b"[]", "bad-parameter"),
            (b"\xff", "bad-parameter"),
            (b"[" * 5000, "bad-parameter"),
            *((_record(**wrong), "bad-parameter") for wrong in _WRONG_IN_RECORDS),
            (_record(), "refused"),
            (_record(tool=""), "refused"),
            (_record(failures=3), "refused"),
        ),
    }


_WRONG_IN_RECORDS: Final[tuple[Document, ...]] = (
    {"more": 1}, {"service_id": 0}, {"session_id": "0x7"}, {"tool": "x" * 65}, {"note": None}, {"worked": "yes"},
    {"calls": -1}, {"calls": 2**32}, {"judge_score": 101}, {"latency_ms": 1.5}, {"cost": 2000}, {"cost": "-1"},
    {"signature": "0x1"}, {"signature": "0x" + "00" * 1025},
)  # fmt: skip


def _record(**wrong: object) -> bytes:
    return json.dumps(example_record() | wrong).encode()


def rows(document: Document) -> Iterator[Row]:
    """Every bad request to the operations of an OpenAPI document. KeyError where a parameter or body has none."""
    bodies = _bodies()
    for template, method, operation in operations(document):
        name = f"{method} {template}"
        given = {item["name"]: item for item in operation.get("parameters", ())}
        needed = [key for key, item in given.items() if item["in"] == "query" and item["required"]]
        good = {key: GOOD[key] for key in (*needed, *_NEEDED.get(name, ()))}
        path = template.format_map(GOOD)
        yield Row(name, "unknown parameter", method, _url(path, good | {"no_such": "1"}), "bad-question")
        yield Row(name, "method", "DELETE", path, "wrong-method")
        for key, item in given.items():
            yield from _of_parameter(name, template, good, key, item)
        if "requestBody" in operation:
            yield from (Row(name, "body", method, path, kind, body) for body, kind in bodies[name])
        yield from _too_large(name, method, path)
    yield from _of_no_operation()


def _of_parameter(name: str, template: str, good: Mapping[str, str], key: str, item: Document) -> Iterator[Row]:
    method = name.partition(" ")[0]
    if item["in"] == "path":
        for value, kind in PARAMETERS[key]:
            yield Row(name, key, method, _url(template.format_map({**GOOD, key: value}), good), kind)
        return
    path = template.format_map(GOOD)
    rest = {other: value for other, value in good.items() if other != key}
    if item["required"]:
        yield Row(name, key, method, _url(path, rest), "bad-parameter")
    for value, kind in PARAMETERS[key]:
        yield Row(name, key, method, _url(path, {**rest, key: value}), kind)
    twice = f"{_url(path, rest)}{'&' if rest else '?'}{key}=1&{key}=1"
    yield Row(name, f"{key} twice", method, twice, "bad-question")


def _too_large(name: str, method: str, path: str) -> Iterator[Row]:
    limit = LARGER_BODIES.get(path, MAX_BODY_BYTES)
    yield Row(name, "size", method, path, "too-large", declared=limit + 1)
    yield Row(name, "size", method, path, "too-large", b"x" * (limit + 1), chunked=True)


def _of_no_operation() -> Iterator[Row]:
    for path in ("/nothing", "/", "/services/", "/services/1/nothing", "/receipts/..%2F..%2Fetc%2Fpasswd", "/%00"):
        yield Row("none", "path", "GET", path, "unknown-path")
    yield Row("none", "length", "GET", "/" + "x" * MAX_URL_BYTES, "too-long")
    yield Row("none", "length", "GET", "/services?category=" + "x" * MAX_URL_BYTES, "too-long")


def _url(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query, quote_via=quote)}" if query else path


def send(url: str, row: Row) -> Reply:
    """Send one row to a server and give what came back. Raises OSError or HTTPException where nothing does."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_SECONDS)
    try:
        connection.putrequest(row.method, row.path)
        connection.putheader("Content-Type", "application/json")
        _send_body(connection, row)
        answer = connection.getresponse()
        return Reply(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def _send_body(connection: http.client.HTTPConnection, row: Row) -> None:
    body = row.body or b""
    if row.chunked:
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        parts = (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
        with suppress(ConnectionError):  # a server may refuse before it has all
            for part in parts:
                connection.send(b"%x\r\n%b\r\n" % (len(part), part))
            connection.send(b"0\r\n\r\n")
        return
    connection.putheader("Content-Length", str(len(body) if row.declared is None else row.declared))
    connection.endheaders(body)


def main(url: str) -> None:
    """Print what each bad request to a running server is answered with."""
    asked = send(url, Row("none", "", "GET", "/openapi.json", ""))
    for row in rows(asked.json()):
        reply = send(url, row)
        body = reply.json()
        print(f"{row}\n    -> {reply.status_code} {body['type'].rpartition(':')[2]}: {body['detail']}")


if __name__ == "__main__":
    main(sys.argv[1])
