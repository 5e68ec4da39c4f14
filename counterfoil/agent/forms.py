"""How a step's input becomes an HTTP call, and an answer an output: plain JSON, MCP tools, chat completions. Pure.

What the path of a call follows is the upstream's URL as clients of that kind are given it: an MCP server's own URL, an
OpenAI-compatible server's base URL (which ends in /v1), a JSON API's endpoint.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote, urlencode

from counterfoil.agent.hostile import AnswerError, read_events, read_json
from indexer.errors import UserError

__all__ = ["FORMS", "AnswerError", "CallAnswer", "CallRequest", "Form", "decode", "encode", "form_of"]

Form = Literal["json", "mcp", "chat"]
FORMS: Final[tuple[Form, ...]] = ("json", "mcp", "chat")
MAX_BODY: Final = 2**20
MAX_PATH: Final = 4096
MCP_VERSION: Final = "2026-07-28"  # the first whose tools/call needs no session before it
CHAT_PATH: Final = "/chat/completions"

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_BODILESS: Final = frozenset({"GET", "DELETE"})
_METHODS: Final = _BODILESS | {"POST", "PUT", "PATCH"}
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@/%-]*)?(\?[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*)?")
_TOOL: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_CALL_ID: Final = 1
_WORDS: Final = ("message", "detail", "reason", "title", "type", "code")


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What is sent: `path` follows `/call` of the node and the upstream's own URL, and may hold a query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What came back: the status, the Content-Type as it came ("" for none), and the whole body."""

    status: int
    content_type: str
    body: bytes


def form_of(category: str) -> Form:
    """The form that services of a category speak: mcp:* is mcp, llm:* is chat, all others are json."""
    kinds: dict[str, Form] = {"mcp": "mcp", "llm": "chat"}
    return kinds.get(category.partition(":")[0], "json")


def encode(form: Form, value: object, *, path: str = "", method: str = "POST", tool: str = "") -> CallRequest:
    """Make a call of an input; the same input makes the same bytes.

    `json` sends the input as the body, with GET and DELETE as the query; `mcp` calls `tool` with the input as its
    arguments; `chat` takes a text, which becomes one user message, a list of messages, or a whole request.
    Raises UserError for an input, path, method or tool that cannot be sent.
    """
    _check_target(form, path, method)
    if form == "mcp":
        return _encode_mcp(value, path, tool)
    if form == "chat":
        return _encode_chat(value, path or CHAT_PATH)
    if method in _BODILESS:
        return CallRequest(method, _with_query(path, value), {"Accept": _JSON}, b"")
    return CallRequest(method, path, {"Accept": _JSON, "Content-Type": _JSON}, _body(value))


def decode(form: Form, answer: CallAnswer) -> object:
    """The output of an answer as a JSON value: for `chat` its text, for `mcp` the tool's result.

    Raises AnswerError for an answer that is an error, whatever its status, that is cut, or that is malformed.
    """
    if not 200 <= answer.status < 300:
        raise AnswerError(f"the service answered with status {answer.status}")
    return _DECODERS[form](answer)


# --- the call


def _check_target(form: Form, path: str, method: str) -> None:
    if method not in _METHODS or (form != "json" and method != "POST"):
        allowed = ", ".join(sorted(_METHODS)) if form == "json" else "POST"
        raise UserError(f"A call of form {form} is not made with {method[:20]!r}: use {allowed}.")
    steps = set(unquote(path.partition("?")[0]).split("/"))
    if len(path) > MAX_PATH or not _PATH.fullmatch(path) or steps & {".", ".."}:
        raise UserError(
            f"The path {path[:80]!r} cannot be called: begin it with / and write it as in a URL, in plain characters, "
            "without dots as steps and without #."
        )


def _encode_mcp(value: object, path: str, tool: str) -> CallRequest:
    if not _TOOL.fullmatch(tool):
        raise UserError(f"{tool[:80]!r} is no tool of an MCP server: name one (letters, digits and _ - . /).")
    if not isinstance(value, Mapping):
        raise UserError('The input of an MCP tool is an object of its arguments: write it as {"query": "..."}.')
    meta = {
        "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": value, "_meta": meta}
    body = _body({"jsonrpc": "2.0", "id": _CALL_ID, "method": "tools/call", "params": params})
    headers = {
        "Accept": f"{_JSON}, {_EVENTS}",
        "Content-Type": _JSON,
        "MCP-Protocol-Version": MCP_VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    return CallRequest("POST", path, headers, body)


def _encode_chat(value: object, path: str) -> CallRequest:
    request = {"messages": [{"role": "user", "content": value}]} if isinstance(value, str) else value
    request = {"messages": request} if isinstance(request, list) else request
    if not isinstance(request, Mapping) or not isinstance(request.get("messages"), list):
        raise UserError("The input of a chat is a text, a list of messages, or an object with `messages`: give one.")
    return CallRequest("POST", path, {"Accept": f"{_JSON}, {_EVENTS}", "Content-Type": _JSON}, _body(request))


def _with_query(path: str, value: object) -> str:
    if value is None or value == {}:
        return path
    if not isinstance(value, Mapping) or not all(isinstance(one, str | int | float) for one in value.values()):
        raise UserError("The input of a call without a body is an object of texts and numbers: it becomes the query.")
    _body(value)
    pairs = urlencode({name: json.dumps(one) if isinstance(one, bool) else one for name, one in value.items()})
    whole = f"{path}{'&' if '?' in path else '?'}{pairs}"
    if len(whole) > MAX_PATH:
        raise UserError(f"The query is over {MAX_PATH} characters: send less, or use POST.")
    return whole


def _body(value: object) -> bytes:
    try:
        body = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"The input cannot be written as JSON ({type(error).__name__}): correct it.") from error
    if len(body) > MAX_BODY:
        raise UserError(f"The input is over {MAX_BODY} bytes: send less.")
    return body


