"""What the running index says over HTTP: alive, ready, how far, metrics; and that no client can hold it up."""

import json
import re
import socket
import threading
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest

from indexer import listening as listening_module
from indexer import query
from indexer.chain import Header
from indexer.errors import BehindError, LockedError, SettingsError, UnavailableError
from indexer.listening import listening
from indexer.monitor import Monitor
from indexer.notices import (
    Ended,
    Listening,
    ProviderChanged,
    Reading,
    Replaced,
    Retried,
    Stepped,
    Waiting,
    Weakened,
    Writing,
    all_of,
)
from indexer.service import index_run
from indexer.settings import Settings
from indexer.store.reader import Cursor
from indexer.sync import run_once
from tests.indexer.conftest import QUICK
from tests.indexer.model import listed, registered
from tests.support.clock import Clock

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = ("127.0.0.1", 0)


@pytest.fixture
def clock():
    return Clock(1000)


@pytest.fixture
def settings():
    return Settings(
        rpc_url="http://one.example/key,http://two.example", ready_lag_blocks=5, stalled_seconds=60, poll_seconds=1
    )


@pytest.fixture
def monitor(settings, chain, clock):
    return Monitor(settings, chain.deployment(), clock)


def stepped(block, head, outcome="advanced", **changes):
    values = {
        "outcome": outcome,
        "head": Header(head, "0x" + "aa" * 32, "0x" + "bb" * 32, 12 * head),
        "cursor": Cursor(block, "0x" + "cc" * 32, None),
        "timestamp": 12 * block,
        "blocks": 0,
        "logs": 0,
        "read_seconds": 0.0,
        "write_seconds": 0.0,
    }
    return Stepped(**(values | changes))


