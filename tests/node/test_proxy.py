"""What a node passes on, what it charges for, and what a retry gets: real upstreams that behave well and badly."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection

import httpx
import pytest

from counterfoil.chain.typed_data import failure as failure_data
from counterfoil.node import server
from counterfoil.node.book import BookError
from counterfoil.node.wire import request_digest, voucher_headers
from tests.support.caller import Caller, error, until
from tests.support.chain import unused_url
from tests.support.upstream import BreakError, answering, claiming, echo, hanging, streaming, upstream

BIG = 5000


@pytest.fixture(scope="module")
def strict(scene):
    """An upstream behind a node with narrow bounds."""
    with upstream() as made:
        made.service_id = scene.node(
            "stella", upstream=made.url + "/base", node_upstream_seconds=0.5, node_call_seconds=1.5, node_max_calls=2,
            node_max_answer_bytes=BIG,
        )  # fmt: skip
        yield made


@pytest.fixture
def strictly(scene, strict):
    strict.got.clear()
    return Caller(scene.world, strict.service_id)


def held(scene, caller):
    """The calls and the amount of the voucher that the node keeps."""
    (node,) = (node for node in scene.nodes.values() if node.node_id == caller.node_id)
    record = node.book.record(caller.session_id)
    return (record.last.calls, record.last.amount) if record and record.last else (0, 0)


# --- what is passed on


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_call__of_any_method__reaches_the_same_path_and_query_below_the_upstreams_url(strictly, strict, method):
    strict.behave = answering(b"made", 201, content_type="text/plain", mcp_session_id="m1", set_cookie="a=b", via="x")
    answer = strictly.call(1, b"body", "/call/v1/a%2Fb;c?x=1&y=%20", method)
    (got,) = strict.got
    assert (got.method, got.path, got.query, got.body) == (method, "/base/v1/a%2Fb;c", "x=1&y=%20", b"body")
    assert (answer.status_code, answer.content) == (201, b"made")
    passed = set(answer.headers) - {"date", "content-length", "connection"}
    assert passed == {"content-type", "mcp-session-id"}
    assert (answer.headers["content-type"], answer.headers["mcp-session-id"]) == ("text/plain", "m1")


@pytest.mark.parametrize(("path", "seen"), [("/call", "/base"), ("/call/", "/base/"), ("/call?q=1", "/base")])
def test_call__with_little_of_a_path__adds_none(strictly, strict, path, seen):
    strict.behave = echo
    assert strictly.call(1, path=path).status_code == 200
    assert strict.got[0].path == seen


@pytest.mark.parametrize("path", ["/call/../admin", "/call/a/%2e%2E/b", "/call/.", "/call/a/..", "/call/..%2fx\\..\\y"])
def test_call__that_leads_out_of_the_upstreams_url__is_refused(strictly, strict, path):
    host = strictly.url.removeprefix("http://")
    with closing(HTTPConnection(host, timeout=30)) as connection:  # which sends a path as it is
        connection.request("POST", path, b"", strictly.next(1))
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["error"]["type"]) == (400, "malformed")
    assert strict.got == []


def test_call__with_headers__passes_only_those_of_the_service_and_the_operators_own(scene, up, monkeypatch):
    service_id = scene.node("aria", upstream=up.url)
    scene.nodes["aria"].upstreams._authorization = "Bearer operators-own"
    caller = Caller(scene.world, service_id)
    sent = {
        "Accept": "text/event-stream", "Content-Type": "a/b", "MCP-Protocol-Version": "1", "Last-Event-ID": "7",
        "Authorization": "Bearer clients-own", "Cookie": "c=1", "X-Forwarded-For": "1.2.3.4", "User-Agent": "me",
    }  # fmt: skip
    caller.call(1, headers=sent)
    (got,) = up.got
    assert got.headers == {
        "accept": "text/event-stream", "content-type": "a/b", "mcp-protocol-version": "1", "last-event-id": "7",
        "authorization": "Bearer operators-own", "host": up.url.removeprefix("http://"), "accept-encoding": "identity",
        "content-length": "5",
    }  # fmt: skip


@pytest.mark.parametrize(("words", "given"), [("no operators-own here", ""), ("Bearer of news", "Bearer of news")])
def test_call__whose_service_repeats_the_operators_credentials__keeps_them_from_the_client(scene, up, words, given):
    operator = f"echo{len(given)}"
    service_id = scene.node(operator, upstream=up.url)
    scene.nodes[operator].upstreams._authorization = "Bearer operators-own"
    up.behave = answering(words.encode(), 404)
    assert Caller(scene.world, service_id).call(1).json()["error"]["detail"] == given


def test_call__of_a_stream__gives_each_piece_when_the_next_one_is_there_and_the_last_when_it_is_paid(scene, caller, up):
    second, third = up.gate(), up.gate()
    up.behave = streaming(b"data: 1\n\n", second, b"data: 2\n\n", third)
    threading.Timer(0.2, second.set).start()
    with caller.stream(1) as answer:
        pieces = answer.iter_raw()
        assert next(pieces) == b"data: 1\n\n"
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert held(scene, caller) == (0, 0)
        third.set()
        assert b"".join(pieces) == b"data: 2\n\n"
    assert held(scene, caller) == (1, 100)


@pytest.mark.parametrize("status", [200, 204])
def test_call__with_an_empty_answer__is_charged(scene, caller, up, status):
    up.behave = answering(b"", status)
    answer = caller.call(1)
    assert (answer.status_code, answer.content) == (status, b"")
    assert held(scene, caller) == (1, 100)


def test_call__to_an_upstream_by_category__goes_there_and_another_category_is_refused(scene, up):
    world = scene.world
    price = scene.node("cara", upstream=up.url, node_upstreams=f"llm:completion={up.url}/llm")
    node_id = world.registry.service(price).node_id
    words = world.list("cara", node_id, 100, "llm:completion")
    assert Caller(world, words, category="llm:completion").call(1, path="/call/x").status_code == 200
    assert up.got[0].path == "/llm/x"
    assert error(Caller(world, price).call(1)) == (409, "not_served")


# --- what is not charged


def check_failure(scene, caller, answer, body=b"hello", target=""):
    """The failure is the operator's signed word on this very call."""
    failure = answer.json()["failure"]
    manager = scene.world.manager
    assert (failure["session_id"], failure["calls"], failure["status"]) == (caller.session_id, 1, answer.status_code)
    assert failure["request"] == request_digest("POST", target, body)
    data = failure_data(
        scene.world.chain.chain_id, manager.address, caller.session_id, 1, failure["request"], answer.status_code,
        failure["reason"],
    )  # fmt: skip
    signer = data.signer_of(bytes.fromhex(failure["signature"][2:]))
    assert signer == failure["operator"] == caller.state().operator


