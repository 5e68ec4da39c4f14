"""One answer of every endpoint, for the OpenAPI document: of a small market in which all of them fit together."""

from typing import Final

from pydantic.config import JsonDict

from counterfoil import answers, documents
from counterfoil.directory import Experience
from counterfoil.receipts import Receipt, Request, build, digest
from counterfoil.receipts.canonical import document
from counterfoil.routing.experience import Record
from counterfoil.routing.lottery import NO_CAP, Candidate
from indexer.query import AsOf
from indexer.rows import Session
from indexer.views import NodeView, ServiceView

CATEGORY: Final = "data:crypto-price"
CLIENT: Final = "0x" + "4d" * 20
OPERATOR: Final = "0x" + "0a" * 20
SESSION_ID: Final = "0x" + "7a" * 32
_AS_OF: Final = AsOf(31337, 120, "0x" + "5e" * 32, 1_760_000_000, finalized=True)
_CONTRACTS: Final = {
    "NodeRegistry": "0x" + "1a" * 20,
    "SessionManager": "0x" + "2b" * 20,
    "ReputationLedger": "0x" + "3c" * 20,
}
_MARKET: Final = (
    Candidate(1, 1000, 50_000_000_000, 99, 1, 1, 50),
    Candidate(2, 1200, 20_000_000_000, 0, 0, 0, 20),
)


def answered() -> dict[str, object]:
    """What each operation answers, by its method and path."""
    block = documents.as_of_document(_AS_OF)
    service, known, session = _service(), _known(), documents.session_document(_session())
    receipt = example_receipt()
    return {
        "GET /health": {"status": "ok"},
        "GET /ready": {"as_of": block},
        "GET /metrics": 'counterfoil_api_requests_total{method="GET",route="/services",status="200"} 3.0\n',
        "GET /status": {"as_of": block, "status": _status()},
        "GET /services": {"as_of": block, "services": [service], "next": 1},
        "GET /services/best": {"as_of": block, "best": [_place(service, known)], "next": None},
        "GET /services/{service_id}": {"as_of": block, "service": service},
        "GET /services/{service_id}/experience": {
            "as_of": block,
            "service_id": 1,
            "experience": documents.experience_document(known),
        },
        "GET /route": documents.route_answer(_AS_OF, receipt),
        "GET /nodes": {"as_of": block, "nodes": [_node()], "next": None},
        "GET /nodes/{node_id}": {"as_of": block, "node": _node()},
        "GET /sessions": {"as_of": block, "sessions": [session], "next": None},
        "GET /sessions/{which}": {"as_of": block, "session": session},
        "GET /audit/{session_id}": {"as_of": block, "source": "index", "audit": _audit()},
        "GET /receipts/{digest}": document(receipt),
        "POST /receipts": {"digest": digest(receipt)},
        "POST /experience": {"session_id": SESSION_ID, "service_id": 1, "tool": "quote", "counts_from": 121},
    }


def example_record() -> JsonDict:
    """The body of a record of that session; nobody has signed it."""
    return {
        "service_id": 1, "session_id": SESSION_ID, "tool": "quote", "need": "data:crypto", "task": "bitcoin spot price",
        "worked": True, "calls": 2, "failures": 0, "judge_score": 90, "latency_ms": 120, "cost": "2000", "message": "",
        "note": "fast, and to the cent", "signature": "0x" + "1b" * 65,
    }  # fmt: skip


def example_receipt() -> Receipt:
    """A receipt that follows from its inputs, of a session that no chain has."""
    return build(
        chain_id=_AS_OF.chain_id,
        contracts=_CONTRACTS,
        snapshot_block=_AS_OF.block,
        snapshot_hash=_AS_OF.hash,
        request=Request(category=CATEGORY, client=CLIENT, nonce=0),
        candidates=_MARKET,
    )


def _service() -> answers.Service:
    view = ServiceView(
        service_id=1, node_id=1, category_id="0x" + "6c" * 32, category=CATEGORY, price=1000, metadata_uri="ipfs://atlas",
        active=True, operator=OPERATOR, endpoint="https://atlas.example", stake=50_000_000_000, active_sessions=1,
        rating_sum=99, rating_count=1, routable=True, max_concurrent=50,
    )  # fmt: skip
    return documents.service_document(view, _known())


def _known() -> Experience:
    record = Record(
        service_id=1, session_id=SESSION_ID, tool="quote", need="data:crypto", task="bitcoin spot price", worked=True,
        calls=2, judge_score=90, latency_ms=120, cost=2000, price=1000, note="fast, and to the cent",
        recorded_at=1_759_999_000,
    )  # fmt: skip
    known = Experience()
    known.add(record)
    return known


def _place(service: answers.Service, known: Experience) -> answers.Place:
    (group,) = documents.experience_document(known)["tasks"]
    match: answers.Match = {"closeness": "2/3", "trusted": False, **group}
    return {"place": 1, "service": service, "tried_for_need": True, "match": match}


def _node() -> answers.Node:
    view = NodeView(
        node_id=1, operator=OPERATOR, endpoint="https://atlas.example", stake=50_000_000_000, unbonding=0,
        release_at=0, active_sessions=1, rating_sum=99, rating_count=1, unpaid_count=0, paid_weight=2000,
        weighted_sum=198_000, max_concurrent=50, capabilities=("routing.v1",),
    )  # fmt: skip
    return documents.node_document(view)


def _session() -> Session:
    receipt = example_receipt()
    return Session(
        session_id=SESSION_ID, number=1, client=CLIENT, service_id=receipt.choice, node_id=1, operator=OPERATOR,
        signer=CLIENT, price=1000, max_price=1000, deposit=10_000, expires_at=1_760_003_600, policy=1, nonce=0,
        attempt=0, snapshot_block=_AS_OF.block, snapshot_hash=_AS_OF.hash, draw_seed=receipt.draw_seed,
        price_cap=NO_CAP, decision=digest(receipt), opened_block=_AS_OF.block, status=1, closes_at=0, paid=0,
        refunded=0, calls=0,
    )  # fmt: skip


def _status() -> answers.Status:
    return {
        "addresses": dict(_CONTRACTS), "genesis_hash": "0x" + "9f" * 32, "first_block": 1, "finalized_block": 120,
        "digest": "0x" + "8d" * 32, "nodes": 2, "services": 2, "sessions": 1, "raw_logs": 12, "raw_logs_from": None,
        "quarantined": 0, "unknown_events": 0,
    }  # fmt: skip


def _audit() -> answers.Audit:
    receipt = example_receipt()
    session: answers.Commitment = {
        "client": CLIENT, "service_id": 1, "node_id": 1, "operator": OPERATOR, "price": "1000", "max_price": "1000",
        "policy": int(receipt.request.policy), "nonce": receipt.request.nonce, "attempt": receipt.attempt,
        "snapshot_block": receipt.snapshot_block, "snapshot_hash": receipt.snapshot_hash,
        "draw_seed": receipt.draw_seed, "price_cap": None, "decision": digest(receipt),
        "opened_block": receipt.snapshot_block + 1,
    }  # fmt: skip
    return {
        "session_id": SESSION_ID,
        "outcome": "ok",
        "first_difference": None,
        "by": {"state": None, "index": "ok", "receipt": "ok"},
        "session": session,
        "category": CATEGORY,
        "checks": [
            {"part": "index", "name": "draw seed", "outcome": "ok", "sentence": "follows from block, client and draw"}
        ],
    }
