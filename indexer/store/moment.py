"""One snapshot of the index as of one block: what every question stands on."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, FromClause, RowMapping, Select, Table, and_, false, func, or_, select

from indexer.errors import QuestionError, UnknownBlockError
from indexer.rows import Session, columns_of
from indexer.store.database import Store
from indexer.store.reader import Cursor, first_block, read_cursor, read_meta
from indexer.store.tables import BLOCK, METADATA, QUARANTINE, RAW_LOG, table_of
from indexer.views import Answer, AsOf, NodeView, Page, ServiceView, Status

T = TypeVar("T")
At = int | str | None
"""A block number, a block hash, or None for the newest indexed block."""

MAX_PAGE = 1000
_HEX = re.compile(r"0x[0-9a-f]+")
_HASH = re.compile(r"0x[0-9a-f]{64}")


class Moment:
    """One question: a snapshot, a block, and the conditions that follow from it."""

    def __init__(self, connection: Connection, meta: Mapping[str, str], cursor: Cursor, block: RowMapping) -> None:
        self.connection = connection
        self._meta = meta
        self._cursor = cursor
        self._is_head = block["number"] == cursor.number
        self._digest = str(block["digest"])
        self.as_of = AsOf(
            chain_id=int(meta["chain_id"]),
            block=block["number"],
            hash=block["hash"],
            timestamp=block["timestamp"],
            finalized=cursor.finalized is not None and block["number"] <= cursor.finalized,
        )
        self.service, self.node, self._stake, self._load, self._reputation = (
            METADATA.tables[name] for name in ("service", "node", "node_stake", "node_load", "node_reputation")
        )
        rules = {name: value for contract, name, value in self.parameters() if contract == "NodeRegistry"}
        self._min_stake = int(rules.get("min_stake", 0))
        self._stake_per_slot = int(rules.get("stake_per_slot", 0))

    def answer(self, value: T) -> Answer[T]:
        """Name the block of a value."""
        return Answer(self.as_of, value)

    def rows(self, query: Select[*tuple[object, ...]]) -> Sequence[RowMapping]:
        """Run a query in this snapshot."""
        return self.connection.execute(query).mappings().all()

    def valid(self, table: Table) -> ColumnElement[bool]:
        """Law 2: the version that holds after this block."""
        if self._is_head:
            return table.c.valid_to.is_(None)
        block = self.as_of.block
        return and_(table.c.valid_from <= block, or_(table.c.valid_to.is_(None), table.c.valid_to > block))

    def parameters(self) -> list[tuple[str, str, str]]:
        """List the constructor arguments that are known after this block."""
        table = METADATA.tables["parameter"]
        query = select(table.c.contract, table.c.name, table.c.value).where(table.c.valid_from <= self.as_of.block)
        return [(row.contract, row.name, row.value) for row in self.connection.execute(query)]

    def _of_node(self, owner: Table) -> FromClause:
        joined: FromClause = owner
        for table in (self.node, self._stake, self._load, self._reputation):
            if table is not owner:
                joined = joined.join(table, and_(table.c.node_id == owner.c.node_id, self.valid(table)))
        return joined

    def services(self) -> Select[*tuple[object, ...]]:
        """Select services with what counts of their nodes, as `service_view` wants them."""
        columns = (
            *[self.service.c[name] for name in ("service_id", "node_id", "category_id", "category", "price")],
            *[self.service.c[name] for name in ("metadata_uri", "active")],
            self.node.c.operator, self.node.c.endpoint, self._stake.c.stake, self._load.c.active_sessions,
            self._reputation.c.rating_sum, self._reputation.c.rating_count,
        )  # fmt: skip
        return select(*columns).select_from(self._of_node(self.service)).where(self.valid(self.service))

    def routable(self) -> ColumnElement[bool]:
        """NodeRegistry's rule: the listing is active and its node holds min_stake."""
        return and_(self.service.c.active, self._stake.c.stake >= self._min_stake)

    def _max_concurrent(self, stake: int) -> int:
        return stake // self._stake_per_slot if self._stake_per_slot else 0

    def service_view(self, row: RowMapping) -> ServiceView:
        """Make a value of a row of `services`."""
        return ServiceView(
            **row,
            routable=row["active"] and row["stake"] >= self._min_stake,
            max_concurrent=self._max_concurrent(row["stake"]),
        )

    def nodes(self) -> Select[*tuple[object, ...]]:
        """Select nodes with stake, load and reputation, as `node_view` wants them."""
        columns = (
            self.node.c.node_id, self.node.c.operator, self.node.c.endpoint,
            self._stake.c.stake, self._stake.c.unbonding, self._stake.c.release_at, self._load.c.active_sessions,
            *[self._reputation.c[name] for name in ("rating_sum", "rating_count", "unpaid_count")],
            *[self._reputation.c[name] for name in ("paid_weight", "weighted_sum")],
        )  # fmt: skip
        return select(*columns).select_from(self._of_node(self.node)).where(self.valid(self.node))

    def node_view(self, row: RowMapping) -> NodeView:
        """Make a value of a row of `nodes`; reads its capabilities."""
        capability = METADATA.tables["capability"]
        enabled = select(capability.c.capability).where(
            capability.c.node_id == row["node_id"], capability.c.enabled, self.valid(capability)
        )
        return NodeView(
            **row,
            max_concurrent=self._max_concurrent(row["stake"]),
            capabilities=tuple(sorted(self.connection.execute(enabled).scalars())),
        )

    def sessions(self) -> Select[*tuple[object, ...]]:
        """Select sessions."""
        table = table_of(Session)
        return select(*[table.c[name] for name in columns_of(Session)]).where(self.valid(table))

    def page(
        self,
        query: Select[*tuple[object, ...]],
        order: ColumnElement[int],
        after: int,
        limit: int,
        view: Callable[[RowMapping], T],
    ) -> Answer[Page[T]]:
        """Answer with the rows whose `order` column lies beyond `after`, `limit` at most."""
        found = self.rows(query.where(order > bounded_id(after)).order_by(order).limit(page_limit(limit) + 1))
        more = len(found) > limit
        last = found[limit - 1][order.key] if more else None  # type: ignore[index]
        return self.answer(Page(tuple(view(row) for row in found[:limit]), last))

    def _count(self, name: str) -> int:
        table = METADATA.tables[name]
        query = select(func.count()).select_from(table)
        if "valid_to" in table.c:
            query = query.where(self.valid(table))
        return self.connection.execute(query).scalar_one()

    def status(self) -> Status:
        """Say what the index is of and how far it is."""
        prefix = "address."
        return Status(
            genesis_hash=self._meta["genesis_hash"],
            first_block=int(self._meta["first_block"]),
            addresses={k.removeprefix(prefix): v for k, v in self._meta.items() if k.startswith(prefix)},
            finalized_block=self._cursor.finalized,
            digest=self._digest,
            raw_logs=self._count(RAW_LOG.name),
            quarantined=self._count(QUARANTINE.name),
            nodes=self._count("node"),
            services=self._count("service"),
            sessions=self._count("session"),
        )


@contextmanager
def moment_at(store: Store, at: At) -> Iterator[Moment]:
    """Open a snapshot as of a block; UnknownBlockError when the index does not hold it."""
    with store.read() as connection:
        cursor = read_cursor(connection)
        if cursor is None:
            raise UnknownBlockError(f"The index at {store.label} is empty: fill it with `counterfoil index run`.")
        yield Moment(connection, read_meta(connection), cursor, _block(connection, cursor, at))


def _block(connection: Connection, cursor: Cursor, at: At) -> RowMapping:
    wanted = cursor.number if at is None else at
    found = connection.execute(select(BLOCK).where(_is_block(wanted))).mappings().first()
    if found is not None:
        return found
    if isinstance(wanted, str):
        raise UnknownBlockError(
            "The index holds no block with this hash: it may be of a replaced fork, or newer than the index; "
            "ask for a block number, or wait until `counterfoil index status` shows it."
        )
    first = first_block(connection)
    raise UnknownBlockError(
        f"The index holds blocks {first} to {cursor.number}, not {wanted}: ask for one of those, "
        "or run `counterfoil index run` until it is there."
    )


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
