"""Errors of the API in the one shape of RFC 9457, with stable types: `KINDS` is the whole list of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from counterfoil.chain.errors import ChainError
from counterfoil.posting import RefusedError
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts import ReceiptError
from counterfoil.routing.lottery import LotteryError
from indexer.errors import (
    EmptyIndexError,
    IndexerError,
    QuestionError,
    ReplacedBlockError,
    RetryableError,
    StoreError,
    TooSlowError,
    UnknownBlockError,
)
from indexer.query import Store

MAX_DETAIL = 300
MEDIA_TYPE: Final = "application/problem+json"
_URN: Final = "urn:counterfoil:problem:"


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of problem: the HTTP status that it has, when it is answered, and the members that it adds."""

    status: int
    when: str
    adds: tuple[str, ...] = ()


KINDS: Final[Mapping[str, Kind]] = {
    "bad-parameter": Kind(400, "A parameter or the body is missing, out of its bounds, or not of its form."),
    "bad-question": Kind(400, "The question has no answer as it is put, such as a parameter that does not exist here."),
    "bad-receipt": Kind(400, "The body is not the canonical bytes of a receipt that follows from its own inputs."),
    "not-found": Kind(404, "Nothing has the id that was asked for, as of the block that was asked for."),
    "unknown-block": Kind(404, "The index does not hold the block that `at` names."),
    "unknown-path": Kind(404, "There is no such address."),
    "wrong-method": Kind(405, "The address exists, and the header `Allow` says which methods it has."),
    "slow-body": Kind(408, "The body did not arrive in time."),
    "replaced-block": Kind(
        409,
        "A reorg took away the block that `at` names; `replacement` is the hash of what is at `block` now, or null.",
        ("block", "replacement"),
    ),
    "uncommitted": Kind(409, "No indexed session commits to the receipt: it was not opened, or is not indexed yet."),
    "too-large": Kind(413, "The body is larger than this address takes."),
    "too-long": Kind(414, "Path and query are longer than any question needs."),
    "refused": Kind(422, "The record breaks a rule of the ledger, which `rule` names (docs/directory.md).", ("rule",)),
    "internal": Kind(500, "The server failed; its log says why."),
    "misconfigured": Kind(500, "The server cannot do this until its operator mends what the sentence names."),
    "chain-unavailable": Kind(503, "The chain, which has to be asked about a wallet's signature, does not answer."),
    "empty-index": Kind(503, "The index holds no block yet: ask again once it does."),
    "not-ready": Kind(503, "The index is being filled, out of reach or busy, or moved on in between: ask again."),
    "too-slow": Kind(503, "The question takes the database too long: ask for less, or later."),
}


class ProblemError(Exception):
    """A request that is refused with a problem of a kind, and with a sentence for people."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class NotFoundError(ProblemError):
    """Nothing has the id that was asked for."""

    def __init__(self, detail: str) -> None:
        super().__init__("not-found", detail)


def urn(kind: str) -> str:
    """The `type` of a problem."""
    return _URN + kind


def problem(
    kind: str, detail: str, headers: Mapping[str, str] | None = None, more: Mapping[str, object] | None = None
) -> JSONResponse:
    """One problem document; `type` is stable, `detail` is a sentence for people, `more` what the type adds."""
    status = KINDS[kind].status
    body = {
        "type": urn(kind),
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail[:MAX_DETAIL],
        **(more or {}),
    }
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE, headers=headers)


_OF_TYPES: Final = (
    ("refused", RefusedError),
    ("replaced-block", ReplacedBlockError),
    ("empty-index", EmptyIndexError),
    ("unknown-block", UnknownBlockError),
    ("bad-question", (QuestionError, ReceiptError, LotteryError)),
    ("too-slow", TooSlowError),
    ("not-ready", (StoreError, RetryableError)),
    ("chain-unavailable", ChainError),
)
"""Kinds of what the product raises, the first that fits."""


def classify(error: Exception) -> str:
    """The kind of an error that the product raises on purpose."""
    if isinstance(error, ProblemError):
        return error.kind
    fitting = (kind for kind, types in _OF_TYPES if isinstance(error, types))
    return next(fitting, "misconfigured")


def without_places(sentence: str, store: Store, receipts: ReceiptStore) -> str:
    """A sentence without where on this machine index and receipts are: that is nobody else's business."""
    return sentence.replace(store.label, "this server").replace(f"{receipts.folder.parent}/", "")


def additions(error: Exception) -> dict[str, object]:
    """What the problem of an error tells beside its sentence."""
    if isinstance(error, ReplacedBlockError):
        return {"block": error.number, "replacement": error.replacement}
    return {"rule": error.rule} if isinstance(error, RefusedError) else {}


def install(app: FastAPI) -> None:
    """Give an application these errors."""

    async def expected(request: Request, error: Exception) -> JSONResponse:
        state = request.app.state
        sentence = without_places(str(error), state.store, state.receipts)
        return problem(classify(error), sentence, more=additions(error))

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - dispatched by this type
        wrong = "; ".join(f"{item['loc'][-1]}: {item['msg']}" for item in error.errors()[:5])
        return problem("bad-parameter", wrong)

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101 - dispatched by this type
        return _of_framework(request, error)

    async def unexpected(_: Request, __: Exception) -> JSONResponse:
        return problem("internal", "the server failed; its log says why")

    for kind in (ProblemError, RefusedError, IndexerError, ReceiptError, LotteryError):
        app.add_exception_handler(kind, expected)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unexpected)


def _of_framework(request: Request, error: HTTPException) -> JSONResponse:
    if error.status_code == 404:
        return problem("unknown-path", "there is no such address: /openapi.json lists those that there are")
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        sentence = f"this address has no method {request.method[:20]}: it has {allowed or 'another one'}"
        return problem("wrong-method", sentence, error.headers)
    return problem("bad-parameter", str(error.detail))
