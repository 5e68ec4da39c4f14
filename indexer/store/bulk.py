"""Many rows at once, past the layers that look at every row: the driver's executemany in SQLite, COPY in PostgreSQL."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Dialect, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

from indexer.store.types import Uint256, stored

Value = int | str | bool | None


def insert_rows(connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
    """Insert rows whose values are in the order of `columns`.

    Raises ValueError for an amount outside of a uint256, SQLAlchemy's DBAPIError for what the database refuses.
    """
    values = _bound(connection, table, columns, rows)
    if not values:
        return
    names = ", ".join(map(connection.dialect.identifier_preparer.quote, columns))
    target = f"{connection.dialect.identifier_preparer.format_table(table)} ({names})"
    if connection.dialect.name == "postgresql":
        kinds = [type_name(table.c[name].type, connection.dialect) for name in columns]
        _copy(connection, f"COPY {target} FROM STDIN (FORMAT BINARY)", kinds, values)
    else:
        places = ", ".join("?" * len(columns))
        connection.exec_driver_sql(f"INSERT INTO {target} VALUES ({places})", values)  # noqa: S608


def close_versions(
    connection: Connection, table: Table, key: Sequence[str], closed: Sequence[tuple[int | str, ...]]
) -> None:
    """End the current versions of some keys. Each tuple is the block where one ends, and the key's values."""
    if not closed:
        return
    if connection.dialect.name == "postgresql":
        same = " AND ".join(f"{table.name}.{name} = closed.{name}" for name in key)
        types = [type_name(table.c[name].type, connection.dialect) for name in ("valid_from", *key)]
        arrays = ", ".join(f"CAST(%s AS {kind}[])" for kind in types)
        connection.exec_driver_sql(
            f"UPDATE {table.name} SET valid_to = closed.ends "  # noqa: S608
            f"FROM unnest({arrays}) AS closed (ends, {', '.join(key)}) WHERE {same} AND valid_to IS NULL",
            tuple(map(list, zip(*closed, strict=True))),
        )
    else:
        same = " AND ".join(f"{name} = ?" for name in key)
        statement = f"UPDATE {table.name} SET valid_to = ? WHERE {same} AND valid_to IS NULL"  # noqa: S608
        connection.exec_driver_sql(statement, list(closed))


def _bound(
    connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Value]]
) -> list[tuple[Value, ...]]:
    """Write the amounts as their column holds them; what else there is, the drivers take as it is."""
    amounts = [place for place, name in enumerate(columns) if isinstance(table.c[name].type, Uint256)]
    given = list(map(tuple, rows))
    if not (amounts and given):
        return given
    by_column: list[Sequence[Value]] = list(zip(*given, strict=True))
    for place in amounts:
        by_column[place] = stored(by_column[place], connection.dialect)  # type: ignore[arg-type]
    return list(zip(*by_column, strict=True))


def type_name(kind: TypeEngine[Any], dialect: Dialect) -> str:
    """Give the name of a column's type in PostgreSQL, without its size and collation."""
    return kind.compile(dialect).split("(")[0].split()[0].lower()


def _copy(connection: Connection, statement: str, kinds: list[str], rows: list[tuple[Value, ...]]) -> None:
    driver: Any = connection.connection.dbapi_connection
    with _driver_errors(connection, statement), driver.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(kinds)  # a binary COPY converts nothing: each value has to be of its column's type
        for row in rows:
            copy.write_row(row)


@contextmanager
def _driver_errors(connection: Connection, statement: str) -> Iterator[None]:
    """Let the driver's errors come out as those of every other statement do."""
    driver = connection.dialect.loaded_dbapi
    try:
        yield
    except driver.Error as error:
        lost = connection.dialect.is_disconnect(error, connection.connection.dbapi_connection, None)
        if lost:
            connection.invalidate(error)
        raise DBAPIError(statement, None, error, connection_invalidated=lost) from error
