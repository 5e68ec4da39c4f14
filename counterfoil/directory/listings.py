"""Listings with their experience as of a block: of the newest one from memory, of an older one from the database."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from counterfoil.directory.board import Board, Experience, Ranked
from counterfoil.directory.directory import Directory, board_as_of, experience_as_of
from indexer import query
from indexer.query import Answer, At, Page, Store, category_id
from indexer.views import AsOf, ServiceView

Listed = tuple[ServiceView, Experience]
Placed = tuple[Ranked, Experience]
T = TypeVar("T")


class AnyListings(Protocol):
    """Questions about listings as of one block. Each raises UnknownBlockError for a block that the index lacks."""

    def one(self, service_id: int) -> Answer[Listed | None]:
        """Give one listing, None where there is none."""

    def page(self, category: str | None, *, routable: bool, after: int, limit: int) -> Answer[Page[Listed]]:
        """List services by id beyond `after`: all, or those of a category, or only the routable ones."""

    def best(self, task: str, need: str, *, routable: bool, after: int, limit: int) -> Answer[Page[Placed]]:
        """Rank all listings for a task and a need; `after` and `next` are places."""


class LiveListings:
    """Listings of the newest indexed block."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def one(self, service_id: int) -> Answer[Listed | None]:
        """Give one listing."""
        with self._directory.board() as (as_of, board):
            view = board.view(service_id)
            return Answer(as_of, None if view is None else (view, board.experience(service_id)))

    def page(self, category: str | None, *, routable: bool, after: int, limit: int) -> Answer[Page[Listed]]:
        """List services."""
        wanted = None if category is None else category_id(category)
        with self._directory.board() as (as_of, board):
            views, following = board.page(wanted, limit, after, routable=routable)
            return Answer(as_of, Page(tuple((view, board.experience(view.service_id)) for view in views), following))

    def best(self, task: str, need: str, *, routable: bool, after: int, limit: int) -> Answer[Page[Placed]]:
        """Rank all listings."""
        with self._directory.board() as (as_of, board):
            return _ranked(as_of, board, task, need, routable=routable, after=after, limit=limit)


class StoredListings:
    """Listings as of any block."""

    def __init__(self, store: Store, at: At) -> None:
        self._store, self._at = store, at

    def one(self, service_id: int) -> Answer[Listed | None]:
        """Give one listing."""
        answer = query.service(self._store, service_id, self._at)
        found = self._known([answer.value] if answer.value else [], answer.as_of)
        return Answer(answer.as_of, found[0] if found else None)

    def page(self, category: str | None, *, routable: bool, after: int, limit: int) -> Answer[Page[Listed]]:
        """List services."""
        answer = query.services(
            self._store, category=category, routable=routable, after=after, limit=limit, at=self._at
        )  # fmt: skip
        return Answer(answer.as_of, Page(self._known(answer.value.items, answer.as_of), answer.value.next))

    def best(self, task: str, need: str, *, routable: bool, after: int, limit: int) -> Answer[Page[Placed]]:
        """Rank all listings; QuestionError where by then there were too many records."""
        as_of, board = board_as_of(self._store, self._at)
        return _ranked(as_of, board, task, need, routable=routable, after=after, limit=limit)

    def _known(self, views: Sequence[ServiceView], as_of: AsOf) -> tuple[Listed, ...]:
        # By its hash: were the block replaced in between, the answer must not be put together of two.
        known = experience_as_of(self._store, [view.service_id for view in views], as_of.hash).value
        return tuple((view, known[view.service_id]) for view in views)


def _ranked(
    as_of: AsOf, board: Board, task: str, need: str, *, routable: bool, after: int, limit: int
) -> Answer[Page[Placed]]:
    ranked = board.best(task, need, limit + 1, after, routable=routable)
    placed = tuple((one, board.experience(one.view.service_id)) for one in ranked[:limit])
    return Answer(as_of, Page(placed, after + limit if len(ranked) > limit else None))
