"""The current rows of a database as the fold reads them, cached from one transaction to the next."""

from collections.abc import Callable, Iterable, Mapping, Set

from sqlalchemy import Connection, Select, func, select

from indexer.project import Changes
from indexer.rows import VERSIONED, Key, Session, V, Versioned, columns_of, key_of
from indexer.store.tables import table_of

_KEYS_A_QUERY = 400


class CurrentRows:
    """Reads rows through a connection; valid as long as only `apply` changes them."""

    def __init__(self, connection: Connection) -> None:
        """Know nothing yet; `session_count` is read at once."""
        self._connection = connection
        self._rows: dict[type[Versioned], dict[Key, Versioned | None]] = {row_type: {} for row_type in VERSIONED}
        self._stored: dict[type[Versioned], set[Key]] = {row_type: set() for row_type in VERSIONED}
        sessions = table_of(Session)
        self._session_count = connection.execute(select(func.max(sessions.c.number))).scalar() or 0

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))

    def go_on(self, connection: Connection) -> "CurrentRows":
        """Read what is still unread through another transaction, which finds what this one left."""
        self._connection = connection
        return self

    def get(self, row_type: type[V], key: Key) -> V | None:
        """Give the current row of a key."""
        rows = self._rows[row_type]
        if key not in rows:
            self.prefetch({row_type: [key]})
        return rows[key]  # type: ignore[return-value]

    def session_count(self) -> int:
        """Give how many sessions were ever opened."""
        return self._session_count

    def stored(self, row_type: type[Versioned]) -> Set[Key]:
        """Give the keys of which the database has a current row, as far as they were read or `store` told."""
        return self._stored[row_type]

    def store(self, row_type: type[Versioned], keys: Iterable[Key]) -> None:
        """Take note that the database has current rows of these keys now."""
        self._stored[row_type].update(keys)

    def prefetch(self, keys: Mapping[type[Versioned], Iterable[Key]]) -> None:
        """Read rows that are not read yet, many a query."""
        for row_type, wanted in keys.items():
            rows, stored = self._rows[row_type], self._stored[row_type]
            unread = [key for key in wanted if key not in rows]
            rows.update(dict.fromkeys(unread))
            build: Callable[..., Versioned] = row_type
            for some in _chunks(unread):
                for values in self._connection.execute(_select_current(row_type, some)):
                    row = build(*values)
                    key = key_of(row)
                    rows[key] = row
                    stored.add(key)

    def apply(self, changes: Changes) -> None:
        """Let the next block see what this one changed."""
        for row in changes.versions:
            row_type, key = type(row), key_of(row)
            self._session_count += row_type is Session and self._rows[row_type].get(key) is None
            self._rows[row_type][key] = row


def _select_current(row_type: type[Versioned], keys: list[Key]) -> Select[tuple[object, ...]]:
    table = table_of(row_type)
    among = table.c[row_type.KEY[0]].in_({key[0] for key in keys})  # more than asked where a key has a second column
    return select(*[table.c[name] for name in columns_of(row_type)]).where(among, table.c.valid_to.is_(None))


def _chunks(keys: list[Key]) -> Iterable[list[Key]]:
    return (keys[at : at + _KEYS_A_QUERY] for at in range(0, len(keys), _KEYS_A_QUERY))
