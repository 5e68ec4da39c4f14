"""Audits as JSON values. Amounts are decimal strings, shares are percents with one digit, exact ratios beside them."""

from typing import Any

from counterfoil import answers
from counterfoil.audit.model import Check, Outcome, Part, SessionAudit, SessionFacts
from counterfoil.audit.range import ClientUse, RangeAudit, Share
from counterfoil.routing.reasons import percent

EXIT_CODES = {Outcome.OK: 0, Outcome.MISMATCH: 1, Outcome.UNKNOWN: 2}

Document = dict[str, Any]


def session_document(audit: SessionAudit) -> answers.Audit:
    """One session's audit."""
    return {
        "session_id": audit.session_id,
        "outcome": audit.outcome.value,
        "first_difference": audit.first_difference,
        "by": {part.value: _outcome(audit, part) for part in Part},
        "session": None if audit.facts is None else facts_document(audit.facts),
        "category": audit.category,
        "checks": [check_document(check) for check in audit.checks],
    }


def range_document(audit: RangeAudit) -> Document:
    """A range's audit, without the checks of sessions that are as they should be."""
    return {
        "first_block": audit.first_block,
        "last_block": audit.last_block,
        "outcome": audit.outcome.value,
        "summary": audit.summary,
        "sessions": len(audit.audits),
        "ok": audit.count(Outcome.OK),
        "mismatches": audit.count(Outcome.MISMATCH),
        "unchecked": audit.count(Outcome.UNKNOWN),
        "skipped_attempts": audit.skipped,
        "snapshot_age": ages_document(audit),
        "clients": [_client(client) for client in audit.clients],
        "shares": [_share(share) for share in audit.shares],
        "faults": [session_document(one) for one in audit.audits if one.outcome is not Outcome.OK],
    }


def facts_document(facts: SessionFacts) -> answers.Commitment:
    """What a session committed to."""
    return {
        "client": facts.client,
        "service_id": facts.service_id,
        "node_id": facts.node_id,
        "operator": facts.operator,
        "price": str(facts.price),
        "max_price": str(facts.max_price),
        "policy": facts.policy,
        "nonce": facts.nonce,
        "attempt": facts.attempt,
        "snapshot_block": facts.snapshot_block,
        "snapshot_hash": facts.snapshot_hash,
        "draw_seed": facts.draw_seed,
        "price_cap": None if facts.cap is None else str(facts.cap),
        "decision": facts.decision,
        "opened_block": facts.opened_block,
    }


def check_document(check: Check) -> answers.AuditCheck:
    """One check."""
    return {
        "part": check.part.value,
        "name": check.name,
        "outcome": check.outcome.value,
        "sentence": check.sentence,
    }


def ages_document(audit: RangeAudit) -> Document | None:
    """The least, middle and greatest age of a snapshot, in blocks; None without sessions."""
    ages = audit.ages
    return {"least": ages[0], "median": ages[len(ages) // 2], "greatest": ages[-1]} if ages else None


def _outcome(audit: SessionAudit, part: Part) -> str | None:
    outcome = audit.outcome_of(part)
    return None if outcome is None else outcome.value


def _client(client: ClientUse) -> Document:
    return {
        "client": client.client,
        "sessions": client.sessions,
        "draws": client.draws,
        "skipped_attempts": client.skipped,
        "price_caps": [str(cap) for cap in client.caps],
        "oldest_snapshot": client.oldest_snapshot,
    }


def _share(share: Share) -> Document:
    return {
        "category": share.category,
        "service_id": share.service_id,
        "node_id": share.node_id,
        "sessions": share.sessions,
        "skipped": share.skipped,
        "observed": percent(share.observed),
        "promised": percent(share.promised),
        "observed_exact": str(share.observed),
        "promised_exact": str(share.promised),
    }
