"""The bounded request against servers that misbehave, each a real socket."""

import gzip
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from indexer.http import (
    BoundedHttp,
    EncodedError,
    NoConnectionError,
    OutOfTimeError,
    TooLargeError,
    without_secrets,
)

SECONDS = 0.3


@contextmanager
def server(answer):
    """Accept one connection, read what comes, and let `answer` send (it gets the socket and an Event that ends it)."""
    ended, received = threading.Event(), []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                received.append(connection.recv(65536))
                try:
                    answer(connection, ended)
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", received
        finally:
            ended.set()
            thread.join()


def says(data):
    return lambda connection, _: connection.sendall(data)


def http(body, *headers):
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def drips(first, piece):
    """Send `first`, then a piece now and then until the test is over."""

    def answer(connection, ended):
        connection.sendall(first)
        while not ended.wait(0.05):
            connection.sendall(piece)

    return answer


@pytest.fixture
def client():
    with BoundedHttp(seconds=SECONDS, max_bytes=10_000) as made:
        yield made


@pytest.mark.parametrize(
    "answer",
    [
        drips(b"", b"H"),
        drips(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
        drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        drips(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n", b" "),
        drips(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        drips(b"", b""),
    ],
    ids=["status", "headers", "informational", "body", "chunks", "silence"],
)
def test_request__to_a_server_that_drips__ends_at_the_one_deadline(client, answer):
    with server(answer) as (url, _):
        begun = time.monotonic()
        with pytest.raises(OutOfTimeError, match=r"no whole answer in 0\.3 s"):
            client.request("GET", url)
        assert time.monotonic() - begun >= SECONDS


def test_request__with_tls_to_a_server_that_never_shakes_hands__ends_at_the_one_deadline(client):
    record_of_16_kb = b"\x16\x03\x03\x40\x00"
    with server(drips(record_of_16_kb, b"\x02")) as (url, _), pytest.raises(OutOfTimeError):
        client.request("GET", url.replace("http:", "https:"))


def test_request__to_a_server_that_reads_nothing__ends_at_the_one_deadline(client):
    with server(drips(b"", b"")) as (url, _), pytest.raises(OutOfTimeError):
        client.request("POST", url, content=b"x" * 50_000_000)


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "deflate", "br", "zstd", "identity, gzip"])
def test_request__answered_in_compressed_form__is_refused_unread(client, encoding):
    bomb = gzip.compress(gzip.compress(b"\0" * 1_000_000))
    with (
        server(says(http(bomb, f"content-encoding: {encoding}"))) as (url, received),
        pytest.raises(EncodedError, match="compressed, which was not asked for"),
    ):
        client.request("GET", url)
    assert b"accept-encoding: identity\r\n" in received[0].lower()


def test_request__answered_as_identity__is_read(client):
    with server(says(http(b"plain", "Content-Encoding: identity"))) as (url, _):
        assert client.request("GET", url).body == b"plain"


@pytest.mark.parametrize(
    ("headers", "wait"), [(["Retry-After: 120"], "120"), (["retry-after: soon"], "soon"), ([], "")]
)
def test_request__answered_with_a_time_to_retry__hands_it_on(client, headers, wait):
    with server(says(http(b"busy", *headers))) as (url, _):
        assert client.request("GET", url).retry_after == wait


@pytest.mark.parametrize(
    "answer", [http(b"x" * 10_001), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"5\r\nxxxxx\r\n" * 2001]
)
def test_request__with_an_answer_over_the_limit__stops(client, answer):
    with server(says(answer)) as (url, _), pytest.raises(TooLargeError, match="over 10000 bytes"):
        client.request("GET", url)


@pytest.mark.parametrize(
    "answer", [b"", b"\x00\xff\r\n\r\n", http(b"x" * 100)[:-50], b"HTTP/1.1 200 OK\r\nA: " + b"x" * 200_000]
)
def test_request__with_an_answer_that_is_cut_or_no_http__is_no_connection(client, answer):
    with server(says(answer)) as (url, _), pytest.raises(NoConnectionError, match="the connection failed"):
        client.request("GET", url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/", "ftp://127.0.0.1/", "http://nobody.invalid/", "http://[::1", "/", "http://x/\u00e9"]
)
def test_request__to_what_cannot_be_asked__is_no_connection(client, url):
    with pytest.raises(NoConnectionError):
        client.request("GET", url)


def test_request__with_credentials_and_a_query__sends_both_and_keeps_the_host_clean(client):
    def answer(connection, _):
        while not received[0].endswith(b"body"):
            received[0] += connection.recv(65536)
        connection.sendall(http(b"ok"))

    with server(answer) as (url, received):
        client.request("POST", url.replace("//", "//user:p%40ss@") + "/key?a=b#c", content=b"body", headers={"A": "b"})
    request = received[0]
    assert request.startswith(b"POST /key?a=b HTTP/1.1\r\n")
    assert b"Host: " + url.removeprefix("http://").encode() + b"\r\n" in request
    assert b"Authorization: Basic dXNlcjpwQHNz\r\n" in request
    assert b"Content-Length: 4\r\n" in request
    assert request.endswith(b"\r\n\r\nbody")
    assert b"A: b\r\n" in request


def test_request__with_proxies_in_the_environment__asks_the_server_itself(client, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with server(says(http(b"ok"))) as (url, _):
        assert client.request("GET", url).body == b"ok"


def test_request__answered_with_a_redirect__gives_it_as_it_is(client):
    with server(says(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n")) as (url, _):
        assert client.request("GET", url).status == 302


def test_request__twice__uses_one_connection_with_a_new_deadline_each(client):
    def twice(connection, _):
        connection.sendall(http(b"first"))
        connection.recv(65536)
        connection.sendall(http(b"second"))

    with server(twice) as (url, _):
        assert [client.request("GET", url).body for _ in range(2)] == [b"first", b"second"]


def test_request__to_a_name_of_several_addresses__tries_the_next(client, monkeypatch):
    kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    real, known = socket.getaddrinfo, []

    def lookup(host, port, *arguments, **options):
        if host != "several.example":
            return real(host, port, *arguments, **options)
        known.append(host)
        return [(*kind, ("127.0.0.2", port)), (*kind, ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with server(says(http(b"ok"))) as (url, _):
        assert client.request("GET", url.replace("127.0.0.1", "several.example")).body == b"ok"
    assert len(known) == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@rpc.example/v1/key?token=x#y", "https://rpc.example"),
        ("http://127.0.0.1:8545/", "http://127.0.0.1:8545"),
        ("http://[::1]:8545/key", "http://[::1]:8545"),
    ],
)
def test_without_secrets__of_a_url__leaves_scheme_host_and_port(url, shown):
    assert without_secrets(url) == shown
