"""Fresh databases, and all that is in them, read by the plain drivers: nothing of the product has a say in it."""

import itertools
import os
import re
import shutil
import signal
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import psycopg

NOT_OF_THE_CHAIN = {"meta", "cursor", "posted", "replaced_block", "alembic_version"}
START_SECONDS = 30
_PADDED = re.compile(r"[0-9]{78}")
Rows = dict[str, list[dict[str, object]]]
"""Rows by table, each by column."""


class _Store:
    """What both kinds share: `query` and `tables` are the drivers'."""

    def cursor(self):
        """Number and hash of the last indexed block, None while there is none."""
        found = self.query("SELECT number, hash FROM cursor") if "cursor" in self.tables() else []
        return (found[0]["number"], _plain(found[0]["hash"])) if found else None

    def snapshot(self):
        """Everything, where nobody writes."""
        # Table names come from the database's own catalogue.
        names = [name for name in self.tables() if name not in NOT_OF_THE_CHAIN]
        rows = {name: [_plain_row(row) for row in self.query(f'SELECT * FROM "{name}"')] for name in names}
        return Snapshot(self.cursor(), rows)


@dataclass(frozen=True)
class SqliteStore(_Store):
    """A file."""

    path: Path
    kind = "sqlite"

    @property
    def url(self):
        return f"sqlite:///{self.path}"

    def query(self, statement):
        """Rows as dictionaries; none where the file or the table is not there yet."""
        if not self.path.exists():
            return []
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(statement)]

    def tables(self):
        return [row["name"] for row in self.query("SELECT name FROM sqlite_master WHERE type = 'table'")]


class PostgresStore(_Store):
    """A database of its own in a server. It keeps a connection, and makes another when that one is lost."""

    kind = "postgresql"

    def __init__(self, url):
        self.url = url
        self._kept = None

    def query(self, statement):
        if self._kept is None or self._kept.closed:
            self._kept = psycopg.connect(self.url, autocommit=True, row_factory=psycopg.rows.dict_row)
        return self._kept.execute(statement).fetchall()

    def close(self):
        if self._kept is not None:
            self._kept.close()

    def tables(self):
        found = self.query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        return [row["table_name"] for row in found]


class Crash:
    """A crash of the process that serves an index: the server ends all connections, recovers, and goes on."""

    def __init__(self, store):
        self._store = store
        self._witness = psycopg.connect(store.url, autocommit=True)

    def strike(self):
        """Kill the oldest of the processes that serve the index."""
        serving = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> ALL(%s)"
        own = [self._witness.info.backend_pid]
        found = self._witness.execute(f"{serving} ORDER BY backend_start LIMIT 1", [own]).fetchone()
        os.kill(found[0], signal.SIGKILL)

    def await_recovery(self):
        """Wait until all connections are ended and the server lets anybody in again."""
        _until(lambda: not _works(lambda: self._witness.execute("SELECT 1")))
        self._witness.close()
        _until(lambda: _works(lambda: self._store.query("SELECT 1")))


def _works(query):
    try:
        query()
    except psycopg.OperationalError:
        return False
    return True


def _until(true):
    deadline = time.monotonic() + START_SECONDS
    while not true():
        assert time.monotonic() < deadline, "the server did not come back"
        time.sleep(0.01)


@dataclass(frozen=True)
class Snapshot:
    """What an index holds: its cursor (number and hash, None while it is empty) and its rows."""

    cursor: tuple[int, str] | None
    rows: Rows

    def up_to(self, block):
        """The rows as they were after a block: later ones left out, later ends open (law 2)."""
        return {name: [_as_of(row, block) for row in rows if _place(row) <= block] for name, rows in self.rows.items()}

    def holds(self, number, block_hash):
        return any((row["number"], row["hash"]) == (number, block_hash) for row in self.rows["block"])


def differences(mine, theirs):
    """Name the tables whose rows differ, with the first row that only one of them has."""
    found = []
    for name in sorted(mine.keys() | theirs.keys()):
        ours, others = _sorted(mine.get(name, [])), _sorted(theirs.get(name, []))
        if ours != others:
            extra = [row for row in ours if row not in others] or [row for row in others if row not in ours]
            found.append(f"{name}: {len(ours)} rows, {len(others)} in a clean index, such as {str(extra[:1])[:300]}")
    return found


def _plain_row(row):
    return {name: _plain(value) for name, value in row.items()}


def _plain(value):
    """The same value for both databases: whole numbers as int, bytes as bytes."""
    if isinstance(value, bool | Decimal):
        return int(value)
    if isinstance(value, str) and _PADDED.fullmatch(value):
        return int(value)
    return bytes(value) if isinstance(value, memoryview | bytearray) else value


def _place(row):
    return next((row[name] for name in ("valid_from", "block_number", "number") if name in row), 0)


def _as_of(row, block):
    ends = row.get("valid_to")
    return {**row, "valid_to": None} if ends is not None and ends > block else row


def _sorted(rows):
    return sorted((sorted(row.items()) for row in rows), key=repr)


# --- where they come from


class SqliteStores:
    """Makes files in a folder."""

    kind = "sqlite"

    def __init__(self, folder):
        self._folder = folder
        self._numbers = itertools.count(1)

    @contextmanager
    def fresh(self):
        folder = self._folder / f"store-{next(self._numbers)}"
        folder.mkdir(parents=True)
        yield SqliteStore(folder / "index.sqlite")

    @contextmanager
    def at(self, folder):
        """A file in a folder."""
        yield SqliteStore(folder / "index.sqlite")


class PostgresStores:
    """Makes databases in a server of its own."""

    kind = "postgresql"

    def __init__(self, server):
        self.server = server
        self._numbers = itertools.count(1)

    @contextmanager
    def fresh(self):
        with self.server.empty() as url, closing(PostgresStore(url)) as store:
            yield store

    @contextmanager
    def at(self, folder):
        """A database whose tables are in a folder."""
        place = folder / "tablespace"
        place.mkdir()
        if os.geteuid() == 0:  # then the server runs as another user
            shutil.chown(place, self.server.server.system_user)
        name = f"disk_{next(self._numbers)}"
        self.server.run(f"CREATE TABLESPACE {name} LOCATION '{place}'")
        self.server.run(f"CREATE DATABASE {name} TABLESPACE {name}")
        try:
            with closing(PostgresStore(self.server.url(name))) as store:
                yield store
        finally:
            self.server.run(f"DROP DATABASE {name} WITH (FORCE)")
            self.server.run(f"DROP TABLESPACE {name}")

    def restart(self):
        """End the server at once, and start it again."""
        self.server.stop()
        self.server.start()
