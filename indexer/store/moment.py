"""One snapshot of the index as of one block: what every question stands on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Result,
    RowMapping,
    Select,
    Table,
    false,
    func,
    select,
)

from indexer.decode import UNKNOWN_EVENT
from indexer.errors import EmptyIndexError, QuestionError, ReplacedBlockError, UnknownBlockError
from indexer.rows import (
    Capability,
    Key,
    Node,
    NodeLoad,
    NodeReputation,
    NodeStake,
    Parameter,
    Service,
    Session,
    Versioned,
)
from indexer.store.database import Store
from indexer.store.reader import Cursor, first_block, read_cursor, read_meta
from indexer.store.tables import BLOCK, QUARANTINE, RAW_LOG, REPLACED_BLOCK, table_of
from indexer.store.versions import Rows, row_of, rows_of
from indexer.views import Answer, AsOf, CandidateRow, NodeView, ServiceView, Status

T = TypeVar("T")
At = int | str | None
"""A block number, a block hash, or None for the newest indexed block."""

MAX_PAGE = 1000
_HEX = re.compile(r"0x[0-9a-f]+")
_HASH = re.compile(r"0x[0-9a-f]{64}")


class Moment:
    """One question: a snapshot, a block, and the rows that held after it."""

    def __init__(self, connection: Connection, meta: Mapping[str, str], cursor: Cursor, block: RowMapping) -> None:
        self.connection = connection
        self._meta = meta
        self._cursor = cursor
        self._digest = str(block["digest"])
        self.is_head = block["number"] == cursor.number
        self.as_of = AsOf(
            chain_id=int(meta["chain_id"]),
            block=block["number"],
            hash=block["hash"],
            timestamp=block["timestamp"],
            finalized=cursor.finalized is not None and block["number"] <= cursor.finalized,
            behind=cursor.behind,
        )
        rules = {name: value for contract, name, value in self.parameters() if contract == "NodeRegistry"}
        self._min_stake = int(rules.get("min_stake", 0))
        self._stake_per_slot = int(rules.get("stake_per_slot", 0))

    def answer(self, value: T) -> Answer[T]:
        """Name the block of a value."""
        return Answer(self.as_of, value)

    def run(self, query: Select[*tuple[Any, ...]]) -> Result[*tuple[Any, ...]]:
        """Run a query in this snapshot, as of this block."""
        return self.connection.execute(query, {"at": self.as_of.block})

    def all(self, query: Select[*tuple[Any, ...]]) -> Sequence[RowMapping]:
        """Give all rows of a query."""
        return self.run(query).mappings().all()

    def page(self, rows: Rows, order: str, after: int, limit: int) -> tuple[Sequence[RowMapping], int | None]:
        """Give the rows whose `order` column lies beyond `after`, `limit` at most, and where the next page begins."""
        column = rows.key.c[order]
        found = self.all(rows.query.where(column > bounded_id(after)).order_by(column).limit(page_limit(limit) + 1))
        return found[:limit], found[limit - 1][order] if len(found) > limit else None

    def parameters(self) -> list[tuple[str, str, str]]:
        """List the constructor arguments that are known after this block."""
        table = table_of(Parameter)
        query = select(table.c.contract, table.c.name, table.c.value).where(table.c.valid_from <= self.as_of.block)
        return [(row.contract, row.name, row.value) for row in self.connection.execute(query)]

    def find(self, row_type: type[Versioned], key: Key) -> RowMapping | None:
        """Give the row of a key."""
        given = dict(zip(row_type.KEY, key, strict=True))
        query = row_of(row_type)  # type: ignore[arg-type]  # a class is hashable
        return self.connection.execute(query, given | {"at": self.as_of.block}).mappings().first()

    def rows(self, row_type: type[Versioned], view: type[Any], *of_node: type[Versioned]) -> Rows:
        """Select what a view has of the rows of a type, and of other rows of the same node."""
        return rows_of(self.connection.dialect.name, row_type, view, *of_node)  # type: ignore[arg-type]  # as above

    # --- services, nodes, sessions

    def candidates(self) -> Rows:
        """Select what routing reads of services: of those that are routable (NodeRegistry's rule)."""
        return self._routable(self.rows(Service, CandidateRow, NodeStake, NodeLoad, NodeReputation))

    def services(self, *, routable: bool = False) -> Rows:
        """Select services with what counts of their nodes, as `service_view` wants them."""
        rows = self.rows(Service, ServiceView, Node, NodeStake, NodeLoad, NodeReputation)
        return self._routable(rows) if routable else rows

    def _routable(self, rows: Rows) -> Rows:
        return rows.where(rows.held["active"], rows.held["stake"] >= self._min_stake)

    def _max_concurrent(self, stake: int) -> int:
        return stake // self._stake_per_slot if self._stake_per_slot else 0

    def candidate_rows(self, query: Select[*tuple[Any, ...]]) -> tuple[CandidateRow, ...]:
        """Make values of what `candidates` selects, in the order of the fields."""
        found = self.run(query).all()
        return tuple(CandidateRow(*(*row, self._max_concurrent(row.stake))) for row in found)

    def service_view(self, row: RowMapping) -> ServiceView:
        """Make a value of a row of `services`."""
        routable = row["active"] and row["stake"] >= self._min_stake
        return ServiceView(**row, routable=routable, max_concurrent=self._max_concurrent(row["stake"]))

    def nodes(self) -> Rows:
        """Select nodes with stake, load and reputation, as `node_views` wants them."""
        return self.rows(Node, NodeView, NodeStake, NodeLoad, NodeReputation)

    def node_views(self, found: Sequence[RowMapping]) -> tuple[NodeView, ...]:
        """Make values of rows of `nodes`; reads their capabilities."""
        rows = self.rows(Capability, Capability)
        theirs = rows.where(rows.key.c.node_id.in_([row["node_id"] for row in found]), rows.held["enabled"])
        enabled: dict[int, list[str]] = {}
        for row in self.all(theirs.query):
            enabled.setdefault(row["node_id"], []).append(row["capability"])
        return tuple(
            NodeView(
                **row,
                max_concurrent=self._max_concurrent(row["stake"]),
                capabilities=tuple(sorted(enabled.get(row["node_id"], ()))),
            )
            for row in found
        )

    def sessions(self) -> Rows:
        """Select sessions."""
        rows = self.rows(Session, Session)
        return rows.where(rows.key.c.number <= self._last_session())

    def _last_session(self) -> int:
        """Give the number of the last session opened by this block: numbers follow the order of opening."""
        table = table_of(Session)
        opened = select(table.c.number).where(table.c.valid_to.is_(None), table.c.opened_block <= self.as_of.block)
        newest = opened.order_by(table.c.opened_block.desc(), table.c.number.desc()).limit(1)
        return self.connection.execute(newest).scalar() or 0

    def status(self) -> Status:
        """Say what the index is of and how far it is."""
        prefix = "address."
        return Status(
            genesis_hash=self._meta["genesis_hash"],
            first_block=int(self._meta["first_block"]),
            addresses={k.removeprefix(prefix): v for k, v in self._meta.items() if k.startswith(prefix)},
            finalized_block=self._cursor.finalized,
            digest=self._digest,
            raw_logs=self._count(RAW_LOG),
            raw_logs_from=self._cursor.raw_logs_from,
            quarantined=self._count(QUARANTINE),
            unknown_events=self._count(QUARANTINE, QUARANTINE.c.reason == UNKNOWN_EVENT),
            nodes=self._count_current(Node),
            services=self._count_current(Service),
            sessions=self._last_session(),
        )

    def _count(self, table: Table, *conditions: ColumnElement[bool]) -> int:
        return self.connection.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one()

    def _count_current(self, row_type: type[Versioned]) -> int:
        table = table_of(row_type)
        return self._count(table, table.c.valid_to.is_(None))


@contextmanager
def moment_at(store: Store, at: At) -> Iterator[Moment]:
    """Open a snapshot as of a block; UnknownBlockError when the index does not hold it."""
    with store.read() as connection:
        cursor = read_cursor(connection)
        if cursor is None:
            raise EmptyIndexError(f"The index at {store.label} is empty: fill it with `counterfoil index run`.")
        yield Moment(connection, read_meta(connection), cursor, _block(connection, cursor, at))


def _block(connection: Connection, cursor: Cursor, at: At) -> RowMapping:
    wanted = cursor.number if at is None else at
    found = connection.execute(select(BLOCK).where(_is_block(wanted))).mappings().first()
    if found is not None:
        return found
    if isinstance(wanted, str):
        _check_replaced(connection, wanted.lower())
        raise UnknownBlockError(
            "The index holds no block with this hash: it may be of a fork that it never saw, or newer than the index; "
            "ask for a block number, or wait until `counterfoil index status` shows it."
        )
    first = first_block(connection)
    raise UnknownBlockError(
        f"The index holds blocks {first} to {cursor.number}, not {wanted}: ask for one of those, "
        "or run `counterfoil index run` until it is there."
    )


def _check_replaced(connection: Connection, wanted: str) -> None:
    """Raise ReplacedBlockError for the hash of a block that a reorg took away."""
    if not _HASH.fullmatch(wanted):
        return
    number = connection.execute(select(REPLACED_BLOCK.c.number).where(REPLACED_BLOCK.c.hash == wanted)).scalar()
    if number is not None:
        now = connection.execute(select(BLOCK.c.hash).where(BLOCK.c.number == number)).scalar()
        raise ReplacedBlockError(number, now)


def _is_block(wanted: int | str) -> ColumnElement[bool]:
    if isinstance(wanted, int):
        return BLOCK.c.number == wanted if 0 <= wanted < 2**63 else false()
    return BLOCK.c.hash == wanted.lower() if _HASH.fullmatch(wanted.lower()) else false()


def hex_text(value: str, digits: int) -> str:
    """Check an address (40 digits) or a hash (64) of a question, and give it in lower case."""
    lower = value.lower()
    if len(lower) != digits + 2 or _HEX.fullmatch(lower) is None:
        raise QuestionError(f"The question names something that is not 0x and {digits} hex digits: correct it.")
    return lower


def bounded_id(value: int) -> int:
    """Check a number of a question; QuestionError when no column can hold it."""
    if not 0 <= value < 2**63:
        raise QuestionError("A number in the question is negative or past 2^63: correct it.")
    return value


def page_limit(limit: int) -> int:
    """Check how many items a page may hold."""
    if not 1 <= limit <= MAX_PAGE:
        raise QuestionError(f"A page holds 1 to {MAX_PAGE} items: ask for that many.")
    return limit
