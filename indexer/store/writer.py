"""Writing a range, undoing blocks, and rebuilding: each one transaction, by the one process that holds the lock."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, bindparam, delete, select, update

from indexer.chain import Header, Log
from indexer.decode import LogDecoder
from indexer.deployment import Deployment
from indexer.digest import NO_DIGEST
from indexer.errors import ForkError, StoreError
from indexer.fold import FoldedBlock, fold_range
from indexer.garbage import rare_collections
from indexer.rows import FACTS, VERSIONED, Fact, Key, Versioned, columns_of, key_of, values_of
from indexer.store.bulk import Value, close_versions, insert_rows
from indexer.store.current import CurrentRows
from indexer.store.database import Store, open_locked
from indexer.store.lock import Patience
from indexer.store.reader import Cursor, read_cursor, read_meta
from indexer.store.retention import need_raw_logs, prune_raw_logs
from indexer.store.tables import BLOCK, CURSOR, META, QUARANTINE, RAW_LOG, REPLACED_BLOCK, table_of

_BLOCKS_A_STEP = 1000  # of a rebuild, so that its memory stays bounded
_REPLACED_KEPT = 100_000
"""How far below a reorg blocks are still known that earlier ones took away."""
_ROWS_KEPT = 20_000
"""How many current rows are kept in memory from one range to the next, at most: some 20 MB."""


class Writer:
    """The one writer of an index. Open it with `open_writer`."""

    def __init__(self, store: Store, deployment: Deployment) -> None:
        self.store = store
        self.deployment = deployment
        self.decoder = LogDecoder(deployment.addresses())
        self._kept: tuple[str, CurrentRows] | None = None  # rows as they are after the block of this hash

    def cursor(self) -> Cursor | None:
        """Give the last block that is indexed, None for an empty index."""
        with self.store.read() as connection:
            return read_cursor(connection)

    def append(
        self, headers: Sequence[Header], logs: Sequence[Log], finalized: int | None, target: int | None = None
    ) -> None:
        """Write consecutive blocks that follow the cursor, on the way to block `target`."""
        with self.store.write(lasting=False) as connection:
            state = self._append(connection, headers, logs, finalized, target)
        self._keep(headers[-1], state)
        self.store.wrote(len(headers) + len(logs))

    def replace_from(
        self,
        ancestor: int,
        headers: Sequence[Header],
        logs: Sequence[Log],
        finalized: int | None,
        target: int | None = None,
    ) -> None:
        """Undo every block above `ancestor` and write the new branch's blocks, in one transaction."""
        with self.store.write() as connection:
            roll_back(connection, ancestor)
            state = self._append(connection, headers, logs, finalized, target)
        self._keep(headers[-1], state)

    def prune(self, keep_blocks: int) -> int:
        """Let raw logs go that lie more than `keep_blocks` below the final block: one bounded step; gives how many."""
        with self.store.write() as connection:
            return prune_raw_logs(connection, keep_blocks)

    def rebuild(self) -> int:
        """Make all projections and digests again from the raw logs, without the chain; gives the blocks done.

        Raises StoreError where raw logs were pruned.
        """
        self._kept = None
        with self.store.write() as connection:
            need_raw_logs(connection, self.deployment.first_block, self.store.label)
            _clear_projections(connection)
            digest, done = NO_DIGEST, 0
            for headers in _stored_headers(connection):
                logs = _stored_logs(connection, headers[0].number, headers[-1].number)
                state = CurrentRows(connection)
                folded = fold_range(headers, logs, self.decoder, state, digest)
                _write_projections(connection, folded, state)
                _write_digests(connection, folded)
                digest, done = folded[-1].digest, done + len(folded)
        return done

    def _append(
        self,
        connection: Connection,
        headers: Sequence[Header],
        logs: Sequence[Log],
        finalized: int | None,
        target: int | None,
    ) -> CurrentRows:
        before = _digest_before(connection, headers[0])
        state = self._rows_after(headers[0].parent_hash, connection)
        folded = fold_range(headers, logs, self.decoder, state, before)
        _write_source(connection, folded)
        _write_projections(connection, folded, state)
        _move_cursor(connection, headers[-1], finalized, target)
        return state

    def _rows_after(self, block_hash: str, connection: Connection) -> CurrentRows:
        """Give the current rows after a block, which the database's newest one was seen to be.

        Rows follow from the blocks (law 2), so those that are kept hold after their own block, whatever happened in
        between. They are taken out: a transaction that fails leaves them half changed.
        """
        kept, self._kept = self._kept, None
        if kept is None or kept[0] != block_hash:
            return CurrentRows(connection)
        return kept[1].go_on(connection)

    def _keep(self, header: Header, state: CurrentRows) -> None:
        if len(state) <= _ROWS_KEPT:
            self._kept = header.hash, state


