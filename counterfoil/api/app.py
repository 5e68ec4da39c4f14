"""The application: each endpoint asks `indexer.query` and names the block that its answer is the state after."""

import hashlib
import json
import re
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qs

import orjson
from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from counterfoil import __version__, answers, documents
from counterfoil.api import audits, openapi, posting, problems
from counterfoil.api import receipts as posted
from counterfoil.api.limits import Limits
from counterfoil.api.metrics import MEDIA_TYPE, Counting, Metrics
from counterfoil.api.remembered import Remembered, is_known
from counterfoil.decision import NOBODY, decide_next
from counterfoil.directory import MAX_PLACES, Directory, LiveListings
from counterfoil.market import LiveMarket
from counterfoil.posting import AsksLedger
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts import digest_of
from counterfoil.receipts.model import SAFE_INTEGER
from counterfoil.routing.lottery import NO_CAP
from indexer import query
from indexer.errors import QuestionError
from indexer.query import Answer, AsOf, At, Store

T = TypeVar("T")

HASH_LENGTH = 66
ADDRESS_LENGTH = 42
MAX_LABEL = 200
Limit = Annotated[int, Query(ge=1, le=1000, description="Most items of a page", examples=[100])]
After = Annotated[int, Query(ge=0, lt=2**63, description="Begin after this one: the `next` before", examples=[0])]
Which = Annotated[
    str, Path(max_length=HASH_LENGTH, description="Number, id, or the start of an id: 4 digits or more", examples=["1"])
]
Id = Annotated[int, Path(ge=1, lt=2**63, description="Its number", examples=[1])]
Category = Annotated[
    str, Query(max_length=MAX_LABEL, description="A category, by its name", examples=["data:crypto-price"])
]
OneCategory = Annotated[
    str | None,
    Query(max_length=MAX_LABEL, description="Only those of this category", examples=["data:crypto-price"]),
]
Routable = Annotated[bool, Query(description="Only those that can be routed to", examples=[True])]
Cap = Annotated[
    int | None, Query(ge=0, lt=NO_CAP, description="Soft cap on the price a call, in base units", examples=[1200])
]
Nonce = Annotated[
    int | None,
    Query(ge=0, lt=SAFE_INTEGER, description="Draw number; by default the client's next", examples=[0]),
]
Client = Annotated[
    str, Query(max_length=ADDRESS_LENGTH, description="The client's address; by default nobody's", examples=[NOBODY])
]
OfAddress = Annotated[
    str | None, Query(max_length=ADDRESS_LENGTH, description="Only those of this address", examples=["0x" + "0a" * 20])
]
OfId = Annotated[int | None, Query(ge=1, lt=2**63, description="Only those of this one, by its id", examples=[1])]
OfStatus = Annotated[
    Literal["open", "closing", "settled"] | None, Query(description="Only those in this status", examples=["settled"])
]
Task = Annotated[
    str, Query(max_length=MAX_LABEL, description="What is to be done, in a few words", examples=["bitcoin price"])
]
Need = Annotated[str, Query(max_length=MAX_LABEL, description="The kind of job that it is", examples=["data:crypto"])]
AfterPlace = Annotated[int, Query(ge=0, le=MAX_PLACES, description="Begin after this place", examples=[0])]
Digest = Annotated[
    str,
    Path(
        description="The receipt's digest: the `decision` of its session",
        examples=["0x" + "2f" * 32],
        json_schema_extra={"pattern": "^0x[0-9a-f]{64}$"},
    ),
]
DESCRIPTION = (
    "Nodes, services, sessions and receipts, as of any indexed block. Amounts are decimal strings in base units."
)


async def at_block(
    at: Annotated[
        str | None,
        Query(max_length=HASH_LENGTH, description="Block number or hash; by default the newest", examples=["1"]),
    ] = None,
) -> At:
    """The block that a request asks about; None for the newest indexed one."""
    return None if at is None else query.named_block(at)


async def asked_store(request: Request) -> Store:
    """The index that the application was made with."""
    store: Store = request.app.state.store
    return store


AtBlock = Annotated[At, Depends(at_block)]
Asked = Annotated[Store, Depends(asked_store)]


async def asked_listings(request: Request, at: AtBlock) -> LiveListings:
    """The listings as of the block that a request asks about."""
    return LiveListings(request.app.state.directory, at)


Listings = Annotated[LiveListings, Depends(asked_listings)]


async def only_known_parameters(request: Request) -> None:
    """Refuse a parameter that an endpoint does not have, or that is there twice: it would silently be ignored."""
    described = request.app.openapi()["paths"][request.scope["route"].path][request.method.lower()]
    known = sorted(item["name"] for item in described.get("parameters", ()) if item["in"] == "query")
    for name, values in parse_qs(request.url.query, keep_blank_values=True).items():
        if name not in known:
            raise QuestionError(f"there is no parameter {name[:40]!r} here; there are: {', '.join(known) or 'none'}")
        if len(values) > 1:
            raise QuestionError(f"the parameter {name} is there {len(values)} times: give it once")


