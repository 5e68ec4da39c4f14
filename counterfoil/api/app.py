"""The application: each endpoint asks `indexer.query` and names the block that its answer is the state after."""

from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response

from counterfoil import __version__
from counterfoil.api import problems
from counterfoil.decision import NOBODY, decide, next_draw
from counterfoil.documents import as_of_document, node_document, service_document, session_document
from counterfoil.market import LiveMarket, snapshot
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts import digest
from counterfoil.receipts.canonical import document
from counterfoil.receipts.model import SAFE_INTEGER
from counterfoil.routing.lottery import NO_CAP
from indexer import query
from indexer.errors import QuestionError
from indexer.query import Answer, AsOf, At, Page, Store

T = TypeVar("T")

Document = dict[str, Any]
Limit = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[int, Query(ge=0, lt=2**63)]
Cap = Annotated[int | None, Query(ge=0, lt=NO_CAP, description="Soft cap on the price a call, in base units")]
Nonce = Annotated[int | None, Query(ge=0, lt=SAFE_INTEGER, description="Draw number; by default the client's next")]
DESCRIPTION = (
    "Nodes, services, sessions and receipts, as of any indexed block. Amounts are decimal strings in base units."
)
HASH_LENGTH = 66
ADDRESS_LENGTH = 42


def at_block(
    at: Annotated[str | None, Query(max_length=HASH_LENGTH, description="Block number or hash")] = None,
) -> At:
    """The block that a request asks about; None for the newest indexed one."""
    return None if at is None else query.named_block(at)


def asked_store(request: Request) -> Store:
    """The index that the application was made with."""
    store: Store = request.app.state.store
    return store


AtBlock = Annotated[At, Depends(at_block)]
Asked = Annotated[Store, Depends(asked_store)]
router = APIRouter()


def create_app(store: Store, receipts: ReceiptStore) -> FastAPI:
    """The API over one index and one folder of receipts."""
    app = FastAPI(title="Counterfoil", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None)
    app.state.store = store
    app.state.market = LiveMarket(store)
    app.state.receipts = receipts
    app.include_router(router)
    problems.install(app)
    return app


@router.get("/health")
def health() -> Document:
    """Whether the process answers."""
    return {"status": "ok"}


@router.get("/ready")
def ready(store: Asked) -> Document:
    """Whether the index holds a block to answer from; 503 until then."""
    return {"as_of": as_of_document(query.as_of(store))}


@router.get("/status")
def status(request: Request, store: Asked) -> Response:
    """What the index is of, how far it is, and its digest."""
    answer = query.status(store)
    value = answer.value
    counts = {name: getattr(value, name) for name in ("nodes", "services", "sessions", "raw_logs", "quarantined")}
    body = {"addresses": dict(value.addresses), "first_block": value.first_block, "digest": value.digest, **counts}
    return respond(request, answer.as_of, {"status": body})


@router.get("/services")
def services(
    request: Request, store: Asked, at: AtBlock, category: str | None = None, after: After = 0, limit: Limit = 100
) -> Response:
    """List services by id."""
    answer = query.services(store, category=category, after=after, limit=limit, at=at)
    return respond_page(request, answer, "services", [service_document(view) for view in answer.value.items])


@router.get("/services/{service_id}")
def service(request: Request, store: Asked, service_id: int, at: AtBlock) -> Response:
    """One service."""
    answer = query.service(store, service_id, at)
    view = found(answer.value, f"there is no service {service_id} as of block {answer.as_of.block}")
    return respond(request, answer.as_of, {"service": service_document(view)})


@router.get("/route")
def route(
    request: Request,
    store: Asked,
    at: AtBlock,
    category: str,
    client: Annotated[str, Query(max_length=ADDRESS_LENGTH)] = NOBODY,
    cap: Cap = None,
    nonce: Nonce = None,
) -> Response:
    """What the lottery would choose for a client's next draw, with every reason. Nothing is opened or written."""
    live: LiveMarket = request.app.state.market
    found = live.snapshot(category) if at is None else snapshot(store, category, at)
    draw = next_draw(store, client, found.as_of.block) if nonce is None else nonce
    receipt = decide(found, live.head().addresses, client.lower(), draw, cap)
    return respond(request, found.as_of, {"digest": digest(receipt), "decision": document(receipt)})


@router.get("/nodes")
def nodes(request: Request, store: Asked, at: AtBlock, after: After = 0, limit: Limit = 100) -> Response:
    """List nodes by id."""
    answer = query.nodes(store, after=after, limit=limit, at=at)
    return respond_page(request, answer, "nodes", [node_document(view) for view in answer.value.items])


@router.get("/nodes/{node_id}")
def node(request: Request, store: Asked, node_id: int, at: AtBlock) -> Response:
    """One node."""
    answer = query.node(store, node_id, at)
    view = found(answer.value, f"there is no node {node_id} as of block {answer.as_of.block}")
    return respond(request, answer.as_of, {"node": node_document(view)})


@router.get("/sessions")
def sessions(request: Request, store: Asked, at: AtBlock, after: After = 0, limit: Limit = 100) -> Response:
    """List sessions by number."""
    answer = query.sessions(store, after=after, limit=limit, at=at)
    return respond_page(request, answer, "sessions", [session_document(row) for row in answer.value.items])


@router.get("/sessions/{which}")
def session(request: Request, store: Asked, which: str, at: AtBlock) -> Response:
    """One session, by its number, its id, or an unambiguous prefix of its id."""
    answer = query.session(store, which, at)
    row = found(answer.value, f"there is no session {which[:80]} as of block {answer.as_of.block}")
    return respond(request, answer.as_of, {"session": session_document(row)})


@router.get("/receipts/{digest}")
def receipt(request: Request, digest: str) -> Response:
    """The canonical bytes under a digest."""
    if len(digest) != HASH_LENGTH:
        raise QuestionError("a digest is 0x and 64 lower-case hexadecimal digits")
    data = found(request.app.state.receipts.read(digest), f"there is no receipt {digest}")
    return Response(data, media_type="application/json")


def found(value: T | None, sentence: str) -> T:
    """The value, or NotFoundError with the sentence."""
    if value is None:
        raise problems.NotFoundError(sentence)
    return value


def respond(request: Request, as_of: AsOf, body: Document, link: str | None = None) -> Response:
    """An answer with its block and an ETag made of the block's hash; 304 where the caller has it."""
    etag = f'"{as_of.hash}"'
    headers = {"ETag": etag} | ({"Link": link} if link else {})
    if request.headers.get("If-None-Match") == etag:
        return Response(status_code=304, headers=headers)
    return JSONResponse({"as_of": as_of_document(as_of), **body}, headers=headers)


def respond_page(request: Request, answer: Answer[Page[T]], name: str, rows: list[Document]) -> Response:
    """A page of rows, with a link to the next one as of the same block."""
    link = None
    if answer.value.next is not None:
        following = request.url.include_query_params(after=answer.value.next, at=answer.as_of.block)
        link = f'<{following.path}?{following.query}>; rel="next"'
    return respond(request, answer.as_of, {name: rows}, link)
