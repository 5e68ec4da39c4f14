"""Questions to the index. Each takes `at` (block number, block hash, or None for the newest indexed block), and each
answer names the block that it is the state after. Amounts are base units of their token.

Raises UnknownBlockError for a block that the index does not hold, QuestionError for a malformed argument.
"""

from collections.abc import Mapping
from typing import Protocol, TypeVar

from sqlalchemy import ColumnElement, FromClause, select, tuple_

from indexer.errors import QuestionError
from indexer.keccak import keccak
from indexer.rows import CourtCredit, Credit, Dispute, Experience, Fact, Node, Rating, Session, Slash, columns_of
from indexer.store.database import Store, open_store
from indexer.store.moment import MAX_PAGE, At, bounded_id, hex_text, moment_at, page_limit
from indexer.store.tables import QUARANTINE, table_of
from indexer.views import (
    Answer,
    AsOf,
    CandidateRow,
    NodeView,
    Page,
    QuarantinedLog,
    Recorded,
    ServiceView,
    Status,
)

F = TypeVar("F", bound=Fact)

MAX_SESSIONS = 100_000
"""Most sessions that `sessions_between` gives at once."""
_MAX_DIGITS = 18  # of a number that fits any column
_PLACE_BITS = 24  # a page's mark among facts is block << 24 | log index


class Placed(Protocol):
    """What has the place of a log."""

    @property
    def block(self) -> int:
        """Number of the log's block."""

    @property
    def log_index(self) -> int:
        """Index of the log in its block."""


P = TypeVar("P", bound=Placed)


# --- listings


def candidates(store: Store, category: str, at: At = None) -> Answer[tuple[CandidateRow, ...]]:
    """Give the routable listings of a category in ascending order of service_id."""
    with moment_at(store, at) as moment:
        rows = moment.candidates()
        query = rows.query.where(rows.key.c.category_id == category_id(category)).order_by(rows.key.c.service_id)
        return moment.answer(moment.candidate_rows(query))


def services(
    store: Store,
    *,
    category: str | None = None,
    node_id: int | None = None,
    routable: bool = False,
    after: int = 0,
    limit: int = 100,
    at: At = None,
) -> Answer[Page[ServiceView]]:
    """List services by service_id: all, or those of a category, of a node, or only the routable ones."""
    with moment_at(store, at) as moment:
        rows = moment.services(routable=routable)
        if category is not None:
            rows = rows.where(rows.key.c.category_id == category_id(category))
        if node_id is not None:
            rows = rows.where(rows.key.c.node_id == bounded_id(node_id))
        found, following = moment.page(rows, "service_id", after, limit)
        return moment.answer(Page(tuple(map(moment.service_view, found)), following))


def service(store: Store, service_id: int, at: At = None) -> Answer[ServiceView | None]:
    """Give one service, None where there is none."""
    with moment_at(store, at) as moment:
        rows = moment.services()
        found = moment.all(rows.query.where(rows.key.c.service_id == bounded_id(service_id)))
        return moment.answer(moment.service_view(found[0]) if found else None)


def nodes(
    store: Store, *, operator: str | None = None, after: int = 0, limit: int = 100, at: At = None
) -> Answer[Page[NodeView]]:
    """List nodes by node_id: all, or those of an operator's address."""
    with moment_at(store, at) as moment:
        rows = moment.nodes()
        if operator is not None:
            address = hex_text(operator, 40)
            ever = select(table_of(Node).c.node_id).where(table_of(Node).c.operator == address)
            rows = rows.where(rows.key.c.node_id.in_(ever), rows.held["operator"] == address)
        found, following = moment.page(rows, "node_id", after, limit)
        return moment.answer(Page(moment.node_views(found), following))


def node(store: Store, node_id: int, at: At = None) -> Answer[NodeView | None]:
    """Give one node, None where there is none."""
    with moment_at(store, at) as moment:
        rows = moment.nodes()
        found = moment.node_views(moment.all(rows.query.where(rows.key.c.node_id == bounded_id(node_id))))
        return moment.answer(found[0] if found else None)


# --- sessions


def sessions(
    store: Store,
    *,
    client: str | None = None,
    node_id: int | None = None,
    service_id: int | None = None,
    status: int | None = None,
    after: int = 0,
    limit: int = 100,
    at: At = None,
) -> Answer[Page[Session]]:
    """List sessions by number: all, or those of a client, a node, a service, or in a status (rows.OPEN on)."""
    with moment_at(store, at) as moment:
        rows = moment.sessions()
        rows = rows.where(*_equal(rows.key, {"client": client, "node_id": node_id, "service_id": service_id}))
        if status is not None:
            then = rows.key.c.status if moment.is_head else rows.held["status"]  # only the head's has an index
            rows = rows.where(then == bounded_id(status))
        found, following = moment.page(rows, "number", after, limit)
        return moment.answer(Page(tuple(Session(**row) for row in found), following))


