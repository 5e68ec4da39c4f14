"""Every command's help ends in examples, and every example works. None is only parsed: those that would run for ever
are started, asked, and ended."""

import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import click
import httpx
import pytest
from click.testing import CliRunner

from counterfoil.agent.desk import FOLDER
from counterfoil.agent.journal import CallRow, Journal, Outcome, RunRow, SessionRow, SessionState, StepRow
from counterfoil.agent.schedule import Schedules, every
from counterfoil.chain.keys import OWN
from counterfoil.cli.main import main
from counterfoil.demo.processes import free_ports
from tests.api.test_services import PATIENCE, wait_until
from tests.support.chain import CATEGORY

PROGRAM = [sys.executable, "-c", "from counterfoil.cli.main import main; main()"]
API = "http://127.0.0.1:8700"
SCHEDULE = "counterfoil agent schedule market-brief.yaml"
NODE = "counterfoil node serve 1 --upstream"
FOR_EVER = {
    f"{SCHEDULE} --every 30s --yes",
    f"{SCHEDULE} --cron '0 7 * * 1-5' --yes",
    f"{NODE} http://127.0.0.1:8000",
    f"{NODE} llm:completion=http://127.0.0.1:8001/v1 --log-format json",
    "counterfoil index run --follow --log-format json",
    "counterfoil mcp",
    "counterfoil mcp --http 8701",
    "counterfoil serve --port 8700",
}


RUN = "20261130-120000-a1b2c3"
WORKFLOW = f"""
name: market-brief
steps:
  - {{id: price, category: "{CATEGORY}", input: {{symbol: BTC}}}}
"""


def keep_a_run(scene):
    """A run that was made, and a schedule."""
    folder, client = scene.settings.home / FOLDER, scene.world.by("carl").address
    journal = Journal(folder / "journal.sqlite")
    journal.put(RunRow(RUN, client, WORKFLOW, "done", "", "2026-11-30T12:00:00+00:00", "2026-11-30T12:00:01+00:00"))
    journal.put(StepRow(RUN, "price", "done", category=CATEGORY, input={"symbol": "BTC"}, output={"price_usd": "1"}))
    named = {
        "client": client,
        "category": CATEGORY,
        "service_id": 1,
        "operator": "0x" + "1" * 40,
        "endpoint": "http://x",
    }
    numbers = {"price": 100, "deposit": 100, "attempt": 0, "decision": "0x" + "2" * 64, "nonce": 0}
    session = {"session_id": "0x" + "3" * 64, "state": SessionState.DONE, "paid": 100}
    ended = {"seen_in": 0, "seen_hash": scene.world.chain.block(0).hash}
    journal.put(SessionRow(f"{RUN}/price/0", RUN, "price", 0, **named, **numbers, **session, **ended))
    journal.put(CallRow(f"{RUN}/price/0", 1, 0, 100, {}, Outcome.WORKED, 200, {"price_usd": "1"}))
    with Schedules(folder / "schedules.sqlite", print) as schedules:
        schedules.add("market-brief", Path("market-brief.yaml"), every("30s"))


def leaves(command=main, path=()):
    """Every command that has no commands of its own, with the words that name it."""
    if not isinstance(command, click.Group):
        yield path
        return
    with click.Context(command) as context:
        for name in command.list_commands(context):
            yield from leaves(command.get_command(context, name), (*path, name))


def examples_of(path):
    """The command lines below `Example:` in a command's help."""
    shown = CliRunner().invoke(main, [*path, "--help"])
    assert shown.exit_code == 0
    _, _, after = shown.output.partition("Example:\n")
    return [line.strip() for line in after.splitlines() if line.startswith("    counterfoil ")]


LEAVES = list(leaves())
EXAMPLES = [line for path in LEAVES for line in examples_of(path)]


@pytest.fixture(scope="module")
def released(scene):
    """Node 1 has stake that can be withdrawn."""
    world = scene.world
    world.by("olga").send(world.registry.request_unstake(1, 1))
    world.rpc("evm_increaseTime", 100)
    world.rpc("evm_mine")


