"""What a request may cost, with small limits around a small application and the true ones over a socket."""

import asyncio
import json
import socket
from urllib.parse import urlsplit

import pytest

from counterfoil.api.limits import MAX_BODY_BYTES, MAX_URL_BYTES, Limits
from indexer.store import deadline
from tests.api.support import assert_problem

READ = 7.0


class Exchange:
    """One request to an application in this process; `status_code`, `headers` and `json` are of its answer."""

    def __init__(self, *parts, silent=False, headers=(), path="/x", query=b"", raw=True):
        self.parts, self.silent = [{"type": "http.request", "body": part, "more_body": True} for part in parts], silent
        self.scope = {"type": "http", "method": "POST", "path": path, "query_string": query, "headers": list(headers)}
        if raw:
            self.scope["raw_path"] = path.encode()
        self.sent = []

    async def receive(self):
        if self.parts:
            return self.parts.pop(0)
        if self.silent:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message):
        self.sent.append(message)

    def run(self, app):
        asyncio.run(app(self.scope, self.receive, self.send))
        return self

    @property
    def status_code(self):
        return self.sent[0]["status"]

    @property
    def headers(self):
        return {name.decode().title(): value.decode() for name, value in self.sent[0]["headers"]}

    def json(self):
        return json.loads(self.sent[1]["body"])


class Inner:
    """An application that notes what reaches it."""

    def __init__(self):
        self.body = self.seconds = None

    async def __call__(self, scope, receive, send):
        message = await receive()
        self.body, self.seconds = message["body"], deadline.seconds_left()
        assert message["more_body"] is False
        await send({"type": "http.response.start", "status": 200, "headers": []})


def ask(**changes):
    inner = Inner()
    parts = changes.pop("parts", ())
    seconds = changes.pop("body_seconds", 60)
    return Exchange(*parts, **changes).run(Limits(inner, body_seconds=seconds, read_seconds=READ)), inner


def test_limits__of_a_request_that_keeps_them__pass_it_on_whole_with_a_deadline():
    exchange, inner = ask(parts=[b"a" * MAX_BODY_BYTES])
    assert (exchange.status_code, inner.body) == (200, b"a" * MAX_BODY_BYTES)
    assert 0 < inner.seconds <= READ
    assert deadline.seconds_left() == float("inf")


def test_limits__of_a_body_in_many_parts__count_all_of_them():
    exchange, inner = ask(parts=[b"a" * 1000] * 65)
    assert (exchange.status_code, len(inner.body)) == (200, 65_000)
    exchange, inner = ask(parts=[b"a" * 1000] * 66)
    assert_problem(exchange, 413, "too-large")
    assert inner.body is None


@pytest.mark.parametrize("declared", [b"65537", b"9" * 19])
def test_limits__of_a_declared_length__are_kept_before_anything_is_read(declared):
    exchange, inner = ask(headers=[(b"content-length", declared)], silent=True)
    assert_problem(exchange, 413, "too-large")
    assert inner.body is None


@pytest.mark.parametrize("declared", [b"many", b"-5", b"9" * 5000, "٣".encode()])
def test_limits__of_a_length_that_is_none__count_what_comes(declared):
    exchange, _ = ask(headers=[(b"content-length", declared)], parts=[b"a" * (MAX_BODY_BYTES + 1)])
    assert_problem(exchange, 413, "too-large")


def test_limits__of_a_body_that_does_not_come__end_the_wait():
    exchange, inner = ask(parts=[b"a"], silent=True, body_seconds=0.01)
    assert "within 0.01 seconds" in assert_problem(exchange, 408, "slow-body")
    assert inner.body is None


def test_limits__of_a_client_that_goes_away__answer_nobody():
    exchange = Exchange()
    exchange.parts = [{"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.disconnect"}]
    inner = Inner()
    assert (exchange.run(Limits(inner)).sent, inner.body) == ([], None)


@pytest.mark.parametrize("raw", [True, False])
def test_limits__of_path_and_query__are_of_both_together(raw):
    path = "/" + "x" * 99
    exchange, _ = ask(path=path, query=b"y" * (MAX_URL_BYTES - 100), raw=raw)
    assert exchange.status_code == 200
    exchange, inner = ask(path=path, query=b"y" * (MAX_URL_BYTES - 99), raw=raw)
    assert_problem(exchange, 414, "too-long")
    assert inner.body is None


def test_limits__of_what_is_no_request__do_not_apply():
    seen = []

    async def inner(scope, receive, send):
        seen.append(scope["type"])

    asyncio.run(Limits(inner)({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]


def test_server__told_of_a_large_body__refuses_it_before_it_comes(busy_url):
    at = urlsplit(busy_url)
    with socket.create_connection((at.hostname, at.port), timeout=30) as client:
        client.sendall(b"POST /receipts HTTP/1.1\r\nHost: x\r\nContent-Length: 4194305\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"urn:counterfoil:problem:too-large" in answer
