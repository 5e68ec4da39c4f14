"""A SQLite file of the agent's own: several processes may use it at once, and what was committed is on the disk."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from indexer.errors import UserError

_WAIT_SECONDS = 30


class LocalDatabase:
    """One file with one schema, made at the first write. A reader of what is not there yet reads nothing."""

    def __init__(self, path: Path, schema: str, version: int) -> None:
        self.path = path
        self._schema = schema
        self._version = version

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction that no other process writes beside. Raises UserError for a file that cannot be used."""
        with self._errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._open("rwc") as connection:
                connection.execute("begin immediate")
                if self._found(connection) == 0:
                    for statement in self._schema.split(";"):
                        connection.execute(statement)
                    connection.execute(f"pragma user_version = {self._version}")
                yield connection
                connection.execute("commit")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Open one state to read from, None where nothing was ever written. Raises UserError as `writing` does."""
        if not self.path.exists():
            yield None
            return
        with self._errors(), self._open("rw") as connection:
            connection.execute("begin")
            yield connection if self._found(connection) else None

    @contextmanager
    def _open(self, mode: str) -> Iterator[sqlite3.Connection]:
        # Without WAL: a commit is one synchronised file, and reading makes no other.
        address = f"file:{quote(str(self.path.absolute()))}?mode={mode}"
        with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
            connection.execute("pragma synchronous = extra")
            yield connection

    def _found(self, connection: sqlite3.Connection) -> int:
        """Give the file's version, 0 of a new one."""
        version: int = connection.execute("pragma user_version").fetchone()[0]
        if version not in (0, self._version):
            raise UserError(f"{self.path} is of version {version}, not {self._version}: move it away, or upgrade.")
        return version

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"{self.path} cannot be used ({error}): make it readable and writable, or move it away if it is broken."
            ) from error
