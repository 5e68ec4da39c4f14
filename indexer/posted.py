"""Records of experience that were posted, not attested, and which of them count.

A posted record counts under the rules of ExperienceLedger (docs/specification.md): from a block on, while its session
is settled, and as far as what is attested of the session leaves room. An attested record of the same tool takes its
place. A reorg that takes the settlement away suspends it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, case, func, select, union

from indexer.errors import EmptyIndexError
from indexer.rows import SETTLED, Experience, Session, columns_of, values_of
from indexer.store.bulk import insert_rows
from indexer.store.moment import Moment
from indexer.store.reader import read_cursor
from indexer.store.tables import BLOCK, POSTED, REPLACED_BLOCK, table_of

_EXPERIENCE = table_of(Experience)
_SESSION = table_of(Session)
_FACT = columns_of(Experience)
_CURRENT_SESSION = (_SESSION.c.session_id == POSTED.c.session_id) & _SESSION.c.valid_to.is_(None)
_SINCE = case((POSTED.c.valid_from > _SESSION.c.valid_from, POSTED.c.valid_from), else_=_SESSION.c.valid_from)


class Claim(NamedTuple):
    """What a record takes of its session: a tool, and base units of what it paid."""

    tool: str
    cost: int


@dataclass(frozen=True, slots=True)
class PostedRecord:
    """A record that counts since `block`; `timestamp` in seconds and `price` a call in base units, as `FoundRecord`."""

    block: int
    place: int
    timestamp: int
    price: int
    fact: Experience


@dataclass(frozen=True, slots=True)
class Standing:
    """A session with all that is attested and posted of it."""

    session: Session
    attested: tuple[Claim, ...]
    posted: tuple[Claim, ...]

    def counted(self) -> list[Claim]:
        """Give the claims of the posted records that count."""
        places = counting(self.session.paid, self.session.calls, self.attested, self.posted)
        return [self.posted[place] for place in places]


def counting(paid: int, calls: int, attested: Sequence[Claim], posted: Sequence[Claim]) -> list[int]:
    """Give the places of the posted claims that count, in order of posting (ledger rules EL-6 to EL-8)."""
    tools = {claim.tool for claim in attested}
    left, room = paid - sum(claim.cost for claim in attested), max(1, calls) - len(attested)
    kept: list[int] = []
    for place, claim in enumerate(posted):
        if claim.tool not in tools and claim.cost <= left and len(kept) < room:
            kept.append(place)
            left -= claim.cost
    return kept


# --- what counts as of a block


def posted_records(moment: Moment, service_ids: Sequence[int] | None = None) -> list[PostedRecord]:
    """Give the posted records that count as of a moment: all, or those of some services."""
    among = [] if service_ids is None else [POSTED.c.service_id.in_(service_ids)]
    return _counted(moment.connection, moment.as_of.block, *among)


@dataclass(frozen=True, slots=True)
class PostedChanges:
    """What changed since a block: records that count now, and the services of records that no longer do."""

    added: tuple[PostedRecord, ...]
    services_with_less: frozenset[int]


def posted_changes(moment: Moment, after: int) -> PostedChanges:
    """Compare what counts as of a moment with what counted after block `after` of the same chain."""
    touched = POSTED.c.session_id.in_(_touched(after))
    now = {(one.fact.session_id, one.place): one for one in _counted(moment.connection, moment.as_of.block, touched)}
    before = {(one.fact.session_id, one.place): one for one in _counted(moment.connection, after, touched)}
    added = tuple(one for key, one in now.items() if key not in before)
    return PostedChanges(added, frozenset(one.fact.service_id for key, one in before.items() if key not in now))


def _touched(after: int) -> Any:  # noqa: ANN401
    """Select the sessions of which a record was posted or attested, or whose row changed, above a block."""
    posted = select(POSTED.c.session_id).where(POSTED.c.valid_from > after)
    attested = select(_EXPERIENCE.c.session_id).where(_EXPERIENCE.c.valid_from > after)
    changed = select(_SESSION.c.session_id).where(_SESSION.c.valid_from > after)
    return union(posted, attested, changed)


def _counted(connection: Connection, block: int, *among: ColumnElement[bool]) -> list[PostedRecord]:
    rows = connection.execute(_settled(block, *among)).all()
    attested = _attested(connection, block, {row.session_id for row in rows})
    found: list[PostedRecord] = []
    for session_id, of_session in groupby(rows, attrgetter("session_id")):
        some = list(of_session)
        claims = [Claim(row.tool, row.cost) for row in some]
        kept = counting(some[0].paid, some[0].session_calls, attested.get(session_id, ()), claims)
        found += [_record(some[place]) for place in kept]
    return found


def _settled(block: int, *among: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Select the posted records of a block's settled sessions: settled is the last thing that a session becomes.

    Who operates its node follows from the branch, so EL-5 is looked at again.
    """
    settled = [_SESSION.c.status == SETTLED, _SESSION.c.valid_from <= block, POSTED.c.valid_from <= block]
    settled.append(_SESSION.c.client != _SESSION.c.operator)
    columns = (_SINCE.label("since"), POSTED.c.place, BLOCK.c.timestamp, _SESSION.c.price, _SESSION.c.paid)
    fact = [POSTED.c[name] for name in _FACT]
    rows = select(*columns, _SESSION.c.calls.label("session_calls"), *fact).select_from(POSTED)
    joined = rows.join(_SESSION, _CURRENT_SESSION).join(BLOCK, BLOCK.c.number == _SINCE)
    return joined.where(*settled, *among).order_by(POSTED.c.session_id, POSTED.c.place)


