"""A node over HTTP: calls on `/call`, and what it says of itself."""

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final

import structlog
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from counterfoil.node.book import BookError
from counterfoil.node.node import Node
from counterfoil.node.proxy import FailedError
from counterfoil.node.relay import Relay
from counterfoil.node.upstream import Ask
from counterfoil.node.vouchers import Refusal, RefusedError
from counterfoil.node.wire import CALL, METHODS, REPLAYED, MalformedError, read_voucher
from indexer.errors import IndexerError

BODY_SECONDS: Final = 30.0
_DOTS = re.compile(r"(?:/|\\|%2f|%5c)(?:\.|%2e){1,2}(?:/|\\|%2f|%5c|$)", re.IGNORECASE)
_STATUSES: Final = {
    Refusal.BAD_SIGNATURE: 402, Refusal.WRONG_CALLS: 402, Refusal.UNDERPAID: 402, Refusal.ABOVE_DEPOSIT: 402,
    Refusal.OVERLOADED: 503,
}  # fmt: skip
_CONFLICT: Final = 409
_AGAIN: Final = {Refusal.BUSY, Refusal.UNCONFIRMED, Refusal.OVERLOADED}
_log = structlog.get_logger()


def create_app(node: Node) -> Starlette:
    """The node's HTTP application."""

    async def call(request: Request) -> Response:
        ask_target = target_of(request.scope)
        voucher = read_voucher(request.headers)
        body = await _body(request, node.settings.node_max_body_bytes)
        relay = node.proxy.start(voucher, Ask(request.method, ask_target, dict(request.headers), body))
        await (relay.ended() if request.scope["http_version"] == "1.0" else relay.begun())
        if relay.error is not None:
            raise relay.error
        return _Relayed(relay, node.settings.node_call_seconds)

    async def settle(request: Request) -> Response:
        voucher = read_voucher(request.headers)
        known = await run_in_threadpool(node.gate.may_settle, voucher)
        done = await run_in_threadpool(node.settler.settle, known)
        node.watch.wake()
        return JSONResponse({"session_id": done.session_id, "paid": str(done.paid), "calls": done.calls})

    async def health(_: Request) -> Response:
        return JSONResponse({"node_id": node.node_id, "status": "ok"})

    async def ready(_: Request) -> Response:
        is_ready, document = await run_in_threadpool(node.watch.ready)
        return JSONResponse(document, 200 if is_ready else 503)

    async def metrics(_: Request) -> Response:
        node.metrics.in_flight.set(node.proxy.in_flight)
        return Response(node.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def heartbeat(_: Request) -> Response:
        latest = node.heart.latest
        return _error(503, "not_ready", "there is no heartbeat yet") if latest is None else JSONResponse(latest)

    app = Starlette(
        routes=[
            Route(CALL, call, methods=[*METHODS]),
            Route(CALL + "/{rest:path}", call, methods=[*METHODS]),
            Route("/settle", settle, methods=["POST"]),
            *(Route(f"/{each.__name__}", each, methods=["GET"]) for each in (health, ready, metrics, heartbeat)),
        ],
        exception_handlers=_handlers(node),
    )
    app.router.redirect_slashes = False
    return app


def target_of(scope: Scope) -> str:
    """What follows `/call` in a request, as it was sent. Raises MalformedError for what leads elsewhere."""
    path = bytes(scope["raw_path"]).decode("ascii", "replace")
    rest = path.removeprefix(CALL)
    if rest == path or rest[:1] not in ("", "/") or _DOTS.search(rest):
        raise MalformedError(f"the path must be {CALL}, or {CALL}/ and a path without . and .. segments")
    query = bytes(scope["query_string"]).decode("ascii", "replace")
    return f"{rest}?{query}" if query else rest


def refusal_status(refusal: Refusal) -> tuple[int, bool]:
    """A refusal's HTTP status, and whether the same request may be taken in a moment."""
    return _STATUSES.get(refusal, _CONFLICT), refusal in _AGAIN


class _Relayed(Response):
    """An upstream's answer. Where it breaks off, or its client reads too slowly, the connection ends without an end."""

    def __init__(self, relay: Relay, seconds: float) -> None:
        self._relay = relay
        self._seconds = seconds
        super().__init__(status_code=relay.status, headers=dict(relay.headers))
        del self.headers["content-length"]
        if relay.replayed:
            self.headers[REPLAYED] = "true"
        if relay.kept and relay.status != 204:
            self.headers["content-length"] = str(relay.size)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        try:
            async with asyncio.timeout(self._seconds):
                await self._send(send)
        except TimeoutError:
            _log.warning("slow_client", message=f"A client did not read its answer in {self._seconds:g} s.")

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in self._relay.pieces():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if self._relay.kept:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _body(request: Request, most: int) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise MalformedError(f"the body is over {most} bytes")
    except TimeoutError:
        raise MalformedError(f"the body did not arrive in {BODY_SECONDS:g} s") from None
    return bytes(body)


def _error(status: int, kind: str, message: str, **more: object) -> JSONResponse:
    return JSONResponse({"error": {"type": kind, "message": message}, **more}, status_code=status)


def _handlers(node: Node) -> dict[Any, Callable[[Request, Exception], Any]]:
    """An answer for every error that is expected; what was no call is counted here, calls by the proxy."""

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, RefusedError)  # noqa: S101 - Starlette dispatches by this type
        status, may_try_again = refusal_status(error.refusal)
        answer = _error(status, str(error.refusal), str(error))
        if may_try_again:
            answer.headers["Retry-After"] = "1"
        return answer

    async def failed(_: Request, error: Exception) -> Response:
        assert isinstance(error, FailedError)  # noqa: S101 - as above
        detail = {} if error.detail is None else {"detail": error.detail}
        body = {"type": error.kind, "message": str(error), **detail}
        return JSONResponse({"error": body, "failure": error.failure.document()}, status_code=error.status)

    async def malformed(_: Request, error: Exception) -> Response:
        node.metrics.refused("malformed")
        return _error(400, "malformed", str(error))

    async def gone(_: Request, __: Exception) -> Response:
        node.metrics.refused("gone")
        return Response(status_code=400)

    async def unavailable(_: Request, error: Exception) -> Response:
        _log.warning("unavailable", error=type(error).__name__, message=str(error)[:300])
        if isinstance(error, BookError):
            return _error(503, "node_unavailable", "the node cannot write to its disk; the call charges nothing")
        return _error(503, "chain_unavailable", "the node cannot reach the chain; try again")

    async def internal(_: Request, error: Exception) -> Response:
        _log.error("internal", message=f"A request failed: {type(error).__name__}.", exc_info=error)
        return _error(500, "internal", "the node failed; its log says why")

    return {
        Exception: internal,
        RefusedError: refused, FailedError: failed, MalformedError: malformed, ClientDisconnect: gone,
        IndexerError: unavailable,
    }  # fmt: skip
