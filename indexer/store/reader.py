"""Small reads that the writer and the questions share."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from indexer.digest import NO_DIGEST
from indexer.store.tables import BLOCK, CURSOR, META


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last indexed block, and the highest of ours that the chain called final (None: none yet)."""

    number: int
    hash: str
    finalized: int | None
    raw_logs_from: int | None = None
    """The first block whose raw logs are kept, None while none were pruned."""
    target: int | None = None
    """The block that the run which wrote last was on its way to, None while none has said so."""

    @property
    def behind(self) -> int:
        """How many blocks were left to write, when the last one was written."""
        return max(0, self.target - self.number) if self.target is not None else 0


def read_cursor(connection: Connection) -> Cursor | None:
    """Give how far the index is, None while it is empty."""
    columns = (CURSOR.c.number, CURSOR.c.hash, CURSOR.c.finalized, CURSOR.c.raw_logs_from, CURSOR.c.target)
    row = connection.execute(select(*columns)).first()
    return None if row is None else Cursor(*row)


def read_meta(connection: Connection) -> dict[str, str]:
    """Give what the index is of."""
    return {row.name: row.value for row in connection.execute(select(META.c.name, META.c.value))}


def hashes(connection: Connection, first: int, last: int) -> dict[int, str]:
    """Give the hashes of the blocks we hold in a range, by number."""
    query = select(BLOCK.c.number, BLOCK.c.hash).where(BLOCK.c.number.between(first, last))
    return {row.number: row.hash for row in connection.execute(query)}


def digest_at(connection: Connection, number: int) -> str:
    """Give the digest after a block, NO_DIGEST before the first one."""
    found = connection.execute(select(BLOCK.c.digest).where(BLOCK.c.number == number)).scalar()
    return NO_DIGEST if found is None else str(found)


def first_block(connection: Connection) -> int | None:
    """Give the first block we hold."""
    found = connection.execute(select(func.min(BLOCK.c.number))).scalar()
    return None if found is None else int(found)
