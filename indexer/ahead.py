"""One job in the background: the next range is read while the last one is written."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


def _nothing() -> None:
    return None


class Ahead(Generic[T]):
    """Holds at most one job. Its result, or what it raised, comes out of `take` and nowhere else."""

    def __init__(self) -> None:
        # More than one thread, so that a dropped job that hangs does not hold up the next.
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="ahead")
        self._job: Future[T] | None = None
        self._cancel: Callable[[], None] = _nothing

    @property
    def pending(self) -> bool:
        """Whether there is a job."""
        return self._job is not None

    def start(self, job: Callable[[], T], cancel: Callable[[], None] = _nothing) -> None:
        """Begin a job in the place of the one before; `cancel` is called when its result is no longer wanted."""
        self.drop()
        self._job, self._cancel = self._pool.submit(job), cancel

    def take(self) -> T | None:
        """Wait for the job and give its result, None where there is no job."""
        job, self._job = self._job, None
        return job.result() if job else None

    def drop(self) -> None:
        """Forget the job; where it runs already, it ends unheard."""
        if self._job:
            self._job.cancel()
            self._cancel()
            self._job = None

    def __enter__(self) -> "Ahead[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()
        self._pool.shutdown()
