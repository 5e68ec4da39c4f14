"""The directory of the newest block, moved on by the index's changes; of older blocks the database is asked."""

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock

from counterfoil.directory.board import Board, Experience
from counterfoil.directory.records import record_of
from indexer.changes import Mark, Step, listings_of, step_from
from indexer.errors import QuestionError, StoreUnavailableError, UnknownBlockError
from indexer.query import Answer, AsOf, At, Store
from indexer.records import FoundRecord, all_records, record_changes, records_among, records_of
from indexer.store.deadline import holding, taking_its_time
from indexer.store.moment import moment_at
from indexer.views import ServiceView

MAX_RECORDS_AS_OF = 100_000
"""Most records that are added up anew for a question about an older block."""


_STEPS_KEPT = 128
"""How many steps a reorg may take back before all has to be read anew."""
_MOST_UNDONE = 2_000
"""Of how many services the experience is read again, at most, before reading all is not slower."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """A step that was taken: the mark that it led to, and the services that it changed."""

    mark: Mark
    service_ids: frozenset[int] = frozenset()


class Directory:
    """The newest indexed block's board. Threads may share one: who comes first reads what changed.

    Nobody waits while somebody reads everything anew: the others are answered as of the block before.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = Lock()
        self._reading_all = Lock()
        self._board = Board()
        self._taken: Sequence[_Taken] = ()
        self._as_of: AsOf | None = None

    def warm(self) -> None:
        """Read everything now, so that nobody has to wait for it; an empty index is read when it is asked for."""
        with suppress(UnknownBlockError), self.board():
            pass

    @contextmanager
    def board(self) -> Iterator[tuple[AsOf, Board]]:
        """Give the board after the newest indexed block, and that block; it stands still while the block runs.

        Listings and experience that were read of it stay as they are for good.
        Raises UnknownBlockError while the index is empty, StoreError when it has become another deployment's,
        StoreUnavailableError while another thread reads everything for the first time.
        """
        if not self._advance():
            with taking_its_time():
                self._read_all()
        with holding(self._lock):
            if self._as_of is None:
                raise StoreUnavailableError("The directory is being read for the first time: ask again in a moment.")
            yield self._as_of, self._board

    def _advance(self) -> bool:
        """Take in what changed; False where everything has to be read."""
        with (
            holding(self._lock),
            taking_its_time(),
            step_from(self.store, [taken.mark for taken in self._taken]) as step,
        ):
            if step is None:
                return True
            kept = [taken for taken in self._taken if step.since and taken.mark.number <= step.since.number]
            undone = frozenset[int]().union(*(taken.service_ids for taken in self._taken[len(kept) :]))
            if not kept or len(undone) > _MOST_UNDONE:
                return False
            changed = _move(self._board, step, undone)
            self._taken = [*kept, _Taken(step.mark, changed)][-_STEPS_KEPT:]
            self._as_of = step.moment.as_of
            return True

    def _read_all(self) -> None:
        if not self._reading_all.acquire(blocking=False):
            return
        try:
            with step_from(self.store, ()) as step:
                assert step is not None  # noqa: S101 - without a mark there is always a step
                board = Board()
                _fill(board, listings_of(step), all_records(step.moment))
            with self._lock:
                self._board, self._taken, self._as_of = board, [_Taken(step.mark)], step.moment.as_of
        finally:
            self._reading_all.release()


def _move(board: Board, step: Step, undone: Set[int]) -> frozenset[int]:
    """Take a step, `undone` being the services that blocks changed which are gone. Gives the services that changed."""
    assert step.after is not None  # noqa: S101 - such a step begins with a new board
    listings = listings_of(step, undone)
    changes = record_changes(step.moment, step.after)
    # All is read before anything is moved: where the database fails, the board is as it was.
    records = [found for found in changes.records if found.fact.service_id not in undone]
    records += records_among(step.moment, sorted(undone)) if undone else ()
    listed = {view.service_id for view in listings}
    found_for = {found.fact.service_id for found in records}
    board.withdraw(undone - listed)
    board.forget(changes.renewed | undone)
    board.detach(found_for)
    _fill(board, listings, records)
    return frozenset(listed | found_for | changes.renewed | undone)


def board_as_of(store: Store, at: At) -> tuple[AsOf, Board]:
    """Add up the board of an older block. QuestionError where that would take too many records."""
    board = Board()
    with moment_at(store, at) as moment:
        records = tuple(all_records(moment, MAX_RECORDS_AS_OF + 1))
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
        known[found.fact.service_id].count(record_of(found))
    for one in known.values():
        one.settle()
    return Answer(answer.as_of, known)


def _fill(board: Board, listings: Iterable[ServiceView], records: Iterable[FoundRecord]) -> None:
    for view in listings:
        board.put(view)
    board.add(map(record_of, records))
