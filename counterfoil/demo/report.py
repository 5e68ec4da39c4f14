"""What the demo shows at its end."""

import json
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from counterfoil.agent.journal import SessionState
from counterfoil.agent.record import RunRecord, SessionRecord
from counterfoil.agent.workflows import DONE
from counterfoil.audit.model import Outcome
from counterfoil.audit.range import RangeAudit, Share
from counterfoil.demo.cast import OPERATORS, TOKEN
from counterfoil.receipt_store import ReceiptStore
from counterfoil.routing.reasons import percent, plural
from indexer import query
from indexer.query import ServiceView, Store

WIDTH = 100


def show(
    console: Console, store: Store, receipts: ReceiptStore, records: Sequence[RunRecord], audit: RangeAudit
) -> None:
    """Print the receipt, the services, what the jobs came to, and the audit's verdict."""
    sessions = sessions_of(records)
    shown = next((one["receipt"] for one in reversed(sessions) if one["attempt"] > 0), sessions[-1]["receipt"])
    console.print(f"\nOne receipt, {shown}:", soft_wrap=True)
    console.print(json.dumps(json.loads(receipts.read(shown) or b"{}"), indent=1), markup=False, soft_wrap=True)
    console.print(services_table(store, {share.service_id: share for share in audit.shares}))
    console.print(f"\n{jobs_sentence(records, sum(share.skipped for share in audit.shares))}", soft_wrap=True)
    for fault in (one for one in audit.audits if one.outcome is not Outcome.OK):
        console.print(f"{fault.session_id}: {fault.outcome}: {fault.first_difference}", soft_wrap=True)
    console.print(f"\n{audit.summary}")


def services_table(store: Store, shares: Mapping[int, Share]) -> Table:
    """Every service with its standing, and the sessions it got beside those its weights promised."""
    title = "Services: what they are, and what they got (skipped: attempts that found the node down)"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("service", "node", "category"):
        table.add_column(heading, no_wrap=True)
    for heading in ("stake", "price", "rating", "sessions", "skipped", "share", "promised"):
        table.add_column(heading, justify="right", no_wrap=True)
    for service in query.services(store).value.items:
        table.add_row(*service_row(service, shares.get(service.service_id)))
    return table


def service_row(service: ServiceView, share: Share | None) -> tuple[str, ...]:
    """One line of the table: stake in whole tokens, price in base units, mean rating with its count."""
    rated = f"{service.rating_sum // service.rating_count} ({service.rating_count})" if service.rating_count else "-"
    got = ("0", "0", "-", "-")
    if share is not None:
        got = (str(share.sessions), str(share.skipped), percent(share.observed), percent(share.promised))
    name = OPERATORS[service.node_id - 1].name
    standing = (str(service.service_id), name, service.category, f"{service.stake // TOKEN:,}", str(service.price))
    return (*standing, rated, *got)


def sessions_of(records: Sequence[RunRecord]) -> list[SessionRecord]:
    """The sessions that were opened and that no reorg took away."""
    found = [session for record in records for step in record["steps"] for session in step["sessions"]]
    return [session for session in found if session["state"] != SessionState.VOID]


def jobs_sentence(records: Sequence[RunRecord], unreached: int) -> str:
    """What the jobs came to, in one sentence."""
    sessions = sessions_of(records)
    done = sum(record["status"] == DONE for record in records)
    failed = sum(bool(session["failure"]) for session in sessions)
    paid = sum(int(session["paid"]) for session in sessions)
    return (
        f"{done} of {plural(len(records), 'job')} done in {plural(len(sessions), 'session')} for {paid:,} base units; "
        f"{plural(unreached, 'attempt')} found the node down, {plural(failed, 'session')} failed and paid nothing"
    )
