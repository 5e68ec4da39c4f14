"""One writer at a time: a lock file beside a SQLite database, in PostgreSQL an advisory lock of the writing session.

The operating system or the server lets go of the lock when its process dies. Who holds it is written down for people
alone; it decides nothing.
"""

import fcntl
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from indexer.errors import LockedError, StoreError

_HANDOVER_SECONDS = 3
"""How long a writer waits for the server to notice that the one before it has died."""
_MAX_NOTE = 63  # what PostgreSQL keeps of an application's name
_NOTE = re.compile(r"counterfoil (?P<pid>[1-9]\d{0,8}) (?P<since>[0-9T:+-]{25}) (?P<host>[\w.-]{1,27})", re.ASCII)
_LOCK_NOT_AVAILABLE = "55P03"

Patience = Callable[[LockedError], bool]
"""Asked each time that somebody else holds the lock: whether to try again. It does the waiting in between."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that writes: its id, its machine, and since when (UTC, ISO 8601)."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"

    def note(self) -> str:
        """Give what `parse_note` reads."""
        return f"counterfoil {self.pid} {self.since} {self.host}"[:_MAX_NOTE]


def this_process() -> Holder:
    """Describe the process that asks."""
    host = re.sub(r"[^\w.-]", "-", socket.gethostname(), flags=re.ASCII)[:15] or "localhost"
    return Holder(os.getpid(), host, datetime.now(UTC).isoformat(timespec="seconds"))


def parse_note(note: str) -> Holder | None:
    """Read what a holder noted, None where it is anything else."""
    found = _NOTE.fullmatch(note)
    return None if found is None else Holder(int(found["pid"]), found["host"], found["since"])


@contextmanager
def writer_lock(engine: Engine, label: str, patience: Patience | None = None) -> Iterator["WriterSession | None"]:
    """Hold the right to write to a database, which messages call `label`.

    Gives the session to write in, None where any will do. Raises LockedError when somebody else holds it, at once or
    when `patience` is over.
    """
    locked = partial(_locked, label)
    sqlite = engine.dialect.name == "sqlite"
    lock = FileLock(Path(f"{engine.url.database}.lock"), locked) if sqlite else WriterSession(engine, label)
    try:
        while True:
            try:
                lock.take()
                break
            except LockedError as error:
                if patience is None or not patience(error):
                    raise
        yield lock if isinstance(lock, WriterSession) else None
    finally:
        lock.release()


def _locked(label: str, holder: Holder | None) -> LockedError:
    shown = "" if holder is None else str(holder)
    who = f" ({shown})" if shown else ""
    return LockedError(
        f"Another process writes to the index at {label}{who}: stop it, stand by for it with "
        "`counterfoil index run --follow --wait`, or use another COUNTERFOIL_DATABASE.",
        shown,
    )


# --- SQLite


class FileLock:
    """The lock of a file beside a SQLite database; `locked` makes the error that names who holds it."""

    def __init__(self, path: Path, locked: Callable[[Holder | None], LockedError]) -> None:
        self._locked = locked
        self._file = _open(path)
        self._held = False

    def take(self) -> None:
        """Take the lock. Raises LockedError when another process, or another lock of this one, holds it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise self._locked(self._holder()) from None
        self._held = True
        self._write(this_process().note())

    def release(self) -> None:
        """Let go of the lock, and close its file."""
        if self._held:
            self._write("")
        self._file.close()

    def _write(self, note: str) -> None:
        self._file.truncate(0)
        self._file.write(note.encode())
        self._file.flush()

    def _holder(self) -> Holder | None:
        self._file.seek(0)
        holder = parse_note(self._file.read(_MAX_NOTE + 1).decode(errors="replace"))
        return holder if holder and _may_live(holder) else None


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("ab+")
    except OSError as error:
        raise StoreError(
            f"The lock file {path} cannot be opened ({error.strerror}): let this user write to its folder, or, for "
            "an index, use another COUNTERFOIL_DATABASE."
        ) from None


def _may_live(holder: Holder) -> bool:
    """Whether a note can be of the process that holds the lock: one that was killed leaves its note behind."""
    if holder.host != this_process().host:
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


# --- PostgreSQL


class WriterSession:
    """A lock of the very session that writes, so that no transaction can commit once it is lost.

    A new session takes it anew; what somebody else wrote in between, the writer sees in its transaction.
    """

    _TAKE = text("SELECT pg_advisory_lock(hashtextextended('counterfoil ' || current_schema(), 0))")
    _NOTE = text("SELECT set_config('application_name', :note, false)")
    _HOLDER = text(
        "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory' "
        "AND granted AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "AND (classid::bigint << 32) | objid::bigint = hashtextextended('counterfoil ' || current_schema(), 0)"
    )

    def __init__(self, engine: Engine, label: str) -> None:
        self._engine = engine
        self._label = label
        self._session: Connection | None = None

    def connection(self) -> Connection:
        """Give the session that holds the lock. Raises LockedError when somebody else does."""
        if self._session is None or self._session.invalidated or self._session.closed:
            self.take()
        assert self._session is not None  # noqa: S101 - taken
        return self._session

    def take(self) -> None:
        """Take the lock in a new session. Raises LockedError when somebody else holds it."""
        self.release()
        session = self._engine.connect()
        session.detach()  # closing it must end the session, and the lock with it
        try:
            self._lock(session)
        except BaseException:
            session.close()
            raise
        self._session = session

    def release(self) -> None:
        """End the session, and the lock with it."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _lock(self, session: Connection) -> None:
        session.exec_driver_sql(f"SET LOCAL lock_timeout = '{_HANDOVER_SECONDS}s'")
        try:
            session.execute(self._TAKE)
        except DBAPIError as error:
            session.rollback()
            if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
                raise _locked(self._label, parse_note(str(session.execute(self._HOLDER).scalar()))) from None
            raise
        session.execute(self._NOTE, {"note": this_process().note()})
        session.commit()
