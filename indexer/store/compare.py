"""Two indexes of one deployment: do their rows agree, and if not, from which block on, and whose rows are wrong.

Nothing stored is believed: the digest of each block is made again from the rows that began in it, as `indexer.digest`
defines it, and must be the stored one. The end of each row's validity, which no digest covers, must be where the next
row of its key begins. Headers and raw logs, from which everything is rebuilt, must be the same on both sides; raw
logs are compared from the first block on of which neither has let them go.
"""

import heapq
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Select, Table, case, func, or_, select

from indexer import events as ev
from indexer.digest import next_digest
from indexer.errors import StoreError, UnknownBlockError
from indexer.keccak import keccak
from indexer.project import Changes, PlacedFact, Rejection
from indexer.rows import FACTS, VERSIONED, Parameter, Row, Versioned, columns_of, key_of
from indexer.store.database import Store, database_sentences
from indexer.store.reader import Cursor, digest_at, first_block, read_cursor, read_meta
from indexer.store.tables import BLOCK, QUARANTINE, RAW_LOG, table_of

_ROWS_A_FETCH = 1000  # what is held of each table at a time
# The parameters of one constructor come from one log, in the order of its event.
_ORDER = {
    (contract, argument.name): place
    for event, contract in ev.DEPLOYED.items()
    for place, argument in enumerate(ev.arguments(event))
}

_MEND = "run `counterfoil index rebuild` on it"

Item = tuple[int, Any]
"""A block's number, and something that is stored of it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The blocks that were compared, the first one that differs, and in a sentence how (None: they agree).

    `raw_logs_from` is the first block whose raw logs were compared: those before it were pruned on one side at least.
    """

    first_block: int
    last_block: int
    raw_logs_from: int
    differs_at: int | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class _Header:
    hash: str
    parent_hash: str
    timestamp: int
    digest: str


@dataclass(frozen=True, slots=True)
class _RawLog:
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    """What one index holds of a block. `fault` says what is wrong in it, `source` stands for header and logs."""

    number: int
    digest: str | None = None
    source: bytes = b""
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class _Index:
    """One side of the comparison: a snapshot, and how messages call it."""

    connection: Connection
    label: str
    cursor: Cursor
    first: int
    open_reads: ExitStack

    @property
    def raw_logs_from(self) -> int:
        return self.first if self.cursor.raw_logs_from is None else self.cursor.raw_logs_from


def examine(ours: Store, theirs: Store) -> Comparison:
    """Compare all that both hold, block by block, in memory that does not grow with the indexes.

    Raises StoreError when they are of different deployments or a row cannot be read at all, UnknownBlockError when one
    is empty.
    """
    with ours.read(unbounded=True) as left, theirs.read(unbounded=True) as right, ExitStack() as open_reads:
        _check_same_deployment(ours, theirs, left, right)
        mine, other = _index(left, ours.label, open_reads), _index(right, theirs.label, open_reads)
        first, last = min(mine.first, other.first), min(mine.cursor.number, other.cursor.number)
        logs_from = max(mine.raw_logs_from, other.raw_logs_from)
        for here, there in zip(*(_blocks(side, first, last, logs_from) for side in (mine, other)), strict=True):
            why = _difference(here, there)
            if why is not None:
                return Comparison(first, last, logs_from, here.number, why)
        return Comparison(first, last, logs_from)


def _index(connection: Connection, label: str, open_reads: ExitStack) -> _Index:
    with database_sentences(label):
        cursor, first = read_cursor(connection), first_block(connection)
    if cursor is None or first is None:
        raise UnknownBlockError(f"The index at {label} is empty: fill it with `counterfoil index run`.")
    return _Index(connection, label, cursor, first, open_reads)


def _difference(mine: _Block, other: _Block) -> str | None:
    faults = [block.fault for block in (mine, other) if block.fault]
    if faults:
        return "; ".join(faults)
    if mine.digest != other.digest:
        return "each index's rows match its own digest, so they were built from different logs: index the chain again"
    if mine.source != other.source:
        return "the block's header or raw logs differ, though all rows agree: index the chain again in a new file"
    return None


def _check_same_deployment(ours: Store, theirs: Store, left: Connection, right: Connection) -> None:
    ours_meta, theirs_meta = read_meta(left), read_meta(right)
    if ours_meta != theirs_meta:
        differing = sorted(n for n in ours_meta.keys() | theirs_meta if ours_meta.get(n) != theirs_meta.get(n))
        raise StoreError(
            f"{ours.label} and {theirs.label} are of different deployments ({', '.join(differing)} differ): "
            "compare indexes of the same one."
        )


# --- one index, block by block


def _blocks(index: _Index, first: int, last: int, logs_from: int) -> Iterator[_Block]:
    """Give every block from `first` to `last`, those that are missing as such. Rows before `first` count to it."""
    label = index.label
    with database_sentences(label):
        previous = digest_at(index.connection, first - 1)
        wrong_end = max(first, _first_wrong_end(index.connection, last + 1))
    expected = first
    for number, items in groupby(_items(index, first, last, logs_from), key=itemgetter(0)):
        yield from _missing(label, expected, number)
        block = _block(number, [item for _, item in items], previous, label)
        if block.fault is None and number >= wrong_end:
            block = _Block(number, fault=f"a row of {label} ends where the next one of its key does not begin: {_MEND}")
        yield block
        previous, expected = block.digest or "", number + 1
    yield from _missing(label, expected, last + 1)


