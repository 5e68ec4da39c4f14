"""A server that speaks as an OpenAI-compatible one and needs no model: what it says follows from the last message."""

import json
from collections.abc import Iterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from counterfoil.demo.upstreams.asked import BadRequestError, asked
from counterfoil.demo.upstreams.figures import figure

MODEL = "counterfoil-demo"
CREATED = 1_700_000_000  # no clock: the same question has the same answer, byte for byte
_WORDS = (
    ("Prices", "Volumes", "Spreads", "Deposits", "Ratings"),
    ("rose", "fell", "held", "turned", "doubled"),
    ("sharply", "slowly", "twice", "again", "quietly"),
    ("while", "because", "before", "after", "although"),
    ("buyers", "sellers", "operators", "agents", "auditors"),
    ("waited.", "left.", "returned.", "agreed.", "paused."),
)


def sentence(question: str) -> str:
    """The one sentence that belongs to a question."""
    return " ".join(choices[figure(f"{place} {question}", len(choices))] for place, choices in enumerate(_WORDS))


def create_app() -> Starlette:
    """`POST /v1/chat/completions`, streamed where it is asked for, and `GET /v1/models`."""

    async def complete(request: Request) -> Response:
        wanted = await asked(request)
        words = sentence(_last_message(wanted)).split(" ")
        most = _max_tokens(wanted)
        reason = "stop" if most is None or len(words) <= most else "length"
        parts = [word if place == 0 else f" {word}" for place, word in enumerate(words[:most])]
        if wanted.get("stream") is True:
            return StreamingResponse(_stream(parts, reason), media_type="text/event-stream")
        message = {"role": "assistant", "content": "".join(parts)}
        usage = {"prompt_tokens": 0, "completion_tokens": len(parts), "total_tokens": len(parts)}
        return JSONResponse(_document("chat.completion", {"message": message}, reason) | {"usage": usage})

    async def models(_: Request) -> Response:
        model = {"id": MODEL, "object": "model", "created": CREATED, "owned_by": "counterfoil"}
        return JSONResponse({"object": "list", "data": [model]})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", complete, methods=["POST"]),
            Route("/v1/models", models, methods=["GET"]),
        ],
        exception_handlers={BadRequestError: _refused},
    )


def _stream(parts: list[str], reason: str) -> Iterator[bytes]:
    deltas = [{"role": "assistant", "content": ""}, *({"content": part} for part in parts)]
    for delta in deltas:
        yield _event(json.dumps(_document("chat.completion.chunk", {"delta": delta}, None)))
    yield _event(json.dumps(_document("chat.completion.chunk", {"delta": {}}, reason)))
    yield _event("[DONE]")


def _event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def _document(kind: str, said: dict[str, dict[str, str]], reason: str | None) -> dict[str, object]:
    choice = {"index": 0, **said, "finish_reason": reason}
    return {"id": "chatcmpl-demo", "object": kind, "created": CREATED, "model": MODEL, "choices": [choice]}


def _last_message(wanted: dict[str, object]) -> str:
    messages = wanted.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    if not isinstance(content, str):
        raise BadRequestError('Send messages that end with a text: [{"role": "user", "content": "..."}].')
    return content


def _max_tokens(wanted: dict[str, object]) -> int | None:
    most = wanted.get("max_tokens")
    if most is not None and (type(most) is not int or most < 1):
        raise BadRequestError("max_tokens is a whole number from 1.")
    return most if isinstance(most, int) else None


def _refused(_: Request, error: Exception) -> Response:
    told = {"message": str(error), "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": told}, status_code=400)
