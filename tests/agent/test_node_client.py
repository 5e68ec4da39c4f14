"""The client against servers that misbehave, each a real socket."""

import gzip
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress

import pytest

from counterfoil.agent.forms import CallRequest
from counterfoil.agent.node_client import MAX_ANSWER, NodeClient, NodeError, NodeRefusedError, UnreachedError
from counterfoil.node.vouchers import Voucher
from indexer.http import BoundedHttp

REQUEST = CallRequest("POST", "", {"Content-Type": "text/plain"}, b"question")
VOUCHER = Voucher("0x" + "ab" * 32, 100, 1, b"\x01" * 65)


def whole(connection):
    """A whole request: what is left unread would break the connection when it is closed."""
    data = b""
    while not data.endswith(REQUEST.body if data.startswith(b"POST") else b"\r\n\r\n"):
        piece = connection.recv(65536)
        if not piece:
            break
        data += piece
    return data


@contextmanager
def server(answer, hold=False):
    """Answer every connection with these bytes; `hold` then leaves it open until the block ends."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        received = []

        def serve():
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    if done.is_set():
                        return
                    received.append(whole(connection))
                    connection.sendall(answer)
                    if hold:
                        done.wait(10)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", received
        finally:
            done.set()
            socket.create_connection(listening.getsockname()).close()
            thread.join()


def http(status, body=b"", headers=b""):
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n".encode()
    return head + headers + b"\r\n" + body


@pytest.fixture
def client():
    with ExitStack() as stack:

        def made(url, seconds=5, **changes):
            http = stack.enter_context(BoundedHttp(seconds=seconds, max_bytes=MAX_ANSWER))
            return NodeClient(url, http, **({"allow_private": True} | changes))

        yield made


def test_call__with_an_answer__gives_its_bytes_and_sends_the_voucher_in_headers(client):
    with server(http(200, b"\x00answer")) as (url, received):
        assert client(url).call(VOUCHER, REQUEST).body == b"\x00answer"
    request = received[0].decode()
    assert request.startswith("POST /call HTTP/1.1\r\n")
    for header in (f"counterfoil-session: {VOUCHER.session_id}", "counterfoil-amount: 100", "counterfoil-calls: 1"):
        assert header in request.lower()
    assert "counterfoil-signature: 0x" + "01" * 65 in request.lower()


def test_call__with_an_error_of_ours__names_its_type(client):
    body = b'{"error": {"type": "above_deposit", "message": "x"}}'
    with server(http(402, body)) as (url, _), pytest.raises(NodeRefusedError) as refused:
        client(url).call(VOUCHER, REQUEST)
    assert (refused.value.status, refused.value.kind) == (402, "above_deposit")
    assert str(refused.value) == "the node answered 402 above_deposit"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[1]",
        b'{"error": {"type": "no\\nspaces allowed"}}',
        b'{"error": {"type": 5}}',
        b"[" * 100_000,
        b'{"error":' * 100_000,
    ],
    ids=lambda body: body[:20].decode(),
)
def test_call__with_an_error_of_another_form__repeats_none_of_its_text(client, body):
    with server(http(500, body)) as (url, _), pytest.raises(NodeRefusedError) as refused:
        client(url).call(VOUCHER, REQUEST)
    assert str(refused.value) == "the node answered 500"


def test_call__with_a_redirect__does_not_follow_it(client):
    redirect = http(302, b"", b"Location: http://127.0.0.1:1/\r\n")
    with server(redirect) as (url, _), pytest.raises(NodeRefusedError) as refused:
        client(url).call(VOUCHER, REQUEST)
    assert refused.value.status == 302


def test_call__with_an_answer_over_the_limit__stops_reading(client):
    with server(http(200, b"x" * (MAX_ANSWER + 1))) as (url, _), pytest.raises(NodeError, match="over 1048576 bytes"):
        client(url).call(VOUCHER, REQUEST)


def test_call__with_a_connection_cut_in_mid_body__is_an_error(client):
    cut = http(200, b"x" * 100)[:-50]
    with server(cut) as (url, _), pytest.raises(NodeError, match="connection failed"):
        client(url).call(VOUCHER, REQUEST)


def test_call__with_a_node_that_hangs__ends_in_time(client):
    with server(b"", hold=True) as (url, _), pytest.raises(NodeError, match=r"no whole answer in 0\.2 s"):
        client(url, seconds=0.2).call(VOUCHER, REQUEST)


def test_call__with_rubbish__is_an_error(client):
    with server(b"\x00\xff\r\n\r\n") as (url, _), pytest.raises(NodeError, match="connection failed"):
        client(url).call(VOUCHER, REQUEST)


def test_probe__where_nobody_listens__is_an_error(client):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(NodeError, match="connection failed"):
            client(url).probe()


def test_probe__of_a_private_address_that_is_not_allowed__never_connects(client):
    with server(http(200)) as (url, received):
        with pytest.raises(NodeError, match="private network"):
            client(url, allow_private=False).probe()
        assert received == []
        client(url).probe()


def test_call__with_a_node_that_drips_its_headers__ends_in_time(client):
    with dripping(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n") as url, pytest.raises(NodeError, match="no whole answer"):
        client(url, seconds=0.3).call(VOUCHER, REQUEST)


def test_call__with_a_compressed_answer__refuses_to_unpack_it(client):
    bomb = gzip.compress(gzip.compress(b"\0" * 10_000_000))
    answer = http(200, bomb, b"Content-Encoding: gzip, gzip\r\n")
    with server(answer) as (url, _), pytest.raises(NodeError, match="compressed, which was not asked for"):
        client(url).call(VOUCHER, REQUEST)


@contextmanager
def dripping(first, piece):
    """Answer one connection with `first`, then with a piece now and then until the block ends."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                whole(connection)
                try:
                    connection.sendall(first)
                    while not done.wait(0.05):
                        connection.sendall(piece)
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize("kind", ["busy", "unconfirmed", "overloaded", "chain_unavailable"])
def test_call__that_is_refused_for_now__is_asked_again_with_the_same_voucher(client, monkeypatch, kind):
    monkeypatch.setattr("counterfoil.agent.node_client.WAIT_SECONDS", 0)
    monkeypatch.setattr("counterfoil.agent.node_client.WAITS", 3)
    body = f'{{"error": {{"type": "{kind}", "message": "x"}}}}'.encode()
    with server(http(409, body)) as (url, received), pytest.raises(NodeRefusedError, match=kind):
        client(url).call(VOUCHER, REQUEST)
    assert received == [received[0]] * 4


def test_call__whose_answer_is_lost__is_asked_for_three_times_with_the_same_voucher(client):
    with server(b"") as (url, received), pytest.raises(UnreachedError):
        client(url).call(VOUCHER, REQUEST)
    assert received == [received[0]] * 3
