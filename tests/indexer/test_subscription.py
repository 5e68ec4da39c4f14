"""New heads over a real websocket: they wake the poller, and nothing else."""

import json
import threading
import time
from contextlib import contextmanager

import pytest
from websockets.sync.server import serve

from indexer import subscription
from indexer.subscription import MAX_MESSAGE, waiting

LONG = 60
"""Seconds that nobody waits: a test that does would not end in time."""
HEAD = json.dumps({"jsonrpc": "2.0", "method": "eth_subscription", "params": {"result": {"number": "0x1"}}})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(subscription, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(subscription, "LONGEST_PAUSE", 0.02)
    monkeypatch.setattr(subscription, "_LOOK_SECONDS", 0.02)


@contextmanager
def node(talk, port=0):
    """A websocket server; `talk` gets each connection after its subscription came."""
    asked = []

    def handle(connection):
        asked.append(json.loads(connection.recv()))
        talk(connection)

    with serve(handle, "127.0.0.1", port) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}", asked
        finally:
            server.shutdown()
            thread.join()


def sends(*messages):
    """Send these, and then read until the client goes."""

    def talk(connection):
        for message in messages:
            connection.send(message)
        for _ in connection:
            pass

    return talk


def test_waiting__without_a_url__waits_for_the_stop():
    stop = threading.Event()
    with waiting("", stop) as wait:
        assert wait(0) is False
        stop.set()
        assert wait(LONG) is True


def test_waiting__with_a_new_head__returns_at_once():
    with node(sends(HEAD)) as (url, asked), waiting(url, threading.Event()) as wait:
        wait(LONG)
    assert [message["params"] for message in asked] == [["newHeads"]]


@pytest.mark.parametrize("message", ["", "{", "[" * 5000, b"\x00\xff", json.dumps({"error": "no subscriptions"})])
def test_waiting__with_any_message__only_wakes(message):
    with node(sends(message)) as (url, _), waiting(url, threading.Event()) as wait:
        wait(LONG)


def test_waiting__with_a_message_over_the_limit__drops_the_socket_and_opens_another():
    talks = iter([sends("x" * (MAX_MESSAGE + 1)), sends(HEAD)])

    def talk(connection):
        next(talks)(connection)

    with node(talk) as (url, asked), waiting(url, threading.Event()) as wait:
        wait(LONG)
        assert len(asked) == 2


def test_waiting__after_a_dropped_socket__hears_of_heads_again():
    again = threading.Event()

    def talk(connection):
        if again.is_set():
            sends(HEAD)(connection)
        again.set()
        connection.close()

    with node(talk) as (url, asked), waiting(url, threading.Event()) as wait:
        wait(LONG)
        assert len(asked) >= 2


@pytest.mark.parametrize("url", ["ws://127.0.0.1:9", "ws://nobody.invalid:1", "ws://127.0.0.1:99999"])
def test_waiting__for_a_node_that_is_not_there__waits_for_the_poll(url):
    with waiting(url, threading.Event()) as wait:
        begun = time.monotonic()
        wait(0.1)
        assert time.monotonic() - begun >= 0.1


def test_waiting__when_stopped__returns():
    stop = threading.Event()
    with node(sends()) as (url, _), waiting(url, stop) as wait:
        threading.Timer(0.05, stop.set).start()
        wait(LONG)


def test_waiting__when_over__leaves_no_thread():
    with node(sends()) as (url, _), waiting(url, threading.Event()) as wait:
        wait(0.05)
    assert not [thread for thread in threading.enumerate() if thread.name == "new-heads"]
