"""The tables as version 1 made them."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

AMOUNT: sa.types.TypeEngine[Any] = sa.Numeric(78, 0).with_variant(sa.CHAR(78), "sqlite")
NUMBER: sa.types.TypeEngine[Any] = sa.BigInteger()
TEXT: sa.types.TypeEngine[Any] = sa.Text()
FLAG: sa.types.TypeEngine[Any] = sa.Boolean()
CURRENT = sa.text("valid_to IS NULL")
CLOSED = sa.text("valid_to IS NOT NULL")

Columns = dict[str, sa.types.TypeEngine[Any]]

VERSIONED: dict[str, tuple[Columns, Columns]] = {
    "node": ({"node_id": NUMBER}, {"operator": TEXT, "endpoint": TEXT}),
    "node_stake": ({"node_id": NUMBER}, {"stake": AMOUNT, "unbonding": AMOUNT, "release_at": NUMBER}),
    "capability": ({"node_id": NUMBER, "capability": TEXT}, {"enabled": FLAG}),
    "service": (
        {"service_id": NUMBER},
        {
            "node_id": NUMBER, "category_id": TEXT, "category": TEXT, "price": AMOUNT, "metadata_uri": TEXT,
            "active": FLAG,
        },
    ),
    "node_load": ({"node_id": NUMBER}, {"active_sessions": NUMBER}),
    "node_reputation": (
        {"node_id": NUMBER},
        {
            "rating_sum": NUMBER, "rating_count": NUMBER, "unpaid_count": NUMBER, "paid_weight": AMOUNT,
            "weighted_sum": AMOUNT,
        },
    ),
    "session": (
        {"session_id": TEXT},
        {
            "number": NUMBER, "client": TEXT, "service_id": NUMBER, "node_id": NUMBER, "operator": TEXT,
            "signer": TEXT, "price": AMOUNT, "max_price": AMOUNT, "deposit": AMOUNT, "expires_at": NUMBER,
            "policy": NUMBER, "nonce": AMOUNT, "attempt": AMOUNT, "snapshot_block": NUMBER, "snapshot_hash": TEXT,
            "draw_seed": TEXT, "price_cap": AMOUNT, "decision": TEXT, "opened_block": NUMBER, "status": NUMBER,
            "closes_at": NUMBER, "paid": AMOUNT, "refunded": AMOUNT, "calls": AMOUNT,
        },
    ),
    "credit": ({"account": TEXT}, {"amount": AMOUNT}),
    "dispute": (
        {"dispute_id": NUMBER},
        {
            "session_id": TEXT, "node_id": NUMBER, "client": TEXT, "claim": AMOUNT, "bond": AMOUNT, "evidence": TEXT,
            "status": NUMBER, "award": AMOUNT,
        },
    ),
    "court_credit": ({"account": TEXT}, {"amount": AMOUNT}),
}  # fmt: skip
"""Key columns and the others, by table."""

FACTS: dict[str, Columns] = {
    "rating": {
        "session_id": TEXT, "node_id": NUMBER, "client": TEXT, "service_id": NUMBER, "score": NUMBER, "paid": AMOUNT,
        "counted": FLAG,
    },
    "experience": {
        "session_id": TEXT, "tool": TEXT, "service_id": NUMBER, "need": TEXT, "task": TEXT, "worked": FLAG,
        "calls": NUMBER, "failures": NUMBER, "judge_score": NUMBER, "latency_ms": NUMBER, "cost": AMOUNT,
        "message": TEXT, "note": TEXT,
    },
    "slash": {"node_id": NUMBER, "from_stake": AMOUNT, "from_unbonding": AMOUNT, "recipient": TEXT},
    "arbiter": {"arbiter": TEXT},
}  # fmt: skip

INDEXED = {
    "block": ["hash"],
    "service": ["node_id"],
    "session": ["number", "client", "node_id", "opened_block"],
    "dispute": ["session_id", "node_id"],
    "rating": ["session_id", "node_id"],
    "experience": ["session_id", "service_id"],
    "slash": ["node_id"],
}
"""Columns with an index of their own."""


def upgrade() -> None:
    """Make all tables."""
    _table("meta", {"name": TEXT}, {"value": TEXT})
    _table("cursor", {"id": NUMBER}, {"number": NUMBER, "hash": TEXT}, {"finalized": NUMBER})
    _table("block", {"number": NUMBER}, {"hash": TEXT, "parent_hash": TEXT, "timestamp": NUMBER, "digest": TEXT})
    place: Columns = {"block_number": NUMBER, "log_index": NUMBER}
    logged: Columns = {"tx_index": NUMBER} | dict.fromkeys(("block_hash", "tx_hash", "address", "topics", "data"), TEXT)
    _table("raw_log", place, logged)
    _table("quarantine", place, {"reason": TEXT})
    for name, (key, columns) in VERSIONED.items():
        _versioned(name, key, columns)
    at_log: Columns = {"valid_from": NUMBER, "log_index": NUMBER}
    _table("parameter", at_log | {"name": TEXT}, {"contract": TEXT, "value": TEXT})
    for name, columns in FACTS.items():
        _table(name, at_log, columns)
    for name, indexed in INDEXED.items():
        for column in indexed:
            op.create_index(f"ix_{name}_{column}", name, [column])
    op.create_index("service_category", "service", ["category_id"])


def _table(name: str, key: Columns, columns: Columns, nullable: Columns | None = None) -> None:
    op.create_table(
        name,
        *[sa.Column(column, kind, primary_key=True, autoincrement=False) for column, kind in key.items()],
        *[sa.Column(column, kind, nullable=False) for column, kind in columns.items()],
        *[sa.Column(column, kind, nullable=True) for column, kind in (nullable or {}).items()],
    )


def _versioned(name: str, key: Columns, columns: Columns) -> None:
    _table(name, key | {"valid_from": NUMBER}, columns, {"valid_to": NUMBER})
    op.create_index(f"{name}_current", name, list(key), unique=True, sqlite_where=CURRENT, postgresql_where=CURRENT)
    op.create_index(f"{name}_valid_from", name, ["valid_from"])
    op.create_index(f"{name}_valid_to", name, ["valid_to"], sqlite_where=CLOSED, postgresql_where=CLOSED)