def session(store: Store, which: int | str, at: At = None) -> Answer[Session | None]:
    """Give one session by number, by id, or by an unambiguous prefix of its id (0x optional, 4 digits at least).

    A text of decimal digits alone is a number, unless it is too long for one.
    """
    number = which if isinstance(which, int) else _decimal(which)
    with moment_at(store, at) as moment:
        rows = moment.sessions()
        if number is not None:
            rows = rows.where(rows.key.c.number == bounded_id(number))
        else:
            first, last = _prefix_range(str(which))
            rows = rows.where(rows.key.c.session_id >= first, rows.key.c.session_id <= last)
        found = moment.all(rows.query.limit(2))
        if len(found) > 1:
            raise QuestionError(f"Several sessions start with {which}: type more digits of the id.")
        return moment.answer(Session(**found[0]) if found else None)


def session_committed(store: Store, client: str, decision: str) -> Answer[Session | None]:
    """Give a session of a client that commits to a receipt's digest, None where there is none."""
    with moment_at(store, None) as moment:
        rows = moment.sessions()
        client, decision = hex_text(client, 40), hex_text(decision, 64)
        rows = rows.where(rows.key.c.client == client, rows.key.c.decision == decision)
        found = moment.all(rows.query.limit(1))
        return moment.answer(Session(**found[0]) if found else None)


def sessions_between(store: Store, first: int, last: int, at: At = None) -> Answer[tuple[Session, ...]]:
    """Give the sessions opened in blocks `first` to `last`, by number; QuestionError past MAX_SESSIONS."""
    with moment_at(store, at) as moment:
        rows = moment.sessions()
        opened = rows.key.c.opened_block
        query = rows.query.where(opened.between(bounded_id(first), bounded_id(last)))
        found = moment.all(query.order_by(opened, rows.key.c.number).limit(MAX_SESSIONS + 1))
        if len(found) > MAX_SESSIONS:
            raise QuestionError(f"Over {MAX_SESSIONS} sessions were opened in these blocks: ask for fewer blocks.")
        return moment.answer(tuple(Session(**row) for row in found))


def credit_of(store: Store, account: str, at: At = None) -> Answer[int]:
    """Give what SessionManager owes an account, 0 where it never owed anything."""
    return _owed(store, Credit, account, at)


def court_credit_of(store: Store, account: str, at: At = None) -> Answer[int]:
    """Give what DisputeCourt owes an account in the stake token, 0 where it never owed anything."""
    return _owed(store, CourtCredit, account, at)


def _owed(store: Store, kind: type[Credit] | type[CourtCredit], account: str, at: At) -> Answer[int]:
    with moment_at(store, at) as moment:
        found = moment.find(kind, (hex_text(account, 40),))
        return moment.answer(found["amount"] if found else 0)


# --- facts


def ratings_of(
    store: Store,
    *,
    node_id: int | None = None,
    session_id: str | None = None,
    after: int = 0,
    limit: int = 100,
    at: At = None,
) -> Answer[Page[Recorded[Rating]]]:
    """List ratings in the order they were given: of a node, or of a session."""
    return _facts(store, Rating, {"node_id": node_id, "session_id": session_id}, after, limit, at)


def experience_of(
    store: Store,
    *,
    service_id: int | None = None,
    session_id: str | None = None,
    after: int = 0,
    limit: int = 100,
    at: At = None,
) -> Answer[Page[Recorded[Experience]]]:
    """List experience records in the order they were attested: of a service, of a session, or all."""
    return _facts(store, Experience, {"service_id": service_id, "session_id": session_id}, after, limit, at)


def slashes_of(
    store: Store, node_id: int, *, after: int = 0, limit: int = 100, at: At = None
) -> Answer[Page[Recorded[Slash]]]:
    """List what a node was slashed, in order."""
    return _facts(store, Slash, {"node_id": node_id}, after, limit, at)


def disputes(
    store: Store, *, node_id: int | None = None, session_id: str | None = None, after: int = 0, limit: int = 100,
    at: At = None,
) -> Answer[Page[Dispute]]:  # fmt: skip
    """List disputes by id: of a node, of a session, or all."""
    with moment_at(store, at) as moment:
        rows = moment.rows(Dispute, Dispute)
        rows = rows.where(*_equal(rows.key, {"node_id": node_id, "session_id": session_id}))
        found, following = moment.page(rows, "dispute_id", after, limit)
        return moment.answer(Page(tuple(Dispute(**row) for row in found), following))


