"""A node over HTTP. The voucher of a call stands in four headers, so that the body is the service's own."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from counterfoil.node.node import Node, UpstreamError
from counterfoil.node.vouchers import Refusal, RefusedError, Voucher
from indexer.errors import IndexerError

SESSION = "Counterfoil-Session"
AMOUNT = "Counterfoil-Amount"
CALLS = "Counterfoil-Calls"
SIGNATURE = "Counterfoil-Signature"

MAX_BODY = 2**20
_SESSION = re.compile(r"0x[0-9a-f]{64}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,38}")
_SIGNATURE = re.compile(r"0x[0-9a-f]{130}")
_CONFLICTS = {Refusal.UNKNOWN_SESSION, Refusal.NOT_OURS, Refusal.NOT_OPEN, Refusal.EXPIRED, Refusal.BUSY}
_log = structlog.get_logger()


class MalformedError(ValueError):
    """A request that cannot be read; the message says what is wrong with it."""


def create_app(node: Node) -> Starlette:
    """The node's HTTP application: `POST /call`, `POST /settle`, `GET /health`."""

    async def call(request: Request) -> Response:
        body = await _body(request)
        voucher = read_voucher(request.headers)
        answer = await run_in_threadpool(node.serve, voucher, body)
        return Response(answer, media_type="application/json")

    async def settle(request: Request) -> Response:
        voucher = read_voucher(request.headers)
        done = await run_in_threadpool(node.settle, voucher)
        return JSONResponse({"session_id": done.session_id, "paid": str(done.paid), "calls": done.calls})

    async def health(_: Request) -> Response:
        return JSONResponse({"node_id": node.node_id, "status": "ok"})

    return Starlette(
        routes=[
            Route("/call", call, methods=["POST"]),
            Route("/settle", settle, methods=["POST"]),
            Route("/health", health, methods=["GET"]),
        ],
        exception_handlers={
            RefusedError: _refused,
            MalformedError: _answer(400, lambda error: ("malformed", str(error))),
            UpstreamError: _answer(502, lambda _: ("upstream_failed", "the service failed; the call charges nothing")),
            IndexerError: _answer(503, lambda _: ("chain_unavailable", "the node cannot reach the chain; try again")),
        },
    )


def read_voucher(headers: Mapping[str, str]) -> Voucher:
    """The voucher in a request's headers. Raises MalformedError, naming the header."""
    session_id = _matched(headers, SESSION, _SESSION)
    amount = int(_matched(headers, AMOUNT, _NUMBER))
    calls = int(_matched(headers, CALLS, _NUMBER))
    signature = bytes.fromhex(_matched(headers, SIGNATURE, _SIGNATURE)[2:])
    return Voucher(session_id, amount, calls, signature)


def voucher_headers(voucher: Voucher) -> dict[str, str]:
    """The headers that carry a voucher."""
    return {
        SESSION: voucher.session_id,
        AMOUNT: str(voucher.amount),
        CALLS: str(voucher.calls),
        SIGNATURE: "0x" + voucher.signature.hex(),
    }


def _matched(headers: Mapping[str, str], name: str, pattern: re.Pattern[str]) -> str:
    text = headers.get(name, "")
    if not pattern.fullmatch(text):
        raise MalformedError(f"the header {name} must match {pattern.pattern}")
    return text


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise MalformedError(f"the body is over {MAX_BODY} bytes")
    return bytes(body)


def _error(status: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"type": kind, "message": message}}, status_code=status)


def _answer(status: int, words: Callable[[Exception], tuple[str, str]]) -> Any:  # noqa: ANN401
    async def handler(_: Request, error: Exception) -> Response:
        _log.warning("call not served", status=status, reason=str(error)[:200])
        return _error(status, *words(error))

    return handler


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)  # noqa: S101 - Starlette dispatches by this type
    return _error(409 if error.refusal in _CONFLICTS else 402, str(error.refusal), str(error))
