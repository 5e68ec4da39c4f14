"""Values of the index as the answers of `counterfoil.answers`, the same in the CLI, in the API and over MCP."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from counterfoil import answers
from counterfoil.directory import Experience, Ranked
from counterfoil.directory.board import reputation
from counterfoil.directory.listings import Listed, Placed
from counterfoil.receipts import Receipt, digest, policy_name
from counterfoil.receipts.canonical import document
from counterfoil.routing.experience import Summary, sentence
from counterfoil.routing.lottery import NO_CAP
from indexer.query import Answer, AsOf, Page
from indexer.rows import Session
from indexer.views import NodeView, ServiceView, Status

MAX_GROUPS: Final = 50
"""How many needs, and how many task labels, are told of a service: whoever pays for a call can add one."""
SESSION_STATUS: Final = ("none", "open", "closing", "settled")


def as_of_document(as_of: AsOf) -> answers.AsOfBlock:
    """The block of an answer."""
    return {
        "chain_id": as_of.chain_id,
        "block": as_of.block,
        "hash": as_of.hash,
        "timestamp": as_of.timestamp,
        "finalized": as_of.finalized,
        "behind": as_of.behind,
    }


def service_document(view: ServiceView, known: Experience) -> answers.Service:
    """A service."""
    return {
        "service_id": view.service_id,
        "node_id": view.node_id,
        "category_id": view.category_id,
        "category": view.category,
        "price": str(view.price),
        "metadata_uri": view.metadata_uri,
        "active": view.active,
        "routable": view.routable,
        "operator": view.operator,
        "endpoint": view.endpoint,
        "stake": str(view.stake),
        "max_concurrent": str(view.max_concurrent),
        "active_sessions": view.active_sessions,
        "headroom": str(_headroom(view)),
        "rating_sum": view.rating_sum,
        "rating_count": view.rating_count,
        "reputation": _ratio(reputation(view)),
        "tested": known.tested,
    }


def _headroom(view: ServiceView) -> Fraction:
    free = max(0, view.max_concurrent - view.active_sessions)
    return Fraction(free, view.max_concurrent) if view.max_concurrent else Fraction(0)


def _ratio(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def experience_document(known: Experience) -> answers.Experience:
    """What is known of a service, by need and by task label; the most runs first, and MAX_GROUPS at most."""
    return {
        "needs": _groups(known.needs),
        "needs_in_all": len(known.needs),
        "tasks": _groups(known.tasks),
        "tasks_in_all": len(known.tasks),
    }


def _groups(groups: Mapping[tuple[str, str], Summary]) -> list[answers.Group]:
    most_first = sorted(groups, key=lambda group: (-groups[group].runs, group))
    return [_group(tool, label, groups[tool, label]) for tool, label in most_first[:MAX_GROUPS]]


def _group(tool: str, label: str, summary: Summary) -> answers.Group:
    return {"tool": tool, "label": label, "sentence": sentence(label, summary), **summary_document(summary)}


def summary_document(summary: Summary) -> answers.Summary:
    """What some records add up to."""
    return {
        "runs": summary.runs,
        "calls": str(summary.calls),
        "cost": str(summary.cost),
        "worked_rate": _ratio(summary.worked_rate),
        "judge_score": _ratio(summary.judge_score),
        "judged": summary.judged,
        "median_latency_ms": _ratio(summary.median_latency),
        "cost_per_call": _ratio(summary.cost_per_call),
        "notes": [
            {"timestamp": timestamp, "session_id": session_id, "tool": tool, "note": note}
            for timestamp, session_id, tool, note in summary.notes
        ],
    }


def ranked_document(place: int, ranked: Ranked, known: Experience) -> answers.Place:
    """A place of a ranking: the listing, and the label whose experience put it there."""
    match = ranked.match
    tried: answers.Match | None = None
    if match.label is not None and match.tool is not None:
        group = _group(match.tool, match.label, match.summary)
        tried = {"closeness": str(match.closeness), "trusted": match.is_trusted, **group}
    return {
        "place": place,
        "service": service_document(ranked.view, known),
        "tried_for_need": match.is_for_need,
        "match": tried,
    }


def node_document(view: NodeView) -> answers.Node:
    """A node."""
    return {
        "node_id": view.node_id,
        "operator": view.operator,
        "endpoint": view.endpoint,
        "stake": str(view.stake),
        "unbonding": str(view.unbonding),
        "release_at": view.release_at,
        "max_concurrent": str(view.max_concurrent),
        "active_sessions": view.active_sessions,
        "rating_sum": view.rating_sum,
        "rating_count": view.rating_count,
        "unpaid_count": view.unpaid_count,
        "paid_weight": str(view.paid_weight),
        "weighted_sum": str(view.weighted_sum),
        "capabilities": list(view.capabilities),
    }


def session_document(row: Session) -> answers.Session:
    """A session."""
    return {
        "session_id": row.session_id,
        "number": row.number,
        "client": row.client,
        "service_id": row.service_id,
        "node_id": row.node_id,
        "operator": row.operator,
        "signer": row.signer,
        "price": str(row.price),
        "max_price": str(row.max_price),
        "deposit": str(row.deposit),
        "expires_at": row.expires_at,
        "policy": policy_name(row.policy),
        "nonce": row.nonce,
        "attempt": row.attempt,
        "snapshot_block": row.snapshot_block,
        "snapshot_hash": row.snapshot_hash,
        "draw_seed": row.draw_seed,
        "price_cap": None if row.price_cap == NO_CAP else str(row.price_cap),
        "decision": row.decision,
        "opened_block": row.opened_block,
        "status": SESSION_STATUS[row.status],
        "closes_at": row.closes_at,
        "paid": str(row.paid),
        "refunded": str(row.refunded),
        "calls": row.calls,
    }


# --- whole answers


def services_answer(answer: Answer[Page[Listed]]) -> answers.ServicesAnswer:
    """A page of services."""
    page = answer.value
    rows = [service_document(view, known) for view, known in page.items]
    return {"as_of": as_of_document(answer.as_of), "services": rows, "next": page.next}


def service_answer(as_of: AsOf, listed: Listed) -> answers.ServiceAnswer:
    """One service."""
    return {"as_of": as_of_document(as_of), "service": service_document(*listed)}


def best_answer(answer: Answer[Page[Placed]], after: int) -> answers.BestAnswer:
    """A page of a ranking that begins after a place."""
    page = answer.value
    rows = [ranked_document(place, ranked, known) for place, (ranked, known) in enumerate(page.items, after + 1)]
    return {"as_of": as_of_document(answer.as_of), "best": rows, "next": page.next}


def experience_answer(as_of: AsOf, listed: Listed) -> answers.ExperienceAnswer:
    """What is known of one service."""
    view, known = listed
    shown = experience_document(known)
    return {"as_of": as_of_document(as_of), "service_id": view.service_id, "experience": shown}


def nodes_answer(answer: Answer[Page[NodeView]]) -> answers.NodesAnswer:
    """A page of nodes."""
    page = answer.value
    rows = [node_document(view) for view in page.items]
    return {"as_of": as_of_document(answer.as_of), "nodes": rows, "next": page.next}


def node_answer(as_of: AsOf, view: NodeView) -> answers.NodeAnswer:
    """One node."""
    return {"as_of": as_of_document(as_of), "node": node_document(view)}


def sessions_answer(answer: Answer[Page[Session]]) -> answers.SessionsAnswer:
    """A page of sessions."""
    page = answer.value
    rows = [session_document(row) for row in page.items]
    return {"as_of": as_of_document(answer.as_of), "sessions": rows, "next": page.next}


def session_answer(as_of: AsOf, row: Session) -> answers.SessionAnswer:
    """One session."""
    return {"as_of": as_of_document(as_of), "session": session_document(row)}


def status_answer(answer: Answer[Status]) -> answers.StatusAnswer:
    """What the index is of and how far it is."""
    value = answer.value
    status: answers.Status = {
        "addresses": dict(value.addresses),
        "genesis_hash": value.genesis_hash,
        "first_block": value.first_block,
        "finalized_block": value.finalized_block,
        "digest": value.digest,
        "nodes": value.nodes,
        "services": value.services,
        "sessions": value.sessions,
        "raw_logs": value.raw_logs,
        "raw_logs_from": value.raw_logs_from,
        "quarantined": value.quarantined,
        "unknown_events": value.unknown_events,
    }
    return {"as_of": as_of_document(answer.as_of), "status": status}


def route_answer(as_of: AsOf, receipt: Receipt) -> answers.RouteAnswer:
    """What a lottery would choose."""
    return {"as_of": as_of_document(as_of), "digest": digest(receipt), "decision": document(receipt)}
