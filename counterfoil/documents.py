"""Rows of the index as JSON values, the same in the CLI and in the API. Amounts are decimal strings."""

from dataclasses import asdict
from typing import Any, Final

from counterfoil.receipts import policy_name
from counterfoil.routing.lottery import NO_CAP
from indexer.query import AsOf
from indexer.rows import Session
from indexer.views import NodeView, ServiceView

Document = dict[str, Any]

SESSION_STATUS: Final = ("none", "open", "closing", "settled")


def as_of_document(as_of: AsOf) -> Document:
    """The block of an answer as JSON."""
    return {
        "chain_id": as_of.chain_id,
        "block": as_of.block,
        "hash": as_of.hash,
        "timestamp": as_of.timestamp,
        "finalized": as_of.finalized,
    }


def service_document(view: ServiceView) -> Document:
    """A service as JSON; amounts are decimal strings."""
    strings = {"price": str(view.price), "stake": str(view.stake), "max_concurrent": str(view.max_concurrent)}
    return asdict(view) | strings


def node_document(view: NodeView) -> Document:
    """A node as JSON; amounts are decimal strings."""
    amounts = ("stake", "unbonding", "max_concurrent", "paid_weight", "weighted_sum")
    strings = {name: str(getattr(view, name)) for name in amounts}
    return asdict(view) | strings | {"capabilities": list(view.capabilities)}


def session_document(row: Session) -> Document:
    """A session as JSON; amounts are decimal strings, no cap is null."""
    strings = {name: str(getattr(row, name)) for name in ("price", "max_price", "deposit", "paid", "refunded")}
    cap = None if row.price_cap == NO_CAP else str(row.price_cap)
    return (
        asdict(row)
        | strings
        | {"price_cap": cap, "status": SESSION_STATUS[row.status], "policy": policy_name(row.policy)}
    )