@contextmanager
def open_writer(
    path_or_url: str | Path, deployment: Deployment, *, patience: Patience | None = None
) -> Iterator[Writer]:
    """Open an index for writing (see `open_locked`), and bind a new one to its deployment.

    Raises LockedError when another process writes to it, StoreError when it belongs to another deployment.
    """
    with open_locked(path_or_url, patience) as store, rare_collections():
        _bind(store, deployment)
        yield Writer(store, deployment)


def _identity(deployment: Deployment) -> dict[str, str]:
    pairs = {
        "chain_id": str(deployment.chain_id),
        "genesis_hash": deployment.genesis_hash,
        "first_block": str(deployment.first_block),
    }
    for contract in deployment.indexed():
        pairs[f"address.{contract.name}"] = contract.address.lower()
        pairs[f"block_hash.{contract.name}"] = contract.block_hash
    return pairs


def _bind(store: Store, deployment: Deployment) -> None:
    wanted = _identity(deployment)
    with store.write() as connection:
        found = read_meta(connection)
        if not found:
            insert_rows(connection, META, ("name", "value"), list(wanted.items()))
            return
    if found != wanted:
        differing = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        raise StoreError(
            f"The index at {store.label} is of another deployment ({', '.join(differing)} differ): "
            "move it away, or name another COUNTERFOIL_DATABASE or COUNTERFOIL_DEPLOYMENT."
        )


# --- rows

_BLOCK_COLUMNS = ("number", "hash", "parent_hash", "timestamp", "digest")
_LOG_COLUMNS = ("block_number", "log_index", "block_hash", "tx_hash", "tx_index", "address", "topics", "data")
_REJECTION_COLUMNS = ("block_number", "log_index", "reason")
_Begun = tuple[int, Versioned]
"""A version and the block in which it begins."""


def _write_source(connection: Connection, folded: Sequence[FoldedBlock]) -> None:
    headers = [(block.header, block.digest) for block in folded]
    insert_rows(connection, BLOCK, _BLOCK_COLUMNS, [(*header[:4], digest) for header, digest in headers])
    logs = [(*log[:6], ",".join(log.topics), log.data) for block in folded for log in block.logs]
    insert_rows(connection, RAW_LOG, _LOG_COLUMNS, logs)


def _write_projections(connection: Connection, folded: Sequence[FoldedBlock], state: CurrentRows) -> None:
    versions: dict[type[Versioned], list[_Begun]] = defaultdict(list)
    facts: dict[type[Fact], list[Sequence[Value]]] = defaultdict(list)
    rejected: list[Sequence[Value]] = []
    for block in folded:
        number = block.header.number
        for row in block.changes.versions:
            versions[type(row)].append((number, row))
        for item in block.changes.facts:
            facts[type(item.fact)].append((number, item.log_index, *values_of(item.fact)))
        rejected += [(number, item.log_index, item.reason) for item in block.changes.rejections]
    for row_type, begun in versions.items():
        _write_versions(connection, row_type, begun, state)
    for fact_type, rows in facts.items():
        insert_rows(connection, table_of(fact_type), ("valid_from", "log_index", *columns_of(fact_type)), rows)
    insert_rows(connection, QUARANTINE, _REJECTION_COLUMNS, rejected)


def _write_versions(
    connection: Connection, row_type: type[Versioned], begun: Sequence[_Begun], state: CurrentRows
) -> None:
    """Close the versions that the database held, then insert the new ones with both ends already known."""
    ends: dict[Key, int] = {}  # where the next version of a key begins, seen from the last one on
    added = []
    for number, row in reversed(begun):
        key = key_of(row)
        added.append((number, ends.get(key), *values_of(row)))
        ends[key] = number
    table, stored = table_of(row_type), state.stored(row_type)
    close_versions(connection, table, row_type.KEY, [(end, *key) for key, end in ends.items() if key in stored])
    state.store(row_type, ends)
    insert_rows(connection, table, ("valid_from", "valid_to", *columns_of(row_type)), added[::-1])


