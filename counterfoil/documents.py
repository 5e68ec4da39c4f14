"""Rows of the index as JSON values, the same in the CLI and in the API. Amounts are decimal strings."""

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Final

from counterfoil.directory import Experience, Ranked
from counterfoil.receipts import policy_name
from counterfoil.routing.experience import Summary, headline, sentence
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


def service_document(view: ServiceView, known: Experience) -> Document:
    """A service as JSON: amounts are decimal strings, ratios are exact text such as `7/8`, what is unknown is null."""
    strings = {"price": str(view.price), "stake": str(view.stake), "max_concurrent": str(view.max_concurrent)}
    found = headline(known.needs)
    return asdict(view) | strings | {
        "reputation": _ratio(Fraction(view.rating_sum, 100 * view.rating_count) if view.rating_count else None),
        "headroom": str(_headroom(view)),
        "tested": sentence(*found) if found else None,
    }  # fmt: skip


def _headroom(view: ServiceView) -> Fraction:
    free = max(0, view.max_concurrent - view.active_sessions)
    return Fraction(free, view.max_concurrent) if view.max_concurrent else Fraction(0)


def _ratio(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def experience_document(known: Experience) -> Document:
    """What is known of a service as JSON, by need and by task label; the most runs first."""
    return {
        "needs": [_group_document("need", *group) for group in _most_runs_first(known.needs)],
        "tasks": [_group_document("task", *group) for group in _most_runs_first(known.tasks)],
    }


def _most_runs_first(groups: Mapping[tuple[str, str], Summary]) -> list[tuple[str, str, Summary]]:
    listed = [(tool, label, summary) for (tool, label), summary in groups.items()]
    return sorted(listed, key=lambda group: (-group[2].runs, group[0], group[1]))


def _group_document(kind: str, tool: str, label: str, summary: Summary) -> Document:
    return {"tool": tool, kind: label, "sentence": sentence(label, summary), **summary_document(summary)}


def summary_document(summary: Summary) -> Document:
    """What some records add up to, as JSON."""
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


def ranked_document(place: int, ranked: Ranked, known: Experience) -> Document:
    """A place of a ranking as JSON: the listing, and the label whose experience put it there."""
    match = ranked.match
    tried = None if match.label is None else {
        "tool": match.tool,
        "label": match.label,
        "closeness": str(match.closeness),
        "trusted": match.is_trusted,
        "sentence": sentence(match.label, match.summary),
        **summary_document(match.summary),
    }  # fmt: skip
    service = service_document(ranked.view, known)
    return {"place": place, "service": service, "tried_for_need": match.is_for_need, "match": tried}


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
