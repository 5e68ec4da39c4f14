"""Two indexes of one deployment: do they agree, and if not, from which block on."""

from sqlalchemy import Connection

from indexer.errors import StoreError, UnknownBlockError
from indexer.store.database import Store
from indexer.store.reader import digest_at, first_block, read_cursor, read_meta


def compare(ours: Store, theirs: Store) -> tuple[int, int, int | None]:
    """Give the first and last block that both hold, and the first one where their digests differ (None: they agree).

    Raises StoreError when they are of different deployments, UnknownBlockError when one is empty.
    """
    with ours.read() as left, theirs.read() as right:
        ours_meta, theirs_meta = read_meta(left), read_meta(right)
        if ours_meta != theirs_meta:
            differing = sorted(n for n in ours_meta.keys() | theirs_meta if ours_meta.get(n) != theirs_meta.get(n))
            raise StoreError(
                f"{ours.label} and {theirs.label} are of different deployments ({', '.join(differing)} differ): "
                "compare indexes of the same one."
            )
        first = max(_first(left, ours.label), _first(right, theirs.label))
        last = min(_last(left), _last(right))
        return first, last, _first_difference(left, right, first, last)


def _first(connection: Connection, label: str) -> int:
    first = first_block(connection)
    if first is None:
        raise UnknownBlockError(f"The index at {label} is empty: fill it with `counterfoil index run`.")
    return first


def _last(connection: Connection) -> int:
    cursor = read_cursor(connection)
    return cursor.number if cursor else 0


def _first_difference(left: Connection, right: Connection, first: int, last: int) -> int | None:
    """Search by halves: a running digest that once differs differs for ever."""
    if digest_at(left, last) == digest_at(right, last):
        return None
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if digest_at(left, middle) == digest_at(right, middle):
            low = middle + 1
        else:
            high = middle
    return low
