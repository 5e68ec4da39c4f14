"""The tools through a real client of the official SDK: over standard input and output, and over HTTP."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp import Client, StdioServerParameters
from pydantic import TypeAdapter

from counterfoil import answers
from counterfoil.agent.notes import NoteBook
from counterfoil.decision import NOBODY
from counterfoil.demo.processes import free_ports
from tests.api.test_services import PATIENCE, scene, wait_until  # noqa: F401
from tests.support.chain import CATEGORY, ROOT

PROGRAM = [sys.executable, "-c", "from counterfoil.cli.main import main; main()"]
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

WRONG_CALLS = [
    ({"service_id": 1}, "budget"),
    ({"service_id": 1, "budget": "-1"}, "budget"),
    ({"service_id": 1, "budget": "many"}, "budget"),
    ({"budget": "100"}, "names no category, task, need or service_id: give one"),
    ({"service_id": 0, "budget": "100"}, "service_id"),
    ({"service_id": 1, "budgt": "100"}, "budgt"),
    ({"service_id": 1, "budget": "100", "amount": 1}, "Extra inputs are not permitted"),
    ({"category": "mcp:search", "budget": "100", "input": "x"}, "The input of an MCP tool is an object"),
    ({"category": "Not A Category", "budget": "100"}, "category"),
]


@pytest.fixture
def server(scene):  # noqa: F811
    where = ["--home", str(scene.settings.home), "--rpc", scene.world.url]
    return StdioServerParameters(command=PROGRAM[0], args=[*PROGRAM[1:], "mcp", *where], cwd=ROOT)


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
    assert set(tools) == {*TOOLS, "counterfoil_call"}
    assert all(tool.title and tool.description and tool.output_schema for tool in tools.values())
    assert not any(tool.input_schema["additionalProperties"] for tool in tools.values())
    writes = {name for name, tool in tools.items() if not tool.annotations.read_only_hint}
    assert writes == {"counterfoil_note_tool", "counterfoil_call"}
    assert {name for name, tool in tools.items() if tool.annotations.open_world_hint} == {
        "counterfoil_audit", "counterfoil_call",
    }  # fmt: skip
    assert {name for name, tool in tools.items() if tool.annotations.destructive_hint} == {"counterfoil_call"}
    assert not tools["counterfoil_call"].annotations.idempotent_hint
    taken = tools["counterfoil_call"].input_schema
    assert set(taken["properties"]) == {"budget", "input", "service_id", "category", "task", "need", "tool"}
    assert taken["required"] == ["budget"]


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


def paying(server, world, client="alice", **settings):
    """The server with somebody's wallet, and caps."""
    env = {
        "COUNTERFOIL_PRIVATE_KEY": "0x" + bytes(world.by(client).account.key).hex(),
        "COUNTERFOIL_AGENT_ALLOW_PRIVATE": "yes",
        **{f"COUNTERFOIL_AGENT_{name.upper()}": str(value) for name, value in settings.items()},
    }
    return server.model_copy(update={"env": env})


def called(server, *calls):
    """Call `counterfoil_call` with each of these arguments, and give the results."""

    async def call_all():
        async with session(server) as client:
            return [await client.call_tool("counterfoil_call", given) for given in calls]

    return anyio.run(call_all)


