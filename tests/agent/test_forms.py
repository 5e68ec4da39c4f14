"""How inputs become calls and answers outputs: exact bytes, hostile answers, and real services over real HTTP."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.agent.forms import FORMS, MAX_BODY, AnswerError, CallAnswer, CallRequest, decode, encode, form_of
from counterfoil.agent.hostile import MAX_BYTES, MAX_DEPTH, MAX_EVENTS, read_events, read_json
from counterfoil.demo.upstreams.search import search
from indexer.errors import UserError
from tests.support.upstreams import ask

JSON, EVENTS = "application/json", "text/event-stream"
SYMBOL = {"symbol": "BTC"}


def answer(body, kind=JSON, status=200):
    return CallAnswer(status, kind, body if isinstance(body, bytes) else json.dumps(body).encode())


def stream(*events, end="\n"):
    blocks = [f"data: {one if isinstance(one, str) else json.dumps(one)}{end}{end}" for one in events]
    return answer("".join(blocks).encode(), EVENTS)


def short(value):
    return repr(value)[:24] if isinstance(value, str | bytes) else None


def refusal(form, got):
    with pytest.raises(AnswerError) as caught:
        decode(form, got)
    sentence = str(caught.value)
    assert 0 < len(sentence.encode()) <= 160
    assert sentence.isprintable()
    return sentence


# --- forms


@pytest.mark.parametrize(
    ("category", "form"),
    [
        ("mcp:web-search", "mcp"),
        ("llm:completion", "chat"),
        ("data:crypto-price", "json"),
        ("mcp", "mcp"),
        ("mcpx:search", "json"),
        ("", "json"),
    ],
)
def test_form_of__a_category__goes_by_its_first_word(category, form):
    assert form_of(category) == form


# --- calls


def test_encode__of_json__is_the_input_as_the_body():
    request = encode("json", {"symbol": "BTC", "text": "é"}, path="/price")
    headers = {"Accept": JSON, "Content-Type": JSON}
    assert request == CallRequest("POST", "/price", headers, '{"symbol":"BTC","text":"é"}'.encode())


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("/price", SYMBOL, "/price?symbol=BTC"),
        ("/price?v=1", {"a": "x y&z", "b": 2, "c": True, "d": 0.5}, "/price?v=1&a=x+y%26z&b=2&c=true&d=0.5"),
        ("", {"q": "é"}, "?q=%C3%A9"),
        ("/price", None, "/price"),
        ("/price", {}, "/price"),
    ],
)
def test_encode__of_json_without_a_body__is_the_input_as_the_query(path, value, expected):
    assert encode("json", value, path=path, method="GET") == CallRequest("GET", expected, {"Accept": JSON}, b"")


def test_encode__of_mcp__is_one_call_that_needs_no_session():
    request = encode("mcp", {"query": "vyper"}, tool="web_search")
    assert (request.method, request.path) == ("POST", "")
    assert request.headers == {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "web_search",
    }
    assert json.loads(request.body) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "web_search",
            "arguments": {"query": "vyper"},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }


@pytest.mark.parametrize(
    ("value", "body"),
    [
        ("Hi", {"messages": [{"role": "user", "content": "Hi"}]}),
        ([{"role": "system", "content": "x"}], {"messages": [{"role": "system", "content": "x"}]}),
        ({"messages": [], "stream": True}, {"messages": [], "stream": True}),
    ],
)
def test_encode__of_chat__takes_a_text_messages_or_a_whole_request(value, body):
    request = encode("chat", value)
    assert (request.method, request.path, json.loads(request.body)) == ("POST", "/chat/completions", body)
    assert encode("chat", value, path="/v2/chat").path == "/v2/chat"


@pytest.mark.parametrize(
    ("form", "value", "options", "words"),
    [
        ("json", math.nan, {}, "cannot be written as JSON"),
        ("json", {1, 2}, {}, "cannot be written as JSON"),
        ("json", "\ud800", {}, "cannot be written as JSON"),
        ("json", [10**5000], {}, "cannot be written as JSON"),
        ("json", "x" * MAX_BODY, {}, "over 1048576 bytes"),
        ("json", {"a": [1]}, {"method": "GET"}, "becomes the query"),
        ("json", "BTC", {"method": "GET"}, "becomes the query"),
        ("json", {"a": math.inf}, {"method": "GET"}, "cannot be written as JSON"),
        ("json", {"a": "x" * 5000}, {"method": "GET"}, "over 4096 characters"),
        ("json", {}, {"method": "CONNECT"}, "use DELETE, GET, PATCH, POST, PUT"),
        ("json", {}, {"path": "price"}, "begin it with /"),
        ("json", {}, {"path": "/a/../b"}, "without dots as steps"),
        ("json", {}, {"path": "/a/%2e%2E/b"}, "without dots as steps"),
        ("json", {}, {"path": "/a\r\nHost: b"}, "cannot be called"),
        ("json", {}, {"path": "/a b"}, "cannot be called"),
        ("json", {}, {"path": "/a#b"}, "cannot be called"),
        ("json", {}, {"path": "/" + "a" * 4096}, "cannot be called"),
        ("mcp", {}, {}, "is no tool"),
        ("mcp", {}, {"tool": "a\r\nb"}, "is no tool"),
        ("mcp", {}, {"tool": "a" * 129}, "is no tool"),
        ("mcp", "vyper", {"tool": "web_search"}, "object of its arguments"),
        ("mcp", {}, {"tool": "web_search", "method": "GET"}, "use POST"),
        ("chat", 5, {}, "a text, a list of messages"),
        ("chat", {"prompt": "x"}, {}, "a text, a list of messages"),
        ("chat", {"messages": "x"}, {}, "a text, a list of messages"),
    ],
    ids=short,
)
def test_encode__of_what_cannot_be_sent__says_what_to_do(form, value, options, words):
    with pytest.raises(UserError, match=words):
        encode(form, value, **options)


# --- answers as JSON


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(10**78), 10**78) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(VALUES)
def test_decode__of_any_json_value__is_that_value(value):
    wrapped = {"value": value}
    assert decode("json", answer(wrapped)) == wrapped
    assert decode("json", answer(json.dumps(wrapped, ensure_ascii=False).encode(), "text/plain")) == wrapped


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the answer is cut or no JSON"),
        (b'{"price": 1', "the answer is cut or no JSON"),
        (b"<html>", "the answer is cut or no JSON"),
        (b'{"a": "\x00"}', "the answer is cut or no JSON"),
        (b'"\xff"', "the answer is not UTF-8 text"),
        (b'"\\ud800"', "the answer holds half a character (a lone surrogate)"),
        (b'{"a": {"b": 1, "c": 2, "b": 1}}', "the answer has the field 'b' twice"),
        (b"[NaN]", "the answer holds NaN, which is no number that can be kept"),
        (b"-Infinity", "the answer holds -Infinity, which is no number that can be kept"),
        (b"1e999", "the answer holds 1e999, which is no number that can be kept"),
        (b"9" * 81, f"the answer holds {'9' * 80}, which is no number that can be kept"),
        (b"0." + b"9" * 79, f"the answer holds 0.{'9' * 78}, which is no number that can be kept"),
        (b"[" * 65 + b"]" * 65, "the answer is nested deeper than 64 levels"),
        (b"[" * 500_000, "the answer is nested deeper than 64 levels"),
        (b'"' + b"x" * MAX_BYTES + b'"', "the answer is over 1048576 bytes"),
    ],
    ids=short,
)
def test_decode__of_hostile_json__names_what_is_wrong(body, sentence):
    assert refusal("json", answer(body)) == sentence


def test_decode__of_json_at_the_bounds__is_kept():
    deepest = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert json.dumps(decode("json", answer(deepest))).encode() == deepest
    assert decode("json", answer(b"9" * 80)) == 10**80 - 1
    assert decode("json", answer(['\\"' + "[" * 100])) == ['\\"' + "[" * 100]
    assert len(decode("json", answer(b'"' + b"x" * (MAX_BYTES - 2) + b'"'))) == MAX_BYTES - 2


def test_read_json__with_many_fields_and_one_twice__takes_no_time_that_grows_with_their_square():
    fields = ",".join(f'"{number}":0' for number in range(90_000))
    with pytest.raises(AnswerError, match="the field '89999' twice"):
        read_json(f'{{{fields},"89999":0}}'.encode())


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"error": "out of credit"}, "the service says: out of credit"),
        ({"error": {"message": "no such model", "type": "x"}, "id": 1}, "the service says: no such model"),
        ({"error": {"type": "rate_limited"}}, "the service says: rate_limited"),
        ({"error": {"n": 1}}, 'the service says: {"n": 1}'),
        ({"error": ["a"]}, 'the service says: ["a"]'),
        ({"error": True, "reason": "x"}, "the service says: true"),
        ({"error": {}}, "the service says: {}"),
        ({"error": "a\x1b[31m\u202eb\n\tc"}, "the service says: a\ufffd[31m\ufffdb c"),
    ],
)
def test_decode__of_json_that_is_an_error__repeats_its_words_made_harmless(document, sentence):
    assert refusal("json", answer(document)) == sentence


def test_decode__of_an_error_with_many_words__cuts_between_letters():
    assert refusal("json", answer({"error": "x" + "é" * 1000})) == "the service says: x" + "é" * 70


@pytest.mark.parametrize(
    "document", [{"error": None}, {"error": False}, {"error": [], "result": 1}, {"error": "", "price": 1}, {"e": 1}]
)
def test_decode__of_json_whose_error_says_nothing__is_the_document(document):
    assert decode("json", answer(document)) == document


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", [199, 302, 404, 500])
def test_decode__of_another_status__is_an_error(form, status):
    assert refusal(form, answer({"result": 1}, status=status)) == f"the service answered with status {status}"


# --- event streams


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\r\n\ndata:b\n\r\n", [b"a", b"b"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: a\ndata:  b\ndata:c\n\n", [b"a\n b\nc"]),
        (b": hello\n\nevent: message\nid: 1\nretry: 5\n\n", []),
        (b"data\n\ndata:\n\ndata: \n\n", []),
        (b"data: a\x0b\xc2\x85b\n\n", [b"a\x0b\xc2\x85b"]),
        (b"data: a", [b"a"]),
        (b"", []),
    ],
)
def test_read_events__of_every_kind_of_line__gives_the_data(body, events):
    assert list(read_events(body)) == events


def test_read_events__of_more_than_the_bound__stops_there():
    assert len(list(read_events(b"data:1\n\n" * MAX_EVENTS))) == MAX_EVENTS
    with pytest.raises(AnswerError, match="more than 10000 events"):
        list(read_events(b"data:1\n\n" * (MAX_EVENTS + 1)))
    with pytest.raises(AnswerError, match="over 1048576 bytes"):
        list(read_events(b":" * (MAX_BYTES + 1)))


# --- MCP


def response(result, **fields):
    return {"jsonrpc": "2.0", "id": 1, "result": result} | fields


def texts(*words, **fields):
    return {"content": [{"type": "text", "text": word} for word in words]} | fields


NOTICE = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}


@pytest.mark.parametrize(
    ("result", "output"),
    [
        (texts("a", "b"), "a\nb"),
        (texts("a", structuredContent={"n": 1}, isError=False, resultType="complete"), {"n": 1}),
        (texts("a", structuredContent=None), "a"),
        ({"content": []}, ""),
        ({"content": [{"type": "image", "data": "AA=="}, {"type": "text", "text": "a"}]}, "a"),
    ],
)
def test_decode__of_a_tools_result__prefers_its_structure_to_its_text(result, output):
    assert decode("mcp", answer(response(result))) == output
    for end in ("\n", "\r\n", "\r"):
        assert decode("mcp", stream(NOTICE, response(result), end=end)) == output


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (response(texts("a"), id=2), "the answer is that of another request"),
        (response(texts("a"), id="1"), "the answer is that of another request"),
        (response(texts("a"), id=True), "the answer is that of another request"),
        (response(texts("a"), id=1.0), "the answer is that of another request"),
        (response(texts("a"), jsonrpc="1.0"), "the answer is no JSON-RPC 2.0"),
        ([response(texts("a"))], "the answer has no message that is an object"),
        (
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown tool"}},
            "the service says: Unknown tool",
        ),
        ({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse"}}, "the service says: Parse"),
        (response(None), "the answer has no result that is an object"),
        (response({}), "the answer has no content"),
        (response(texts("no", "pages", isError=True)), "the tool failed: no pages"),
        (response({"content": [], "isError": True}), "the tool failed: it does not say why"),
        (response(texts("a", isError="no")), "the answer's isError is neither true nor false"),
        (response(texts("a", resultType="input_required")), "the tool asks for more before it answers"),
        (response({"content": [{"type": "text", "text": 1}]}), "the answer has no text"),
        (response({"content": [{"type": "image"}]}), "the tool answered with neither a structure nor text"),
        (NOTICE, "the answer holds 0 results instead of one: it was cut or is malformed"),
    ],
)
def test_decode__of_a_tools_failure__names_it_in_both_kinds_of_answer(message, sentence):
    assert refusal("mcp", answer(message)) == sentence
    assert refusal("mcp", stream(NOTICE, message)) == sentence


def test_decode__of_two_results_for_one_call__believes_neither():
    two = stream(response(texts("a")), response(texts("b")))
    assert refusal("mcp", two) == "the answer holds 2 results instead of one: it was cut or is malformed"


def test_decode__of_a_result_cut_anywhere__is_never_another_result():
    whole = stream(NOTICE, response(texts("a", structuredContent={"n": 12}))).body
    for length in range(len(whole)):
        cut = answer(whole[:length], EVENTS)
        if whole[:length].rstrip(b"\n") == whole.rstrip(b"\n"):
            assert decode("mcp", cut) == {"n": 12}
        else:
            refusal("mcp", cut)


# --- chat


def chunk(reason=None, index=0, **delta):
    return {"choices": [{"index": index, "delta": delta, "finish_reason": reason}]}


SAYS_HI = (chunk(role="assistant", content=None), chunk(content="Hi"), chunk(content=" you"), chunk("stop"))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_decode__of_a_streamed_chat__joins_its_pieces(end):
    usage = {"choices": [], "usage": {"total_tokens": 3}}
    other = chunk(content="other", index=1)
    assert decode("chat", stream(*SAYS_HI[:2], other, *SAYS_HI[2:], usage, "[DONE]", end=end)) == "Hi you"


def test_decode__of_a_chat__is_its_first_text():
    document = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "length"}, {"message": {"content": "x"}}]}
    assert decode("chat", answer(document, "application/json; charset=utf-8")) == "Hi"


@pytest.mark.parametrize(
    ("got", "sentence"),
    [
        (stream(*SAYS_HI), "the stream was cut before its end"),
        (stream(*SAYS_HI[:3], "[DONE]"), "the stream was cut before its end"),
        (stream("[DONE]"), "the stream was cut before its end"),
        (stream(*SAYS_HI, "[DONE]", chunk(content="x")), "the stream goes on after its end"),
        (stream(SAYS_HI[1], {"error": {"message": "overloaded"}}), "the service says: overloaded"),
        (stream({"choices": {}}), "the answer has no list of choices"),
        (stream({"choices": [{"index": 0}]}), "the answer has no delta that is an object"),
        (stream(chunk(content=5)), "the answer has no text in its delta"),
        (stream("Hi", "[DONE]"), "the answer is cut or no JSON"),
        (answer({"choices": []}), "the answer has no choice that is an object"),
        (answer({"choices": [{"text": "x"}]}), "the answer has no message that is an object"),
        (answer({"choices": [{"message": {"content": None}}]}), "the answer has no text in its message"),
        (answer({"error": {"message": "no such model"}}), "the service says: no such model"),
        (answer([]), "the answer has no completion that is an object"),
    ],
)
def test_decode__of_a_chat_that_failed__names_what_is_wrong(got, sentence):
    assert refusal("chat", got) == sentence


def test_decode__of_a_stream_cut_anywhere__is_never_a_shorter_text():
    whole = stream(*SAYS_HI, "[DONE]").body
    for length in range(len(whole)):
        cut = answer(whole[:length], EVENTS)
        if whole[:length].endswith(b"[DONE]") or whole[:length].endswith(b"[DONE]\n"):
            assert decode("chat", cut) == "Hi you"
        else:
            refusal("chat", cut)


# --- anything


PIECES = (
    b'data: |\n\n|\r|[DONE]|{"jsonrpc":"2.0","id":1,"result":|{"content":[|{"choices":[|{"delta":{"content":|"error":'
    b'|{|}|[|]|"|,|:|null|1e400|\\ud800|\xff'
).split(b"|")
MIXED = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=20).map(b"".join)
ANYTHING = st.binary() | MIXED | VALUES.map(json.dumps).map(str.encode)


@settings(deadline=None)
@given(st.sampled_from(FORMS), st.integers(100, 999), st.sampled_from([JSON, EVENTS, ""]) | st.text(), ANYTHING)
def test_decode__of_anything__gives_json_or_says_what_is_wrong(form, status, kind, body):
    for got in (answer(body, kind), answer(body, kind, status)):
        said = None
        try:
            output = decode(form, got)
        except AnswerError as error:
            said = str(error)
        if said is None:
            assert read_json(json.dumps(output).encode()) == output
        else:
            assert 0 < len(said.encode()) <= 160
            assert said.isprintable()


# --- real services


def test_json_form__against_the_price_api__gets_the_price_both_ways(price_api):
    expected = {"symbol": "BTC", "price_usd": "92683.36"}
    for method in ("POST", "GET"):
        request = encode("json", SYMBOL, path="/price", method=method)
        assert decode("json", ask(price_api, request)) == expected
    unknown = ask(price_api, encode("json", {"symbol": "NONE"}, path="/price"))
    assert refusal("json", unknown) == "the service answered with status 404"


def test_mcp_form__against_the_search_server__gets_the_structure_in_one_request(search_server):
    got = ask(f"{search_server}/mcp", encode("mcp", {"query": "vyper release"}, tool="web_search"))
    assert (got.status, got.content_type) == (200, JSON)
    assert decode("mcp", got) == search("vyper release")


def test_mcp_form__against_the_search_server__reads_its_stream_too(search_server):
    request = encode("mcp", {"query": "vyper release"}, tool="web_search")
    older = {name: value for name, value in request.headers.items() if not name.lower().startswith("mcp-")}
    got = ask(f"{search_server}/mcp", CallRequest("POST", "", older, request.body))
    assert (got.status, got.content_type) == (200, EVENTS)
    assert decode("mcp", got) == search("vyper release")


def test_mcp_form__against_the_search_server__tells_what_the_tool_says(search_server):
    where = f"{search_server}/mcp"
    assert refusal("mcp", ask(where, encode("mcp", {}, tool="nothing"))) == "the tool failed: Unknown tool: nothing"
    wrong = refusal("mcp", ask(where, encode("mcp", {"query": ""}, tool="web_search")))
    assert wrong.startswith("the tool failed: Error executing tool web_search: 1 validation error")


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_form__against_the_demos_server__gets_the_sentence(completion_server, streamed):
    messages = [{"role": "user", "content": "Summarise the market."}]
    request = encode("chat", {"messages": messages, "stream": streamed})
    got = ask(f"{completion_server}/v1", request)
    assert got.content_type.startswith(EVENTS if streamed else JSON)
    assert decode("chat", got) == "Ratings turned quietly while operators agreed."


def test_chat_form__against_a_real_model__gets_the_same_text_streamed_or_not(llama):
    messages = [{"role": "user", "content": "The capital of France is"}]
    asked = {"messages": messages, "max_tokens": 8, "temperature": 0, "seed": 1, "cache_prompt": False}
    whole = ask(f"{llama}/v1", encode("chat", asked))
    streamed = ask(f"{llama}/v1", encode("chat", asked | {"stream": True}))
    assert (whole.content_type.partition(";")[0], streamed.content_type) == (JSON, EVENTS)
    assert decode("chat", whole) == decode("chat", streamed) != ""
    assert refusal("chat", answer(streamed.body.replace(b"data: [DONE]", b""), EVENTS)).startswith("the stream was cut")


def test_chat_form__against_a_real_model__tells_what_the_server_says(llama):
    refused = ask(f"{llama}/v1", encode("chat", {"messages": [{"role": "user"}]}))
    assert refused.status >= 400
    assert refusal("chat", answer(refused.body)).startswith("the service says: ")
