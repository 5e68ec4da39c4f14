"""Opening a database, and everything in which SQLite and PostgreSQL differ."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from indexer.errors import ReadOnlyError, StoreError, StoreUnavailableError
from indexer.store import deadline, schema
from indexer.store.checkpoints import Checkpoints, running_checkpoints
from indexer.store.lock import Patience, WriterSession, writer_lock

_BUSY_SECONDS = 10
"""How long a write waits for somebody else's lock on rows or file."""
_READ_SECONDS = 60
"""How long PostgreSQL works on one statement of a question that has no deadline."""
_STEPS_BETWEEN_LOOKS = 100_000
"""How many steps SQLite makes between two looks at the clock: some milliseconds."""
_OLDEST_POSTGRESQL = 15


@dataclass(frozen=True, slots=True)
class Store:
    """An opened index. Every `read` is a transaction of its own on a connection of its own.

    What the database itself fails at comes out as a sentence: StoreUnavailableError where waiting may help (it is
    locked, restarting, or out of reach), StoreError otherwise (it is full, damaged, or not ours to read).
    """

    engine: Engine
    label: str
    """How messages call it: a path, or a URL without its password."""
    lock: WriterSession | None = None
    """The session that may write, where the database knows such a thing."""
    checkpoints: Checkpoints | None = None
    """What moves the log of writes into the file, where the database has such a log and leaves that to us."""

    @contextmanager
    def read(self, *, unbounded: bool = False) -> Iterator[Connection]:
        """Open one consistent snapshot; nothing that a writer does meanwhile shows in it.

        `unbounded` is for a walk over everything: no statement is ended for the time it takes. Raises TooSlowError when
        the deadline of the context is over (see `indexer.store.deadline`).
        """
        seconds = deadline.seconds_left()
        with database_sentences(self.label), self.engine.connect() as connection:
            if unbounded:
                _lift_time_limit(connection)
            elif math.isfinite(seconds):
                _limit_time(connection, seconds)
            yield connection

    @contextmanager
    def write(self, *, lasting: bool = True) -> Iterator[Connection]:
        """Open a transaction that writes: all of it is kept, or nothing when an exception leaves the block.

        What need not be `lasting` may be lost as a whole when the server is killed soon after: for what is written
        again where it is missing.
        """
        with database_sentences(self.label), self._writing() as connection, connection.begin():
            _lift_time_limit(connection)
            if not lasting:
                _commit_without_waiting(connection)
            yield connection

    @contextmanager
    def add(self) -> Iterator[Connection]:
        """Open a transaction beside the writer's, for rows that are not of the chain; blocks stand still meanwhile."""
        seconds = deadline.seconds_left()
        isolated: dict[str, Any] = {"counterfoil_writes": True}
        if self.engine.dialect.name == "postgresql":
            isolated["isolation_level"] = "READ COMMITTED"
        with database_sentences(self.label), self.engine.connect() as plain:
            connection = plain.execution_options(**isolated)
            with connection.begin():
                if math.isfinite(seconds):
                    _limit_time(connection, seconds)
                _hold_cursor(connection)
                yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        if self.lock is not None:
            yield self.lock.connection()
            return
        with self.engine.connect() as plain:
            yield plain.execution_options(counterfoil_writes=True)

    def wrote(self, rows: int) -> None:
        """Take note that rows were committed, for what is to be done every so often."""
        if self.checkpoints is not None:
            self.checkpoints.wrote(rows)

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def database_sentences(label: str) -> Iterator[None]:
    """Turn the database's own failures into StoreUnavailableError where waiting may help, else into StoreError."""
    try:
        yield
    except (DBAPIError, PoolTimeoutError) as error:
        if isinstance(error, DBAPIError) and _was_ended(error):
            raise deadline.too_slow(_cause(error)) from error
        if isinstance(error, DBAPIError) and _may_only_be_read(error):
            raise ReadOnlyError(
                f"The database of the index at {label} may only be read ({_cause(error)}): let this user write to it "
                "(docs/operation.md says what to), or use another."
            ) from error
        if isinstance(error, PoolTimeoutError) or _may_pass(error):
            raise StoreUnavailableError(
                f"The database of the index at {label} is locked or does not answer ({_cause(error)}): see that it "
                "runs and that no other program holds the database."
            ) from error
        raise StoreError(
            f"The index at {label} cannot be read or written ({_cause(error)}): see that the disk has space and that "
            "the database is whole, or name another in COUNTERFOIL_DATABASE."
        ) from error


