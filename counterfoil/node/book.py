"""The vouchers a node holds, in a SQLite file: written before a call is served, kept with its answer once it was.

Every transaction is on the disk before it is reported: money hangs on it. One process holds a book at a time.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any, Final

from counterfoil.node.vouchers import Refusal, RefusedError, Voucher, check_calls
from indexer.errors import LockedError, UserError
from indexer.store.lock import FileLock, Holder

MAX_FINAL: Final = 1000
"""How many finally settled sessions stay in the book, for retries of their last call."""
MAX_FINAL_BYTES: Final = 256 * 2**20
"""How many bytes of answers they may hold together."""
_PRUNE = """
delete from sessions where session_id in (
    select session_id from (
        select session_id, row_number() over newest as place, sum(coalesce(length(body), 0)) over newest as bytes
        from sessions left join answers using (session_id) where state = 'final'
        window newest as (order by settled_block desc, session_id)
    ) where place > ? or bytes > ?
)
"""
_SCHEMA = """
create table if not exists identity (line integer primary key check (line = 1), of text not null) strict;
create table if not exists scanned (line integer primary key check (line = 1), block integer not null) strict;
create table if not exists sessions (
    session_id text primary key, signer text not null, price text not null, seen_block integer not null,
    seen_at integer not null, state text not null, amount text not null default '0', calls integer not null default 0,
    signature blob not null default x'', request text not null default '', settled_block integer, settled_hash text
) strict;
create index if not exists sessions_by_state on sessions (state);
create table if not exists answers (
    session_id text primary key, status integer not null, headers text not null, body blob not null
) strict;
create table if not exists held (
    session_id text primary key, amount text not null, calls integer not null, signature blob not null,
    request text not null
) strict;
"""


class BookError(UserError):
    """The book cannot be read or written."""


class Stage(StrEnum):
    """How far a session is, for its node: calls are served while OPEN; SETTLING is for good, whatever the chain does;
    SETTLED is on chain and watched until FINAL.
    """

    OPEN = "open"
    SETTLING = "settling"
    SETTLED = "settled"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class Known:
    """What never changes about a session, and the block at which this node first saw it (`seen_at` in seconds)."""

    session_id: str
    signer: str
    price: int
    seen_block: int
    seen_at: int


@dataclass(frozen=True, slots=True)
class Record:
    """One session in the book; `last` is the voucher of the last call that was served, `request` that call's digest.

    `settled_in` is the number and hash of the block in which it was seen settled.
    """

    known: Known
    stage: Stage
    last: Voucher | None
    request: str
    settled_in: tuple[int, str] | None

    @property
    def payable(self) -> Voucher:
        """What the session is settled by: the last voucher, or one over 0 where no call was served."""
        return self.last or Voucher(self.known.session_id, 0, 0, b"")

    @property
    def is_settled(self) -> bool:
        """Whether it was seen settled on chain."""
        return self.stage in (Stage.SETTLED, Stage.FINAL)


@dataclass(frozen=True, slots=True)
class Answer:
    """An upstream's whole answer as it was given to the client."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class VoucherBook:
    """One last valid voucher for each session, and at most one call at a time.

    `identity` says which chain and node the book is of. Opening it drops what was being served when the process ended:
    a call that was not answered was not earned. Raises LockedError while another process holds it, and BookError.
    """

    def __init__(self, path: Path, identity: str = "") -> None:
        self._path = path
        self._guard = Lock()
        self._busy: set[str] = set()
        _make_folder(path.parent)
        self._file_lock = FileLock(Path(f"{path}.lock"), self._held_elsewhere)
        try:
            self._file_lock.take()
            self._connection = _open(path)
            with self._transaction() as connection:
                _check_identity(connection, path, identity)
                connection.execute("delete from held")
        except BaseException:
            self._file_lock.release()
            raise

    def close(self) -> None:
        """Close the book and let another process have it."""
        with self._guard:
            self._connection.close()
        self._file_lock.release()

    def note(self, known: Known) -> None:
        """Enter a session; one that is in the book already stays as it is."""
        with self._transaction() as connection:
            _note(connection, known, Stage.OPEN)

    def record(self, session_id: str) -> Record | None:
        """One session."""
        with self._transaction() as connection:
            return _read(connection, session_id)

    def watched(self) -> list[Record]:
        """Every session that is not finally settled."""
        with self._transaction() as connection:
            rows = connection.execute(f"{_SELECT} where state != 'final' order by session_id").fetchall()
        return [_record(row) for row in rows]

    def answer(self, session_id: str) -> Answer | None:
        """The answer to the last served call."""
        query = "select status, headers, body from answers where session_id = ?"
        with self._transaction() as connection:
            row = connection.execute(query, (session_id,)).fetchone()
        return Answer(row[0], json.loads(row[1]), row[2]) if row else None

    def hold(self, known: Known, voucher: Voucher, request: str = "") -> None:
        """Write a voucher and its request's digest down before the call is served.

        Raises RefusedError while another call of its session is served, once it is being settled, and where another
        call got in first.
        """
        with self._transaction() as connection:
            _note(connection, known, Stage.OPEN)
            record = _existing(connection, voucher.session_id)
            if record.stage is not Stage.OPEN:
                raise RefusedError(Refusal.NOT_OPEN, "the session is being settled; open another")
            self._refuse_busy(voucher.session_id)
            check_calls(record.last, voucher)
            row = (voucher.session_id, str(voucher.amount), voucher.calls, voucher.signature, request)
            connection.execute("insert or replace into held values (?, ?, ?, ?, ?)", row)
            self._busy.add(voucher.session_id)

    def keep(self, session_id: str, answer: Answer) -> None:
        """The held call was served: its voucher is the last valid one now, and its answer is there for a retry."""
        with self._transaction() as connection:
            connection.execute(
                "update sessions set amount = held.amount, calls = held.calls, signature = held.signature, "
                "request = held.request from held where held.session_id = ? and sessions.session_id = held.session_id",
                (session_id,),
            )
            row = (session_id, answer.status, json.dumps(dict(answer.headers)), answer.body)
            connection.execute("insert or replace into answers values (?, ?, ?, ?)", row)
            connection.execute("delete from held where session_id = ?", (session_id,))
        self._busy.discard(session_id)

    def drop(self, session_id: str) -> None:
        """The held call came to nothing: it charges nothing."""
        try:
            with self._transaction() as connection:
                connection.execute("delete from held where session_id = ?", (session_id,))
        finally:
            self._busy.discard(session_id)  # also where the disk fails: the row goes when the book is opened again

    def claim(self, known: Known) -> Record:
        """Take a session to settle it.

        No further call of it is served from here on, also after a restart. Raises RefusedError while a call is served.
        """
        with self._transaction() as connection:
            _note(connection, known, Stage.OPEN)
            self._refuse_busy(known.session_id)
            connection.execute(
                "update sessions set state = 'settling' where session_id = ? and state = 'open'", (known.session_id,)
            )
            return _existing(connection, known.session_id)

    def settled(self, session_id: str, block: int, block_hash: str) -> None:
        """The session was seen settled after a block."""
        with self._transaction() as connection:
            connection.execute(
                "update sessions set state = 'settled', settled_block = ?, settled_hash = ? where session_id = ?",
                (block, block_hash, session_id),
            )

    def undone(self, session_id: str) -> None:
        """A reorg took the settlement away: it has to be settled again."""
        self._move(session_id, Stage.SETTLING)

    def finish(self, session_id: str) -> None:
        """The block that settled the session is final."""
        self._move(session_id, Stage.FINAL)

    def forget(self, session_id: str) -> None:
        """Take a session out: it will never be on the chain again."""
        with self._transaction() as connection:
            connection.execute("delete from sessions where session_id = ?", (session_id,))
            connection.execute("delete from answers where session_id = ?", (session_id,))

    def prune(self) -> None:
        """Take out the oldest of the finally settled sessions, beyond MAX_FINAL and MAX_FINAL_BYTES."""
        with self._transaction() as connection:
            connection.execute(_PRUNE, (MAX_FINAL, MAX_FINAL_BYTES))
            connection.execute("delete from answers where session_id not in (select session_id from sessions)")

    def counts(self) -> dict[Stage, int]:
        """How many sessions are at each stage."""
        with self._transaction() as connection:
            found = dict(connection.execute("select state, count(*) from sessions group by state").fetchall())
        return {stage: found.get(stage, 0) for stage in Stage}

    def scanned(self) -> int | None:
        """The block up to which openings were looked for, for good; None before the first time."""
        with self._transaction() as connection:
            row = connection.execute("select block from scanned").fetchone()
        return row[0] if row else None

    def set_scanned(self, block: int) -> None:
        """Openings up to a block, which is final, are in the book."""
        with self._transaction() as connection:
            connection.execute("insert or replace into scanned values (1, ?)", (block,))

    def _refuse_busy(self, session_id: str) -> None:
        if session_id in self._busy:
            raise RefusedError(Refusal.BUSY, "a call of this session is being served; wait for its answer")

    def _move(self, session_id: str, stage: Stage) -> None:
        with self._transaction() as connection:
            connection.execute("update sessions set state = ? where session_id = ?", (stage, session_id))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._guard, _as_book_errors(self._path):
            self._connection.execute("begin immediate")
            try:
                yield self._connection
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise

    def _held_elsewhere(self, holder: Holder | None) -> LockedError:
        who = f" ({holder})" if holder else ""
        return LockedError(
            f"Another process serves this node with the book {self._path}{who}: stop it first.", str(holder or "")
        )


