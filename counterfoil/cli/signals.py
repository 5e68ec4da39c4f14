"""Ending in order: the first SIGINT or SIGTERM asks to stop, the second one ends the process at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Give an event that the first signal sets."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask_to_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()
        restore()  # whoever asks twice does not want to wait

    for number in before:
        signal.signal(number, ask_to_stop)
    try:
        yield stop
    finally:
        restore()