@pytest.mark.parametrize(
    ("status", "answered", "kind", "detail"),
    [
        (400, 400, "upstream_refused", "own words"),
        (404, 404, "upstream_refused", "own words"),
        (429, 429, "upstream_refused", "own words"),
        (401, 502, "upstream_failed", None),
        (403, 502, "upstream_failed", None),
        (500, 502, "upstream_failed", None),
        (503, 502, "upstream_failed", None),
        (307, 502, "upstream_failed", None),
    ],
)
def test_call__that_the_upstream_does_not_serve__charges_nothing_and_is_a_signed_failure(
    scene, caller, up, status, answered, kind, detail
):
    up.behave = answering(b"own\x1b words", status, location="http://127.0.0.1:1/")
    answer = caller.call(1)
    assert error(answer) == (answered, kind)
    assert answer.json()["error"].get("detail") == detail
    assert detail or "own" not in answer.text
    check_failure(scene, caller, answer)
    assert held(scene, caller) == (0, 0)
    up.behave = answering(b"now")
    assert caller.call(1).content == b"now"


def test_call__that_is_refused_at_length__gives_500_printable_characters(caller, up):
    up.behave = answering(b"\x00\x07" + b"x" * 10_000, 422)
    assert caller.call(1).json()["error"]["detail"] == "x" * 500