_SELECT: Final = (
    "select session_id, signer, price, seen_block, seen_at, state, amount, calls, signature, request, settled_block, "
    "settled_hash from sessions"
)


@contextmanager
def _as_book_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BookError(
            f"The node's book {path} cannot be used ({error}): see to its disk and its rights, then start again."
        ) from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BookError(f"The folder {folder} cannot be made ({error.strerror}): name another with --home.") from error


def _open(path: Path) -> sqlite3.Connection:
    with _as_book_errors(path):
        connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.executescript(_SCHEMA)
        return connection


def _check_identity(connection: sqlite3.Connection, path: Path, identity: str) -> None:
    connection.execute("insert or ignore into identity values (1, ?)", (identity,))
    (found,) = connection.execute("select of from identity").fetchone()
    if found != identity:
        raise BookError(
            f"The node's book {path} is of another chain or node ({found}): move it away, or name another --home."
        )


def _note(connection: sqlite3.Connection, known: Known, stage: Stage) -> None:
    connection.execute(
        "insert or ignore into sessions (session_id, signer, price, seen_block, seen_at, state) "
        "values (?, ?, ?, ?, ?, ?)",
        (known.session_id, known.signer, str(known.price), known.seen_block, known.seen_at, stage),
    )


def _read(connection: sqlite3.Connection, session_id: str) -> Record | None:
    row = connection.execute(f"{_SELECT} where session_id = ?", (session_id,)).fetchone()
    return _record(row) if row else None


def _existing(connection: sqlite3.Connection, session_id: str) -> Record:
    record = _read(connection, session_id)
    assert record is not None  # noqa: S101 - entered in the same transaction
    return record


def _record(row: tuple[Any, ...]) -> Record:
    session_id, signer, price, seen_block, seen_at, state, amount, calls, signature, request, block, block_hash = row
    return Record(
        known=Known(session_id, signer, int(price), seen_block, seen_at),
        stage=Stage(state),
        last=Voucher(session_id, int(amount), calls, signature) if calls else None,
        request=request,
        settled_in=None if block is None else (block, block_hash),
    )
