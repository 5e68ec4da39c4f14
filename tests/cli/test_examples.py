"""Every command's help ends in examples, and every example works. None is only parsed: those that would run for ever
are started, asked, and ended."""

import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager

import click
import httpx
import pytest
from click.testing import CliRunner

from counterfoil.cli.main import main
from counterfoil.demo.processes import free_ports
from tests.api.test_services import PATIENCE, wait_until

PROGRAM = [sys.executable, "-c", "from counterfoil.cli.main import main; main()"]
API = "http://127.0.0.1:8700"
FOR_EVER = {
    "counterfoil index run --follow --log-format json",
    "counterfoil mcp",
    "counterfoil mcp --http 8701",
    "counterfoil serve --port 8700",
}


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

    def words(line):
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
