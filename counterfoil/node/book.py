"""The vouchers a node holds, in a SQLite file: written before a call is served, kept once it was."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

from counterfoil.node.vouchers import Refusal, RefusedError, Voucher, check_calls

_SCHEMA = """
create table if not exists kept (session_id text primary key, amount text not null, calls integer not null,
                                 signature blob not null, settled integer not null default 0) strict;
create table if not exists held (session_id text primary key, amount text not null, calls integer not null,
                                 signature blob not null) strict;
"""
_KEPT = "select session_id, amount, calls, signature from kept"


class VoucherBook:
    """One last valid voucher for each session, and at most one thing at a time that is done for a session.

    Opening the book drops what was being done when the process ended: a call that was not answered was not earned.
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

    def unsettled(self) -> list[Voucher]:
        """The last voucher of every session that this node has not settled yet."""
        with self._transaction() as connection:
            rows = connection.execute(f"{_KEPT} where settled = 0 order by session_id").fetchall()
        return [_voucher(row) for row in rows]

    def hold(self, voucher: Voucher) -> None:
        """Write a voucher down before its call is served.

        Raises RefusedError while anything else is done for its session, and where another call got in first.
        """
        with self._transaction() as connection:
            _occupy(connection, voucher)
            check_calls(_read(connection, voucher.session_id), voucher)

    def keep(self, voucher: Voucher) -> None:
        """The held voucher's call was served: it is the last valid one now."""
        with self._transaction() as connection:
            connection.execute("insert or replace into kept values (?, ?, ?, ?, 0)", _row(voucher))
            _free(connection, voucher.session_id)

    def drop(self, session_id: str) -> None:
        """What was held came to nothing: a call that failed charges nothing."""
        with self._transaction() as connection:
            _free(connection, session_id)

    def claim(self, session_id: str) -> Voucher:
        """Take a session to settle it, and give its last voucher: until it is freed no call of it is served.

        Raises RefusedError while a call is being served. A session without a call settles at zero.
        """
        zero = Voucher(session_id, 0, 0, b"")
        with self._transaction() as connection:
            _occupy(connection, zero)
            return _read(connection, session_id) or zero

    def settled(self, session_id: str) -> None:
        """A claimed session was settled."""
        with self._transaction() as connection:
            connection.execute("update kept set settled = 1 where session_id = ?", (session_id,))
            _free(connection, session_id)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, closing(sqlite3.connect(self._path, timeout=30)) as connection, connection:
            yield connection


def _occupy(connection: sqlite3.Connection, voucher: Voucher) -> None:
    try:
        connection.execute("insert into held values (?, ?, ?, ?)", _row(voucher))
    except sqlite3.IntegrityError as error:
        raise RefusedError(Refusal.BUSY, "a call of this session is being served; wait for its answer") from error


def _free(connection: sqlite3.Connection, session_id: str) -> None:
    connection.execute("delete from held where session_id = ?", (session_id,))


def _row(voucher: Voucher) -> tuple[str, str, int, bytes]:
    return voucher.session_id, str(voucher.amount), voucher.calls, voucher.signature


def _voucher(row: tuple[str, str, int, bytes]) -> Voucher:
    return Voucher(row[0], int(row[1]), row[2], row[3])


def _read(connection: sqlite3.Connection, session_id: str) -> Voucher | None:
    row = connection.execute(f"{_KEPT} where session_id = ?", (session_id,)).fetchone()
    return _voucher(row) if row else None