# Connection lost, too many clients, shut down or starting, statement ended, lock not free, conflict with another.
_PASSING_STATES = ("08", "53300", "57", "55P03", "40")
_QUERY_CANCELED = "57014"
_READ_ONLY_STATES = {"42501", "25006"}  # a role without the right, a transaction or server that only reads
_PASSING_SQLITE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _was_ended(error: DBAPIError) -> bool:
    interrupted = getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
    return interrupted or getattr(error.orig, "sqlstate", None) == _QUERY_CANCELED


def _may_only_be_read(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None) or 0
    return code & 0xFF == sqlite3.SQLITE_READONLY or getattr(error.orig, "sqlstate", None) in _READ_ONLY_STATES


def _may_pass(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    if isinstance(error.orig, sqlite3.Error):
        return code is not None and code & 0xFF in _PASSING_SQLITE
    state = getattr(error.orig, "sqlstate", None)
    unreachable = state is None and type(error.orig).__name__ == "OperationalError"
    return error.connection_invalidated or unreachable or str(state).startswith(_PASSING_STATES)


def database_url(path_or_url: str | Path, setting: str = "COUNTERFOIL_DATABASE") -> URL:
    """Read a path of a SQLite file or a database URL; StoreError when it is neither."""
    given = str(path_or_url)
    try:
        url = make_url(given if "://" in given else f"sqlite:///{given}")
    except ArgumentError:
        raise StoreError(f"The database is neither a path nor a URL: correct {setting}.") from None
    if url.drivername in {"postgres", "postgresql"}:
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in {"sqlite", "postgresql"}:
        raise StoreError(f"The database is neither SQLite nor PostgreSQL: correct {setting}.")
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise StoreError(f"An index in memory cannot be shared: name a file in {setting}.")
    return url


def open_store(path_or_url: str | Path, *, setting: str = "COUNTERFOIL_DATABASE") -> Store:
    """Open an index for questions.

    `setting` is what messages ask to correct. Raises StoreError when the database is missing, unreadable or of another
    schema revision.
    """
    url = database_url(path_or_url, setting)
    label = label_of(url)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
        raise StoreError(f"There is no index at {label}: build it with `counterfoil index run`.")
    with _opening(label, setting):
        store = Store(_engine(url), label)
        try:
            _check_server(store)
            schema.check(_revision(store), label)
        except BaseException:
            store.close()
            raise
    return store


@contextmanager
def open_locked(path_or_url: str | Path, patience: Patience | None = None) -> Iterator[Store]:
    """Open an index for the one process that writes: made where it is missing, upgraded where it is old.

    Raises StoreError as `open_store` does, LockedError when another process writes, at once or when `patience` is over.
    """
    url = database_url(path_or_url)
    label = label_of(url)
    _make_folder(url)
    with ExitStack() as stack:
        with _opening(label, "COUNTERFOIL_DATABASE"):
            store = stack.enter_context(Store(_engine(url), label))
            _check_server(store)
            # The lock comes before the tables: whoever stands by must not touch them under another's hands.
            session = stack.enter_context(writer_lock(store.engine, label, patience))
            locked = replace(store, lock=session)
            _enter_wal(locked)
            _upgrade(locked)
            schema.check(_revision(locked), label)
        if url.get_backend_name() == "sqlite":
            checkpoints = stack.enter_context(running_checkpoints(str(url.database)))
            locked = replace(locked, checkpoints=checkpoints)
        yield locked


@contextmanager
def _opening(label: str, setting: str) -> Iterator[None]:
    try:
        yield
    except (DBAPIError, sqlite3.Error, ModuleNotFoundError, NoSuchModuleError) as error:  # no driver, or no database
        raise StoreError(f"The index at {label} cannot be opened ({_cause(error)}): check {setting}.") from None


def _revision(store: Store) -> str | None:
    with store.engine.connect() as connection:
        return schema.revision_of(connection)


def _upgrade(locked: Store) -> None:
    found = _revision(locked)
    if schema.is_known(found) and not schema.is_newest(found):  # what is unknown, the check that follows refuses
        with locked.write() as connection:
            schema.upgrade(connection)


def label_of(url: URL) -> str:
    """Give what messages call a database: its path, or its URL without what may be secret."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    shown = {name: value for name, value in url.query.items() if name in {"host", "port", "options"}}
    return url.set(query=shown).render_as_string(hide_password=True)


def _cause(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return str(cause).splitlines()[0][:200] if str(cause) else type(cause).__name__


def _make_folder(url: URL) -> None:
    if url.get_backend_name() != "sqlite":
        return
    folder = Path(str(url.database)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"The folder {folder} cannot be made ({error.strerror}): set COUNTERFOIL_HOME.") from None


# --- where SQLite and PostgreSQL differ


_POSTGRESQL_CONNECTION = {
    "application_name": "counterfoil", "client_encoding": "utf8", "connect_timeout": "10",
    "tcp_user_timeout": "30000", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3",
}  # fmt: skip
"""What a URL may override; seconds, but tcp_user_timeout in milliseconds."""


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        given = {name: value for name, value in _POSTGRESQL_CONNECTION.items() if name not in url.query}
        engine = create_engine(
            url, isolation_level="REPEATABLE READ", pool_pre_ping=True, pool_size=5, max_overflow=20,
            pool_timeout=_BUSY_SECONDS, connect_args=given,
        )  # fmt: skip
        event.listen(engine, "connect", _prepare_postgresql)
        return engine
    engine = create_engine(url, max_overflow=-1, connect_args={"timeout": _BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_postgresql(connection: Any, _: object) -> None:  # noqa: ANN401
    for setting in (
        f"statement_timeout = '{_READ_SECONDS}s'",
        f"lock_timeout = '{_BUSY_SECONDS}s'",
        "client_connection_check_interval = '1s'",  # a dead writer lets go of its lock in mid-statement
        "jit = off",  # costs more than it gains on lookups
        "random_page_cost = 1.1",  # lookups along an index are what this schema is made for
    ):
        connection.execute(f"SET {setting}")
    connection.commit()


def _prepare_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401
    connection.set_progress_handler(deadline.is_over, _STEPS_BETWEEN_LOOKS)
    connection.isolation_level = None  # the driver's own BEGIN comes too late for a snapshot of reads
    connection.execute("PRAGMA page_size=8192")  # of a new file: a third less to write at each commit
    connection.execute("PRAGMA synchronous=NORMAL")  # with WAL: a power cut may lose the last range, no more
    connection.execute("PRAGMA cache_size=-65536")  # KiB
    connection.execute("PRAGMA wal_autocheckpoint=16000")  # pages, 128 MiB; before that, `Checkpoints` does it


def _enter_wal(store: Store) -> None:
    """Let readers go on while the writer writes; SQLite remembers it in the file."""
    if store.engine.dialect.name == "sqlite":
        connection = store.engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("counterfoil_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _check_server(store: Store) -> None:
    if store.engine.dialect.name != "postgresql":
        return
    with store.engine.connect() as connection:
        version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10_000
        encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if version < _OLDEST_POSTGRESQL:
        raise StoreError(f"The server of {store.label} is PostgreSQL {version}: use {_OLDEST_POSTGRESQL} or newer.")
    if encoding != "UTF8":
        raise StoreError(f"The database {store.label} is encoded in {encoding}: create one with ENCODING 'UTF8'.")


def _lift_time_limit(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")


def _limit_time(connection: Connection, seconds: float) -> None:
    """SQLite looks at the deadline by itself; PostgreSQL is told how long each statement may take."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}")


def _commit_without_waiting(connection: Connection) -> None:
    """Leave it to the server when it writes a commit to its disk, as SQLite does here."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL synchronous_commit = off")


def _hold_cursor(connection: Connection) -> None:
    """Keep the writer from moving on, and others from adding, until this transaction ends; SQLite does so by itself.

    What is read after it is the newest: each statement of this transaction has a snapshot of its own.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT number FROM cursor FOR UPDATE")