router = APIRouter(dependencies=[Depends(only_known_parameters)])


def create_app(store: Store, receipts: ReceiptStore, ask_ledger: AsksLedger | None = None) -> FastAPI:
    """The API over one index and one folder of receipts; `ask_ledger` is for records that wallet contracts signed."""
    app = FastAPI(
        title="Counterfoil", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None,
        redirect_slashes=False,  # a redirect would name whatever host the request named
    )  # fmt: skip
    app.state.store = store
    app.state.market = LiveMarket(store)
    app.state.directory = Directory(store)
    app.state.receipts = receipts
    app.state.ask_ledger = ask_ledger
    app.state.posting = CapacityLimiter(posting.THREADS)
    app.state.metrics = Metrics(store)
    app.include_router(router)
    app.include_router(posting.router, dependencies=[Depends(only_known_parameters)])
    problems.install(app)
    openapi.install(app)
    app.add_middleware(Remembered, store)
    app.add_middleware(Limits)
    app.add_middleware(Counting, app.state.metrics)  # last, so that it also counts what the limits refuse
    return app


@router.get("/health")
async def health() -> dict[str, str]:
    """Whether the process answers."""
    return {"status": "ok"}


@router.get("/ready")
def ready(store: Asked) -> answers.Answer:
    """Whether the index holds all blocks that it was being filled with; 503 until then."""
    as_of = query.as_of(store)
    if as_of.behind:
        raise problems.ProblemError(
            "not-ready",
            f"the index is at block {as_of.block} and lacks {as_of.behind} of those that it is being filled with: wait "
            "for `counterfoil index run`; questions are answered as of the block that is there",
        )
    return {"as_of": documents.as_of_document(as_of)}


@router.get("/status", response_model=answers.StatusAnswer)
def status(request: Request, store: Asked) -> Response:
    """What the index is of, how far it is, and its digest."""
    found = query.status(store)
    # Raw logs are let go while the block stands.
    return respond(request, documents.status_answer(found), f".{found.value.raw_logs_from or 0}.{found.value.raw_logs}")


@router.get("/services", response_model=answers.ServicesAnswer)
def services(
    request: Request,
    listings: Listings,
    category: OneCategory = None,
    routable: Routable = False,
    after: After = 0,
    limit: Limit = 100,
) -> Response:
    """List services by id, each with what most of those who tried it found."""
    found = listings.page(category, routable=routable, after=after, limit=limit)
    return respond(request, documents.services_answer(found))


@router.get("/services/best", response_model=answers.BestAnswer)
def best(
    request: Request,
    listings: Listings,
    task: Task = "",
    need: Need = "",
    routable: Routable = False,
    after: AfterPlace = 0,
    limit: Limit = 20,
) -> Response:
    """Rank all services for a task and a need, by what other agents found; each place says why."""
    if not task and not need:
        raise QuestionError("name a task, a need, or both: `task=bitcoin price&need=data:crypto`")
    found = listings.best(task, need, routable=routable, after=after, limit=limit)
    return respond(request, documents.best_answer(found, after))


@router.get("/services/{service_id}", response_model=answers.ServiceAnswer)
def service(request: Request, listings: Listings, service_id: Id) -> Response:
    """One service."""
    return respond(request, documents.service_answer(*existing("service", service_id, listings.one(service_id))))


@router.get("/services/{service_id}/experience", response_model=answers.ExperienceAnswer)
def experience(request: Request, listings: Listings, service_id: Id) -> Response:
    """What agents found of one service, by need and by task label, with the latest notes."""
    return respond(request, documents.experience_answer(*existing("service", service_id, listings.one(service_id))))


@router.get("/route", response_model=answers.RouteAnswer)
def route(
    request: Request,
    at: AtBlock,
    category: Category,
    client: Client = NOBODY,
    cap: Cap = None,
    nonce: Nonce = None,
) -> Response:
    """What the lottery would choose for a client's next draw, with every reason. Nothing is opened or written."""
    decided = decide_next(request.app.state.market, category, at, client, nonce, cap)
    return respond(request, documents.route_answer(*decided))


@router.get("/nodes", response_model=answers.NodesAnswer)
def nodes(
    request: Request, store: Asked, at: AtBlock, operator: OfAddress = None, after: After = 0, limit: Limit = 100
) -> Response:
    """List nodes by id."""
    found = query.nodes(store, operator=operator, after=after, limit=limit, at=at)
    return respond(request, documents.nodes_answer(found))


