"""Experience records with what of their block and session counts for them: for whoever adds them up.

Attested and posted ones, each session and tool once (see indexer/posted.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from sqlalchemy import Select, select

from indexer.posted import PostedRecord, posted_changes, posted_records
from indexer.rows import Experience, Session, columns_of
from indexer.store.database import Store
from indexer.store.moment import At, Moment, bounded_id, moment_at
from indexer.store.tables import BLOCK, table_of
from indexer.views import Answer

_ROWS_AT_ONCE = 5000
_EXPERIENCE = table_of(Experience)
_SESSION = table_of(Session)
_COLUMNS = [_EXPERIENCE.c[name] for name in columns_of(Experience)]


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record that counts since a block.

    `timestamp` is that of the block, in seconds; `price` what a call of its session costs, in base units.
    """

    block: int
    timestamp: int
    price: int
    fact: Experience


@dataclass(frozen=True, slots=True)
class RecordChanges:
    """What changed since a block: new records, and the services whose records have to be read anew, all of them."""

    records: tuple[FoundRecord, ...]
    renewed: frozenset[int]


def records_of(store: Store, service_ids: Sequence[int], at: At, limit: int) -> Answer[tuple[FoundRecord, ...]]:
    """Give the records of some services as of a block, the attested ones first, `limit` of each kind at most."""
    with moment_at(store, at) as moment:
        ids = [bounded_id(number) for number in service_ids]
        return moment.answer(tuple(records_among(moment, ids, limit)))


def records_among(moment: Moment, service_ids: Sequence[int], limit: int | None = None) -> Iterator[FoundRecord]:
    """Give the records of some services as of a moment."""
    attested = _found(moment, _records().limit(limit).where(_EXPERIENCE.c.service_id.in_(service_ids)))
    return chain(attested, _posted(posted_records(moment, service_ids)[:limit]))


def all_records(moment: Moment, limit: int | None = None) -> Iterator[FoundRecord]:
    """Give all records of a moment, or the first few of each kind.

    Only some of the attested ones are in memory at a time; take all, so that the database's cursor is closed.
    """
    return chain(_found(moment, _records().limit(limit)), _posted(posted_records(moment)[:limit]))


def record_changes(moment: Moment, after: int) -> RecordChanges:
    """Give what changed up to a moment since block `after` of the same chain."""
    posted = posted_changes(moment, after)
    attested = _found(moment, _records().where(_EXPERIENCE.c.valid_from > after))
    renewed = posted.services_with_less
    new = [one for one in (*attested, *_posted(posted.added)) if one.fact.service_id not in renewed]
    again = records_among(moment, sorted(renewed)) if renewed else ()
    return RecordChanges((*new, *again), renewed)


def _posted(records: Iterable[PostedRecord]) -> Iterator[FoundRecord]:
    return (FoundRecord(one.block, one.timestamp, one.price, one.fact) for one in records)


def _records() -> Select[*tuple[object, ...]]:
    of_block = BLOCK.c.number == _EXPERIENCE.c.valid_from
    # A session's price never changes, and every session has exactly one current row.
    of_session = (_SESSION.c.session_id == _EXPERIENCE.c.session_id) & _SESSION.c.valid_to.is_(None)
    columns = select(_EXPERIENCE.c.valid_from, BLOCK.c.timestamp, _SESSION.c.price, *_COLUMNS)
    return columns.join(BLOCK, of_block).join(_SESSION, of_session)


def _found(moment: Moment, rows: Select[*tuple[object, ...]]) -> Iterator[FoundRecord]:
    known = rows.where(_EXPERIENCE.c.valid_from <= moment.as_of.block)
    ordered = known.order_by(_EXPERIENCE.c.valid_from, _EXPERIENCE.c.log_index)
    with moment.run(ordered.execution_options(yield_per=_ROWS_AT_ONCE)) as result:
        for block, timestamp, price, *values in result:
            yield FoundRecord(block, timestamp, price, Experience(*values))