def _missing(label: str, first: int, end: int) -> Iterator[_Block]:
    return (_Block(number, fault=f"{label} lacks the block: index the chain again") for number in range(first, end))


def _block(number: int, items: list[Any], previous: str, label: str) -> _Block:
    header = next((item for item in items if isinstance(item, _Header)), None)
    if header is None:
        return next(_missing(label, number, number + 1))
    try:
        found = next_digest(previous, number, header.hash, _changes(items))
    except (ValueError, TypeError):  # a digest or hash that is no hex, or keys of mixed types
        found = ""
    fault = None if found == header.digest else f"the rows of {label} do not match its own digest: {_MEND}"
    source = repr([(header.hash, header.parent_hash, header.timestamp), *_raw_logs(items)])
    return _Block(number, header.digest, keccak(source.encode()), fault)


def _raw_logs(items: Iterable[Any]) -> list[tuple[Any, ...]]:
    return sorted(item.values for item in items if isinstance(item, _RawLog))


def _changes(items: list[Any]) -> Changes:
    """Put a block's rows into the order in which the fold gave them."""
    versions = sorted((item for item in items if isinstance(item, Versioned)), key=lambda row: (row.TABLE, key_of(row)))
    facts = sorted((item for item in items if isinstance(item, PlacedFact)), key=_place)
    rejections = sorted((item for item in items if isinstance(item, Rejection)), key=lambda item: item.log_index)
    return Changes(tuple(versions), tuple(facts), tuple(rejections))


def _place(item: PlacedFact) -> tuple[int, int]:
    fact = item.fact
    order = _ORDER.get((fact.contract, fact.name), len(_ORDER)) if isinstance(fact, Parameter) else 0
    return item.log_index, order


# --- reading


def _items(index: _Index, first: int, last: int, logs_from: int) -> Iterator[Item]:
    """Everything stored of blocks up to `last`, in their order; raw logs from `logs_from` on."""
    streams = [
        _headers(index, first, last),
        _logs(index, logs_from, last),
        _rejections(index, last),
        *(_rows(index, row_type, last) for row_type in (*VERSIONED, *FACTS)),
    ]
    for number, item in heapq.merge(*streams, key=itemgetter(0)):
        yield max(number, first), item


def _headers(index: _Index, first: int, last: int) -> Iterator[Item]:
    columns = [BLOCK.c[name] for name in ("number", "hash", "parent_hash", "timestamp", "digest")]
    query = select(*columns).where(BLOCK.c.number.between(first, last)).order_by(BLOCK.c.number)
    return ((number, _Header(*values)) for number, *values in _stream(index, query))


def _logs(index: _Index, first: int, last: int) -> Iterator[Item]:
    query = select(RAW_LOG).where(RAW_LOG.c.block_number.between(first, last)).order_by(RAW_LOG.c.block_number)
    return ((row[0], _RawLog(tuple(row))) for row in _stream(index, query))


def _rejections(index: _Index, last: int) -> Iterator[Item]:
    columns = [QUARANTINE.c[name] for name in ("block_number", "log_index", "reason")]
    query = select(*columns).where(QUARANTINE.c.block_number <= last).order_by(QUARANTINE.c.block_number)
    return ((number, Rejection(*values)) for number, *values in _stream(index, query))


def _rows(index: _Index, row_type: type[Any], last: int) -> Iterator[Item]:
    """The rows of a table by the block in which they begin."""
    table = table_of(row_type)
    versioned = issubclass(row_type, Versioned)
    place = [table.c.valid_from] if versioned else [table.c.valid_from, table.c.log_index]
    columns = [table.c[name] for name in columns_of(row_type)]
    query = select(*place, *columns).where(table.c.valid_from <= last).order_by(table.c.valid_from)
    for values in _stream(index, query):
        row: Row = row_type(*values[len(place) :])
        yield values[0], row if versioned else PlacedFact(values[1], row)  # type: ignore[arg-type]


def _stream(index: _Index, query: Select[Any]) -> Iterator[Any]:
    """Read through a cursor of the server's, where it has one: no table is ever held as a whole."""
    try:
        with database_sentences(index.label):
            found = index.connection.execute(query, execution_options={"yield_per": _ROWS_A_FETCH})
            yield from index.open_reads.enter_context(found)
    except (ValueError, TypeError) as error:
        table = query.get_final_froms()[0]
        raise StoreError(f"A row of {table} in the index at {index.label} cannot be read: {_MEND}.") from error


def _first_wrong_end(connection: Connection, otherwise: int) -> int:
    """The first block from which a row is valid too long or too short."""
    found = (connection.execute(_wrong_ends(table_of(row_type), row_type.KEY)).scalar() for row_type in VERSIONED)
    return min((number for number in found if number is not None), default=otherwise)


def _wrong_ends(table: Table, key: tuple[str, ...]) -> Select[Any]:
    follows = func.lead(table.c.valid_from).over(
        partition_by=[table.c[name] for name in key], order_by=table.c.valid_from
    )
    pairs = select(table.c.valid_to, follows.label("follows")).subquery()
    ends, follows_at = pairs.c.valid_to, pairs.c.follows
    earlier = case((or_(follows_at.is_(None), ends < follows_at), ends), else_=follows_at)
    return select(func.min(earlier)).where(ends.is_distinct_from(follows_at))
