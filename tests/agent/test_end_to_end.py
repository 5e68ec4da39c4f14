"""A workflow over a real chain, real nodes and the real services behind them: data, a search over MCP, a model."""

import json

import pytest

from counterfoil.agent.forms import decode, encode
from counterfoil.agent.node_client import MAX_ANSWER, NodeClient
from counterfoil.agent.record import pinned_rerun, record_of
from counterfoil.agent.runner import Runner
from counterfoil.agent.workflow import read
from counterfoil.agent.workflows import WorkflowRunner
from counterfoil.audit.model import Outcome, Part
from counterfoil.audit.opening import open_auditor
from counterfoil.demo.upstreams.search import search
from indexer import query
from indexer.http import BoundedHttp
from tests.api.test_services import wait_until
from tests.support.caller import Caller
from tests.support.market import market

SEARCH, MODEL, DATA = "mcp:web-search", "llm:completion", "data:crypto-price"
PRICES = {DATA: 100, SEARCH: 300, MODEL: 700}
WORKFLOW = """
name: brief
budget: 5000
steps:
  - id: price
    category: data:crypto-price
    need: data:crypto
    task: bitcoin spot price
    input: {symbol: BTC}
    calls: 2
    judge: {json_schema: {type: object, required: [price_usd]}}
  - id: news
    category: mcp:web-search
    need: web:search
    task: news on a topic
    tool: web_search
    input: {query: "price of ${price.0.symbol}"}
  - id: brief
    category: llm:completion
    need: text:completion
    task: one sentence summary
    input:
      messages: [{role: user, content: "At ${price.0.price_usd} dollars: ${news.results.0.snippet}"}]
      max_tokens: 12
      temperature: 0
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory, price_api, search_server, llama):
    """Two operators of data, two of search, one of a model."""
    urls = {DATA: f"{price_api}/price", SEARCH: f"{search_server}/mcp", MODEL: f"{llama}/v1"}
    with market(tmp_path_factory.mktemp("end")) as built:
        for operator, category in (
            ("dana", DATA), ("dirk", DATA), ("sara", SEARCH), ("sven", SEARCH), ("mona", MODEL)
        ):  # fmt: skip
            built.node(operator, price=PRICES[category], upstream=urls[category], category=category)
        built.store = built.follow()
        yield built


@pytest.fixture(scope="module")
def desk(scene):
    return scene.desk("alice", scene.store)


@pytest.fixture(scope="module")
def done(scene, desk):
    """The run, what everybody held before it, and its record."""
    before = holdings(scene)
    row = go(desk, read(WORKFLOW.encode(), "here"))
    return row, before, record_of(desk.journal, row)


def go(desk, workflow):
    runner = WorkflowRunner(desk, Runner(desk), lambda _: None)
    return runner.go(runner.start(workflow))


def holdings(scene):
    """Tokens and credit of everybody, by name."""
    manager, token = scene.world.manager, scene.world.token
    people = {name: scene.world.by(name).address for name in ("alice", "dana", "dirk", "sara", "sven", "mona")}
    return {name: token.balance_of(one) + manager.credit_of(one) for name, one in people.items()}


def sessions(record):
    return [session for step in record["steps"] for session in step["sessions"]]


def test_run__of_three_steps__hands_each_output_on_to_the_next(desk, done):
    _, _, record = done
    price, news, brief = record["steps"]
    assert (record["status"], record["reason"], [step["status"] for step in record["steps"]]) == (
        "done", "", ["done"] * 3,
    )  # fmt: skip
    assert price["output"] == [{"symbol": "BTC", "price_usd": "92683.36"}] * 2
    assert news["output"] == search("price of BTC")
    snippet = news["output"]["results"][0]["snippet"]
    assert isinstance(brief["output"], str)
    assert brief["output"].strip()
    (session,) = desk.journal.sessions(record["run_id"], "brief")
    (call,) = desk.journal.calls(session.reservation_id)
    assert json.loads(call.request["body"])["messages"] == [
        {"role": "user", "content": f"At 92683.36 dollars: {snippet}"}
    ]


def test_run__of_three_steps__pays_each_call_at_its_price_and_nothing_else(scene, desk, done):
    _, before, record = done
    after = holdings(scene)
    assert [step["paid"] for step in record["steps"]] == ["200", "300", "700"]
    assert record["paid"] == "1200"
    assert before["alice"] - after["alice"] == 1200
    earned = {name: after[name] - before[name] for name in before if after[name] > before[name]}
    operators = {scene.world.by(name).address.lower(): amount for name, amount in earned.items()}
    assert operators == {session["operator"]: int(session["paid"]) for session in sessions(record)}
    assert desk.spending.spent(run_id=record["run_id"]).paid == 1200
    assert desk.spending.spent(run_id=record["run_id"]).reserved == 0


def test_run__of_three_steps__leaves_each_session_settled_rated_and_attested_on_chain(scene, desk, done):
    _, _, record = done
    for session, tool, need in zip(
        sessions(record),
        ("crypto-price", "web_search", "completion"),
        ("data:crypto", "web:search", "text:completion"),
        strict=True,
    ):
        on_chain = desk.manager.session(session["session_id"])
        assert (on_chain.status, str(on_chain.paid), on_chain.client) == (3, session["paid"], desk.address)
        assert desk.reputation.score_of(session["session_id"]) == session["score"] >= 60
        wait_until(lambda s=session: query.experience_of(scene.store, session_id=s["session_id"]).value.items)
        (found,) = query.experience_of(scene.store, session_id=session["session_id"]).value.items
        fact = found.fact
        assert (fact.tool, fact.need, fact.worked, str(fact.cost)) == (tool, need, True, session["paid"])
        assert fact.calls == len(session["calls"])


def test_run__of_three_steps__has_receipts_that_replay_by_state_and_by_index(scene, desk, done):
    _, _, record = done
    wait_until(lambda: query.as_of(scene.store).block == scene.world.chain.head().number)
    with open_auditor(scene.settings) as auditor:
        for session in sessions(record):
            found = auditor.session(session["session_id"])
            assert {part: found.outcome_of(part) for part in Part} == dict.fromkeys(Part, Outcome.OK)
            receipt = desk.receipts.load(session["receipt"])
            assert (receipt.choice, receipt.attempt) == (session["service_id"], session["attempt"])


def test_record__of_the_run__names_session_service_price_and_every_call(done):
    _, _, record = done
    assert record["digest"].startswith("0x")
    assert record["started"] <= record["ended"]
    for session, calls in zip(sessions(record), (2, 1, 1), strict=True):
        assert (session["state"], session["failure"], session["attempt"]) == ("done", "", 0)
        assert int(session["deposit"]) == int(session["price"]) * calls == int(session["paid"])
        assert [(call["calls"], call["outcome"], call["status"]) for call in session["calls"]] == [
            (number, "worked", 200) for number in range(1, calls + 1)
        ]
        assert session["why"].startswith(f"{calls} of {calls} ")


def test_rerun__that_is_pinned__goes_to_the_same_services(desk, done):
    row, _, record = done
    before = [session["service_id"] for session in sessions(record)]
    again = record_of(desk.journal, go(desk, pinned_rerun(desk.journal, row)))
    assert again["status"] == "done"
    assert [session["service_id"] for session in sessions(again)] == before
    assert [step["output"] for step in again["steps"][:2]] == [step["output"] for step in record["steps"][:2]]
    policies = {desk.receipts.load(session["receipt"]).request.pinned for session in sessions(again)}
    assert policies == set(before)


def test_run__of_a_chat_that_streams__gives_its_whole_text(desk):
    text = WORKFLOW.partition("  - id: price")[0] + (
        "  - {id: brief, category: 'llm:completion', input: {messages: [{role: user, content: Hello}], "
        "max_tokens: 12, temperature: 0, stream: STREAM}}\n"
    )
    outputs = []
    for streams in ("true", "false"):
        record = record_of(desk.journal, go(desk, read(text.replace("STREAM", streams).encode(), "here")))
        assert (record["status"], record["paid"]) == ("done", "700")
        outputs.append(record["steps"][0]["output"])
    assert all(output.strip() for output in outputs)


def test_call__of_a_chat_that_streams__passes_the_events_on_through_the_node(scene):
    caller = Caller(scene.world, 5, category=MODEL)
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 12, "temperature": 0, "stream": True}
    request = encode("chat", body)
    assert json.loads(request.body) == body
    with BoundedHttp(seconds=60, max_bytes=MAX_ANSWER) as http:
        answer = NodeClient(caller.url, http, allow_private=True).call(caller.voucher(700, 1), request)
    assert (answer.status, answer.content_type.partition(";")[0]) == (200, "text/event-stream")
    assert answer.body.count(b"data: ") > 2
    assert answer.body.rstrip().endswith(b"data: [DONE]")
    assert decode("chat", answer).strip()
    assert caller.settle(700, 1).status_code == 200
    assert caller.state().paid == 700
