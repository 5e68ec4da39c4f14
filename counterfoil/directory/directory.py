"""The directory of the newest block, moved on by the index's changes; of older blocks the database is asked."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock

from counterfoil.directory.board import Board, Experience
from counterfoil.directory.records import record_of
from indexer.changes import Mark, listings_of, step_from
from indexer.errors import QuestionError, UnknownBlockError
from indexer.query import Answer, AsOf, At, Store
from indexer.records import FoundRecord, records_after, records_of
from indexer.store.deadline import holding, taking_its_time
from indexer.store.moment import moment_at
from indexer.views import ServiceView

MAX_RECORDS_AS_OF = 100_000
"""Most records that are added up anew for a question about an older block."""


class Directory:
    """The newest indexed block's board. Threads may share one: who comes first reads what changed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = Lock()
        self._board = Board()
        self._mark: Mark | None = None
        self._as_of: AsOf | None = None

    def warm(self) -> None:
        """Read everything now, so that nobody has to wait for it; an empty index is read when it is asked for."""
        with suppress(UnknownBlockError), self.board():
            pass

    @contextmanager
    def board(self) -> Iterator[tuple[AsOf, Board]]:
        """Give the board after the newest indexed block, and that block; it stands still while the block runs.

        Listings and experience that were read of it stay as they are for good.
        Raises UnknownBlockError while the index is empty, StoreError when it has become another deployment's.
        """
        with holding(self._lock):
            with taking_its_time():
                self._advance()
            assert self._as_of is not None  # noqa: S101 - without a mark there is always a step
            yield self._as_of, self._board

    def _advance(self) -> None:
        with step_from(self.store, self._mark) as step:
            if step is None:
                return
            board = Board() if step.after is None else self._board
            listings = listings_of(step)
            records: Iterable[FoundRecord] = records_after(step.moment, step.after)
            if step.after is not None:
                records = tuple(records)  # a board in use takes all of a step or, where the database fails, nothing
                board.detach({found.fact.service_id for found in records})
            _fill(board, listings, records)
            self._board, self._mark, self._as_of = board, step.mark, step.moment.as_of


def board_as_of(store: Store, at: At) -> tuple[AsOf, Board]:
    """Add up the board of an older block. QuestionError where that would take too many records."""
    board = Board()
    with moment_at(store, at) as moment:
        records = tuple(records_after(moment, None, MAX_RECORDS_AS_OF + 1))
        if len(records) > MAX_RECORDS_AS_OF:
            raise QuestionError(
                f"By block {moment.as_of.block} there are more than {MAX_RECORDS_AS_OF} records, too many to add up "
                "for one question: ask for the newest block, without `at`."
            )
        _fill(board, map(moment.service_view, moment.all(moment.services().query)), records)
        return moment.as_of, board


def experience_as_of(store: Store, service_ids: Sequence[int], at: At) -> Answer[dict[int, Experience]]:
    """Add up what was known of some services as of a block."""
    answer = records_of(store, service_ids, at, MAX_RECORDS_AS_OF + 1)
    if len(answer.value) > MAX_RECORDS_AS_OF:
        raise QuestionError(
            f"By block {answer.as_of.block} these services have more than {MAX_RECORDS_AS_OF} records, too many to add "
            "up for one question: ask for the newest block, without `at`, or for fewer services."
        )
    known = {service_id: Experience() for service_id in service_ids}
    for found in answer.value:
        known[found.fact.service_id].add(record_of(found))
    return Answer(answer.as_of, known)


def _fill(board: Board, listings: Iterable[ServiceView], records: Iterable[FoundRecord]) -> None:
    for view in listings:
        board.put(view)
    for found in records:
        board.add(record_of(found))
