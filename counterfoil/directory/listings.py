"""Listings with their experience as of a block: of the newest one from memory, of an older one from the database."""

from collections.abc import Sequence

from counterfoil.directory.board import Board, Experience, Ranked
from counterfoil.directory.directory import Directory, board_as_of, experience_as_of
from indexer import query
from indexer.errors import ForkError, QuestionError, UnknownBlockError
from indexer.query import Answer, At, Page, Store, category_id
from indexer.store.moment import bounded_id
from indexer.views import AsOf, ServiceView

Listed = tuple[ServiceView, Experience]
Placed = tuple[Ranked, Experience]
MAX_PLACES = 100_000
"""The last place after which a page of a ranking may begin."""


class LiveListings:
    """What `StoredListings` answers: as of the newest indexed block from memory, of another from the database."""

    def __init__(self, directory: Directory, at: At = None) -> None:
        self._directory, self._at = directory, at
        self._stored = StoredListings(directory.store, at)

    def one(self, service_id: int) -> Answer[Listed | None]:
        """Give one listing."""
        with self._directory.board() as (as_of, board):
            if self._is_at(as_of):
                view = board.view(service_id)
                return Answer(as_of, None if view is None else (view, board.experience(service_id)))
        return self._stored.one(service_id)

    def page(self, category: str | None, *, routable: bool, after: int, limit: int) -> Answer[Page[Listed]]:
        """List services."""
        wanted = None if category is None else category_id(category)
        bounded_id(after)
        with self._directory.board() as (as_of, board):
            if self._is_at(as_of):
                views, following = board.page(wanted, limit, after, routable=routable)
                listed = tuple((view, board.experience(view.service_id)) for view in views)
                return Answer(as_of, Page(listed, following))
        return self._stored.page(category, routable=routable, after=after, limit=limit)

    def best(self, task: str, need: str, *, routable: bool, after: int, limit: int) -> Answer[Page[Placed]]:
        """Rank all listings."""
        with self._directory.board() as (as_of, board):
            if self._is_at(as_of):
                return _ranked(as_of, board, task, need, routable=routable, after=after, limit=limit)
        return self._stored.best(task, need, routable=routable, after=after, limit=limit)

    def _is_at(self, as_of: AsOf) -> bool:
        return self._at in {None, as_of.block, as_of.hash}


class StoredListings:
    """Listings as of any block. Raises UnknownBlockError for one that the index lacks."""

    def __init__(self, store: Store, at: At = None) -> None:
        self._store, self._at = store, at

    def one(self, service_id: int) -> Answer[Listed | None]:
        """Give one listing, None where there is none."""
        answer = query.service(self._store, service_id, self._at)
        found = self._known([answer.value] if answer.value else [], answer.as_of)
        return Answer(answer.as_of, found[0] if found else None)

    def page(self, category: str | None, *, routable: bool, after: int, limit: int) -> Answer[Page[Listed]]:
        """List services by id beyond `after`: all, or those of a category, or only the routable ones."""
        answer = query.services(
            self._store, category=category, routable=routable, after=after, limit=limit, at=self._at
        )  # fmt: skip
        return Answer(answer.as_of, Page(self._known(answer.value.items, answer.as_of), answer.value.next))

    def best(self, task: str, need: str, *, routable: bool, after: int, limit: int) -> Answer[Page[Placed]]:
        """Rank all listings, `after` and `next` being places; QuestionError where there were too many records."""
        as_of, board = board_as_of(self._store, self._at)
        return _ranked(as_of, board, task, need, routable=routable, after=after, limit=limit)

    def _known(self, views: Sequence[ServiceView], as_of: AsOf) -> tuple[Listed, ...]:
        # By its hash: were the block replaced in between, the answer must not be put together of two.
        try:
            known = experience_as_of(self._store, [view.service_id for view in views], as_of.hash).value
        except UnknownBlockError:
            raise ForkError(f"Block {as_of.block} was replaced while it was read: ask again.") from None
        return tuple((view, known[view.service_id]) for view in views)


def _ranked(
    as_of: AsOf, board: Board, task: str, need: str, *, routable: bool, after: int, limit: int
) -> Answer[Page[Placed]]:
    if after > MAX_PLACES:
        raise QuestionError(f"A ranking is given up to place {MAX_PLACES}: begin at an earlier one.")
    ranked = board.best(task, need, limit + 1, after, routable=routable)
    placed = tuple((one, board.experience(one.view.service_id)) for one in ranked[:limit])
    return Answer(as_of, Page(placed, after + limit if len(ranked) > limit and after + limit <= MAX_PLACES else None))
