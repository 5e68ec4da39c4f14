"""Errors of the API in the one shape of RFC 9457, with stable types."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from counterfoil.chain.errors import ChainError
from counterfoil.posting import RefusedError
from counterfoil.receipts import ReceiptError
from counterfoil.routing.lottery import LotteryError
from indexer.errors import (
    EmptyIndexError,
    IndexerError,
    QuestionError,
    ReplacedBlockError,
    RetryableError,
    StoreError,
    UnknownBlockError,
)

MAX_DETAIL = 300


class NotFoundError(Exception):
    """Nothing has the id that was asked for."""


class NotReadyError(Exception):
    """The index is being filled."""


def problem(status: int, kind: str, detail: str, more: Mapping[str, object] | None = None) -> JSONResponse:
    """One problem document; `type` is stable, `detail` is a sentence for people, `more` what the type adds."""
    body = {
        "type": f"urn:counterfoil:problem:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail[:MAX_DETAIL],
        **(more or {}),
    }
    return JSONResponse(body, status_code=status, media_type="application/problem+json")


def classify(error: Exception) -> tuple[int, str]:
    """The status and the type of an error that the product raises on purpose."""
    if isinstance(error, NotFoundError):
        return 404, "not-found"
    if isinstance(error, ReplacedBlockError):
        return 409, "replaced-block"
    if isinstance(error, RefusedError):
        return 422, "refused"
    if isinstance(error, ChainError):
        return 503, "chain-unavailable"
    if isinstance(error, EmptyIndexError):
        return 503, "not-ready"
    if isinstance(error, UnknownBlockError):
        return 404, "unknown-block"
    if isinstance(error, QuestionError | ReceiptError | LotteryError):
        return 400, "bad-question"
    if isinstance(error, StoreError | RetryableError | NotReadyError):
        return 503, "not-ready"
    return 500, "misconfigured"


def additions(error: Exception) -> dict[str, object]:
    """What the problem of an error tells beside its sentence."""
    if isinstance(error, ReplacedBlockError):
        return {"block": error.number, "replacement": error.replacement}
    return {"rule": error.rule} if isinstance(error, RefusedError) else {}


def install(app: FastAPI) -> None:
    """Give an application these errors."""

    async def expected(_: Request, error: Exception) -> JSONResponse:
        return problem(*classify(error), str(error), additions(error))

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - dispatched by this type
        wrong = "; ".join(f"{item['loc'][-1]}: {item['msg']}" for item in error.errors()[:5])
        return problem(400, "bad-parameter", wrong)

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101 - dispatched by this type
        return problem(error.status_code, "http", str(error.detail))

    async def unexpected(_: Request, __: Exception) -> JSONResponse:
        return problem(500, "internal", "the server failed; its log says why")

    for kind in (NotFoundError, NotReadyError, RefusedError, IndexerError, ReceiptError, LotteryError):
        app.add_exception_handler(kind, expected)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unexpected)
