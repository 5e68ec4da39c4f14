"""The market after the newest indexed block, kept in memory and moved on by the indexer's changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from counterfoil.market.snapshots import Snapshot, candidate_of, snapshot
from counterfoil.routing.lottery import LotteryError, Slate
from indexer.changes import Changes, Mark, changes_since
from indexer.query import AsOf, ServiceView, Store, category_id
from indexer.store.deadline import holding, taking_its_time

_NOBODY = Slate()


@dataclass(frozen=True, slots=True)
class Head:
    """Every category after one block, by category id; None where a row is one that no chain could have produced.

    Nothing in it ever changes, so threads may share one; `addresses` are the contracts' by name.
    """

    as_of: AsOf
    mark: Mark
    addresses: Mapping[str, str]
    slates: Mapping[str, Slate | None]


class LiveMarket:
    """The newest indexed block's market. Threads may share one: who comes first reads what changed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = Lock()
        self._head: Head | None = None

    def head(self) -> Head:
        """Give the market after the newest indexed block, reading only what changed since the last one given.

        Raises UnknownBlockError while the index is empty, StoreError when it has become another deployment's.
        """
        with holding(self._lock):
            with taking_its_time():
                changes = changes_since(self.store, self._head.mark if self._head else None)
            if changes is not None:
                self._head = advance(self._head, changes)
            assert self._head is not None  # noqa: S101 - without a mark there are always changes
            return self._head

    def snapshot(self, category: str) -> Snapshot:
        """Give what `snapshot` reads as of the newest indexed block. Raises what `head` raises, and LotteryError."""
        head = self.head()
        slate = head.slates.get(category_id(category), _NOBODY)
        if slate is None:
            return snapshot(self.store, category)  # says which row it is
        return Snapshot(head.as_of, category, slate)


def advance(before: Head | None, changes: Changes) -> Head:
    """Give the market after some changes; categories without any keep their slates. Pure."""
    slates = dict(before.slates) if before is not None and not changes.complete else {}
    for category, views in _by_category(changes.listings).items():
        slates[category] = _changed(slates.get(category, _NOBODY), views)
    return Head(changes.as_of, changes.mark, changes.addresses, slates)


def _by_category(listings: Iterable[ServiceView]) -> dict[str, list[ServiceView]]:
    found: dict[str, list[ServiceView]] = {}
    for view in listings:
        found.setdefault(view.category_id, []).append(view)
    return found


def _changed(before: Slate | None, views: Sequence[ServiceView]) -> Slate | None:
    if before is None:
        return None
    try:
        routable = [candidate_of(view) for view in views if view.routable]
    except LotteryError:
        return None
    slate = before.changed({view.service_id for view in views}, routable)
    slate.weighing()  # before anybody waits for it
    return slate
