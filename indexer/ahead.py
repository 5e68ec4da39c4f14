"""One job in the background that gives results one after the other: what comes next is read while this is written."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

from indexer.source import never, stopping

T = TypeVar("T")
RESULTS_AHEAD = 4
"""How many results may wait to be taken."""
_AT_ONCE = 2
"""How many are taken at least, unless there are no more: a writer is faster with much at a time."""
_LOOK_SECONDS = 0.1
"""How often it is looked whether a result is still wanted."""
_END_SECONDS = 1
"""How long a thread that is not needed any more is waited for."""


def _nothing() -> None:
    return None


class _Job(Generic[T]):
    """An iterator that a thread goes through; what it raises comes after what it gave."""

    def __init__(self, results: Iterator[T], cancel: Callable[[], None]) -> None:
        self._results = results
        self._cancel = cancel
        self._ready: deque[T] = deque()
        self._error: BaseException | None = None
        self._over = self._dropped = False
        self._changed = threading.Condition()

    def run(self) -> None:
        try:
            for result in self._results:
                if not self._put(result):
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised where the results are taken
            self._error = error
        with self._changed:
            self._over = True
            self._changed.notify()

    def _put(self, result: T) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._dropped or len(self._ready) < RESULTS_AHEAD)
            self._ready.append(result)
            self._changed.notify()
            return not self._dropped

    def take(self, is_over: Callable[[], bool]) -> list[T]:
        with self._changed:
            while not self._changed.wait_for(lambda: len(self._ready) >= _AT_ONCE or self._over, _LOOK_SECONDS):
                if is_over():
                    raise stopping()
            if not self._ready and self._error is not None:
                raise self._error
            found = list(self._ready)
            self._ready.clear()
            self._changed.notify()
            return found

    def drop(self) -> None:
        with self._changed:
            self._dropped = True
            self._changed.notify()
        self._cancel()


class Ahead(Generic[T]):
    """Holds at most one job. Its results, and what it raised, come out of `take` and nowhere else."""

    def __init__(self, is_over: Callable[[], bool] = never) -> None:
        """Once `is_over` is true, nothing is waited for."""
        self._is_over = is_over
        self._job: _Job[T] | None = None
        self._threads: list[threading.Thread] = []

    @property
    def pending(self) -> bool:
        """Whether there is a job."""
        return self._job is not None

    def start(self, results: Iterator[T], cancel: Callable[[], None] = _nothing) -> None:
        """Begin a job in the place of the one before; `cancel` is called when its results are no longer wanted.

        Where the system gives no thread there is none: whoever takes results finds nothing, and makes them itself.
        """
        self.drop()
        job = _Job(results, cancel)
        # A thread that the interpreter does not wait for: it may hang in a request that nobody wants any more.
        thread = threading.Thread(target=job.run, name="ahead", daemon=True)
        with suppress(RuntimeError):
            thread.start()
            self._job = job
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]

    def take(self) -> list[T]:
        """Give all results that are ready, having waited for some; nothing where the job is over, or there is none."""
        job, self._job = self._job, None
        found = job.take(self._is_over) if job else []
        if found:
            self._job = job
        return found

    def drop(self) -> None:
        """Forget the job; where it runs already, it ends unheard."""
        job, self._job = self._job, None
        if job:
            job.drop()

    def __enter__(self) -> "Ahead[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()
        for thread in self._threads:
            thread.join(_END_SECONDS)
