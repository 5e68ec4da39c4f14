"""Until when a question may keep the database: set by who serves it, heeded by every read of the same context."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from indexer.errors import TooSlowError

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


def too_slow(cause: str = "its time is over") -> TooSlowError:
    """The error of a question that ran into its deadline."""
    return TooSlowError(
        f"This question takes the database longer than it may ({cause}): ask for less, such as a smaller limit, a "
        "single item or the newest block, or ask again when the server has less to do."
    )


@contextmanager
def answering_within(seconds: float) -> Iterator[None]:
    """End every read of the block that goes on `seconds` from now. They raise TooSlowError."""
    with _until(min(_DEADLINE.get(), time.monotonic() + seconds)):
        yield


@contextmanager
def taking_its_time() -> Iterator[None]:
    """Lift the limit for what is read for everybody: were it ended, nobody would ever have it."""
    with _until(math.inf):
        yield


@contextmanager
def _until(deadline: float) -> Iterator[None]:
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def seconds_left() -> float:
    """How long a read may take that begins now: infinite without a limit. Raises TooSlowError when it is over."""
    left = _DEADLINE.get() - time.monotonic()
    if left <= 0:
        raise too_slow()
    return left


def is_over() -> bool:
    """Whether the time is over."""
    return time.monotonic() >= _DEADLINE.get()


@contextmanager
def holding(lock: Lock) -> Iterator[None]:
    """Hold a lock for the block. Raises TooSlowError where others hold it until the time is over."""
    left = seconds_left()
    if not lock.acquire(timeout=-1 if math.isinf(left) else left):
        raise too_slow()
    try:
        yield
    finally:
        lock.release()
