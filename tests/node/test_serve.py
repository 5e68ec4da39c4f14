"""The real command as a process: how it starts, what it refuses, how it ends, and what it says of itself."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from counterfoil.node.node import book_path, open_book
from tests.support.caller import Caller, error, until
from tests.support.chain import person
from tests.support.node_process import NodeProcess
from tests.support.upstream import answering, hanging, streaming

SECRET = "Bearer operators-own-word"


@pytest.fixture(scope="module")
def place(scene, service):
    """A registered node that nobody serves yet."""
    service_id = scene.node("petra", up=False)
    node_id = scene.world.registry.service(service_id).node_id
    return service_id, NodeProcess(
        scene.settings.home, scene.world.url, "petra", node_id, service.url,
        {"COUNTERFOIL_UPSTREAM_AUTHORIZATION": SECRET}, **{"node-stop-seconds": 20},
    )  # fmt: skip


@pytest.fixture(scope="module")
def served(place):
    """That node, served by a process."""
    service_id, process = place
    process.start()
    yield service_id, process
    process.kill()


@pytest.fixture
def caller(scene, up, served):
    service_id, process = served
    return Caller(scene.world, service_id, url=process.url)


def test_serve__of_a_node__logs_json_that_says_where_it_listens(served, caller):
    _, process = served
    assert caller.call(1).json() == {"echo": "hello"}
    listening = next(event for event in process.events() if event["event"] == "listening")
    assert (listening["url"], listening["node_id"], listening["level"]) == (process.url, process.node_id, "info")
    caller.settle()
    settled = until(lambda: next((event for event in process.events() if event["event"] == "settled"), None))
    assert (settled["session_id"], settled["paid"], settled["calls"]) == (caller.session_id, 100, 1)


def test_serve__with_secrets__sends_them_where_they_belong_and_logs_none(served, caller, up):
    _, process = served
    up.behave = answering(b"", 401)
    answer = caller.call(1)
    assert up.got[0].headers["authorization"] == SECRET
    until(lambda: any(event["event"] == "call_failed" for event in process.events()))
    key = process.environment["COUNTERFOIL_PRIVATE_KEY"]
    for text in (process.log.read_text(), answer.text, caller.send("/metrics", {}, b"", "GET").text):
        assert not any(secret in text for secret in (key, key[2:], "operators-own-word"))


def test_serve__twice__is_refused_with_a_sentence_that_names_the_process(served, scene, up):
    _, process = served
    second = NodeProcess(process.home, scene.world.url, "petra", process.node_id, up.url)
    done = second.run()
    assert done.exit_code == 2
    assert f"Another process serves this node with the book {book_path(process.home, process.node_id)} (process " in (
        done.stderr
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"operator": "mallory"}, "and this key is {mallory}: serve it with its own key."),
        ({"node_id": 999}, "There is no node 999: register one with `counterfoil node register`."),
        ({"upstream": ""}, "There is nothing to pass calls to: name the service's URL with --upstream."),
        ({"upstream": "http://user:word@x"}, "Correct these settings: --node-upstreams: give one URL such as"),
    ],
)
def test_serve__that_cannot_be__ends_with_a_sentence(place, scene, up, changes, words):
    _, process = place
    fields = {"operator": "petra", "node_id": process.node_id, "upstream": up.url, **changes}
    done = NodeProcess(process.home, scene.world.url, **fields).run()
    assert done.exit_code == 2
    assert words.format(mallory=person("mallory").address.lower()) in done.stderr
    assert "word@" not in done.stderr


def test_serve__without_a_key__names_the_variables(place, scene, up):
    _, process = place
    done = NodeProcess(process.home, scene.world.url, "petra", process.node_id, up.url).run(COUNTERFOIL_PRIVATE_KEY="")
    assert (done.exit_code, "set COUNTERFOIL_KEYSTORE to an encrypted keystore file" in done.stderr) == (2, True)


def test_serve__at_a_port_that_is_taken__says_so(served, scene, up):
    _, process = served
    second = NodeProcess(process.home, scene.world.url, "petra", process.node_id, up.url)
    second.words[second.words.index(f"127.0.0.1:{second.port}")] = f"127.0.0.1:{process.port}"
    done = second.run()
    assert (done.exit_code, "name another address with --node-listen" in done.stderr) == (2, True)


def test_serve__told_to_stop__ends_the_call_in_flight_and_takes_no_other(served, caller, up, scene):
    _, process = served
    gate = up.gate()
    up.behave = streaming(b"one", gate, b"two", kind="text/plain")
    with ThreadPoolExecutor(1) as pool, httpx.Client(trust_env=False, verify=False) as kept_alive:
        assert kept_alive.get(process.url + "/health").status_code == 200
        call = pool.submit(caller.call, 1)
        until(lambda: up.got)
        process.process.terminate()
        until(lambda: not listens(process))
        threading.Timer(0.1, gate.set).start()
        assert call.result().content == b"onetwo"
    assert process.process.wait(30) == 0
    assert process.events()[-1]["event"] == "stopped"
    book = open_book(scene.world.chain, process.home, process.node_id)
    assert book.record(caller.session_id).payable == caller.voucher(100, 1)
    book.close()


def test_serve__told_to_stop_with_a_call_that_does_not_end__drops_it_uncharged(served, scene, up):
    service_id, process = served
    process.words += ["--node-stop-seconds", "0.3"]
    process.start()
    caller = Caller(scene.world, service_id, url=process.url)
    up.behave = hanging(up.gate())
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(caller.call, 1)
        until(lambda: up.got)
        assert process.stop() == 0
        assert error(call.result()) == (503, "overloaded")
    book = open_book(scene.world.chain, process.home, process.node_id)
    assert book.record(caller.session_id).last is None
    book.close()


def listens(process):
    with httpx.Client(trust_env=False, verify=False) as client:
        try:
            client.get(process.url + "/health")
        except httpx.ConnectError:
            return False
    return True