# --- the answer


def _decode_json(answer: CallAnswer) -> object:
    found = read_json(answer.body)
    if isinstance(found, dict):
        _refuse_error(found)
    return found


def _decode_mcp(answer: CallAnswer) -> object:
    bodies = read_events(answer.body) if _is_stream(answer) else [answer.body]
    messages = [_mapping(read_json(body), "message") for body in bodies]
    if any(message.get("jsonrpc") != "2.0" for message in messages):
        raise AnswerError("the answer is no JSON-RPC 2.0")
    responses = [message for message in messages if "method" not in message]
    if len(responses) != 1:
        raise AnswerError(f"the answer holds {len(responses)} results instead of one: it was cut or is malformed")
    return _tool_output(responses[0])


def _tool_output(response: dict[str, object]) -> object:
    _refuse_error(response)
    number = response.get("id")
    if type(number) is not int or number != _CALL_ID:
        raise AnswerError("the answer is that of another request")
    result = _mapping(response.get("result"), "result")
    if result.get("resultType", "complete") != "complete":
        raise AnswerError("the tool asks for more before it answers")
    failed = result.get("isError", False)
    if not isinstance(failed, bool):
        raise AnswerError("the answer's isError is neither true nor false")
    if failed:
        raise AnswerError(f"the tool failed: {_tool_text(result) or 'it does not say why'}")
    structured = result.get("structuredContent")
    return _tool_text(result) if structured is None else structured


def _tool_text(result: dict[str, object]) -> str:
    parts = [_mapping(part, "part of its content") for part in _sequence(result.get("content"), "content")]
    texts = [_text(part.get("text"), "text") for part in parts if part.get("type") == "text"]
    if parts and not texts:
        raise AnswerError("the tool answered with neither a structure nor text")
    return "\n".join(texts)


def _decode_chat(answer: CallAnswer) -> str:
    if _is_stream(answer):
        return _joined(read_events(answer.body))
    found = _mapping(read_json(answer.body), "completion")
    _refuse_error(found)
    choices = _sequence(found.get("choices"), "list of choices")
    choice = _mapping(choices[0] if choices else None, "choice")
    return _text(_mapping(choice.get("message"), "message").get("content"), "text in its message")


def _joined(events: Iterable[bytes]) -> str:
    """The text of a stream's first choice; whole only with a reason why it ended and the mark of the end."""
    parts: list[str] = []
    finished = ended = False
    for data in events:
        if ended:
            raise AnswerError("the stream goes on after its end")
        ended = data.strip() == b"[DONE]"
        for choice in [] if ended else _first_choices(data):
            content = _mapping(choice.get("delta"), "delta").get("content")
            parts.append("" if content is None else _text(content, "text in its delta"))
            finished = finished or choice.get("finish_reason") is not None
    if not (finished and ended):
        raise AnswerError("the stream was cut before its end")
    return "".join(parts)


def _first_choices(data: bytes) -> list[dict[str, object]]:
    chunk = _mapping(read_json(data), "chunk")
    _refuse_error(chunk)
    choices = [_mapping(choice, "choice") for choice in _sequence(chunk.get("choices"), "list of choices")]
    return [choice for choice in choices if choice.get("index", 0) == 0]


def _refuse_error(found: dict[str, object]) -> None:
    """An `error` that says nothing beside other fields is none: some services always send one."""
    error = found.get("error")
    if error is None or error is False or not (error or len(found) == 1):
        return
    raise AnswerError(f"the service says: {_words(error)}")


def _words(error: object) -> str:
    said = error
    if isinstance(error, dict):
        said = next((error[name] for name in _WORDS if isinstance(error.get(name), str)), error)
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def _is_stream(answer: CallAnswer) -> bool:
    return answer.content_type.partition(";")[0].strip().lower() == _EVENTS


def _mapping(found: object, what: str) -> dict[str, object]:
    if not isinstance(found, dict):
        raise AnswerError(f"the answer has no {what} that is an object")
    return found


def _sequence(found: object, what: str) -> list[object]:
    if not isinstance(found, list):
        raise AnswerError(f"the answer has no {what}")
    return found


def _text(found: object, what: str) -> str:
    if not isinstance(found, str):
        raise AnswerError(f"the answer has no {what}")
    return found


_DECODERS: Final[Mapping[Form, Callable[[CallAnswer], object]]] = {
    "json": _decode_json,
    "mcp": _decode_mcp,
    "chat": _decode_chat,
}