BAD_ANSWERS = {
    "half an answer": streaming(b"half", BreakError()),
    "fewer bytes than it says": claiming(100, b"few"),
    "more bytes than it says": claiming(2, b"many"),
    "compressed": answering(b"zipped", content_encoding="gzip"),
    "too large": answering(b"x" * (BIG + 1)),
}


@pytest.mark.parametrize("how", BAD_ANSWERS)
def test_call__with_a_bad_answer__charges_nothing(scene, strictly, strict, how):
    strict.behave = BAD_ANSWERS[how]
    answer = strictly.call(1)
    assert error(answer) == (502, "upstream_failed")
    check_failure(scene, strictly, answer)
    assert held(scene, strictly) == (0, 0)


def test_call__with_an_answer_of_the_largest_size__is_charged(scene, strictly, strict):
    strict.behave = answering(b"x" * BIG)
    assert len(strictly.call(1).content) == BIG
    assert held(scene, strictly) == (1, 100)


def test_call__to_an_upstream_that_hangs__ends_in_time_and_charges_nothing(scene, strictly, strict):
    strict.behave = hanging(strict.gate())
    answer = strictly.call(1)
    assert error(answer) == (504, "upstream_timeout")
    check_failure(scene, strictly, answer)
    assert held(scene, strictly) == (0, 0)


def test_call__to_an_upstream_that_stops_in_mid_answer__is_cut_in_time_and_charges_nothing(scene, strictly, strict):
    strict.behave = streaming(b"one", b"two", strict.gate(), b"three")
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
        strictly.call(1)
    assert held(scene, strictly) == (0, 0)


def test_call__whose_stream_breaks_after_its_first_piece__is_cut_and_served_when_it_is_asked_again(scene, caller, up):
    gate = up.gate()
    up.behave = streaming(b"one", b"two", gate, BreakError())
    with caller.stream(1) as answer:
        pieces = answer.iter_raw()
        first = next(pieces)
        gate.set()
        with pytest.raises(httpx.RemoteProtocolError):
            first += b"".join(pieces)
    assert first in (b"one", b"onetwo")
    assert held(scene, caller) == (0, 0)
    up.behave = answering(b"whole")
    again = caller.call(1)
    assert (again.content, "counterfoil-replayed" in again.headers) == (b"whole", False)
    assert held(scene, caller) == (1, 100)


def test_call__to_an_upstream_that_is_down__charges_nothing(scene):
    service_id = scene.node("dora", node_upstreams=unused_url())
    caller = Caller(scene.world, service_id)
    answer = caller.call(1)
    assert error(answer) == (502, "upstream_failed")
    check_failure(scene, caller, answer)


# --- once and only once


def test_call__asked_again__gets_the_stored_answer_and_no_second_charge(scene, caller, up):
    up.behave = answering(b"\x00first", 201, content_type="a/b", mcp_session_id="m")
    first = caller.call(1, path="/call/x?y")
    up.behave = answering(b"second")
    again = caller.call(1, path="/call/x?y")
    assert (again.status_code, again.content, again.headers["content-type"]) == (201, b"\x00first", "a/b")
    assert (first.headers.get("counterfoil-replayed"), again.headers["counterfoil-replayed"]) == (None, "true")
    assert again.headers["mcp-session-id"] == "m"
    assert (len(up.got), held(scene, caller)) == (1, (1, 100))


@pytest.mark.parametrize(
    "changes", [{"body": b"other"}, {"path": "/call/other"}, {"path": "/call?other"}, {"method": "PUT"}]
)
def test_call__of_another_request_under_a_served_number__is_refused(scene, caller, up, changes):
    assert caller.call(1).status_code == 200
    assert error(caller.call(1, **changes)) == (409, "other_request")
    assert (len(up.got), held(scene, caller)) == (1, (1, 100))