@pytest.fixture
def prepared(ask, scene, places, api, released, tmp_path, monkeypatch):
    """A folder, an environment and a server in which the examples work; the index is a copy, which they may change."""
    ask("config")  # sets the environment that commands and processes get
    for name in ("own.sqlite", "other.sqlite"):
        source, path = scene.settings.home / "index.sqlite", tmp_path / name
        with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(path)) as copy:
            live.backup(copy)
    monkeypatch.setenv("COUNTERFOIL_DATABASE", str(tmp_path / "own.sqlite"))
    (tmp_path / "receipt.json").write_bytes(scene.world.receipts.read(places["DIGEST"]))
    (tmp_path / "market-brief.yaml").write_text(WORKFLOW)
    monkeypatch.setenv("COUNTERFOIL_NODE_CONFIRMATIONS", "0")
    keep_a_run(scene)

    def words(line):
        line = re.sub(r"\bRUN\b", RUN, line)
        if line.startswith("counterfoil agent "):
            monkeypatch.setenv(OWN.key, "0x" + bytes(scene.world.by("carl").account.key).hex())
        if "--api" in line:
            monkeypatch.delenv("COUNTERFOIL_DATABASE")
        return shlex.split(line.replace("DIGEST", places["DIGEST"]).replace(API, api))[1:]

    return words


def test_leaves__of_the_program__are_all_its_commands():
    assert {path[0] for path in LEAVES} >= {"audit", "completion", "index", "node", "receipt", "services"}
    assert ("node", "show") in LEAVES
    assert set(EXAMPLES) >= FOR_EVER


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_help__of_every_command__has_an_example_of_that_command(path):
    lines = examples_of(path)

    assert lines
    assert all(shlex.split(line)[1 : 1 + len(path)] == list(path) for line in lines)
    assert all(len(line) <= 96 for line in lines)


@pytest.mark.parametrize("line", [line for line in EXAMPLES if line not in FOR_EVER])
def test_example__that_ends_by_itself__succeeds_and_says_something(prepared, line):
    found = CliRunner(mix_stderr=False).invoke(main, prepared(line))

    assert (found.exit_code, found.exception) == (0, None), found.stderr
    assert found.stdout.strip()


@contextmanager
def started(words, **pipes):
    """A command as a process, which is ended with the block at the latest."""
    with subprocess.Popen([*PROGRAM, *words], **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def on_a_free_port(words):
    """The words with a free port in the place of the example's own."""
    (port,) = free_ports(1)
    return [*words[:-1], str(port)], port


def test_example__of_a_run_that_follows__catches_up_and_ends_when_told_to(prepared):
    words = prepared("counterfoil index run --follow --log-format json")
    with started(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert any('"caught_up"' in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out.startswith("indexed to block ")) == (0, True)


def test_example__of_serve__answers_and_ends_when_told_to(prepared):
    words, port = on_a_free_port(prepared("counterfoil serve --port 8700"))
    with started(words) as process:
        wait_until(lambda: listens(port) or process.poll() is not None)
        with httpx.Client(trust_env=False) as client:
            assert client.get(f"http://127.0.0.1:{port}/ready").status_code == 200
        process.terminate()
        assert process.wait(PATIENCE) in {0, -signal.SIGTERM}


def test_example__of_mcp__answers_and_ends_with_its_input(prepared):
    with started(prepared("counterfoil mcp"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert b'"id":1' in process.stdout.readline()
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_example__of_mcp_over_http__listens_and_ends_when_told_to(prepared):
    words, port = on_a_free_port(prepared("counterfoil mcp --http 8701"))
    with started(words) as process:
        wait_until(lambda: listens(port) or process.poll() is not None)
        assert process.poll() is None
        process.terminate()
        assert process.wait(PATIENCE) in {0, -signal.SIGTERM}


@pytest.mark.parametrize("line", sorted(line for line in FOR_EVER if line.startswith(SCHEDULE)))
def test_example__of_a_schedule__says_when_it_is_due_and_ends_when_told_to(prepared, line):
    with started(prepared(line), stdout=subprocess.PIPE, text=True) as process:
        assert any("market-brief" in said for said in process.stdout)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=3 * PATIENCE)  # a run that is being made ends first
    assert (process.returncode, "The schedules are kept" in out) == (0, True)


@pytest.mark.parametrize("line", sorted(line for line in FOR_EVER if line.startswith(NODE)))
def test_example__of_a_node__listens_and_ends_when_told_to(prepared, scene, monkeypatch, tmp_path, line):
    (port,) = free_ports(1)
    # A home of its own: the book in the other one is held by the node that serves there.
    shutil.copytree(scene.settings.home / "deployments", tmp_path / "home" / "deployments")
    monkeypatch.setenv("COUNTERFOIL_NODE_LISTEN", f"127.0.0.1:{port}")
    monkeypatch.setenv(OWN.key, "0x" + bytes(scene.world.by("olga").account.key).hex())
    words = prepared(line)
    monkeypatch.setenv("COUNTERFOIL_HOME", str(tmp_path / "home"))
    with started(words) as process:
        wait_until(lambda: listens(port) or process.poll() is not None)
        assert process.poll() is None
        process.terminate()
        assert process.wait(PATIENCE) == 0