def samples(monitor):
    """The metrics by name and labels."""
    text = monitor.metrics().decode()
    found = re.findall(r"^counterfoil_index_(\S+) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found if "_created" not in name}


# --- alive


def test_health__while_the_loop_gives_signs__is_ok(monitor, clock):
    for notice in (Reading(1, 9), stepped(9, 9), Retried(UnavailableError("gone"), 5), Waiting(LockedError("held"))):
        clock.now += 61
        monitor.observe(notice)
        assert monitor.health() == (True, {"status": "ok", "silent_seconds": 0.0})


def test_health__after_a_silence__is_stalled(monitor, clock):
    monitor.observe(stepped(9, 9))
    clock.now += 61
    assert monitor.health()[0]
    clock.now += 0.5
    assert monitor.health() == (False, {"status": "stalled", "silent_seconds": 61.5})


# --- ready


def test_ready__on_the_way_to_the_head__says_how_far(monitor):
    assert monitor.ready() == (
        False, {"ready": False, "why": "the node was not asked yet", "block": None, "head": None, "lag_blocks": None}
    )  # fmt: skip
    monitor.observe(stepped(97, 100))
    ready, document = monitor.ready()
    assert (ready, document["why"]) == (False, "catching up with the chain")
    assert (document["block"], document["head"], document["lag_blocks"]) == (97, 100, 3)
    monitor.observe(stepped(100, 100))  # the head may have moved since the round began
    assert monitor.ready()[1]["why"] == "catching up with the chain"
    monitor.observe(stepped(100, 100, "current"))
    assert monitor.ready() == (True, {"ready": True, "why": None, "block": 100, "head": 100, "lag_blocks": 0})


def test_ready__once_caught_up__bears_a_small_lag_alone(monitor):
    monitor.observe(stepped(100, 100, "current"))
    monitor.observe(stepped(100, 105))
    assert monitor.ready()[0]
    monitor.observe(stepped(100, 106))
    assert monitor.ready()[1]["why"] == "catching up with the chain"
    monitor.observe(stepped(106, 106))
    assert not monitor.ready()[0]
    monitor.observe(stepped(106, 106, "current"))
    assert monitor.ready()[0]


def test_ready__with_the_head_below_the_index__says_held(monitor):
    monitor.observe(stepped(100, 100, "current"))
    monitor.observe(stepped(100, 98, "held"))
    ready, document = monitor.ready()
    assert (ready, document["lag_blocks"]) == (False, 0)
    assert document["why"].startswith("held: ")


def test_ready__without_answers_of_the_node_for_long__repeats_its_failure(monitor, clock):
    monitor.observe(stepped(100, 100, "current"))
    for _ in range(13):
        clock.now += 5
        monitor.observe(Retried(UnavailableError("http://one.example does not answer"), 5))
    assert monitor.health()[0]
    assert monitor.ready()[1]["why"] == "http://one.example does not answer"
    monitor.observe(stepped(101, 101))
    assert monitor.ready()[0]


def test_ready__before_the_first_answer__repeats_the_failure(monitor):
    monitor.observe(Retried(BehindError("the node lacks block 3"), 0.1))
    assert monitor.ready()[1]["why"] == "the node lacks block 3"


def test_ready__while_standing_by__names_who_writes(monitor, writer):
    monitor.observe(Waiting(LockedError("locked", "process 12 on host, since then")))
    assert monitor.ready()[1]["why"] == "standing by for process 12 on host, since then"
    monitor.observe(Writing(writer.store))
    assert monitor.ready()[1]["why"] == "the node was not asked yet"


def test_ready__with_confirmations__counts_the_lag_from_there(chain, clock):
    monitor = Monitor(Settings(confirmations=6, ready_lag_blocks=0), chain.deployment(), clock)
    monitor.observe(stepped(94, 100, "current"))
    assert monitor.ready() == (True, {"ready": True, "why": None, "block": 94, "head": 100, "lag_blocks": 0})


# --- status and metrics


def test_status__of_a_real_run__is_that_of_the_index(monitor, writer, node, chain):
    chain.append(*registered(1), listed(1, 1))
    monitor.observe(Writing(writer.store))
    run_once(writer, node, options=QUICK, observer=monitor.observe)
    status = monitor.status()
    found = query.status(writer.store)
    assert (status["chain_id"], status["ready"], status["writer"]["pid"] > 0) == (found.as_of.chain_id, True, True)
    assert status["block"] == {
        "number": chain.head, "hash": found.as_of.hash, "timestamp": found.as_of.timestamp
    }  # fmt: skip
    assert status["head"]["number"] == status["verified_block"] == chain.head
    assert (status["lag_blocks"], status["lag_seconds"], status["held"], status["reorgs"]) == (0, 0, False, 0)
    counted = asdict(found.value)
    assert {name: status[name] for name in counted if name != "finalized_block"} == {
        name: counted[name] for name in counted if name != "finalized_block"
    }
    assert (status["digest"], status["nodes"], status["services"]) == (found.value.digest, 1, 1)
    assert [entry["name"] for entry in status["providers"]] == ["http://one.example", "http://two.example"]
    json.dumps(status)


def test_status__of_providers__says_who_is_set_aside_and_why(monitor):
    monitor.observe(ProviderChanged("http://two.example", "it left out logs"))
    monitor.observe(Weakened("http://two.example", "it gives no receipts"))
    assert monitor.status()["providers"] == [
        {"name": "http://one.example", "set_aside": None, "weakened": None},
        {"name": "http://two.example", "set_aside": "it left out logs", "weakened": "it gives no receipts"},
    ]
    assert samples(monitor)["providers_set_aside"] == 1
    monitor.observe(ProviderChanged("http://two.example", None))
    assert monitor.status()["providers"][1]["set_aside"] is None
    assert samples(monitor)["providers_set_aside"] == 0


def test_status__asked_often__counts_once_a_second_and_not_after_the_end(
    monitor, writer, node, chain, clock, monkeypatch
):
    asked = []
    status = query.status
    monkeypatch.setattr("indexer.query.status", lambda store: asked.append(1) or status(store))
    monitor.observe(Writing(writer.store))
    assert "digest" not in monitor.status()  # still empty
    clock.now += 1
    run_once(writer, node, options=QUICK, observer=monitor.observe)
    logs = sum(len(block["logs"]) for block in chain.blocks)
    for _ in range(5):
        assert monitor.status()["raw_logs"] == logs > 0
    assert len(asked) == 2
    clock.now += 1
    monitor.observe(Ended())
    assert monitor.status()["raw_logs"] == logs
    assert len(asked) == 2


def test_metrics__before_anything__are_unknown_not_zero(monitor):
    found = samples(monitor)
    assert all(found[name] != found[name] for name in ("block", "head_block", "finalized_block", "lag_seconds"))
    assert (found["ready"], found["logs_total"]) == (0, 0)


def test_metrics__of_a_runs_notices__add_up(monitor, chain):
    for notice in (
        Reading(1, 250),
        stepped(250, 300, blocks=250, logs=1000, read_seconds=0.3, write_seconds=0.004),
        Reading(251, 300),
        stepped(300, 300, blocks=50, logs=10, read_seconds=2, write_seconds=0.004),
        stepped(300, 300, "current"),
        Replaced(297, 3),
        stepped(301, 301, "replaced", blocks=4, logs=1, cursor=Cursor(301, "0x" + "cc" * 32, 240)),
        Retried(UnavailableError("a"), 1), Retried(UnavailableError("b"), 1), Retried(BehindError("c"), 1),
        stepped(301, 303, "advanced", timestamp=12 * 301),
    ):  # fmt: skip
        monitor.observe(notice)
    found = samples(monitor)
    expected = {
        "block": 301, "head_block": 303, "verified_block": 301, "finalized_block": 240, "lag_blocks": 2,
        "lag_seconds": 24, "head_timestamp_seconds": 12 * 303, "ready": 1, "range_blocks": 50, "logs_total": 1011,
        "blocks_total": 304, "rolled_back_blocks_total": 3, 'retries_total{error="UnavailableError"}': 2,
        'retries_total{error="BehindError"}': 1, "reorg_depth_blocks_count": 1, "reorg_depth_blocks_sum": 3,
        'reorg_depth_blocks_bucket{le="2.0"}': 0, 'reorg_depth_blocks_bucket{le="4.0"}': 1,
        'step_seconds_count{phase="read"}': 3, 'step_seconds_sum{phase="read"}': 2.3,
        'step_seconds_bucket{le="0.005",phase="write"}': 3,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_metrics__of_a_held_index__say_which_blocks_the_node_vouches_for(monitor):
    monitor.observe(stepped(100, 98, "held"))
    assert (samples(monitor)["block"], samples(monitor)["verified_block"]) == (100, 98)


# --- over HTTP


def test_listening__at_any_port__answers_all_four_with_their_status(monitor):
    with listening(monitor, LOOPBACK) as url, httpx.Client(base_url=url, trust_env=False) as client:
        assert (client.get("/health").status_code, client.get("/ready").status_code) == (200, 503)
        monitor.observe(stepped(7, 7, "current"))
        ready = client.get("/ready")
        assert (ready.status_code, ready.json()["block"]) == (200, 7)
        assert client.get("/status").json()["block"]["number"] == 7
        metrics = client.get("/metrics")
        assert metrics.headers["content-type"].startswith("text/plain; version=")
        assert "\ncounterfoil_index_block 7.0\n" in metrics.text
        assert client.get("/other").status_code == 404
        assert client.post("/ready").status_code == 405
    with pytest.raises(httpx.ConnectError), httpx.Client(trust_env=False) as client:
        client.get(f"{url}/health")


def test_listening__of_a_stalled_loop__answers_503(monitor, clock):
    clock.now += 100
    with listening(monitor, LOOPBACK) as url, httpx.Client(base_url=url, trust_env=False) as client:
        assert client.get("/health").status_code == 503


def test_listening__where_somebody_else_does__says_what_to_do(monitor):
    with closing(socket.create_server(LOOPBACK)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(SettingsError, match=f"127.0.0.1 port {port} .*COUNTERFOIL_LISTEN"),
            listening(monitor, ("127.0.0.1", port)),
        ):
            pass


@pytest.mark.parametrize("sent", [b"", b"GET /rea", b"GET /ready HTTP/1.1\r\nHost: x\r\nX: "])
def test_listening__to_a_client_that_never_ends__cuts_it_off(monitor, monkeypatch, sent):
    monkeypatch.setattr(listening_module, "CONNECTION_SECONDS", 0.2)
    with listening(monitor, LOOPBACK) as url:
        port = int(url.rpartition(":")[2])
        with closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as client:
            client.sendall(sent)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""


def test_listening__to_a_head_without_end__refuses_it(monitor):
    with listening(monitor, LOOPBACK) as url:
        port = int(url.rpartition(":")[2])
        with closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as client:
            try:
                client.sendall(b"GET /ready HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000)
                answer = client.recv(100)
            except (ConnectionResetError, BrokenPipeError):
                answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")


def test_listening__with_every_connection_taken__refuses_the_next_one(monitor):
    with ExitStack() as stack:
        url = stack.enter_context(listening(monitor, LOOPBACK))
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        for _ in range(32):
            stack.enter_context(closing(socket.create_connection(address, timeout=30)))
        client = stack.enter_context(httpx.Client(base_url=url, trust_env=False))
        assert client.get("/health").status_code == 503


@pytest.mark.parametrize("follow", [True, False])
def test_index_run__with_listen_set__answers_while_it_follows_alone(world, tmp_path, follow):
    folder = tmp_path / "home" / "deployments"
    folder.mkdir(parents=True)
    (folder / "31337.json").write_text(json.dumps(world.document()))
    world.traffic(1)
    settings = Settings(home=tmp_path / "home", rpc_url=world.url, listen="127.0.0.1:0")
    stop, answers = threading.Event(), []

    def ask(notice):
        if isinstance(notice, Listening):
            answers.append(notice.url)
        if isinstance(notice, Stepped) and notice.outcome == "current":
            with httpx.Client(trust_env=False) as client:
                answers.extend(client.get(f"{url}/status").json() for url in answers[:1])
            stop.set()

    result = index_run(settings, follow, ask, stop=stop)
    if not follow:
        assert answers == []
        return
    assert answers[1]["block"] == {
        "number": result.block, "hash": result.block_hash, "timestamp": answers[1]["head"]["timestamp"]
    }  # fmt: skip
    assert (answers[1]["sessions"], answers[1]["ready"]) == (2, True)


def test_all_of__several_observers__tells_them_in_their_order():
    told = []
    all_of(lambda notice: told.append((1, notice)), lambda notice: told.append((2, notice)))(Ended())
    assert told == [(1, Ended()), (2, Ended())]


def test_operation_page__names_every_metric_and_address(monitor):
    page = (ROOT / "docs" / "operation.md").read_text()
    names = {metric.name for metric in monitor._metrics.registry.collect() if metric.name.startswith("counterfoil")}
    totals = {"counterfoil_index_logs", "counterfoil_index_blocks", "counterfoil_index_retries"}
    totals |= {"counterfoil_index_rolled_back_blocks"}
    assert {name + "_total" * (name in totals) for name in names} == set(re.findall(r"`(counterfoil_index_\w+)`", page))
    assert all(f"`/{address}`" in page for address in ("health", "ready", "status", "metrics"))
