"""Writing a range, undoing blocks, and rebuilding: each one transaction, by the one process that holds the lock."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Table, bindparam, delete, select, update

from indexer.chain import Header, Log
from indexer.decode import LogDecoder
from indexer.deployment import Deployment
from indexer.digest import NO_DIGEST
from indexer.errors import StoreError
from indexer.fold import FoldedBlock, fold_range
from indexer.rows import FACTS, VERSIONED, Fact, Key, Versioned, columns_of, key_of, values_of
from indexer.store.current import CurrentRows
from indexer.store.database import Store, open_store, writer_lock
from indexer.store.reader import Cursor, digest_at, read_cursor, read_meta
from indexer.store.tables import BLOCK, CURSOR, META, QUARANTINE, RAW_LOG, table_of

_BLOCKS_A_STEP = 1000  # of a rebuild, so that its memory stays bounded


class Writer:
    """The one writer of an index. Open it with `open_writer`."""

    def __init__(self, store: Store, deployment: Deployment) -> None:
        self.store = store
        self.deployment = deployment
        self.decoder = LogDecoder(deployment.addresses())

    def cursor(self) -> Cursor | None:
        """Give the last block that is indexed, None for an empty index."""
        with self.store.read() as connection:
            return read_cursor(connection)

    def append(self, headers: Sequence[Header], logs: Sequence[Log], finalized: int | None) -> None:
        """Write consecutive blocks that follow the cursor."""
        with self.store.write() as connection:
            self._append(connection, headers, logs, finalized)

    def replace_from(
        self, ancestor: int, headers: Sequence[Header], logs: Sequence[Log], finalized: int | None
    ) -> None:
        """Undo every block above `ancestor` and write the new branch's blocks, in one transaction."""
        with self.store.write() as connection:
            roll_back(connection, ancestor)
            self._append(connection, headers, logs, finalized)

    def rebuild(self) -> int:
        """Make all projections and digests again from the raw logs, without the chain; gives the blocks done."""
        with self.store.write() as connection:
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
        self, connection: Connection, headers: Sequence[Header], logs: Sequence[Log], finalized: int | None
    ) -> None:
        state = CurrentRows(connection)
        before = digest_at(connection, headers[0].number - 1)
        folded = fold_range(headers, logs, self.decoder, state, before)
        _insert(connection, BLOCK, [_block_row(block) for block in folded])
        _insert(connection, RAW_LOG, [_log_row(log) for block in folded for log in block.logs])
        _write_projections(connection, folded, state)
        _move_cursor(connection, headers[-1], finalized)


@contextmanager
def open_writer(path_or_url: str | Path, deployment: Deployment) -> Iterator[Writer]:
    """Open an index for writing, and bind a new one to its deployment.

    Raises LockedError when another process writes to it, StoreError when it belongs to another deployment.
    """
    with ExitStack() as stack:
        store = stack.enter_context(open_store(path_or_url, create=True))
        stack.enter_context(writer_lock(store))
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
        found = {name: value for name, value in read_meta(connection).items() if name != "schema_version"}
        if not found:
            _insert(connection, META, [{"name": name, "value": value} for name, value in wanted.items()])
            return
    if found != wanted:
        differing = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        raise StoreError(
            f"The index at {store.label} is of another deployment ({', '.join(differing)} differ): "
            "move it away, or name another COUNTERFOIL_DATABASE or COUNTERFOIL_DEPLOYMENT."
        )


# --- rows


def _insert(connection: Connection, table: Table, values: list[dict[str, object]]) -> None:
    if values:
        connection.execute(table.insert(), values)


def _block_row(block: FoldedBlock) -> dict[str, object]:
    header = block.header
    return {
        "number": header.number, "hash": header.hash, "parent_hash": header.parent_hash,
        "timestamp": header.timestamp, "digest": block.digest,
    }  # fmt: skip


def _log_row(log: Log) -> dict[str, object]:
    return {
        "block_number": log.block_number, "log_index": log.log_index, "block_hash": log.block_hash,
        "tx_hash": log.tx_hash, "tx_index": log.tx_index, "address": log.address,
        "topics": ",".join(log.topics), "data": log.data,
    }  # fmt: skip


def _write_projections(connection: Connection, folded: Sequence[FoldedBlock], state: CurrentRows) -> None:
    for row_type in VERSIONED:
        _write_versions(connection, row_type, folded, state)
    for fact_type in FACTS:
        _insert(connection, table_of(fact_type), _fact_rows(fact_type, folded))
    quarantined: list[dict[str, object]] = [
        {"block_number": block.header.number, "log_index": item.log_index, "reason": item.reason}
        for block in folded
        for item in block.changes.rejections
    ]
    _insert(connection, QUARANTINE, quarantined)


def _fact_rows(fact_type: type[Fact], folded: Sequence[FoldedBlock]) -> list[dict[str, object]]:
    names = columns_of(fact_type)
    return [
        {"valid_from": block.header.number, "log_index": item.log_index}
        | dict(zip(names, values_of(item.fact), strict=True))
        for block in folded
        for item in block.changes.facts
        if type(item.fact) is fact_type
    ]


def _write_versions(
    connection: Connection, row_type: type[Versioned], folded: Sequence[FoldedBlock], state: CurrentRows
) -> None:
    """Close the versions that the database held, then insert the new ones with both ends already known."""
    names = columns_of(row_type)
    latest: dict[Key, dict[str, object]] = {}
    closed: list[dict[str, object]] = []
    added: list[dict[str, object]] = []
    for block in folded:
        number = block.header.number
        for row in block.changes.versions:
            if type(row) is not row_type:
                continue
            key = key_of(row)
            if key in latest:
                latest[key]["valid_to"] = number
            elif state.is_stored(row_type, key):
                closed.append({"closed_at": number} | {f"key_{i}": part for i, part in enumerate(key)})
            latest[key] = {"valid_from": number, "valid_to": None} | dict(zip(names, values_of(row), strict=True))
            added.append(latest[key])
    if closed:
        _close_versions(connection, row_type, closed)
    _insert(connection, table_of(row_type), added)


def _close_versions(connection: Connection, row_type: type[Versioned], closed: list[dict[str, object]]) -> None:
    table = table_of(row_type)
    same_key = [table.c[name] == bindparam(f"key_{i}") for i, name in enumerate(row_type.KEY)]
    statement = update(table).where(*same_key, table.c.valid_to.is_(None)).values(valid_to=bindparam("closed_at"))
    connection.execute(statement, closed)


def _move_cursor(connection: Connection, header: Header, finalized: int | None) -> None:
    connection.execute(delete(CURSOR))
    values = {"id": 1, "number": header.number, "hash": header.hash, "finalized": finalized}
    connection.execute(CURSOR.insert().values(values))


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
    connection.execute(delete(BLOCK).where(BLOCK.c.number > ancestor))


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
            tuple(row.topics.split(",")), row.data,
        )
        for row in found
    ]  # fmt: skip


def _write_digests(connection: Connection, folded: Sequence[FoldedBlock]) -> None:
    statement = update(BLOCK).where(BLOCK.c.number == bindparam("at")).values(digest=bindparam("new_digest"))
    connection.execute(statement, [{"at": block.header.number, "new_digest": block.digest} for block in folded])
