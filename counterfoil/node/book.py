"""The vouchers a node holds, in a SQLite file: written before a call is served, kept once it was."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

from counterfoil.node.vouchers import Refusal, RefusedError, Voucher

_SCHEMA = """
create table if not exists kept (session_id text primary key, amount text not null, calls integer not null,
                                 signature blob not null) strict;
create table if not exists held (session_id text primary key, amount text not null, calls integer not null,
                                 signature blob not null) strict;
"""


class VoucherBook:
    """One last valid voucher for each session, and at most one that is being served.

    Opening the book drops what was being served when the process ended: it was not earned.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._transaction() as connection:
            connection.execute("pragma journal_mode = wal")
            connection.executescript(_SCHEMA)
            connection.execute("delete from held")

    def last(self, session_id: str) -> Voucher | None:
        """The last voucher whose call was served."""
        with self._transaction() as connection:
            return _read(connection, session_id)

    def hold(self, voucher: Voucher) -> None:
        """Write a voucher down before its call is served. Raises RefusedError while another of its session is."""
        try:
            with self._transaction() as connection:
                connection.execute("insert into held values (?, ?, ?, ?)", _row(voucher))
        except sqlite3.IntegrityError as error:
            raise RefusedError(Refusal.BUSY, "a call of this session is being served; wait for its answer") from error

    def keep(self, voucher: Voucher) -> None:
        """The held voucher's call was served: it is the last valid one now."""
        with self._transaction() as connection:
            connection.execute("insert or replace into kept values (?, ?, ?, ?)", _row(voucher))
            connection.execute("delete from held where session_id = ?", (voucher.session_id,))

    def drop(self, voucher: Voucher) -> None:
        """The held voucher's call failed: it charges nothing."""
        with self._transaction() as connection:
            connection.execute("delete from held where session_id = ?", (voucher.session_id,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, closing(sqlite3.connect(self._path, timeout=30)) as connection, connection:
            yield connection


def _row(voucher: Voucher) -> tuple[str, str, int, bytes]:
    return voucher.session_id, str(voucher.amount), voucher.calls, voucher.signature


def _read(connection: sqlite3.Connection, session_id: str) -> Voucher | None:
    row = connection.execute(
        "select session_id, amount, calls, signature from kept where session_id = ?", (session_id,)
    ).fetchone()
    return Voucher(row[0], int(row[1]), row[2], row[3]) if row else None
