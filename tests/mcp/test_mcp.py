"""The tools through a real client of the official SDK: over standard input and output, and over HTTP."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from pydantic import TypeAdapter

from counterfoil import answers
from counterfoil.agent.notes import NoteBook
from counterfoil.decision import NOBODY
from counterfoil.demo.processes import free_ports
from tests.api.test_services import PATIENCE, scene, wait_until  # noqa: F401
from tests.support.chain import CATEGORY

TOOLS = {
    "counterfoil_services_best": (answers.BestAnswer, {"task": "bitcoin prices", "need": "data:crypto"}),
    "counterfoil_service_experience": (answers.ExperienceAnswer, {"service_id": 1}),
    "counterfoil_services": (answers.ServicesAnswer, {"category": CATEGORY, "limit": 2}),
    "counterfoil_route": (answers.RouteAnswer, {"category": CATEGORY, "cap": "100"}),
    "counterfoil_explain": (answers.Explanation, {"session": 1}),
    "counterfoil_audit": (answers.Audit, {"session": "1"}),
    "counterfoil_note_tool": (
        answers.NoteKept,
        {"session": "1", "tool": "quote", "need": "data:crypto", "note": "fast"},
    ),
}
WRONG = [
    ("counterfoil_services_best", {}, "Name a task, a need, or both."),
    ("counterfoil_services_best", {"task": "x" * 201}, "task"),
    ("counterfoil_services_best", {"task": "x", "limit": 101}, "limit"),
    ("counterfoil_services_best", {"task": "x", "at": "soon"}, "A block is its number"),
    ("counterfoil_service_experience", {"service_id": 9}, "There is no service 9 as of block"),
    ("counterfoil_services", {"at": "99999999"}, "The index holds blocks"),
    ("counterfoil_services", {"categry": CATEGORY}, "Extra inputs are not permitted"),
    ("counterfoil_route", {"category": "nothing:here"}, "there are no routable candidates"),
    ("counterfoil_route", {"category": CATEGORY, "client": "me"}, "not 0x and 40 hex digits"),
    ("counterfoil_explain", {"session": "99"}, "There is no session 99"),
    ("counterfoil_audit", {"session": "nothing"}, "session"),
    ("counterfoil_note_tool", {"session": "99", "tool": "x"}, "There is no session 99"),
    ("counterfoil_note_tool", {"session": "1", "tool": ""}, "A note is about a tool"),
    ("counterfoil_note_tool", {"session": "1", "tool": "é" * 33}, "tool is longer than 64 bytes"),
    ("counterfoil_note_tool", {"session": "1", "tool": "x", "note": "two\nlines"}, "note holds a letter"),
]


@pytest.fixture
def server(scene):  # noqa: F811
    where = ["--home", str(scene.settings.home), "--rpc", scene.world.url]
    return StdioServerParameters(command=str(Path(sys.executable).parent / "counterfoil"), args=["mcp", *where])


@asynccontextmanager
async def session(server):
    with anyio.fail_after(60):
        async with Client(server) as client:
            yield client


def text_of(result):
    return "".join(part.text for part in result.content)


def test_list_tools__of_the_server__gives_each_a_title_types_and_honest_hints(server):
    async def list_tools():
        async with session(server) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = anyio.run(list_tools)
    assert set(tools) == set(TOOLS)
    assert all(tool.title and tool.description and tool.output_schema for tool in tools.values())
    assert not any(tool.input_schema["additionalProperties"] for tool in tools.values())
    writes = {name for name, tool in tools.items() if not tool.annotations.read_only_hint}
    assert writes == {"counterfoil_note_tool"}
    assert {name for name, tool in tools.items() if tool.annotations.open_world_hint} == {"counterfoil_audit"}
    assert not any(tool.annotations.destructive_hint for tool in tools.values())


def test_call_tool__of_each__answers_in_its_form(server, scene):  # noqa: F811
    async def call_all():
        async with session(server) as client:
            return {name: await client.call_tool(name, given) for name, (_, given) in TOOLS.items()}

    called = anyio.run(call_all)
    for name, (form, _) in TOOLS.items():
        result, described = called[name], TypeAdapter(form)
        assert not result.is_error, text_of(result)
        assert json.loads(text_of(result)) == result.structured_content
        assert described.dump_python(described.validate_python(result.structured_content)) == result.structured_content
    found = {name: result.structured_content for name, result in called.items()}
    assert [row["service"]["service_id"] for row in found["counterfoil_services_best"]["best"]] == [1, 2, 3]
    assert found["counterfoil_service_experience"]["experience"]["needs"][0]["runs"] == 2
    assert (len(found["counterfoil_services"]["services"]), found["counterfoil_services"]["next"]) == (2, 2)
    assert found["counterfoil_route"]["decision"]["request"]["client"] == NOBODY
    assert found["counterfoil_explain"]["session"]["service_id"] == 1
    assert (found["counterfoil_audit"]["outcome"], found["counterfoil_audit"]["by"]["state"]) == ("ok", "ok")
    session_id = found["counterfoil_explain"]["session"]["session_id"]
    note = NoteBook(scene.settings.home / "notes").find(session_id, "quote")
    assert (note.need, note.task, note.note) == ("data:crypto", "", "fast")


def test_call_tool__with_what_cannot_be_answered__is_an_error_with_a_sentence(server):
    async def call_all():
        async with session(server) as client:
            return [await client.call_tool(name, given) for name, given, _ in WRONG]

    for result, (name, given, words) in zip(anyio.run(call_all), WRONG, strict=True):
        assert result.is_error, (name, given)
        assert words in text_of(result)
        assert "Traceback" not in text_of(result)


def test_mcp__over_http__answers_a_client_and_ends_when_it_is_told_to(server):
    (port,) = free_ports(1)
    running = subprocess.Popen([server.command, *server.args, "--http", str(port)])
    try:
        wait_until(lambda: listens(port) or running.poll() is not None)

        async def call():
            async with session(f"http://127.0.0.1:{port}/mcp") as client:
                return await client.call_tool("counterfoil_services", {"limit": 1})

        assert anyio.run(call).structured_content["services"][0]["service_id"] == 1
    finally:
        running.terminate()
        assert running.wait(PATIENCE) is not None


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_mcp__without_an_index__says_how_to_build_one(tmp_path, server):
    ended = subprocess.run(
        [server.command, "mcp", "--home", str(tmp_path)], check=False, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "build it with `counterfoil index run`" in ended.stderr


def test_mcp__over_a_port_that_is_taken__says_to_name_another(server):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(
            [server.command, *server.args, "--http", str(port)], check=False, capture_output=True, text=True, timeout=60
        )
    assert ended.returncode == 2
    assert f"Port {port} cannot be listened on (Address already in use): name another with --http." in ended.stderr


def test_mcp__that_is_interrupted__ends(server):
    running = subprocess.Popen([server.command, *server.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with running:
        running.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        running.stdin.flush()
        assert running.stdout.readline()  # it listens
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == -signal.SIGINT
