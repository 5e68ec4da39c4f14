"""The demo's services, and the tests' completion server, as processes that real clients talk to."""

import json
import signal

import anyio
import httpx
import pytest
from mcp import Client

from counterfoil.demo.upstreams import completion, search
from tests.support.upstreams import upstream

CHAT = {"messages": [{"role": "user", "content": "Summarise the market."}]}
SAID = "Ratings turned quietly while operators agreed."


@pytest.fixture
def web():
    with httpx.Client(trust_env=False, timeout=60) as client:
        yield client


def told(answer):
    return answer.status_code, answer.json()


# --- every service


@pytest.mark.parametrize("kind", ["data", "search", "completion"])
def test_service__of_each_kind__is_healthy_and_ends_in_order_when_told_to(kind, web):
    with upstream(kind) as (process, url):
        assert told(web.get(f"{url}/health")) == (200, {"status": "ok"})
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_service__that_fails_on_purpose__answers_500_and_is_healthy(web):
    with upstream("data", "--failing") as (_, url):
        broken = {"error": {"message": "This service fails on purpose."}}
        assert told(web.get(f"{url}/price?symbol=BTC")) == (500, broken)
        assert web.get(f"{url}/health").status_code == 200


def test_service__with_a_delay__answers_no_sooner(web):
    with upstream("data", "--delay", "0.3") as (_, url):
        answer = web.get(f"{url}/price?symbol=BTC")
        assert (answer.status_code, answer.elapsed.total_seconds() >= 0.3) == (200, True)


# --- data


@pytest.mark.parametrize(("symbol", "price"), [("BTC", "92683.36"), ("ETH", "46426.12")])
def test_price__of_a_symbol__is_the_same_however_it_is_asked(price_api, web, symbol, price):
    expected = (200, {"symbol": symbol, "price_usd": price})
    assert told(web.get(f"{price_api}/price", params={"symbol": symbol})) == expected
    assert told(web.post(f"{price_api}/price", json={"symbol": symbol})) == expected


def test_price__of_an_unknown_symbol__is_404_and_names_those_there_are(price_api, web):
    status, document = told(web.post(f"{price_api}/price", json={"symbol": "btc"}))
    assert status == 404
    assert document["error"]["message"].endswith("ask for one of ADA, BTC, DOGE, ETH, SOL, USDC, XRP.")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"{}", b'{"symbol": 1}', b"[" * 100_000, b" " * (2**20 + 1)], ids=len
)
def test_price__asked_with_something_else__says_what_to_send(price_api, web, body):
    status, document = told(web.post(f"{price_api}/price", content=body))
    assert status == 400
    assert document["error"]["message"].startswith(("Send ", "Name a symbol"))


# --- search


def test_search__of_words__ranks_pages_by_how_many_they_share():
    found = search.search("routing NODES, stake!")
    assert [page["url"].rpartition("/")[2] for page in found["results"]] == ["stake", "vouchers", "auditors"]
    assert search.search("zebra") == {"query": "zebra", "results": []}


def test_search__through_the_official_client__lists_one_tool_and_answers_in_structure(search_server):
    async def talk():
        with anyio.fail_after(60):
            async with Client(f"{search_server}/mcp") as client:
                tools = (await client.list_tools()).tools
                return tools, await client.call_tool("web_search", {"query": "vyper release"})

    (tool,), result = anyio.run(talk)
    assert (tool.name, tool.annotations.read_only_hint, sorted(tool.output_schema["required"])) == (
        "web_search",
        True,
        ["query", "results"],
    )
    assert not result.is_error
    assert result.structured_content == search.search("vyper release")


# --- completion


def test_completion__not_streamed__is_one_document(completion_server, web):
    status, document = told(web.post(f"{completion_server}/v1/chat/completions", json=CHAT))
    assert (status, document["object"], document["model"]) == (200, "chat.completion", completion.MODEL)
    choice = {"index": 0, "message": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}
    assert document["choices"] == [choice]
    assert document["usage"]["completion_tokens"] == 6


def test_completion__streamed__says_the_same_in_pieces_and_marks_its_end(completion_server, web):
    answer = web.post(f"{completion_server}/v1/chat/completions", json={**CHAT, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, end = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    choices = [json.loads(chunk)["choices"][0] for chunk in chunks]
    assert end == "[DONE]"
    assert "".join(choice["delta"].get("content", "") for choice in choices) == SAID
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["stop"]


def test_completion__of_fewer_tokens__is_cut_for_its_length(completion_server, web):
    asked = {**CHAT, "max_tokens": 2}
    (choice,) = web.post(f"{completion_server}/v1/chat/completions", json=asked).json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Ratings turned", "length")


def test_completion__asked_for_models__names_its_own(completion_server, web):
    assert [model["id"] for model in web.get(f"{completion_server}/v1/models").json()["data"]] == ["counterfoil-demo"]


@pytest.mark.parametrize("asked", [{}, {"messages": []}, {"messages": [1]}, CHAT | {"max_tokens": 0}])
def test_completion__asked_with_something_else__answers_as_such_servers_do(completion_server, web, asked):
    status, document = told(web.post(f"{completion_server}/v1/chat/completions", json=asked))
    assert (status, document["error"]["type"]) == (400, "invalid_request_error")


def test_llama__of_the_tests__serves_its_model(llama, web):
    (model,) = web.get(f"{llama}/v1/models").json()["data"]
    assert model["id"].endswith("gemma-3-270m-q4_k_m.gguf")