def test_call__asked_again_by_somebody_else_or_for_less__gets_nothing(caller):
    caller.call(1)
    assert error(caller.call(1, signer="mallory")) == (402, "bad_signature")
    less = voucher_headers(caller.voucher(caller.price - 1, 1))
    assert error(caller.send("/call", less)) == (402, "underpaid")
    more = voucher_headers(caller.voucher(caller.price + 1, 1))
    assert caller.send("/call", more).headers["counterfoil-replayed"] == "true"


def test_call__asked_again_after_the_session_was_settled__gets_the_stored_answer(scene, caller, up):
    first = caller.call(1)
    assert caller.settle().json()["paid"] == "100"
    again = caller.call(1)
    assert (again.content, again.headers["counterfoil-replayed"], len(up.got)) == (first.content, "true", 1)
    assert error(caller.call(2)) == (409, "not_open")


def test_call__while_another_of_its_session_is_served__is_busy_and_settling_waits(scene, caller, up):
    gate = up.gate()
    up.behave = hanging(gate)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(caller.call, 1)
        until(lambda: up.got)
        for answer in (caller.call(1), caller.settle()):
            assert error(answer) == (409, "busy")
            assert answer.headers["retry-after"] == "1"
        gate.set()
        assert call.result().content == b"late"
    assert caller.settle().json()["paid"] == "100"


def test_call__whose_client_goes_away__is_charged_and_its_answer_kept_for_the_retry(scene, caller, up):
    gate = up.gate()
    up.behave = streaming(b"one", b"two", gate, b"three", kind="text/plain")
    with caller.stream(1) as answer:
        assert next(answer.iter_raw()) == b"one"
    gate.set()
    until(lambda: held(scene, caller) == (1, 100))
    again = caller.call(1)
    assert (again.content, again.headers["counterfoil-replayed"], len(up.got)) == (b"onetwothree", "true", 1)


def test_call__beyond_what_the_node_serves_at_a_time__is_overloaded(scene, strictly, strict):
    gate = strict.gate()
    strict.behave = streaming(b"x", gate)
    others = [Caller(scene.world, strict.service_id, name) for name in ("bob", "carl")]
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(other.call, 1) for other in others]
        until(lambda: len(strict.got) == 2)
        answer = strictly.call(1)
        assert (error(answer), answer.headers["retry-after"]) == ((503, "overloaded"), "1")
        gate.set()
        assert [call.result().status_code for call in calls] == [200, 200]
    assert strictly.call(1).status_code == 200


# --- the order of things


def test_call__while_the_upstream_is_asked__stands_in_the_book_with_its_request(scene, caller, up):
    gate = up.gate()
    up.behave = hanging(gate)
    book = scene.nodes["olga"].book
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(caller.call, 1)
        until(lambda: up.got)
        query = "select amount, calls, signature, request from held where session_id = ?"
        (row,) = book._connection.execute(query, (caller.session_id,)).fetchall()
        gate.set()
        assert call.result().status_code == 200
    request = request_digest("POST", "", b"hello")
    assert row == ("100", 1, caller.voucher(100, 1).signature, request)
    assert book._connection.execute(query, (caller.session_id,)).fetchall() == []


@pytest.mark.parametrize("pieces", [1, 3])
def test_call__that_cannot_be_kept__gives_nobody_the_whole_answer(scene, caller, up, monkeypatch, pieces):
    def fail(*_):
        raise BookError("the disk is full")

    gates = [up.gate() for _ in range(pieces - 1)]
    up.behave = streaming(*(part for gate in gates for part in (b"piece", gate)), b"last")
    book = scene.nodes["olga"].book
    monkeypatch.setattr(book, "keep", fail)
    for gate in gates:
        threading.Timer(0.2, gate.set).start()
    if pieces == 1:
        assert error(caller.call(1)) == (503, "node_unavailable")
    else:
        received = []
        with caller.stream(1) as answer, pytest.raises(httpx.RemoteProtocolError):
            received.extend(answer.iter_raw())
        assert b"last" not in b"".join(received)
    monkeypatch.undo()
    assert held(scene, caller) == (0, 0)
    up.behave = answering(b"again")
    assert caller.call(1).content == b"again"


