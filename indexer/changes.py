"""What changed in the listings since a block: for readers that keep the newest state in memory."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import CompoundSelect, Connection, select, union

from indexer.errors import StoreError
from indexer.rows import Node, NodeLoad, NodeReputation, NodeStake, Parameter, Service
from indexer.store.database import Store
from indexer.store.moment import Moment, moment_at
from indexer.store.reader import read_meta
from indexer.store.tables import BLOCK, CURSOR, table_of
from indexer.views import AsOf, ServiceView

_OF_NODES = tuple(map(table_of, (Node, NodeStake, NodeLoad, NodeReputation)))
_NEWEST = select(BLOCK.c.number, BLOCK.c.hash, BLOCK.c.digest, CURSOR.c.finalized).join(
    CURSOR, CURSOR.c.number == BLOCK.c.number
)
_ADDRESS = "address."


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a reader has read, in which index. What it read stands while the block is held with this digest."""

    number: int
    hash: str
    digest: str
    finalized: int | None
    index_of: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Changes:
    """Listings as they are after a block: with `complete` all of them, else those that changed since a mark."""

    as_of: AsOf
    mark: Mark
    addresses: Mapping[str, str]
    complete: bool
    listings: tuple[ServiceView, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """From a mark that stands to the newest block, whose mark is `mark`; `since` None where all has to be read anew."""

    moment: Moment
    mark: Mark
    addresses: Mapping[str, str]
    since: Mark | None

    @property
    def after(self) -> int | None:
        """The block above which everything stands that changed; None where all has to be read anew."""
        return None if self.since is None else self.since.number


@contextmanager
def step_from(store: Store, marks: Sequence[Mark]) -> Iterator[Step | None]:
    """Open what is to be read since the newest of some marks, None when the newest indexed block is still that one's.

    After a reorg or a rebuild the step is from the newest mark that still stands. All is to be read where none does,
    and where a parameter came late. The marks come the oldest first. Raises UnknownBlockError for an empty index, and
    StoreError when the index has become that of another deployment.
    """
    if marks and is_newest(store, marks[-1]):
        yield None
        return
    with moment_at(store, None) as moment:
        index_of = _index_of(moment.connection)
        if marks and marks[-1].index_of != index_of:
            raise StoreError(
                f"The index at {store.label} is of another deployment than it was: start this program again, "
                "or name another COUNTERFOIL_DATABASE."
            )
        addresses = {name.removeprefix(_ADDRESS): text for name, text in index_of.items() if name.startswith(_ADDRESS)}
        newest = Mark(*moment.connection.execute(_NEWEST).one(), index_of)
        since = next((mark for mark in reversed(marks) if _stands(moment.connection, mark)), None)
        yield Step(moment, newest, addresses, since)


def changes_since(store: Store, mark: Mark | None) -> Changes | None:
    """Read the listings that changed up to the newest indexed block; raises and gives None as `step_from` does."""
    with step_from(store, [] if mark is None else [mark]) as step:
        if step is None:
            return None
        return Changes(step.moment.as_of, step.mark, step.addresses, step.after is None, listings_of(step))


def listings_of(step: Step, others: Collection[int] = ()) -> tuple[ServiceView, ...]:
    """Read the listings that a step changed, and some others, as they are after it."""
    rows = step.moment.services()
    if step.after is not None:
        rows = rows.where(rows.key.c.service_id.in_(_changed(step.after, others)))
    return tuple(map(step.moment.service_view, step.moment.all(rows.query)))


Place = tuple[int, str, str, int | None]
"""The newest indexed block: number, hash, digest, and the newest final block."""


def newest_place(store: Store) -> Place | None:
    """Read how far an index is, None while it is empty: where two are alike, so is every answer about the chain."""
    with store.read() as connection:
        row = connection.execute(_NEWEST).first()
    return None if row is None else (row.number, row.hash, row.digest, row.finalized)


def is_newest(store: Store, mark: Mark) -> bool:
    """Whether the newest indexed block is the one of a mark."""
    return newest_place(store) == (mark.number, mark.hash, mark.digest, mark.finalized)


def _index_of(connection: Connection) -> dict[str, str]:
    """What never changes of an index while it is one deployment's."""
    fixed = ("chain_id", "genesis_hash")
    found = read_meta(connection)
    return {name: value for name, value in found.items() if name in fixed or name.startswith(_ADDRESS)}


def _stands(connection: Connection, mark: Mark) -> bool:
    same = (BLOCK.c.number == mark.number, BLOCK.c.hash == mark.hash, BLOCK.c.digest == mark.digest)
    if connection.execute(select(BLOCK.c.number).where(*same)).first() is None:
        return False
    parameter = table_of(Parameter)
    late = select(parameter.c.valid_from).where(parameter.c.valid_from > mark.number).limit(1)
    return connection.execute(late).first() is None


def _changed(after: int, others: Collection[int]) -> CompoundSelect[int]:
    """Select the services of which a row that a view is made of has a version above a block, and some others."""
    service = table_of(Service)
    nodes = union(*(select(table.c.node_id).where(table.c.valid_from > after) for table in _OF_NODES))
    return union(
        select(service.c.service_id).where(service.c.valid_from > after),
        select(service.c.service_id).where(service.c.node_id.in_(nodes), service.c.valid_to.is_(None)),
        *([select(service.c.service_id).where(service.c.service_id.in_(others))] if others else ()),
    )
