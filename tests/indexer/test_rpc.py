"""The HTTP client against a real server that misbehaves."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from indexer.errors import BadAnswerError, RangeTooLargeError, RateLimitedError, UnavailableError
from indexer.rpc import HttpRpc, classify


@pytest.fixture
def server():
    """A server whose `reply` turns a parsed request into (status, bytes)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = served.reply(request)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://user:secret@127.0.0.1:{served.server_port}/key-of-mine?token=hidden"
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


@pytest.fixture
def rpc(server):
    with HttpRpc(server.url, seconds=5, max_bytes=10_000) as client:
        yield client


def says(answer, status=200):
    return lambda _: (status, answer if isinstance(answer, bytes) else json.dumps(answer).encode())


def results(request):
    answers = [{"jsonrpc": "2.0", "id": item["id"], "result": item["method"]} for item in request]
    return 200, json.dumps(answers[::-1]).encode()


def test_call__with_an_answer__gives_its_result(server, rpc):
    server.reply = lambda request: (200, json.dumps({"id": request["id"], "result": request["params"]}).encode())
    assert rpc.call("eth_x", [1, "a"]) == [1, "a"]


def test_batch__answered_in_another_order__is_put_in_ours(server, rpc):
    server.reply = results
    calls = [(f"m{i}", []) for i in range(250)]
    assert rpc.batch(calls) == [f"m{i}" for i in range(250)]


@pytest.mark.parametrize(
    "reply",
    [
        says(b"<html>busy</html>"),
        says(b"\xff\xfe"),
        says(b"[" * 5000),
        says([]),
        says({}),
        says({"id": 10**6, "result": 1}),
        says({"id": True, "result": 1}),
        lambda request: (200, json.dumps({"id": request["id"]}).encode()),
        lambda request: (200, json.dumps({"id": request["id"], "error": {"code": 1, "message": "odd"}}).encode()),
        lambda request: (200, json.dumps({"id": request["id"], "error": "odd"}).encode()),
    ],
)
def test_call__with_a_malformed_answer__is_a_bad_answer(server, rpc, reply):
    server.reply = reply
    with pytest.raises(BadAnswerError):
        rpc.call("eth_x", [])


@pytest.mark.parametrize(
    "reply",
    [
        says({"error": {"code": -32600, "message": "no batches"}}),
        says([{"id": 1, "result": 1}]),
        says([{"id": 7, "result": 1}] * 2),
        says([{"id": [], "result": 1}, 5]),
    ],
)
def test_batch__with_a_malformed_answer__is_a_bad_answer(server, rpc, reply):
    server.reply = reply
    with pytest.raises(BadAnswerError):
        rpc.batch([("a", []), ("b", [])])


def test_call__with_an_answer_over_the_limit__asks_for_less(server, rpc):
    server.reply = says(b'{"result": "' + b"x" * 20_000 + b'"}')
    with pytest.raises(RangeTooLargeError, match="over 10000 bytes"):
        rpc.call("eth_x", [])


def test_call__with_status_429__is_a_rate_limit(server, rpc):
    server.reply = says(b"slow", 429)
    with pytest.raises(RateLimitedError):
        rpc.call("eth_x", [])


@pytest.mark.parametrize("status", [301, 403, 500, 503])
def test_call__with_another_status__is_unavailable(server, rpc, status):
    server.reply = says(b"no", status)
    with pytest.raises(UnavailableError, match=f"status {status}"):
        rpc.call("eth_x", [])


def test_call__with_an_error_body_and_status_400__is_sorted_by_its_words(server, rpc):
    server.reply = says({"error": {"code": -32005, "message": "query returned more than 10000 results"}}, 400)
    with pytest.raises(RangeTooLargeError):
        rpc.call("eth_x", [])


def test_call__to_nobody__is_unavailable():
    with (
        HttpRpc("http://127.0.0.1:9/secret") as rpc,
        pytest.raises(UnavailableError, match="is the node running") as caught,
    ):
        rpc.call("eth_x", [])
    assert "secret" not in str(caught.value)


def test_message__of_any_error__holds_no_secret(server, rpc):
    server.reply = says({"error": {"code": 1, "message": f"bad \x1b[31m call at {server.url}"}})
    with pytest.raises(BadAnswerError) as caught:
        rpc.call("eth_x", [])
    for secret in ("secret", "key-of-mine", "hidden", "\x1b"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (-32005, "query returned more than 10000 results", "range"),
        (-32005, "daily request count exceeded, request rate limited", "rate"),
        (-32005, "limit exceeded", "other"),
        (-32602, "block range is too wide", "range"),
        (-32000, "exceed maximum block range: 50000", "range"),
        (-32614, "eth_getLogs is limited to a 10,000 range", "range"),
        (-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range", "range"),
        (429, "Your app has exceeded its compute units per second capacity", "rate"),
        (-32029, "Too Many Requests", "rate"),
        (-32000, "execution reverted: generates strange errors", "other"),
    ],
)
def test_classify__of_what_providers_say__follows_their_words(code, message, kind):
    assert classify(code, message) == kind
