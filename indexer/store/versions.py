"""Law 2 as SQL: the version of a row that held after a block is the newest one that began by it.

Keys are listed by their current rows, of which every key has one, whatever happened to it; from each of them the
primary key leads to its version, in one step. Statements are built once; `AT` is the block, given with each run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, FromClause, Select, bindparam, literal_column, select, true

from indexer.rows import Versioned, columns_of
from indexer.store.tables import table_of

AT = bindparam("at", type_=BigInteger())


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as they held after a block, one per key.

    Select and order by `key`, whose columns never change: it leads along an index. Filter by `held` what can change.
    """

    key: FromClause
    held: Mapping[str, ColumnElement[Any]]
    query: Select[*tuple[Any, ...]]

    def where(self, *conditions: ColumnElement[bool]) -> "Rows":
        """Leave out what does not fit."""
        return replace(self, query=self.query.where(*conditions))


@cache
def rows_of(dialect: str, row_type: type[Versioned], view: type[Any], *of_node: type[Versioned]) -> Rows:
    """Select, in the order of a view's fields, what it has of the rows of a type and of other rows of the same node."""
    wanted = [field.name for field in fields(view)]
    key = table_of(row_type).alias("key")
    source, held = _joined(dialect, key, row_type, {name: key.c[name] for name in row_type.KEY})
    for other in of_node:
        if set(wanted) & set(columns_of(other)) - held.keys():
            source, more = _joined(dialect, source, other, {"node_id": key.c.node_id})
            held = more | held
    query = select(*[held[name] for name in wanted if name in held]).select_from(source)
    return Rows(key, held, query.where(key.c.valid_to.is_(None)))


@cache
def row_of(row_type: type[Versioned]) -> Select[*tuple[Any, ...]]:
    """Select the row of one key, whose values are given by the names of its columns."""
    table = table_of(row_type)
    return _newest(table, {name: bindparam(name, type_=table.c[name].type) for name in row_type.KEY})


def _newest(table: FromClause, same: Mapping[str, ColumnElement[Any]]) -> Select[*tuple[Any, ...]]:
    begun = select(table).where(*[table.c[name] == value for name, value in same.items()], table.c.valid_from <= AT)
    return begun.order_by(table.c.valid_from.desc()).limit(1)


def _joined(
    dialect: str, source: FromClause, row_type: type[Versioned], same: Mapping[str, ColumnElement[Any]]
) -> tuple[FromClause, dict[str, ColumnElement[Any]]]:
    """Join the version that held. Neither form leaves a planner another way than the primary key."""
    table = table_of(row_type)
    newest = _newest(table.alias("version"), same)
    if dialect == "postgresql":
        row: FromClause = newest.lateral(table.name)
        joined = source.join(row, true())
    else:
        row = table.alias(table.name)
        place = newest.with_only_columns(literal_column("version.rowid")).scalar_subquery()
        joined = source.join(row, literal_column(f"{table.name}.rowid") == place)
    return joined, {name: row.c[name] for name in columns_of(row_type)}