def _attested(connection: Connection, block: int, session_ids: Iterable[str]) -> Mapping[str, list[Claim]]:
    found: dict[str, list[Claim]] = defaultdict(list)
    for some in _chunks(sorted(session_ids)):
        of_sessions = _EXPERIENCE.c.session_id.in_(some), _EXPERIENCE.c.valid_from <= block
        query = select(_EXPERIENCE.c.session_id, _EXPERIENCE.c.tool, _EXPERIENCE.c.cost).where(*of_sessions)
        for session_id, tool, cost in connection.execute(query):
            found[session_id].append(Claim(tool, cost))
    return found


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[at : at + 400] for at in range(0, len(ids), 400))


def _record(row: Any) -> PostedRecord:  # noqa: ANN401
    fact = Experience(*[getattr(row, name) for name in _FACT])
    return PostedRecord(row.since, row.place, row.timestamp, row.price, fact)


# --- posting


def standing(connection: Connection, session_id: str) -> Standing | None:
    """Read a session as it is now, None where there is none."""
    columns = [_SESSION.c[name] for name in columns_of(Session)]
    row = connection.execute(
        select(*columns).where(_SESSION.c.session_id == session_id, _SESSION.c.valid_to.is_(None))
    ).first()
    if row is None:
        return None
    cursor = read_cursor(connection)
    attested = _attested(connection, cursor.number if cursor else 0, [session_id])
    posted = select(POSTED.c.tool, POSTED.c.cost).where(POSTED.c.session_id == session_id).order_by(POSTED.c.place)
    claims = tuple(Claim(*claim) for claim in connection.execute(posted))
    return Standing(Session(*row), tuple(attested.get(session_id, ())), claims)


def add_posted(connection: Connection, record: Experience, signature: str) -> int:
    """Add a record, in the transaction that checked it; gives the block from which on it counts.

    It is above every block that was ever indexed: what was answered as of a block stays the answer as of it, also when
    a branch that was left comes back.
    """
    cursor = read_cursor(connection)
    if cursor is None:
        raise EmptyIndexError("The index is empty: fill it with `counterfoil index run`.")
    replaced = connection.execute(select(func.max(REPLACED_BLOCK.c.number))).scalar() or 0
    counts_from = max(cursor.number, replaced) + 1
    of_session = select(func.max(POSTED.c.place)).where(POSTED.c.session_id == record.session_id)
    place = (connection.execute(of_session).scalar() or 0) + 1
    columns = ("place", "valid_from", *_FACT, "signature")
    insert_rows(connection, POSTED, columns, [(place, counts_from, *values_of(record), signature)])
    return counts_from
