"""The HTTP client against a real server that misbehaves."""

import json
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from indexer.errors import (
    BadAnswerError,
    NoHistoryError,
    RangeTooLargeError,
    RateLimitedError,
    UnavailableError,
    UnsupportedError,
)
from indexer.rpc import MAX_WAIT, HttpRpc, wait_of


@pytest.fixture
def server():
    """A server whose `reply` turns a parsed request into (status, bytes, headers...)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body, *headers = served.reply(request)
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
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
        lambda request: (200, b'{"id": %d, "error": %s}' % (request["id"], b"[" * 900 + b"]" * 900)),
        lambda request: (200, b'{"id": %d, "error": {"message": %s}}' % (request["id"], b"[" * 900 + b"]" * 900)),
        lambda request: (200, b'{"id": %d, "result": NaN}' % request["id"]),
        lambda request: (200, b'{"id": %d, "result": 1e999}' % request["id"]),
        says(b'{"id": ' + b"9" * 5000 + b', "result": 1}'),
        says(b'{"id": 1.0, "result": 1}'),
        says(b'{"result": "\\ud800"}'),
        says(b""),
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


@pytest.mark.parametrize(("header", "wait"), [(None, 0), ("7", 7), ("86400", MAX_WAIT), ("soon", 0), ("-1", 0)])
def test_call__with_status_429__is_a_rate_limit_with_the_wait_that_was_asked_for(server, rpc, header, wait):
    server.reply = lambda _: (429, b'{"error": {"message": "slow"}}', *([("Retry-After", header)] if header else []))
    with pytest.raises(RateLimitedError) as caught:
        rpc.call("eth_x", [])
    assert caught.value.wait == wait


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", MAX_WAIT, MAX_WAIT),
        ("Wed, 99 Oct 2099 07:28:00 GMT", 0, 0),
        ("9" * 400, 0, MAX_WAIT),
        ("\u0663", 0, 0),
    ],
)
def test_wait_of__any_header__is_bounded(header, least, most):
    assert least <= wait_of(header) <= most


def test_wait_of__a_date_soon__is_the_time_until_then():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 90 <= wait_of(soon) <= 100


@pytest.mark.parametrize("status", [301, 403, 500, 503])
def test_call__with_another_status__is_unavailable(server, rpc, status):
    server.reply = says(b"no", status)
    with pytest.raises(UnavailableError, match=f"status {status}"):
        rpc.call("eth_x", [])


def test_call__with_status_413__asks_for_less(server, rpc):
    server.reply = says(b"too large", 413)
    with pytest.raises(RangeTooLargeError):
        rpc.call("eth_x", [])


def test_call__with_a_range_in_the_refusal__hands_it_on(server, rpc):
    server.reply = says(
        {"error": {"code": -32602, "message": "invalid params", "data": "range 9 is bigger than range limit 5"}}
    )
    with pytest.raises(RangeTooLargeError, match="invalid params: range 9") as caught:
        rpc.call("eth_getLogs", [{}])
    assert caught.value.blocks == 5


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 4444, "message": "pruned history unavailable"}, NoHistoryError),
        ({"code": -32601, "message": "Method not found"}, UnsupportedError),
    ],
)
def test_call__with_a_refusal_that_has_a_name__is_that(server, rpc, error, kind):
    server.reply = says({"error": error})
    with pytest.raises(kind):
        rpc.call("eth_x", [])


def small_batches(most):
    """Refuse batches of more than `most` calls, as free plans do; answer each refused call, or the batch as a whole."""

    def reply(request):
        if not isinstance(request, list):
            return 200, json.dumps({"id": request["id"], "result": request["method"]}).encode()
        if len(request) <= most:
            return results(request)
        error = {"code": 31, "message": f"Batch of more than {most} requests are not allowed on free plan"}
        refused = [{"id": item["id"], "error": error} for item in request]
        return 200, json.dumps(refused if most % 2 else {"id": None, "error": error}).encode()

    return reply


@pytest.mark.parametrize("most", [0, 1, 2, 3, 10, 99])
def test_batch__refused_for_its_size__is_sent_in_smaller_ones(server, most):
    server.reply = small_batches(most)
    calls = [(f"m{i}", []) for i in range(150)]
    with HttpRpc(server.url) as rpc:
        assert rpc.batch(calls) == [f"m{i}" for i in range(150)]


def test_received__after_answers__counts_their_bytes(server, rpc):
    server.reply = says(b'{"id": 1, "result": null}')
    rpc.call("eth_x", [])
    assert rpc.received == len(b'{"id": 1, "result": null}')


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