def _digest_before(connection: Connection, header: Header) -> str:
    """Give the digest that a block goes on from; ForkError unless the newest block is its parent.

    The loop has checked it against what it read; this holds in the transaction that writes, whoever wrote in between.
    """
    newest = select(BLOCK.c.number, BLOCK.c.hash, BLOCK.c.digest).order_by(BLOCK.c.number.desc()).limit(1)
    found = connection.execute(newest).first()
    if found is None:
        return NO_DIGEST
    if (found.number, found.hash) != (header.number - 1, header.parent_hash):
        raise ForkError(f"Block {header.number} does not follow the index's newest block {found.number}; asking again.")
    return str(found.digest)


def _move_cursor(connection: Connection, header: Header, finalized: int | None, target: int | None) -> None:
    place = {"number": header.number, "hash": header.hash, "finalized": finalized, "target": target}
    if not connection.execute(update(CURSOR).values(place)).rowcount:
        connection.execute(CURSOR.insert().values(id=1, **place))


def roll_back(connection: Connection, ancestor: int) -> None:
    """Make the rows those after block `ancestor` (law 2, design section 1)."""
    for row_type in VERSIONED:
        table = table_of(row_type)
        connection.execute(delete(table).where(table.c.valid_from > ancestor))
        connection.execute(update(table).where(table.c.valid_to > ancestor).values(valid_to=None))
    for fact_type in FACTS:
        facts = table_of(fact_type)
        connection.execute(delete(facts).where(facts.c.valid_from > ancestor))
    for table in (RAW_LOG, QUARANTINE):
        connection.execute(delete(table).where(table.c.block_number > ancestor))
    _remember_replaced(connection, ancestor)
    connection.execute(delete(BLOCK).where(BLOCK.c.number > ancestor))


def _remember_replaced(connection: Connection, ancestor: int) -> None:
    gone = select(BLOCK.c.hash, BLOCK.c.number).where(BLOCK.c.number > ancestor)
    known = select(REPLACED_BLOCK.c.hash)
    new = gone.where(BLOCK.c.hash.not_in(known))
    connection.execute(REPLACED_BLOCK.insert().from_select(["hash", "number"], new))
    connection.execute(delete(REPLACED_BLOCK).where(REPLACED_BLOCK.c.number < ancestor - _REPLACED_KEPT))


# --- rebuilding


def _clear_projections(connection: Connection) -> None:
    for row_type in (*VERSIONED, *FACTS):
        connection.execute(delete(table_of(row_type)))
    connection.execute(delete(QUARANTINE))


def _stored_headers(connection: Connection) -> Iterator[list[Header]]:
    after = -1
    while True:
        query = select(BLOCK.c.number, BLOCK.c.hash, BLOCK.c.parent_hash, BLOCK.c.timestamp)
        page = query.where(BLOCK.c.number > after).order_by(BLOCK.c.number).limit(_BLOCKS_A_STEP)
        headers = [Header(*row) for row in connection.execute(page)]
        if not headers:
            return
        yield headers
        after = headers[-1].number


def _stored_logs(connection: Connection, first: int, last: int) -> list[Log]:
    query = select(RAW_LOG).where(RAW_LOG.c.block_number.between(first, last))
    found = connection.execute(query.order_by(RAW_LOG.c.block_number, RAW_LOG.c.log_index))
    return [
        Log(
            row.block_number, row.log_index, row.block_hash, row.tx_hash, row.tx_index, row.address,
            tuple(row.topics.split(",")) if row.topics else (), row.data,
        )
        for row in found
    ]  # fmt: skip


def _write_digests(connection: Connection, folded: Sequence[FoldedBlock]) -> None:
    statement = update(BLOCK).where(BLOCK.c.number == bindparam("at")).values(digest=bindparam("new_digest"))
    connection.execute(statement, [{"at": block.header.number, "new_digest": block.digest} for block in folded])
