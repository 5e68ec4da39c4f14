"""Opening a database, and everything in which SQLite and PostgreSQL differ."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, Engine, create_engine, event, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, NoSuchModuleError

from indexer.errors import LockedError, StoreError
from indexer.store.tables import META, METADATA, SCHEMA_VERSION

_ADVISORY_LOCK = 0x434F554E544552  # any number of our own
_BUSY_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Store:
    """An opened index. Every `read` is a transaction of its own on a connection of its own."""

    engine: Engine
    label: str
    """How messages call it: a path, or a URL without its password."""

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open one consistent snapshot; nothing that a writer does meanwhile shows in it.

        The database's own failures come out as SQLAlchemy's; `database_sentences` turns them into StoreErrors.
        """
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that writes: all of it is kept, or nothing when an exception leaves the block."""
        with database_sentences(self.label), self.engine.connect() as plain:
            connection = plain.execution_options(counterfoil_writes=True)
            with connection.begin():
                yield connection

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def database_sentences(label: str) -> Iterator[None]:
    """Turn the database's own failures (locked, full, damaged) into a StoreError."""
    try:
        yield
    except DatabaseError as error:
        raise StoreError(
            f"The index at {label} cannot be read or written ({_cause(error)}): see that the disk has space and that "
            "no other program holds the database, or name another in COUNTERFOIL_DATABASE."
        ) from error


def database_url(path_or_url: str | Path) -> URL:
    """Read a path of a SQLite file or a database URL; StoreError when it is neither."""
    given = str(path_or_url)
    try:
        url = make_url(given if "://" in given else f"sqlite:///{given}")
    except ArgumentError:
        raise StoreError("The database setting is neither a path nor a URL: correct COUNTERFOIL_DATABASE.") from None
    if url.drivername in {"postgres", "postgresql"}:
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise StoreError("An index in memory cannot be shared: name a file in COUNTERFOIL_DATABASE.")
    return url


def open_store(path_or_url: str | Path, *, create: bool = False) -> Store:
    """Open an index for questions; with `create`, make its tables where they are missing.

    Raises StoreError when the database is missing, unreadable or of another schema version.
    """
    url = database_url(path_or_url)
    label = _label(url)
    if create:
        _make_folder(url)
    elif url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
        raise StoreError(f"There is no index at {label}: build it with `counterfoil index run`.")
    try:
        store = Store(_engine(url), label)
        if create:
            _enter_wal(store)
            _create_tables(store)
        _check_version(store)
    except (DBAPIError, ModuleNotFoundError, NoSuchModuleError) as error:  # no driver, or no database at all
        raise StoreError(
            f"The index at {label} cannot be opened ({_cause(error)}): check COUNTERFOIL_DATABASE."
        ) from None
    return store


def _label(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.render_as_string(hide_password=True)


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


def _create_tables(store: Store) -> None:
    with store.write() as connection:
        METADATA.create_all(connection)
        if connection.execute(select(META.c.value).where(META.c.name == "schema_version")).first() is None:
            connection.execute(META.insert().values(name="schema_version", value=str(SCHEMA_VERSION)))


def _check_version(store: Store) -> None:
    with store.read() as connection:
        found = connection.execute(select(META.c.value).where(META.c.name == "schema_version")).scalar()
    if found != str(SCHEMA_VERSION):
        raise StoreError(
            f"The index at {store.label} has schema version {found}, this program writes {SCHEMA_VERSION}: "
            "move it away and run `counterfoil index run` again."
        )


# --- where SQLite and PostgreSQL differ


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        return create_engine(url, isolation_level="REPEATABLE READ", pool_pre_ping=True)
    engine = create_engine(url, max_overflow=-1, connect_args={"timeout": _BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401
    connection.isolation_level = None  # the driver's own BEGIN comes too late for a snapshot of reads
    connection.execute("PRAGMA synchronous=NORMAL")  # with WAL: a power cut may lose the last range, no more
    connection.execute("PRAGMA cache_size=-65536")  # KiB
    connection.execute("PRAGMA wal_autocheckpoint=4000")  # pages; the default writes hot pages over and over


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


@contextmanager
def writer_lock(store: Store) -> Iterator[None]:
    """Hold the right to write; the operating system or the server releases it when the process dies.

    Raises LockedError at once when somebody else holds it.
    """
    if store.engine.dialect.name == "postgresql":
        with _advisory_lock(store):
            yield
        return
    path = Path(f"{store.engine.url.database}.lock")
    with path.open("a") as file:
        _lock_file(file, store.label)
        yield


def _lock_file(file: IO[str], label: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise LockedError(_locked_message(label)) from None


def _locked_message(label: str) -> str:
    return f"Another process writes to the index at {label}: stop it, or use another COUNTERFOIL_DATABASE."


@contextmanager
def _advisory_lock(store: Store) -> Iterator[None]:
    with store.engine.connect() as connection:
        if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY_LOCK}).scalar():
            raise LockedError(_locked_message(store.label))
        yield
