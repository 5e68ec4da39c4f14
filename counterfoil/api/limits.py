"""What a request may cost: bytes of address and body, seconds for the body to come, seconds of database."""

import asyncio
from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterfoil.api.problems import ProblemError, problem
from counterfoil.receipts import MAX_BYTES
from indexer.store.deadline import answering_within

MAX_URL_BYTES: Final = 8192
"""Of path and query as they were sent."""
MAX_BODY_BYTES: Final = 65536
LARGER_BODIES: Final[Mapping[str, int]] = {"/receipts": MAX_BYTES}
"""Most bytes of a body by path, where it is more than MAX_BODY_BYTES."""
BODY_SECONDS: Final = 10.0
READ_SECONDS: Final = 10.0


class Limits:
    """Passes on what keeps the limits, with its body in one piece; answers anything else with a problem."""

    def __init__(self, app: ASGIApp, body_seconds: float = BODY_SECONDS, read_seconds: float = READ_SECONDS) -> None:
        self._app = app
        self._body_seconds = body_seconds
        self._read_seconds = read_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            _check_url(scope)
            body = await self._body(scope, receive)
        except ProblemError as error:
            await problem(error.kind, str(error))(scope, receive, send)
            return
        if body is not None:
            with answering_within(self._read_seconds):
                await self._app(scope, _again(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, None where the client went away."""
        limit = LARGER_BODIES.get(scope["path"], MAX_BODY_BYTES)
        _check_size(_declared(scope), limit)
        try:
            async with asyncio.timeout(self._body_seconds):
                return await _received(receive, limit)
        except TimeoutError:
            sentence = f"the body did not arrive within {self._body_seconds:g} seconds: send it again"
            raise ProblemError("slow-body", sentence) from None


def _check_url(scope: Scope) -> None:
    path = scope.get("raw_path") or scope["path"].encode()
    if len(path) + len(scope["query_string"]) > MAX_URL_BYTES:
        raise ProblemError("too-long", f"path and query are more than {MAX_URL_BYTES} bytes: ask a shorter question")


def _declared(scope: Scope) -> int:
    text = dict(scope["headers"]).get(b"content-length", b"0")
    return int(text) if text.isdigit() and len(text) < 20 else 0


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise ProblemError("too-large", f"the body is larger than the {limit} bytes that this address takes")


async def _received(receive: Receive, limit: int) -> bytes | None:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        _check_size(size, limit)
        more = message.get("more_body", False)
    return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        return pending.pop() if pending else await receive()

    return give