@router.get("/nodes/{node_id}", response_model=answers.NodeAnswer)
def node(request: Request, store: Asked, node_id: Id, at: AtBlock) -> Response:
    """One node."""
    return respond(request, documents.node_answer(*existing("node", node_id, query.node(store, node_id, at))))


@router.get("/sessions", response_model=answers.SessionsAnswer)
def sessions(
    request: Request,
    store: Asked,
    at: AtBlock,
    client: OfAddress = None,
    node: OfId = None,
    service: OfId = None,
    status: OfStatus = None,
    after: After = 0,
    limit: Limit = 100,
) -> Response:
    """List sessions by number."""
    number = None if status is None else documents.SESSION_STATUS.index(status)
    found = query.sessions(
        store, client=client, node_id=node, service_id=service, status=number, after=after, limit=limit, at=at
    )
    return respond(request, documents.sessions_answer(found))


@router.get("/sessions/{which}", response_model=answers.SessionAnswer)
def session(request: Request, store: Asked, which: Which, at: AtBlock) -> Response:
    """One session, by its number, its id, or an unambiguous prefix of its id."""
    return respond(request, documents.session_answer(*existing("session", which, query.session(store, which, at))))


@router.get("/audit/{session_id}", response_model=answers.AuditAnswer)
def audit(request: Request, store: Asked, session_id: Which) -> Response:
    """Replay one decision from this server's index and the receipts that it keeps. Its chain is not asked."""
    answer = audits.audited(store, request.app.state.receipts, session_id)
    shown = json.dumps(answer["audit"], sort_keys=True).encode()  # it also changes where a receipt arrives
    return respond(request, answer, mark="." + hashlib.sha256(shown).hexdigest()[:16])


async def body_of(request: Request) -> bytes:
    """The whole body of a request, which `Limits` bounds."""
    return await request.body()


@router.post(
    "/receipts", response_model=answers.ReceiptKept, status_code=201, responses={200: {"model": answers.ReceiptKept}}
)
def keep_receipt(request: Request, store: Asked, data: Annotated[bytes, Depends(body_of)]) -> Response:
    """Keep the canonical bytes of a receipt that a session of its client commits to, once that is indexed.

    201 where they are new here, 200 where they are here already.
    """
    digest, is_new = posted.keep(store, request.app.state.receipts, data)
    return JSONResponse({"digest": digest}, 201 if is_new else 200, {"Location": f"/receipts/{digest}"})


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """Requests by route, method and status, their seconds, and how far the index is, for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=MEDIA_TYPE)


@router.get("/receipts/{digest}", response_model=dict[str, Any])
def receipt(request: Request, digest: Digest) -> Response:
    """The canonical bytes under a digest."""
    if not re.fullmatch("0x[0-9a-f]{64}", digest):
        raise QuestionError("a digest is 0x and 64 lower-case hexadecimal digits")
    data = found(request.app.state.receipts.read(digest), f"there is no receipt {digest}")
    if digest_of(data) != digest:
        raise problems.ProblemError("misconfigured", f"the receipt {digest} is damaged here: post it again")
    return Response(data, media_type="application/json")


def found(value: T | None, sentence: str) -> T:
    """The value, or NotFoundError with the sentence."""
    if value is None:
        raise problems.NotFoundError(sentence)
    return value


def existing(kind: str, name: int | str, answer: Answer[T | None]) -> tuple[AsOf, T]:
    """The block and the value of an answer, or NotFoundError that says what is not there."""
    as_of = answer.as_of
    return as_of, found(answer.value, f"there is no {kind} {name} as of block {as_of.block}")


def respond(request: Request, answer: answers.Answer, mark: str = "") -> Response:
    """An answer with a link to the next page, and an ETag of its block and of how it stands; 304 where known.

    `mark` is for what may change while the block does not.
    """
    as_of = answer["as_of"]
    stands = f"{'.final' if as_of['finalized'] else ''}{'.behind' * bool(as_of['behind'])}{as_of['behind'] or ''}"
    etag = f'"{as_of["hash"]}{stands}{mark}"'
    headers = {"ETag": etag}
    following = answer.get("next")
    if following is not None:
        # By its hash: the next page of a block that was replaced must not be another one's.
        url = request.url.include_query_params(after=following, at=as_of["hash"])
        headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
    if is_known(etag, request.headers):
        return Response(status_code=304, headers=headers)
    return Response(encoded(answer), headers=headers, media_type="application/json")


def encoded(answer: answers.Answer) -> bytes:
    """An answer as JSON."""
    try:
        return orjson.dumps(answer)
    except TypeError:  # it takes no integer past 64 bits, such as a nonce
        return bytes(JSONResponse(answer).body)
