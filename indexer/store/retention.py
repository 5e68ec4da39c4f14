"""Letting go of raw logs that are long final. Rows, digests and headers stay; the rows can no longer be rebuilt."""

from sqlalchemy import Connection, delete, select, update

from indexer.errors import StoreError
from indexer.store.reader import read_cursor
from indexer.store.tables import CURSOR, RAW_LOG

MAX_LOGS = 20_000
"""Most raw logs that one step lets go, give or take those of a block."""


def prune_raw_logs(connection: Connection, keep_blocks: int) -> int:
    """Delete raw logs of blocks more than `keep_blocks` below the final one; gives how many.

    One bounded step in the caller's transaction: call it again while it gives more than 0.
    """
    cursor = read_cursor(connection)
    if cursor is None or cursor.finalized is None:
        return 0
    end = _end_of_step(connection, cursor.finalized - keep_blocks)
    if end is None:
        return 0
    deleted = connection.execute(delete(RAW_LOG).where(RAW_LOG.c.block_number < end)).rowcount
    connection.execute(update(CURSOR).values(raw_logs_from=end))
    return deleted


def _end_of_step(connection: Connection, limit: int) -> int | None:
    """Give the block before which to delete: `limit`, or less where that would be too much. None: nothing is."""
    numbers = select(RAW_LOG.c.block_number).where(RAW_LOG.c.block_number < limit).order_by(RAW_LOG.c.block_number)
    oldest = connection.execute(numbers.limit(1)).scalar()
    if oldest is None:
        return None
    beyond = connection.execute(numbers.offset(MAX_LOGS).limit(1)).scalar()
    return limit if beyond is None else max(beyond, oldest + 1)


def need_raw_logs(connection: Connection, block: int, label: str) -> None:
    """Raise StoreError where the raw logs of a block are gone."""
    cursor = read_cursor(connection)
    if cursor is not None and cursor.raw_logs_from is not None and block < cursor.raw_logs_from:
        raise StoreError(
            f"The index at {label} keeps raw logs from block {cursor.raw_logs_from} on only, and this needs those of "
            f"block {block}: run `counterfoil index run` in a new database, with COUNTERFOIL_RAW_LOG_BLOCKS=0."
        )