def test_call__by_id_and_by_task__pays_and_gives_the_answer_and_what_it_cost(server, scene):  # noqa: F811
    world = scene.world
    wallet = world.by("walter").address
    held = world.token.balance_of(wallet) + world.manager.credit_of(wallet)
    by_id, by_task = called(
        paying(server, world, "walter"),
        {"service_id": 3, "input": {"symbol": "BTC"}, "budget": "100"},
        {"task": "bitcoin spot price", "need": "data:crypto", "input": 0, "budget": "1000"},
    )
    assert not by_id.is_error, text_of(by_id)
    assert not by_task.is_error, text_of(by_task)
    described = TypeAdapter(answers.CallAnswer)
    for result in (by_id, by_task):
        assert json.loads(text_of(result)) == result.structured_content
        assert described.dump_python(described.validate_python(result.structured_content)) == result.structured_content
    answer = by_id.structured_content
    assert (answer["status"], answer["paid"], answer["output"]) == ("done", "100", {"echo": '{"symbol":"BTC"}'})
    (paid,) = answer["sessions"]
    assert (paid["service_id"], paid["paid"], paid["failure"]) == (3, "100", "")
    on_chain = world.manager.session(paid["session_id"])
    assert (on_chain.status, on_chain.paid, on_chain.client) == (3, 100, wallet.lower())
    assert world.reputation.score_of(paid["session_id"]) == paid["score"]
    assert world.receipts.load(paid["receipt"]).request.pinned == 3
    other = by_task.structured_content
    assert (other["status"], other["output"]) == ("done", {"echo": "0"})
    spent = int(answer["paid"]) + int(other["paid"])
    assert held - world.token.balance_of(wallet) - world.manager.credit_of(wallet) == spent


def test_call__above_its_budget_or_a_cap__fails_with_the_reason_and_signs_nothing(server, scene):  # noqa: F811
    world = scene.world
    world.by("wendy")
    before = world.rpc("eth_getTransactionCount", world.by("wendy").address, "latest")
    given = {"service_id": 1, "input": {}, "budget": "99"}
    results = called(
        paying(server, world, "wendy", max_per_call=50), given, {**given, "budget": "1000"}, {**given, "budget": "0"}
    )
    reasons = [result.structured_content["reason"] for result in results]
    assert reasons[0] == "a deposit of 100 is above the step's budget of 99"
    assert reasons[1].startswith("A call costs 100 base units, 50 more than the cap per call of 50")
    assert reasons[2] == "a deposit of 100 is above the step's budget of 0"
    for result in results:
        answer = result.structured_content
        assert (answer["status"], answer["paid"], answer["output"], answer["sessions"]) == ("failed", "0", None, [])
    assert world.rpc("eth_getTransactionCount", world.by("wendy").address, "latest") == before


def test_call__of_a_service_that_fails__says_so_and_costs_nothing(server, scene):  # noqa: F811
    (failed,) = called(paying(server, scene.world), {"service_id": 2, "input": {}, "budget": "100"})
    answer = failed.structured_content
    assert (answer["status"], answer["paid"], answer["output"]) == ("failed", "0", None)
    assert answer["reason"] == "service 2: the node answered 502 upstream_failed"
    assert [(one["service_id"], one["paid"], one["score"]) for one in answer["sessions"]] == [(2, "0", 0)]


def test_call__with_what_it_does_not_take__is_an_error(server, scene):  # noqa: F811
    results = called(paying(server, scene.world), *[given for given, _ in WRONG_CALLS])
    for result, (given, words) in zip(results, WRONG_CALLS, strict=True):
        assert result.is_error, given
        assert words in text_of(result), given
        assert "Traceback" not in text_of(result)


def test_call__without_a_key__says_how_to_name_one(server):
    (result,) = called(server, {"service_id": 1, "input": {}, "budget": "100"})
    assert result.is_error
    assert "There is no key to sign with: set COUNTERFOIL_KEYSTORE" in text_of(result)


def test_call__of_a_wallet_without_gas__keeps_the_run_and_says_how_to_go_on(server, scene):  # noqa: F811
    world = scene.world
    world.rpc("anvil_setBalance", world.by("willy").address, "0x0")
    (result,) = called(paying(server, world, "willy"), {"service_id": 1, "input": {}, "budget": "100"})
    assert result.is_error
    assert "has no gas: send it some of the chain's coin" in text_of(result)
    assert "is kept: mend that, then go on with `counterfoil agent resume`" in text_of(result)


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
        [*PROGRAM, "mcp", "--home", str(tmp_path)], check=False, capture_output=True, text=True, timeout=60
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