def parameters(store: Store, at: At = None) -> Answer[dict[str, dict[str, str]]]:
    """Give the constructor arguments by contract and name; numbers as decimal text, addresses in lower case."""
    with moment_at(store, at) as moment:
        found: dict[str, dict[str, str]] = {}
        for contract, name, value in moment.parameters():
            found.setdefault(contract, {})[name] = value
        return moment.answer(found)


# --- the index itself


def as_of(store: Store, at: At = None) -> AsOf:
    """Give the block that an answer with this `at` would name."""
    with moment_at(store, at) as moment:
        return moment.as_of


def quarantined(store: Store, *, after: int = 0, limit: int = 100) -> Answer[Page[QuarantinedLog]]:
    """List the logs that changed nothing, with the reasons."""
    with moment_at(store, None) as moment:
        query = select(QUARANTINE).where(_beyond(QUARANTINE.c.block_number, QUARANTINE.c.log_index, after))
        query = query.order_by(QUARANTINE.c.block_number, QUARANTINE.c.log_index).limit(page_limit(limit) + 1)
        found = [QuarantinedLog(row["block_number"], row["log_index"], row["reason"]) for row in moment.all(query)]
        return moment.answer(_page_of_places(found, limit))


def status(store: Store) -> Answer[Status]:
    """Say what the index is of and how far it is."""
    with moment_at(store, None) as moment:
        return moment.answer(moment.status())


def _facts(
    store: Store, fact_type: type[F], wanted: Mapping[str, int | str | None], after: int, limit: int, at: At
) -> Answer[Page[Recorded[F]]]:
    table = table_of(fact_type)
    names = columns_of(fact_type)
    with moment_at(store, at) as moment:
        query = select(table).where(*_equal(table, wanted), table.c.valid_from <= moment.as_of.block)
        query = query.where(_beyond(table.c.valid_from, table.c.log_index, after))
        query = query.order_by(table.c.valid_from, table.c.log_index).limit(page_limit(limit) + 1)
        found = [
            Recorded(row["valid_from"], row["log_index"], fact_type(**{name: row[name] for name in names}))
            for row in moment.all(query)
        ]
        return moment.answer(_page_of_places(found, limit))


_HEX_DIGITS = {"client": 40, "session_id": 64}


def _equal(table: FromClause, wanted: Mapping[str, int | str | None]) -> list[ColumnElement[bool]]:
    given = {name: value for name, value in wanted.items() if value is not None}
    return [
        table.c[name] == (hex_text(value, _HEX_DIGITS[name]) if isinstance(value, str) else bounded_id(value))
        for name, value in given.items()
    ]


def _page_of_places(found: list[P], limit: int) -> Page[P]:
    more = len(found) > limit
    return Page(tuple(found[:limit]), _place(found[limit - 1]) if more else None)


def _place(item: Placed) -> int:
    return item.block << _PLACE_BITS | item.log_index


def _beyond(block: ColumnElement[int], log_index: ColumnElement[int], after: int) -> ColumnElement[bool]:
    at_block, at_log = bounded_id(after) >> _PLACE_BITS, after & ((1 << _PLACE_BITS) - 1)
    return tuple_(block, log_index) > tuple_(at_block, at_log) if after else block >= 0


def named_block(text: str) -> At:
    """Read how a person names a block: its number, or its hash of 64 hex digits (0x optional)."""
    number = _decimal(text)
    if number is not None:
        return number
    digits = text.lower().removeprefix("0x")
    if len(digits) == 64 and not digits.strip("0123456789abcdef"):
        return "0x" + digits
    raise QuestionError("A block is its number, or its hash of 64 hexadecimal digits: correct it.")


def _decimal(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else None


def category_id(category: str) -> str:
    """Give keccak256 of a category's text, as NodeRegistry computes it."""
    return "0x" + keccak(category.encode("utf-8", "surrogatepass")).hex()


def _prefix_range(prefix: str) -> tuple[str, str]:
    digits = prefix.lower().removeprefix("0x")
    if not 4 <= len(digits) <= 64 or digits.strip("0123456789abcdef"):
        raise QuestionError("A session is named by its number, or by 4 to 64 hex digits of its id: correct it.")
    return "0x" + digits.ljust(64, "0"), "0x" + digits.ljust(64, "f")


__all__ = [
    "MAX_PAGE", "MAX_SESSIONS", "Answer", "AsOf", "At", "CandidateRow", "NodeView", "Page", "QuarantinedLog",
    "Recorded", "ServiceView", "Status", "Store", "as_of", "candidates", "category_id", "court_credit_of",
    "credit_of", "disputes", "experience_of", "named_block", "node", "nodes", "open_store", "parameters", "quarantined",
    "ratings_of", "service", "services", "session", "session_committed", "sessions", "sessions_between",
    "slashes_of", "status",
]  # fmt: skip
