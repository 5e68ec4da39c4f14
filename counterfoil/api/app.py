"""The application: each endpoint asks `indexer.query` and names the block that its answer is the state after."""

from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from counterfoil import __version__
from counterfoil.api import problems
from counterfoil.decision import NOBODY, decide, next_draw
from counterfoil.directory import AnyListings, Directory, LiveListings, StoredListings
from counterfoil.documents import (
    as_of_document,
    experience_document,
    node_document,
    ranked_document,
    service_document,
    session_document,
)
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

HASH_LENGTH = 66
ADDRESS_LENGTH = 42
MAX_LABEL = 200
MAX_PLACES = 100_000
Document = dict[str, Any]
Limit = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[int, Query(ge=0, lt=2**63)]
Id = Annotated[int, Path(ge=1, lt=2**63)]
Category = Annotated[str, Query(max_length=MAX_LABEL, description="A category, such as data:crypto-price")]
Routable = Annotated[bool, Query(description="Only those that can be routed to")]
Cap = Annotated[int | None, Query(ge=0, lt=NO_CAP, description="Soft cap on the price a call, in base units")]
Nonce = Annotated[int | None, Query(ge=0, lt=SAFE_INTEGER, description="Draw number; by default the client's next")]
DESCRIPTION = (
    "Nodes, services, sessions and receipts, as of any indexed block. Amounts are decimal strings in base units."
)


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


def asked_listings(request: Request, at: AtBlock) -> AnyListings:
    """The listings as of the block that a request asks about."""
    directory: Directory = request.app.state.directory
    return LiveListings(directory) if at is None else StoredListings(request.app.state.store, at)


Listings = Annotated[AnyListings, Depends(asked_listings)]


def only_known_parameters(request: Request) -> None:
    """Refuse a parameter that an endpoint does not have, or that is there twice: it would silently be ignored."""
    described = request.app.openapi()["paths"][request.scope["route"].path][request.method.lower()]
    known = sorted(item["name"] for item in described.get("parameters", ()) if item["in"] == "query")
    for name, values in parse_qs(request.url.query, keep_blank_values=True).items():
        if name not in known:
            raise QuestionError(f"there is no parameter {name[:40]!r} here; there are: {', '.join(known) or 'none'}")
        if len(values) > 1:
            raise QuestionError(f"the parameter {name} is there {len(values)} times: give it once")


router = APIRouter(dependencies=[Depends(only_known_parameters)])


def create_app(store: Store, receipts: ReceiptStore) -> FastAPI:
    """The API over one index and one folder of receipts."""
    app = FastAPI(title="Counterfoil", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None)
    app.state.store = store
    app.state.market = LiveMarket(store)
    app.state.directory = Directory(store)
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
    request: Request,
    listings: Listings,
    category: Category | None = None,
    routable: Routable = False,
    after: After = 0,
    limit: Limit = 100,
) -> Response:
    """List services by id, each with what most of those who tried it found."""
    answer = listings.page(category, routable=routable, after=after, limit=limit)
    rows = [service_document(view, known) for view, known in answer.value.items]
    return respond_page(request, answer, "services", rows)


@router.get("/services/best")
def best(
    request: Request,
    listings: Listings,
    task: Annotated[str, Query(max_length=MAX_LABEL, description="What is to be done, in a few words")] = "",
    need: Annotated[str, Query(max_length=MAX_LABEL, description="The kind of job, such as data:crypto")] = "",
    routable: Routable = False,
    after: Annotated[int, Query(ge=0, le=MAX_PLACES, description="Begin after this place")] = 0,
    limit: Limit = 20,
) -> Response:
    """Rank all services for a task and a need, by what other agents found; each place says why."""
    if not task and not need:
        raise QuestionError("name a task, a need, or both: `task=bitcoin price&need=data:crypto`")
    answer = listings.best(task, need, routable=routable, after=after, limit=limit)
    ranked = enumerate(answer.value.items, after + 1)
    return respond_page(request, answer, "best", [ranked_document(place, one, known) for place, (one, known) in ranked])


@router.get("/services/{service_id}")
def service(request: Request, listings: Listings, service_id: Id) -> Response:
    """One service."""
    answer = listings.one(service_id)
    view, known = found(answer.value, f"there is no service {service_id} as of block {answer.as_of.block}")
    return respond(request, answer.as_of, {"service": service_document(view, known)})


@router.get("/services/{service_id}/experience")
def experience(request: Request, listings: Listings, service_id: Id) -> Response:
    """What agents found of one service, by need and by task label, with the latest notes."""
    answer = listings.one(service_id)
    _, known = found(answer.value, f"there is no service {service_id} as of block {answer.as_of.block}")
    return respond(request, answer.as_of, {"service_id": service_id, "experience": experience_document(known)})


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
