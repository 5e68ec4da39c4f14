"""Experience records with what of their block and session counts for them: for whoever adds them up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Select, select

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
    """A record as the chain holds it.

    `timestamp` is that of its block, in seconds; `price` what a call of its session costs, in base units.
    """

    block: int
    log_index: int
    timestamp: int
    price: int
    fact: Experience


def records_of(store: Store, service_ids: Sequence[int], at: At, limit: int) -> Answer[tuple[FoundRecord, ...]]:
    """Give the first records of some services as of a block, in order of their logs."""
    with moment_at(store, at) as moment:
        among = _EXPERIENCE.c.service_id.in_([bounded_id(number) for number in service_ids])
        return moment.answer(tuple(_found(moment, _records().limit(limit).where(among))))


def records_after(moment: Moment, block: int | None, limit: int | None = None) -> Iterator[FoundRecord]:
    """Give the records of a moment that stand above a block, or all, or the first few of them.

    Only some of them are in memory at a time; take all, so that the database's cursor is closed.
    """
    rows = _records().limit(limit)
    return _found(moment, rows if block is None else rows.where(_EXPERIENCE.c.valid_from > block))


def _records() -> Select[*tuple[object, ...]]:
    of_block = BLOCK.c.number == _EXPERIENCE.c.valid_from
    # A session's price never changes, and every session has exactly one current row.
    of_session = (_SESSION.c.session_id == _EXPERIENCE.c.session_id) & _SESSION.c.valid_to.is_(None)
    columns = select(_EXPERIENCE.c.valid_from, _EXPERIENCE.c.log_index, BLOCK.c.timestamp, _SESSION.c.price, *_COLUMNS)
    return columns.join(BLOCK, of_block).join(_SESSION, of_session)


def _found(moment: Moment, rows: Select[*tuple[object, ...]]) -> Iterator[FoundRecord]:
    known = rows.where(_EXPERIENCE.c.valid_from <= moment.as_of.block)
    ordered = known.order_by(_EXPERIENCE.c.valid_from, _EXPERIENCE.c.log_index)
    with moment.run(ordered.execution_options(yield_per=_ROWS_AT_ONCE)) as result:
        for block, log_index, timestamp, price, *values in result:
            yield FoundRecord(block, log_index, timestamp, price, Experience(*values))