# --- clients that behave badly


def raw(caller, sent):
    """A connection on which something was sent."""
    host, port = caller.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(sent)
    return connection


def head(caller, version="1.1"):
    lines = [f"POST /call HTTP/{version}", "Host: node", "Content-Length: 0"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in caller.next(1).items()), "", ""]).encode()


def read_all(connection):
    """What comes until the connection ends, however it ends."""
    received = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return received


def test_call__of_a_client_that_does_not_read__is_cut_in_time_and_its_answer_kept(scene, up, monkeypatch):
    cut = threading.Event()
    monkeypatch.setattr(server._log, "warning", lambda event, **_: event == "slow_client" and cut.set())
    caller = Caller(scene.world, scene.node("susi", upstream=up.url, node_call_seconds=0.5))
    size = 8 * 2**20
    up.behave = answering(b"x" * size)
    with raw(caller, head(caller)) as connection:
        until(lambda: held(scene, caller) == (1, 100))
        until(cut.is_set)
        assert len(read_all(connection)) < size
    assert len(caller.call(1, b"").content) == size


def test_call__over_http_1_0__comes_whole_with_its_length(caller, up):
    up.behave = streaming(b"one", b"two", b"three")
    with raw(caller, head(caller, "1.0")) as connection:
        answer = read_all(connection)
    assert b"content-length: 11" in answer
    assert answer.endswith(b"\r\n\r\nonetwothree")


def test_server__of_a_connection_without_a_whole_head__ends_it(scene, up, monkeypatch):
    monkeypatch.setattr("counterfoil.node.serving.HEAD_SECONDS", 0.2)
    caller = Caller(scene.world, scene.node("sina", upstream=up.url))
    for sent in (b"", b"POST /call HT", head(caller)[:-2]):
        with raw(caller, sent) as connection:
            assert read_all(connection) == b""
    assert caller.call(1).status_code == 200


# --- confirmed


def test_call__of_a_session_that_is_not_deep_enough__is_unconfirmed_until_it_is(scene, up):
    service_id = scene.node("coco", upstream=up.url, node_confirmations=2)
    caller = Caller(scene.world, service_id)
    for _ in range(2):
        answer = caller.call(1)
        assert (error(answer), answer.headers["retry-after"]) == ((409, "unconfirmed"), "1")
        scene.world.rpc("anvil_mine", "0x1")
    assert caller.call(1).status_code == 200


def test_call__on_a_top_up_that_is_not_deep_enough__is_unconfirmed(scene, up):
    service_id = scene.node("tara", upstream=up.url, node_confirmations=1)
    caller = Caller(scene.world, service_id)
    caller.world.by("alice").send(caller.world.manager.top_up(caller.session_id, 500))
    above = voucher_headers(caller.voucher(1001, 1))
    assert error(caller.send("/call", above)) == (409, "unconfirmed")
    scene.world.rpc("anvil_mine", "0x1")
    assert caller.send("/call", above).status_code == 200


def test_call__of_a_session_that_a_reorg_took_away__is_refused(scene, up, caller):
    assert caller.call(1).status_code == 200
    scene.world.rpc("anvil_reorg", 1, [])
    assert error(caller.call(2)) == (409, "unknown_session")


def test_failure__as_json__is_what_was_signed(caller, up):
    up.behave = answering(b"", 500)
    failure = json.loads(caller.call(1).content)["failure"]
    assert sorted(failure) == ["calls", "operator", "reason", "request", "session_id", "signature", "status"]
